import { type Clock, systemClock, watching } from '../time/clock.js';
import { isNotInstalled } from '../errors/coded-error.js';
import { type Secret } from '../config/secret.js';
import { within } from '../time/timers.js';
import { type NodeRedisClient } from './redis-client.js';

// Milliseconds throughout.
const CONNECT_TIMEOUT = 5_000;
/** For connection, authentication and greeting together. */
const READY_TIMEOUT = 10_000;
/** A command without an answer for so long: the other end may be gone without a word. */
const STUCK_AFTER = 5_000;
/** A server that has become a replica is left for the one that the address names now, not more often than that. */
const MOVE_PAUSE = 60_000;

export const NOT_INSTALLED =
  'connects to Redis with one of two optional peer dependencies, and neither is installed. Install one: npm i @redis/client ' +
  '(or redis)';

/** What is used of a client that this package makes itself. */
export interface OwnClient extends NodeRedisClient {
  on(event: 'error', listener: () => void): unknown;
  connect(): Promise<unknown>;
  /** Does not let its socket keep the process running. */
  unref(): void;
  /** From version 5 on. */
  destroy?(): void;
  /** Before. */
  disconnect?(): Promise<unknown>;
}

/**
 * A connection to one Redis server, made by the first command that finds none. It keeps no process running, and no command
 * is kept for later.
 */
export class UrlConnection {
  readonly #url: Secret;
  readonly #clock: Clock;
  readonly #importLibrary: typeof importClientLibrary;
  /** Connected, or connecting. */
  #client: Promise<OwnClient> | undefined;
  #movedAt = -Infinity;

  constructor(url: Secret, clock = systemClock, importLibrary = importClientLibrary) {
    this.#url = url;
    this.#clock = clock;
    this.#importLibrary = importLibrary;
  }

  /** @throws why there is no connection */
  async run<T>(command: (client: OwnClient) => Promise<T>): Promise<T> {
    const used = (this.#client ??= this.#connect());
    try {
      const client = await used;
      const cancel = this.#clock.watch(() => this.#leave(used), STUCK_AFTER);
      return await command(client).finally(cancel);
    } catch (error) {
      if (isReadOnly(error) && this.#clock.monotonic() - this.#movedAt > MOVE_PAUSE) {
        this.#movedAt = this.#clock.monotonic();
        this.#leave(used);
      }
      throw error;
    }
  }

  /** Also a closed connection can be used again. */
  close(): void {
    if (this.#client) this.#leave(this.#client);
  }

  #leave(left: Promise<OwnClient>): void {
    if (left === this.#client) this.#client = undefined;
    left.then(destroy, () => undefined);
  }

  #connect(): Promise<OwnClient> {
    const leave = (): void => this.#leave(connecting);
    const connecting = this.#makeClient(leave);
    connecting.catch(leave);
    return connecting;
  }

  async #makeClient(onLost: () => void): Promise<OwnClient> {
    const library = await this.#importLibrary();
    if (!library) throw new Error(NOT_INSTALLED);
    const client = library.createClient({
      url: this.#url.reveal(),
      // The protocol that every server speaks.
      RESP: 2,
      disableOfflineQueue: true,
      // With a strategy, the timer of node-redis keeps the process running for as long as Redis is gone.
      socket: { connectTimeout: CONNECT_TIMEOUT, reconnectStrategy: false, rejectUnauthorized: true },
    });
    // Without a listener, an error would end the process.
    client.on('error', onLost);
    client.unref();
    const expired = () => new Error('No answer');
    const limit = { clock: watching(this.#clock), timeoutMs: READY_TIMEOUT, expired };
    try {
      await within(limit, () => client.connect());
      return client;
    } catch (error) {
      destroy(client);
      throw error;
    }
  }
}

/**
 * The first of the two that the host has. Each import is in a `try`: a bundler then only warns of a package that is not
 * installed.
 * @returns undefined if neither `@redis/client` nor `redis` is installed
 */
export async function importClientLibrary(): Promise<
  { createClient(options: object): OwnClient } | undefined
> {
  try {
    return await import('@redis/client');
  } catch (error) {
    if (!isNotInstalled(error)) throw error;
  }
  try {
    return await import('redis');
  } catch (error) {
    if (!isNotInstalled(error)) throw error;
  }
  return undefined;
}

function isReadOnly(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('READONLY');
}

/** Ends it at once, whatever state it is in. */
function destroy(client: OwnClient): void {
  try {
    if (client.destroy) client.destroy();
    else client.disconnect?.().catch(() => undefined);
  } catch {
    // It was not connected.
  }
}
