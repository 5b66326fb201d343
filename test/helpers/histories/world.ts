import { randomBytes } from 'node:crypto';
import { Test } from '@nestjs/testing';
import { Agent } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import {
  BanksService,
  CustomersService,
  getServiceToken,
  LinkSdkService,
  ServiceAuthService,
  type ServiceCallEvent,
  ServiceHttpService,
  ServiceModule,
  type ServiceModuleOptions,
} from 'nestjs-service';
import {
  type IssuedCertificate,
  ServiceSimulator,
  type SimulatorModeOptions,
  type SimulatorOptions,
} from 'nestjs-service/testing';
import { CollectingLogger } from '../secret-scan.js';
import { FleetStore } from './fleet-store.js';

/** Each has its own application, secrets and tokens. */
export const SERVICES = {
  acme: { appTokenHeader: 'service-app-token' },
  bolt: { appTokenHeader: 'x-bolt-token', certificateBoundTokens: true },
} satisfies Record<string, SimulatorOptions & { appTokenHeader: string }>;
export type ServiceName = keyof typeof SERVICES;

interface Client {
  service: ServiceName;
  mode: SimulatorModeOptions;
  http?: ServiceModuleOptions['http'];
}

/** The modules of each replica. Two of each service, which differ in how they authenticate and where they call. */
export const CLIENTS = {
  acme: { service: 'acme', mode: { authentication: 'oauth' }, http: { maxSockets: 4 } },
  vault: { service: 'acme', mode: { authentication: 'mtls', oauth: true }, http: { attemptTimeout: 150 } },
  bolt: {
    service: 'bolt',
    mode: { authentication: 'oauth', clientCertificate: true, oauthMtls: true },
    http: { idempotencyHeader: 'idempotency-key' },
  },
  box: { service: 'bolt', mode: { environment: 'sandbox', oauth: true } },
} satisfies Record<string, Client>;
export type ClientName = keyof typeof CLIENTS;

export const clientOf = (name: ClientName): Client => CLIENTS[name];
export const REPLICAS = 3;
/** Milliseconds for a call that names no limit of its own. */
export const TIMEOUT_MS = 2_000;
/** Milliseconds for all to end: far more than it takes. */
const END_MS = 10_000;

/** One process of a fleet: all clients in one application. */
export type Replica = Record<ClientName, ReplicaClient> & { close(): Promise<void> };

interface ReplicaClient {
  auth: ServiceAuthService;
  banks: BanksService;
  customers: CustomersService;
  http: ServiceHttpService;
  sdk: LinkSdkService;
}

/** Two services, and a fleet of replicas that share one store. */
export class World {
  readonly store = new FleetStore();
  readonly logger = new CollectingLogger();
  readonly events: ServiceCallEvent[] = [];
  readonly services: Readonly<Record<ServiceName, ServiceSimulator>>;
  /** All client secrets that were valid at some time. */
  readonly secrets: Record<ServiceName, string[]>;
  /** Those of each client that has one; the last is the one to use. */
  readonly certificates: Record<'vault' | 'bolt', IssuedCertificate[]> = { vault: [], bolt: [] };
  /** When connections were ended that may have had an answer on its way. */
  readonly drops: number[] = [];
  /** Of those who start sessions. */
  readonly browsers: Readonly<Record<ServiceName, Agent>>;
  /** What went wrong that is of no single call or request. */
  readonly problems: string[] = [];
  replicas: Replica[] = [];
  readonly #open = new Set<Replica>();

  private constructor(services: Record<ServiceName, ServiceSimulator>) {
    this.services = services;
    const { acme, bolt } = services;
    const browser = ({ chain }: ServiceSimulator): Agent =>
      new Agent({ keepAlive: true, secureContext: createSecureContext({ ca: chain }) });
    this.browsers = { acme: browser(acme), bolt: browser(bolt) };
    this.secrets = { acme: [acme.clientSecret], bolt: [bolt.clientSecret] };
  }

  static async start(): Promise<World> {
    const start = (name: ServiceName): Promise<ServiceSimulator> =>
      ServiceSimulator.start({
        ...SERVICES[name],
        clientSecret: makeSecret(),
        appToken: `AppTok${randomBytes(18).toString('base64url')}`,
        banks: [name],
        // Only the clients end connections that are idle.
        keepAliveTimeoutMs: 60_000,
      });
    const [acme, bolt] = await Promise.all([start('acme'), start('bolt')]);
    const world = new World({ acme, bolt });
    await Promise.all([world.issueCertificate('vault'), world.issueCertificate('bolt')]);
    world.replicas = await Promise.all(Array.from({ length: REPLICAS }, () => world.startReplica()));
    return world;
  }

