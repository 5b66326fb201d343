import { type Clock, systemClock } from '../config/clock.js';
import { type Secret } from '../config/secret.js';
import { within } from '../exchange/timing.js';
import { importClientLibrary, NOT_INSTALLED, type ClientLibrary, type OwnClient } from './client-library.js';

// Milliseconds throughout.
const CONNECT_TIMEOUT = 5_000;
/** For connection, authentication and greeting together. */
const READY_TIMEOUT = 10_000;
/** A command without an answer for so long: the other end may be gone without a word. */
const STUCK_AFTER = 5_000;
const RETRY_BASE = 100;
const RETRY_CAP = 10_000;
/** A server that has become a replica is left for the one that the address names now, not more often than that. */
const MOVE_PAUSE = 60_000;

export interface UrlConnectionParts {
  clock?: Clock;
  /** In [0, 1). */
  random?: () => number;
  importLibrary?: () => Promise<ClientLibrary | undefined>;
}

/**
 * A connection to one Redis server. It is made again for ever, with a growing pause, and keeps no process running. While
 * there is none, commands are rejected at once and none is kept for later.
 */
export class UrlConnection {
  readonly #url: Secret;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #importLibrary: () => Promise<ClientLibrary | undefined>;
  #client: OwnClient | undefined;
  #attempt: Promise<OwnClient> | undefined;
  #retry: { cancel: () => void; cause: Error } | undefined;
  #failures = 0;
  #movedAt = -Infinity;
  /** Counts the ends: an attempt that began before one is not used. */
  #generation = 0;

  constructor(url: Secret, { clock, random, importLibrary }: UrlConnectionParts = {}) {
    this.#url = url;
    this.#clock = clock ?? systemClock;
    this.#random = random ?? Math.random;
    this.#importLibrary = importLibrary ?? importClientLibrary;
  }

  /** @throws why there is no connection yet; further attempts follow by themselves */
  async open(): Promise<void> {
    await this.#connected();
  }

  /**
   * Runs a command; connects where nothing has done so yet, and waits for an attempt under way.
   * @throws why there is no connection
   */
  async run<T>(command: (client: OwnClient) => Promise<T>): Promise<T> {
    const client = await this.#connected();
    const cancel = this.#clock.watch(() => this.#lose(client, new Error('No answer')), STUCK_AFTER);
    try {
      return await command(client);
    } catch (error) {
      if (isReadOnly(error) && this.#clock.monotonic() - this.#movedAt > MOVE_PAUSE) {
        this.#movedAt = this.#clock.monotonic();
        this.#lose(client, error as Error);
      }
      // Why the connection ended says more than that the command was dropped with it.
      throw client === this.#client ? error : (this.#retry?.cause ?? error);
    } finally {
      cancel();
    }
  }

  /** Also a closed connection can be used again. */
  close(): void {
    this.#generation += 1;
    this.#retry?.cancel();
    if (this.#client) destroy(this.#client);
    this.#client = this.#attempt = this.#retry = undefined;
    this.#failures = 0;
  }

  async #connected(): Promise<OwnClient> {
    if (this.#client) return this.#client;
    if (this.#retry) throw this.#retry.cause;
    return (this.#attempt ??= this.#connect(this.#generation));
  }

  async #connect(generation: number): Promise<OwnClient> {
    try {
      const client = await this.#makeClient();
      if (generation !== this.#generation) {
        destroy(client);
        throw new Error('Closed');
      }
      this.#client = client;
      this.#failures = 0;
      return client;
    } catch (error) {
      if (generation === this.#generation) this.#retryLater(error as Error);
      throw error;
    } finally {
      if (generation === this.#generation) this.#attempt = undefined;
    }
  }

  async #makeClient(): Promise<OwnClient> {
    const library = await this.#importLibrary();
    if (!library) throw new Error(NOT_INSTALLED);
    const client = library.createClient({
      url: this.#url.reveal(),
      // The protocol that every server speaks.
      RESP: 2,
      disableOfflineQueue: true,
      // Its own way to connect again has a timer that keeps the process running.
      socket: { connectTimeout: CONNECT_TIMEOUT, reconnectStrategy: false, rejectUnauthorized: true },
    });
    // Without a listener, an error would end the process.
    client.on('error', (error) => this.#lose(client, error));
    client.unref();
    const limit = { clock: this.#clock, timeoutMs: READY_TIMEOUT, expired: () => new Error('No answer') };
    try {
      await within(limit, () => client.connect());
      return client;
    } catch (error) {
      destroy(client);
      throw error;
    }
  }

  #lose(client: OwnClient, cause: Error): void {
    if (client !== this.#client) return;
    this.#client = undefined;
    destroy(client);
    this.#retryLater(cause);
  }

  #retryLater(cause: Error): void {
    const pause = Math.min(RETRY_CAP, RETRY_BASE * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    const again = (): void => {
      this.#retry = undefined;
      this.#attempt = this.#connect(this.#generation);
      this.#attempt.catch(() => undefined);
    };
    this.#retry = { cancel: this.#clock.watch(again, pause * (0.5 + this.#random() / 2)), cause };
  }
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
