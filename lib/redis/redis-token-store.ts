import { randomUUID } from 'node:crypto';
import { type TokenStore } from '../config/options.js';
import {
  adaptClient,
  isRedisClient,
  type IoredisClient,
  type NodeRedisClient,
  type RedisCommands,
} from './redis-client.js';

const KEY_PREFIX = 'nestjs-service:';
const MAX_TIMEOUT_MS = 10_000;

/** The options of a {@link RedisTokenStore}. */
export interface RedisTokenStoreOptions {
  /**
   * Your client of node-redis or ioredis, also for a cluster or Sentinel. You connect and close it. The store does not
   * change its settings.
   */
  client: NodeRedisClient | IoredisClient;
  /** The prefix of each key. Default: `nestjs-service:`. */
  keyPrefix?: string | undefined;
  /** Milliseconds that one Redis command may take. Default: 250. At most 10,000. */
  timeout?: number | undefined;
}

/** Shares tokens between processes through Redis. Pass it as the option `tokenStore`; several modules can share one store. */
export class RedisTokenStore implements TokenStore {
  readonly timeout: number | undefined;
  readonly #keyPrefix: string;
  readonly #client: NodeRedisClient | IoredisClient;
  readonly #redis: RedisCommands;

  constructor({ client, keyPrefix = KEY_PREFIX, timeout }: RedisTokenStoreOptions) {
    this.timeout = timeout;
    this.#client = client;
    this.#redis = adaptClient(client);
    this.#keyPrefix = keyPrefix;
  }

  /** @returns a message for each invalid option */
  check(): string[] {
    const faults: string[] = [];
    const { timeout } = this;
    if (!isRedisClient(this.#client))
      faults.push('the client of RedisTokenStore is not a client of node-redis or ioredis.');
    if (timeout !== undefined && !(timeout >= 1 && timeout <= MAX_TIMEOUT_MS))
      faults.push(`the timeout of RedisTokenStore must be between 1 and ${MAX_TIMEOUT_MS} ms.`);
    return faults;
  }

  async get(key: string): Promise<string | undefined> {
    return this.#redis.get(this.#keyPrefix + key);
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#redis.set(this.#keyPrefix + key, value, wholeMs(ttlMs));
  }

  async delete(key: string, ifValue?: string): Promise<void> {
    const name = this.#keyPrefix + key;
    await (ifValue === undefined ? this.#redis.delete(name) : this.#redis.deleteIf(name, ifValue));
  }

  async lock(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined> {
    const name = this.#keyPrefix + key;
    const holder = randomUUID();
    const done = await this.#redis.setIfAbsent(name, holder, wholeMs(ttlMs));
    if (done === null || done === undefined) return undefined;
    return async () => void (await this.#redis.deleteIf(name, holder));
  }
}

/** Redis refuses fractions of a millisecond, and a lifetime of 0. */
function wholeMs(ms: number): number {
  return Math.max(1, Math.floor(ms));
}
