import { randomBytes } from 'node:crypto';
import { Agent } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import { type ServiceCallEvent, type ServiceModuleOptions } from 'nestjs-service';
import { type IssuedCertificate, ServiceSimulator } from 'nestjs-service/testing';
import { CollectingLogger } from '../secret-scan.js';
import {
  type ClientName,
  CLIENTS,
  clientOf,
  type Replica,
  REPLICAS,
  type ServiceName,
  SERVICES,
  startReplica,
  TIMEOUT_MS,
} from './clients.js';
import { FleetStore } from './fleet-store.js';

/** Milliseconds in which all calls must end. They usually need far less. */
const END_MS = 10_000;

/** Two services, and a fleet of replicas that share one store. */
export class World {
  readonly store = new FleetStore();
  readonly logger = new CollectingLogger();
  readonly events: ServiceCallEvent[] = [];
  readonly services: Readonly<Record<ServiceName, ServiceSimulator>>;
  /** All client secrets that were valid at some time. */
  readonly secrets: Record<ServiceName, string[]>;
  /** The client certificates of each client that has its own, the current one last. */
  readonly certificates: Record<'vault' | 'bolt', IssuedCertificate[]> = { vault: [], bolt: [] };
  /** The times at which connections were ended, perhaps with a response on its way. */
  readonly drops: number[] = [];
  /** The customers who start sessions. */
  readonly browsers: Readonly<Record<ServiceName, Agent>>;
  /** Faults that belong to no single call or request. */
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
        // The server never closes an idle connection. Only the clients do.
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

  /** Shuts a replica down. Its calls fail until another replica has started in its place. */
  async restart(index: number): Promise<void> {
    const old = this.replicas[index];
    if (!this.#open.has(old)) return;
    const ended = this.#end(old);
    this.replicas[index] = await this.startReplica();
    await ended;
  }

  async end(): Promise<void> {
    await Promise.all([...this.#open].map((replica) => this.#end(replica)));
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
    const replica = await startReplica((name) => this.#optionsOf(name), this.logger);
    this.#open.add(replica);
    return replica;
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
        // Only the time limit of the call ends an attempt, however slow the machine is.
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

/** Makes a secret that ends in characters which a client must form-encode. */
const makeSecret = () => `S3cr3t${randomBytes(18).toString('base64url')}+/=&%`;
