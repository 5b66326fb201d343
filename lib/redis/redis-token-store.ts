import { randomUUID } from 'node:crypto';
import { Secret } from '../config/secret.js';
import { STORE_ADDRESS, type TokenStore } from '../config/token-cache.options.js';
import {
  commandsOf,
  isRedisClient,
  type IoredisClient,
  type NodeRedisClient,
  type RedisCommands,
} from './redis-client.js';
import { importClientLibrary, NOT_INSTALLED, UrlConnection } from './url-connection.js';

const KEY_PREFIX = 'nestjs-service:';
const MAX_TIMEOUT_MS = 10_000;

/** Either `client` or `url`. */
export interface RedisTokenStoreOptions {
  /**
   * A client of yours, of node-redis or ioredis, also for a cluster or Sentinel. You connect and close it; nothing about it
   * is changed.
   */
  client?: NodeRedisClient | IoredisClient | undefined;
  /**
   * `redis://` or, with TLS and a certificate that Node trusts, `rediss://`: with user, password and number of the
   * database if needed. The store connects by itself with `@redis/client` or `redis`, when the application has
   * started, and closes the connection with the application.
   */
  url?: string | undefined;
  /** Before each key. Default `nestjs-service:`. */
  keyPrefix?: string | undefined;
  /** Milliseconds for one call of Redis. Default 250, at most 10,000. */
  timeout?: number | undefined;
}

/**
 * Tokens shared through Redis, for the option `tokenStore`. Making one does nothing yet: no connection, no import. One
 * store can serve several modules.
 */
export class RedisTokenStore implements TokenStore {
  readonly timeout: number | undefined;
  readonly #keyPrefix: string;
  readonly #url: Secret | undefined;
  readonly #client: NodeRedisClient | IoredisClient | undefined;
  readonly #connection: UrlConnection;
  /** Modules that have opened it and not closed it yet. */
  #users = 0;

  constructor({ client, url, keyPrefix = KEY_PREFIX, timeout }: RedisTokenStoreOptions) {
    this.timeout = timeout;
    this.#client = client;
    this.#url = url === undefined ? undefined : new Secret(url);
    this.#connection = new UrlConnection(new Secret(url ?? ''));
    this.#keyPrefix = keyPrefix;
  }

  /**
   * Host, port and database of `url`.
   * @internal
   */
  get [STORE_ADDRESS](): string | undefined {
    const url = this.#url?.reveal() ?? '';
    if (!isRedisUrl(url)) return undefined;
    const { host, pathname } = new URL(url);
    return host + pathname.replace(/\/$/, '');
  }

  /** @returns what is wrong with the options, or that no client library is installed */
  async check(): Promise<string[]> {
    const faults: string[] = [];
    const { timeout } = this;
    if (timeout !== undefined && !(timeout >= 1 && timeout <= MAX_TIMEOUT_MS)) {
      faults.push(`the timeout of RedisTokenStore must be between 1 and ${MAX_TIMEOUT_MS} ms.`);
    }
    if (this.#client && this.#url) faults.push('RedisTokenStore takes a client or a url, not both.');
    else if (this.#client) {
      if (!isRedisClient(this.#client))
        faults.push('the client of RedisTokenStore is not a client of node-redis or ioredis.');
    } else if (this.#url) {
      if (!isRedisUrl(this.#url.reveal())) {
        faults.push(
          'the url of RedisTokenStore is not that of a Redis server: redis://host:6379 or rediss://user:password@host:6380, with user and password percent-encoded.',
        );
      }
      if (!(await importClientLibrary())) faults.push(`RedisTokenStore ${NOT_INSTALLED}.`);
    } else {
      faults.push(
        'RedisTokenStore needs a client or a url. If the url comes from process.env: a decorator is evaluated before ' +
          'ConfigModule reads .env, so make the store in the useFactory of forRootAsync.',
      );
    }
    return faults;
  }

  async open(): Promise<void> {
    this.#users += 1;
    if (!this.#client) await this.#connection.run(() => Promise.resolve());
  }

  close(): Promise<void> {
    this.#users = Math.max(0, this.#users - 1);
    if (this.#users === 0) this.#connection.close();
    return Promise.resolve();
  }

  async get(key: string): Promise<string | undefined> {
    return this.#run((redis) => redis.get(this.#keyPrefix + key));
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#run((redis) => redis.set(this.#keyPrefix + key, value, wholeMs(ttlMs)));
  }

  async delete(key: string, ifValue?: string): Promise<void> {
    const name = this.#keyPrefix + key;
    await this.#run((redis) => (ifValue === undefined ? redis.delete(name) : redis.deleteIf(name, ifValue)));
  }

  async lock(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined> {
    const name = this.#keyPrefix + key;
    const holder = randomUUID();
    const done = await this.#run((redis) => redis.setIfAbsent(name, holder, wholeMs(ttlMs)));
    if (done === null || done === undefined) return undefined;
    return async () => void (await this.#run((redis) => redis.deleteIf(name, holder)));
  }

  #run<T>(command: (redis: RedisCommands) => Promise<T>): Promise<T> {
    if (this.#client) return command(commandsOf(this.#client));
    return this.#connection.run((client) => command(commandsOf(client)));
  }
}

/** Redis takes whole milliseconds from 1 on. */
function wholeMs(ms: number): number {
  return Math.max(1, Math.floor(ms));
}

function isRedisUrl(text: string): boolean {
  try {
    const { protocol, hostname, username, password, pathname } = new URL(text);
    decodeURIComponent(username + password);
    return /^rediss?:$/.test(protocol) && hostname !== '' && /^\/?\d*$/.test(pathname);
  } catch {
    return false;
  }
}
