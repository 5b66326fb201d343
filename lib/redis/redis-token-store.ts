import { randomUUID } from 'node:crypto';
import { MAX_ENTRY_LENGTH, type TokenStore } from '../config/options.js';

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

/** A client of node-redis (`redis` 4 to 6, or `@redis/client`), for one server, a cluster, Sentinel or a pool. */
export interface NodeRedisClient {
  getRange(key: string, start: number, end: number): Promise<unknown>;
  set(key: string, value: string, options: { PX: number; NX?: true }): Promise<unknown>;
  del(key: string): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** A client of ioredis 5 or 6: `Redis` (also with Sentinel) or `Cluster`. */
export interface IoredisClient {
  getrange(key: string, start: number, end: number): Promise<unknown>;
  set(key: string, value: string, millisecondsToken: 'PX', milliseconds: number): Promise<unknown>;
  set(key: string, value: string, millisecondsToken: 'PX', milliseconds: number, nx: 'NX'): Promise<unknown>;
  del(key: string): Promise<unknown>;
  eval(script: string, numkeys: number, key: string, argument: string): Promise<unknown>;
  defineCommand(name: string, definition: { lua: string; numberOfKeys?: number }): void;
}

/** Compares and deletes atomically, so that nobody deletes a lock or token that another process has replaced meanwhile. */
const DELETE_IF = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`;

/** The Redis commands of a token store. Each uses a single key, because a cluster may keep two keys on two nodes. */
type RedisCommands = ReturnType<typeof adaptClient>;

/** Gives both client libraries the same methods. */
function adaptClient(client: NodeRedisClient | IoredisClient) {
  // The key may hold something else, for example a value of 100 MB. So at most one character more than the longest valid
  // entry is read, which is enough to recognise a value that is too long.
  const range = [0, MAX_ENTRY_LENGTH] as const;
  if (isIoredis(client)) {
    return {
      get: (key: string) => readEntry(client.getrange(key, ...range)),
      set: (key: string, value: string, ttlMs: number) => client.set(key, value, 'PX', ttlMs),
      /** Resolves to null if the key exists. */
      setIfAbsent: (key: string, value: string, ttlMs: number) => client.set(key, value, 'PX', ttlMs, 'NX'),
      delete: (key: string) => client.del(key),
      deleteIf: (key: string, value: string) => client.eval(DELETE_IF, 1, key, value),
    };
  }
  return {
    get: (key: string) => readEntry(client.getRange(key, ...range)),
    set: (key: string, value: string, ttlMs: number) => client.set(key, value, { PX: ttlMs }),
    setIfAbsent: (key: string, value: string, ttlMs: number) =>
      client.set(key, value, { PX: ttlMs, NX: true }),
    delete: (key: string) => client.del(key),
    deleteIf: (key: string, value: string) => client.eval(DELETE_IF, { keys: [key], arguments: [value] }),
  };
}

/** Whether the value has the methods of one of the two client libraries. */
function isRedisClient(value: unknown): value is NodeRedisClient | IoredisClient {
  if (typeof value !== 'object' || value === null) return false;
  const client = value as Record<string, unknown>;
  const methods = [isIoredis(value as IoredisClient) ? 'getrange' : 'getRange', 'set', 'del', 'eval'];
  return methods.every((method) => typeof client[method] === 'function');
}

/** Only clients of ioredis have `defineCommand`. */
function isIoredis(client: NodeRedisClient | IoredisClient): client is IoredisClient {
  return 'defineCommand' in Object(client);
}

/**
 * Resolves to undefined if there is no usable entry: GETRANGE of a missing key replies with an empty string, and another
 * application may have a list or hash under this key, which the next token then replaces.
 */
async function readEntry(reply: Promise<unknown>): Promise<string | undefined> {
  const value = await reply.catch((error: unknown) => {
    if (!(error instanceof Error && error.message.startsWith('WRONGTYPE'))) throw error;
  });
  const text = Buffer.isBuffer(value) ? value.toString() : value;
  return typeof text === 'string' && text !== '' && text.length <= MAX_ENTRY_LENGTH ? text : undefined;
}