  async issueCertificate(client: 'vault' | 'bolt'): Promise<void> {
    const own = this.certificates[client];
    const service = this.services[CLIENTS[client].service];
    own.push(await service.issueCertificate({ commonName: `${client}-${own.length}` }));
  }

  rotateSecret(service: ServiceName): void {
    this.secrets[service].push(this.services[service].rotateClientSecret(makeSecret()));
  }

  dropConnections(service: ServiceName): void {
    this.drops.push(Date.now());
    this.services[service].dropConnections();
  }

  /** Its calls fail from now on, until another one has started in its place. */
  async restart(index: number): Promise<void> {
    const old = this.replicas[index];
    if (!this.#open.has(old)) return;
    const ended = this.#end(old);
    this.replicas[index] = await this.startReplica();
    await ended;
  }

  async end(): Promise<void> {
    await Promise.all([...this.#open].map((replica) => this.#end(replica)));
    if (this.store.users !== 0) this.problems.push(`${this.store.users} modules have not closed the store`);
    for (const agent of Object.values(this.browsers)) agent.destroy();
    const services = Object.values(this.services);
    const isClosed = () => services.every(({ openConnections }) => openConnections === 0);
    for (let left = END_MS; left > 0 && !isClosed(); left -= 10) await sleep(10);
    if (!isClosed()) this.problems.push('a connection was left');
    await Promise.all(services.map((simulator) => simulator.stop()));
  }

  async #end(replica: Replica): Promise<void> {
    this.#open.delete(replica);
    const ended = replica.close().then(() => undefined);
    const problem = await Promise.race([ended, sleep(END_MS, 'close() did not resolve', { ref: false })]);
    if (problem) this.problems.push(problem);
  }

  async startReplica(): Promise<Replica> {
    const replica = await this.#makeReplica();
    this.#open.add(replica);
    return replica;
  }

  async #makeReplica() {
    const names = Object.keys(CLIENTS) as ClientName[];
    const imports = names.map((name) => ServiceModule.forRoot({ name, ...this.#optionsOf(name) }));
    const module = await Test.createTestingModule({ imports }).setLogger(this.logger).compile();
    await module.init();
    const partsOf = (name: ClientName): ReplicaClient => ({
      auth: module.get(getServiceToken(ServiceAuthService, name)),
      banks: module.get(getServiceToken(BanksService, name)),
      customers: module.get(getServiceToken(CustomersService, name)),
      http: module.get(getServiceToken(ServiceHttpService, name)),
      sdk: module.get(getServiceToken(LinkSdkService, name)),
    });
    const clients = {
      acme: partsOf('acme'),
      vault: partsOf('vault'),
      bolt: partsOf('bolt'),
      box: partsOf('box'),
    };
    return { ...clients, close: () => module.close() };
  }

  #optionsOf(name: ClientName): ServiceModuleOptions {
    const { service, mode, http } = clientOf(name);
    const { oauth, tls, ...options } = this.services[service].moduleOptions(mode);
    const certificate = (): IssuedCertificate => this.certificates[name as 'vault' | 'bolt'].at(-1)!;
    return {
      ...options,
      oauth: { ...oauth, clientSecret: () => this.services[service].clientSecret },
      tls: tls.certificate === undefined ? tls : () => ({ ...pick(certificate()), chain: tls.chain }),
      tokenStore: this.store,
      http: {
        timeout: TIMEOUT_MS,
        // An attempt is cut by the limit of its call alone, however slow the machine is.
        attemptTimeout: TIMEOUT_MS,
        connectTimeout: TIMEOUT_MS,
        shutdownTimeout: 300,
        maxResponseBytes: 100_000,
        onCall: (event) => void this.events.push(event),
        ...http,
      },
    };
  }
}

const pick = ({ certificate, privateKey }: IssuedCertificate) => ({ certificate, privateKey });

/** Ends in characters that arrive changed if a client does not form-encode them. */
const makeSecret = () => `S3cr3t${randomBytes(18).toString('base64url')}+/=&%`;
