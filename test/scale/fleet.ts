import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedis, type RedisServer } from '../helpers/redis.js';
import { type ReplicaOrders, type ReplicaReport } from './replicas.js';
import { type ServiceOrders } from './service.js';
import { Worker } from './worker.js';

export interface FleetOptions {
  replicas: number;
  processes: number;
  customers: number;
  /** Seconds that a token lives. */
  tokenLifetime: number;
}

/** The service, a Redis and the replicas, which run in a few processes. */
export class Fleet {
  readonly options: FleetOptions;
  readonly service = new Worker<ServiceOrders>('service.ts');
  readonly #processes: Worker<ReplicaOrders>[];
  #redis: RedisServer | undefined;
  #folder = '';

  constructor(options: FleetOptions) {
    this.options = options;
    this.#processes = Array.from({ length: options.processes }, () => new Worker('replicas.ts'));
  }

  get redis(): RedisServer {
    if (!this.#redis) throw new Error('There is no Redis yet');
    return this.#redis;
  }

  /** Everything but the replicas. */
  async setUp(): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), 'nestjs-service-scale-'));
    this.#redis = await startRedis('redis-server');
    const options = await this.service.order('start', this.options.tokenLifetime);
    await this.#writeSecret(options.oauth?.clientSecret ?? '');
    const customers = Array.from({ length: this.options.customers }, (_, index) => `c-${index}`);
    const setUp = { options, customers, redisUrl: this.redis.url, secretFile: this.#secretFile };
    await this.#all((each) => each.order('setUp', setUp));
  }

  /** All at the same time. */
  async startAll(): Promise<void> {
    await this.#all((each, index) => each.order('start', this.#share(this.options.replicas, index)));
  }

  /** Ends so many and starts others. */
  async restart(count: number): Promise<void> {
    await this.#all((each, index) => each.order('restart', this.#share(count, index)));
  }

  async stopAll(): Promise<void> {
    await this.#all((each) => each.order('stop'));
  }

  /** At the service first, and then where the replicas read it. */
  async rotateSecret(): Promise<void> {
    await this.#writeSecret(await this.service.order('rotateSecret'));
  }

  /** What callers saw since the last time. */
  async reports(): Promise<ReplicaReport[]> {
    return this.#all((each) => each.order('report'));
  }

  /** Of all processes together, after a garbage collection. */
  async memory(): Promise<{ heapMb: number; rssMb: number }> {
    const all = await this.#all((each) => each.order('memory'));
    const sum = (of: 'heapMb' | 'rssMb'): number => all.reduce((total, one) => total + one[of], 0);
    return { heapMb: sum('heapMb'), rssMb: sum('rssMb') };
  }

  /** How often Redis ran each command since it started. */
  async redisCommands(): Promise<Map<string, number>> {
    const client = await this.redis.connect();
    const text = await client.info('commandstats');
    client.destroy();
    const rows = text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm);
    return new Map([...rows].map(([, name, calls]) => [name, Number(calls)]));
  }

  /** Ends all processes, whatever they are doing. */
  async end(): Promise<void> {
    await Promise.all([this.service, ...this.#processes].map((each) => each.end()));
    await this.#redis?.kill();
    if (this.#folder !== '') await rm(this.#folder, { recursive: true, force: true });
  }

  get #secretFile(): string {
    return join(this.#folder, 'client-secret');
  }

  async #writeSecret(secret: string): Promise<void> {
    await writeFile(this.#secretFile, secret, { mode: 0o600 });
  }

  #all<T>(work: (each: Worker<ReplicaOrders>, index: number) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#processes.map(work));
  }

  /** How many of these are for this process. */
  #share(count: number, index: number): number {
    const { length } = this.#processes;
    return Math.floor(count / length) + (index < count % length ? 1 : 0);
  }
}
