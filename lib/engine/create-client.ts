import { BanksService } from '../banks/banks.service.js';
import { type ResourceName } from '../config/names.js';
import { CustomersService } from '../customers/customers.service.js';
import { ServiceHttpService } from '../http/service-http.service.js';
import { Authenticator } from '../auth/authenticator.js';
import { TokenCache } from '../auth/token-cache.js';
import { rotatingClientSecret, TokenEndpoint } from '../auth/endpoint/token-endpoint.js';
import { ServiceAuthService } from '../auth/service-auth.service.js';
import { SharedStore } from '../auth/store/shared-store.js';
import { sleep, systemClock } from '../time/time.js';
import { type ServiceModuleOptions } from '../config/options.js';
import { type ResolvedOptions } from '../config/resolve-options.js';
import { describeFault, ServiceCertificateError, ServiceConfigurationError } from '../errors/index.js';
import { exchange } from '../exchange/exchange.js';
import { type Log, SafeLogger } from '../telemetry/telemetry.js';
import { type ServiceIo } from '../exchange/io.js';
import { CallsInFlight } from '../auth/calls-in-flight.js';
import { type ClientContext } from '../http/call.js';
import { createServiceAxios } from '../http/service-axios.js';
import { LinkSdkService } from '../link-sdk/link-sdk.service.js';
import { type Identity } from '../tls/client-identity.js';
import { WebhooksService } from '../webhooks/webhooks.service.js';
import { type ServiceHealth, ServiceHealthCheck, type ServiceHealthOptions } from './health.js';
import { ServiceLifecycle } from './lifecycle.js';
import { type Configuration, readConfiguration } from './read-configuration.js';

/** The class of each resource that RESOURCES of config/names.ts lists. */
export const RESOURCE_CLASSES = {
  banks: BanksService,
  customers: CustomersService,
} as const satisfies Record<ResourceName, new (http: ServiceHttpService) => object>;

/** One service for each resource, by name. */
export type Resources = { [Name in ResourceName]: InstanceType<(typeof RESOURCE_CLASSES)[Name]> };

/** One client of the service, as `createServiceClient()` returns it. */
export interface ServiceClient extends Resources {
  readonly auth: ServiceAuthService;
  readonly http: ServiceHttpService;
  readonly sdk: LinkSdkService;
  readonly webhooks: WebhooksService;
  /**
   * Checks that the client certificate has not expired, that a token can be obtained (with OAuth credentials), and with `ping`
   * that the service responds. The status is `down` also once the client is closed. Never rejects for a fault of the service.
   *
   * It can be called as often as you like, because outcomes are cached: for a minute, or for 10 s after a failure. The result
   * contains nothing secret. Use it for an alarm and not for a readiness probe: an outage of the service would take every
   * instance of your application out of rotation.
   * @throws ServiceRequestError for invalid options
   */
  readonly health: (options?: ServiceHealthOptions) => Promise<ServiceHealth>;
  /**
   * Closes the client. New calls are refused, and calls in flight get `http.shutdownTimeout` to finish. Resolves when no
   * call, connection or timer of the client is left.
   */
  readonly close: () => Promise<void>;
}

/** The options of `createServiceClient()`. */
export interface ServiceClientOptions extends ServiceModuleOptions {
  /** Tells this client from others in log lines (`ServiceClient:<name>`) and in the events of `http.onCall` (`module`). */
  name?: string | undefined;
}

type LifecycleSteps = Pick<ServiceLifecycle, 'expectStart' | 'start' | 'beginShutdown'>;

/** A client before its start. `ServiceModule` takes these steps from Nest's lifecycle hooks. */
export interface StartableClient extends ServiceClient, LifecycleSteps {
  readonly healthCheck: ServiceHealthCheck;
}

/**
 * Creates and starts a client without Nest, for a script, a worker or another framework. In a Nest application,
 * `ServiceModule` creates the same client.
 *
 * - Resolves after the `startupCheck`, if one is configured. Call `close()` when you no longer need the client.
 * - Reads no environment variables. To use those of SERVICE_*, pass `serviceConfig()`: errors then name the variables.
 * - Logs with Nest's Logger.
 *
 * Never build the options from a tenant's data: `{ file }` reads a file of this server, and the credentials are sent to the
 * addresses in `urls`.
 * @throws ServiceConfigurationError if the options are not usable (ServiceCertificateError if all faults are about
 * certificates, ServiceStartupError for `startupCheck: 'fail'`)
 * @example
 * const { banks, close } = await createServiceClient({ urls: { sandboxUrl }, appToken });
 */
export async function createServiceClient(options: ServiceClientOptions): Promise<ServiceClient> {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw ServiceConfigurationError.of('createServiceClient', 'takes an object of options.');
  }
  const { name, ...given } = options;
  const log = new SafeLogger(name === undefined ? 'ServiceClient' : `ServiceClient:${name}`);
  const configuration = await readConfiguration({ name, given }, log);
  const heading = 'The options of createServiceClient() are not usable';
  return startClient(createConfiguredClient(configuration, systemIo(log), heading));
}

