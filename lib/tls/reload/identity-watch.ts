import { type Clock } from '../../time/clock.js';
import { type IdentitySnapshot } from '../material/read-identity.js';
import { type Polling } from './polling.js';

export interface WatchSettings {
  polling: Polling;
  /** Milliseconds for which a change must stay the same before it is applied; 0: it is applied at once. */
  quietMs: number;
  clock: Clock;
  /**
   * Reads the inputs. Unless `isNeeded`, it may resolve with `undefined` if nothing has changed. Does not keep the process
   * running.
   */
  read: (stopped: AbortSignal, isNeeded: boolean) => Promise<IdentitySnapshot | undefined>;
  /**
   * Uses the content, or notes why it cannot be used. Returns whether it is in use. `isNew`: it differs from the content
   * that was applied last.
   */
  apply: (content: IdentitySnapshot, isNew: boolean) => boolean;
}

/** How long a caller that waits keeps the process running: two readings, of 30 s at most. */
const MAX_WAIT_MS = 60_000;
/** When content that cannot be used is tried again: a certificate may become valid. Less than the minute of `tls` functions. */
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
      // A second reading before its time would take a change for a lasting one.
      if (!this.#cancelQuiet) void this.#requestReading();
    });
  }

  /** Reads and applies at once. Resolves after a reading that began after this call. */
  async readNow(): Promise<void> {
    this.#requested = true;
    // The reading before it does not keep the process running.
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

  /** All requests during a reading share the next one: the current reading may have begun before the change. */
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
      // Unforeseen. The next reading follows in any case.
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
