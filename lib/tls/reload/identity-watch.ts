import { type Clock } from '../../time/clock.js';
import { type IdentitySnapshot } from '../material/read-identity.js';
import { type Polling } from './polling.js';

export interface WatchSettings {
  polling: Polling;
  /** Milliseconds for which a change must stay the same before it is applied; 0: it is applied at once. */
  quietMs: number;
  clock: Clock;
  /**
   * Reads the inputs; where it is not certain that they are needed, `undefined` says that nothing has changed. Does not
   * keep the process running.
   */
  read: (stopped: AbortSignal, isNeeded: boolean) => Promise<IdentitySnapshot | undefined>;
  /**
   * Uses the content, or notes why it cannot be used. Returns whether it is in use. `isNew`: it is other than what was
   * applied last.
   */
  apply: (content: IdentitySnapshot, isNew: boolean) => boolean;
}

/** So long somebody who waits keeps the process running: two readings, which have 30 s each. */
const MAX_WAIT_MS = 60_000;
/** A certificate may become valid with time. Less than the minute between two calls of a `tls` function. */
const RETRY_MS = 55_000;

/**
 * Reads the inputs of an identity again, from time to time and on request, one reading at a time. It compares their
 * content: events of the file system differ between a rename, a write in place and a new symlink (Kubernetes,
 * cert-manager), and between file systems. Its timers do not keep the process alive.
 */
export class IdentityWatch {
  readonly #settings: WatchSettings;
  #reading = Promise.resolve();
  #nextReading?: Promise<void>;
  /** Digest of the content that was applied last. */
  #applied: string;
  /** Digest of the content that was read last. */
  #last: string;
  #retryAt = Infinity;
  #requested = false;
  readonly #stop = new AbortController();
  #endFollowing?: () => void;
  /** Of the reading that follows a change. */
  #cancelQuiet?: () => void;

  /** @param digest of the content in use */
  constructor(settings: WatchSettings, digest: string) {
    this.#settings = settings;
    this.#applied = digest;
    this.#last = digest;
  }

  start(): void {
    this.#endFollowing = this.#settings.polling.follow(() => {
      // Before its time, a second reading would find a change quiet.
      if (!this.#cancelQuiet) void this.#requestReading();
    });
  }

  /** Reads and applies at once. Resolves after a reading that began after this call. */
  async readNow(): Promise<void> {
    this.#requested = true;
    // It may wait for a reading that nobody waits for.
    const cancel = this.#settings.clock.schedule(() => undefined, MAX_WAIT_MS);
    try {
      await this.#requestReading();
    } finally {
      cancel();
    }
  }

  /** Also ends a reading under way. */
  stop(): void {
    this.#stop.abort();
    this.#endFollowing?.();
    this.#cancelQuiet?.();
  }

  /** All requests during a reading share the one after it: that reading may have begun before what they are about. */
  #requestReading(): Promise<void> {
    this.#nextReading ??= this.#reading.then(() => {
      this.#nextReading = undefined;
      this.#reading = this.#read();
      return this.#reading;
    });
    return this.#nextReading;
  }

  async #read(): Promise<void> {
    const requested = this.#requested;
    this.#requested = false;
    this.#cancelQuiet?.();
    this.#cancelQuiet = undefined;
    const { signal } = this.#stop;
    const isUnsettled = this.#last !== this.#applied || this.#retryAt !== Infinity;
    try {
      const content = await this.#settings.read(signal, requested || isUnsettled);
      if (content && !signal.aborted) this.#consider(content, requested);
    } catch {
      // Nobody foresaw it. One reading less: the next follows all the same.
    }
  }

  #consider(content: IdentitySnapshot, requested: boolean): void {
    const { quietMs, clock, apply } = this.#settings;
    const { digest } = content;
    const isNew = digest !== this.#applied;
    const isQuiet = digest === this.#last || quietMs === 0;
    this.#last = digest;
    if (isNew && !isQuiet && !requested) {
      this.#cancelQuiet = clock.watch(() => void this.#requestReading(), quietMs);
    } else if (isNew || requested || clock.monotonic() >= this.#retryAt) {
      this.#applied = digest;
      this.#retryAt = apply(content, isNew) ? Infinity : clock.monotonic() + RETRY_MS;
    }
  }
}
