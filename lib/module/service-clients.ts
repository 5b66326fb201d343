import { Inject, Injectable, Optional } from '@nestjs/common';
import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { RefusedSecrets } from '../auth/endpoint/refused-secrets.js';
import { OPTIONS, type ServiceModuleOptions, valueOf } from '../config/options.js';
import { isFile } from '../config/secret.js';
import { type Service } from '../engine/create-service.js';
import { type Resources } from '../engine/resources.js';
import { ServiceConfigurationError, ServiceConnectionError } from '../errors/index.js';
import { type ServiceHttpService } from '../http/service-http.service.js';
import { type LinkSdkService } from '../link-sdk/link-sdk.service.js';
import { systemClock } from '../time/clock.js';
import { openService, type Shared } from './load-configuration.js';

/** The options of one client of {@link ServiceClients}. */
export interface ServiceClientOptions extends ServiceModuleOptions {
  /**
   * In its log lines, `nestjs_service.module` of its metrics and `module` of `http.onCall`'s events. At most 128 letters,
   * digits and `. _ : @ / -`.
   */
  name: string;
}

/** A client that was made at run time. */
export interface ServiceClient extends Resources {
  readonly auth: ServiceAuthService;
  readonly http: ServiceHttpService;
  readonly sdk: LinkSdkService;
  /** Ends it as a shutdown would: its calls get `http.shutdownTimeout`. Resolves when nothing of it is left. */
  close(): Promise<void>;
}

type OpenService = typeof openService;

/** Never provided, so that Nest injects nothing. */
const OPEN_SERVICE = Symbol('nestjs-service:open');

/**
 * Makes clients while the application runs, for example one for each tenant. They share nothing with each other, and end
 * with the application at the latest. A host without a client of its own adds this class to its providers.
 */
// It does not say `implements` of Nest's hooks: its published declaration leaves them out.
@Injectable()
export class ServiceClients {
  /** How many clients there may be at one time; it can be set. */
  limit = 1_000;
  /**
   * Whether options may name files (`{ file }`). Default false: options that a tenant can edit, with an address of the
   * tenant's own, would send any file of this server there.
   */
  allowFiles = false;
  readonly #open: OpenService;
  readonly #running = new Set<Service>();
  /** Counts for {@link limit}: also clients that are about to run. */
  #count = 0;
  /** Outlives each client: a warning comes once for all, and a refused secret is not sent again. */
  readonly #shared: Shared = {
    warned: new Set(),
    refusedSecrets: new RefusedSecrets(systemClock),
  };
  #isEnding = false;

  /** @internal */
  constructor(@Optional() @Inject(OPEN_SERVICE) open: OpenService = openService) {
    this.#open = open;
  }

  /**
   * Makes a client with these options, which are those of `ServiceModule.forRoot()`. No variable and no namespace is read:
   * one tenant would get the secret of another. It resolves after the `startupCheck`.
   * @throws ServiceConfigurationError if the options are not usable or there are {@link limit} clients
   * (ServiceCertificateError if all faults are about certificates, ServiceStartupError for `startupCheck`);
   * ServiceConnectionError (`closed`) once the application shuts down
   */
  async create(options: ServiceClientOptions): Promise<ServiceClient> {
    const { name, ...given } = checked(options, this.allowFiles);
    this.#admit();
    if (!(this.#count < this.limit)) {
      const message = `is ${this.limit}, and ${this.#count} are open: close() those that are not used, or set clients.limit to a higher number.`;
      throw new ServiceConfigurationError(
        [{ option: 'limit', message }],
        'ServiceClients makes no more clients',
      );
    }
    this.#count += 1;
    try {
      const service = await this.#open(given, name, undefined, this.#shared);
      await this.#start(service);
      const { start: _start, beginShutdown: _begin, log: _log, ...parts } = service;
      return { ...parts, close: () => this.#close(service) };
    } catch (error) {
      this.#count -= 1;
      throw error;
    }
  }

  /** @internal */
  beforeApplicationShutdown(): void {
    this.#isEnding = true;
    for (const client of this.#running) client.beginShutdown();
  }

  /** @internal */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.#running].map((client) => client.close()));
  }

  async #start(service: Service): Promise<void> {
    this.#running.add(service);
    try {
      this.#admit();
      await service.start();
      this.#admit();
    } catch (error) {
      this.#running.delete(service);
      await service.close();
      throw error;
    }
  }

  #admit(): void {
    if (this.#isEnding) throw ServiceConnectionError.closed();
  }

  async #close(service: Service): Promise<void> {
    await service.close();
    if (this.#running.delete(service)) this.#count -= 1;
  }
}

function checked(options: unknown, allowFiles: boolean): ServiceClientOptions {
  const { name } = Object(options) as Partial<ServiceClientOptions>;
  const isName = typeof name === 'string' && /^[\w.:@/-]{1,128}$/.test(name);
  const files = allowFiles ? [] : OPTIONS.filter(({ option }) => isFile(valueOf(options, option)));
  const faults = files.map(({ option }) => ({ option, message: FILE_REFUSED }));
  if (!isName)
    faults.unshift({ option: 'name', message: 'must be given: 1 to 128 letters, digits and . _ : @ / -' });
  if (faults.length === 0) return options as ServiceClientOptions;
  throw new ServiceConfigurationError(faults, 'The options of ServiceClients.create() are not usable');
}

const FILE_REFUSED =
  'names a file. Give its text. If nobody but you decides which files are named, allow them on the injected ServiceClients: clients.allowFiles = true.';