/** Starts a client, and leaves out what only `ServiceModule` uses. @throws as {@link ServiceLifecycle.start} */
export async function startClient(startable: StartableClient): Promise<ServiceClient> {
  await startable.start();
  const {
    expectStart: _expect,
    start: _start,
    beginShutdown: _begin,
    healthCheck: _check,
    ...client
  } = startable;
  return client;
}

/**
 * Logs the warnings of a configuration and creates its client, or throws one error with all faults. The client is not
 * started.
 * @param heading the first line of that error
 * @throws ServiceConfigurationError with all faults; ServiceCertificateError if all of them are about certificates
 */
export function createConfiguredClient(
  { options, identity, faults, notValidNow, isOnlyCertificates, certificate, warnings }: Configuration,
  io: ServiceIo,
  heading: string,
): StartableClient {
  for (const warning of warnings) io.log.warn(describeFault(warning));
  const tolerated = options?.startupCheck === 'warn' ? notValidNow : undefined;
  if (options && identity && faults.every((fault) => fault === tolerated)) {
    if (tolerated)
      io.log.error(`${describeFault(tolerated)} It is used all the same, because startupCheck is 'warn'.`);
    return createClient(options, identity, io);
  }
  if (isOnlyCertificates) throw new ServiceCertificateError(faults, { certificate });
  throw new ServiceConfigurationError(faults, heading);
}

/** The real network, clock and random numbers. Tests and doubles pass their own. */
export function systemIo(log: Log): ServiceIo {
  const pause: ServiceIo['pause'] = (delayMs, ...signals) => sleep(systemClock, delayMs, ...signals);
  return { exchange, clock: systemClock, pause, random: Math.random, log };
}

/**
 * Wires the parts of a client together. The client connects to nothing and sets no timer before `start()` or its first
 * call, and nothing of it runs after `close()`.
 */
export function createClient(options: ResolvedOptions, identity: Identity, io: ServiceIo): StartableClient {
  const calls = new CallsInFlight();
  const client: ClientContext = { options, identity, io, calls };

  const tokens = createTokenCache(client);
  const authenticator = new Authenticator(options, tokens);
  const auth = new ServiceAuthService(authenticator, identity, tokens, calls);
  const axios = createServiceAxios(client, authenticator);
  const http = new ServiceHttpService(axios, options.http.trailingSlash);
  const entries = Object.entries(RESOURCE_CLASSES).map(([name, Resource]) => [name, new Resource(http)]);
  const resources = Object.fromEntries(entries) as Resources;
  const sdk = new LinkSdkService(options, auth);
  const webhooks = new WebhooksService(options, io.clock);

  const parts = { ...client, tokens, auth, banks: resources.banks };
  const lifecycle = new ServiceLifecycle(parts);
  const expectStart = () => lifecycle.expectStart();
  const start = () => lifecycle.start();
  const beginShutdown = () => lifecycle.beginShutdown();
  const close = () => lifecycle.close();
  const healthCheck = new ServiceHealthCheck(parts, lifecycle);
  const health = (checked?: ServiceHealthOptions) => healthCheck.check(checked);
  const steps = { expectStart, start, beginShutdown, close };
  return { auth, http, ...resources, sdk, webhooks, healthCheck, health, ...steps };
}

/** Undefined if no OAuth credentials are configured. */
function createTokenCache({ options, identity, io }: ClientContext): TokenCache | undefined {
  const { oauth, tokenStore, tokenCache, linkSdk, http, describeOption } = options;
  const { tokenUrl, tokenOption = 'urls.authUrl', baseOption } = options.addresses;
  if (!oauth || tokenUrl === undefined) return undefined;
  const { exchange, clock } = io;
  const { clientId } = oauth;
  const place = {
    url: new URL(tokenUrl),
    option: tokenOption,
    apiOption: baseOption,
    describeOption,
    http,
    get hasChain() {
      return identity.hasChain;
    },
  };
  const bound = oauth.mtls ? identity : undefined;
  const clientSecret = rotatingClientSecret(oauth, clock, describeOption);
  const endpoint = new TokenEndpoint({
    place,
    clientId,
    clientSecret,
    exchange,
    clock,
    agent: identity.tokenAgentFor(place.url),
    identity: bound,
    userAgent: http.userAgent,
    connectTimeoutMs: http.connectTimeout,
    onCall: http.onCall,
  });
  const tokenIo = { ...io, describeOption };
  const source = tokenStore ? new SharedStore(endpoint, tokenStore, clientSecret, tokenIo) : endpoint;
  const settings = {
    refresh: oauth.refresh,
    maxEntries: tokenCache.maxEntries,
    customerReserveMs: linkSdk.minTokenLife * 1000,
    customerRequests: http.maxSockets,
    timeoutMs: http.timeout,
  };
  const cache = new TokenCache(source, settings, tokenIo);
  // RFC 8705, section 3: the API refuses a token that is bound to the previous client certificate.
  bound?.onCertificateChange(() => cache.dropAllForNewCertificate());
  return cache;
}
