import { type Clock } from '../../time/clock.js';
import { type IdentitySnapshot } from '../material/read-identity.js';

export interface WatchSettings {
  /** Milliseconds between two readings. */
  pollMs: number;
  /** Milliseconds for which a change must stay the same before it is applied; 0: it is applied at once. */
  quietMs: number;
  clock: Clock;
  /** Reads the inputs. Never rejects. Does not keep the process running. */
  read: (stopped: AbortSignal) => Promise<IdentitySnapshot>;
  /**
   * Uses the content, or notes why it cannot be used. Returns whether it is in use. `isNew`: it is other than what was
   * applied last. Never throws.
   */
  apply: (content: IdentitySnapshot, isNew: boolean) => boolean;
}

/** So long somebody who waits keeps the process running: two readings, which have 30 s each. */
const MAX_WAIT_MS = 60_000;
/** A certificate may become valid with time. Less than the minute between two calls of a `tls` function. */
const RETRY_MS = 55_000;

/**
 * Reads the inputs of an identity again, at intervals and on request, one reading at a time. It compares their content:
 * events of the file system differ between a rename, a write in place and a new symlink (Kubernetes, cert-manager), and
 * between file systems. Its timers do not keep the process alive.
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
  #isPolling = false;
  readonly #stop = new AbortController();
  #cancel?: () => void;

  /** @param digest of the content in use */
  constructor(settings: WatchSettings, digest: string) {
    this.#settings = settings;
    this.#applied = digest;
    this.#last = digest;
  }

  start(): void {
    this.#isPolling = true;
    this.#schedule(this.#settings.pollMs);
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
    this.#cancel?.();
  }

  #schedule(delayMs: number): void {
    if (!this.#isPolling || this.#stop.signal.aborted) return;
    this.#cancel = this.#settings.clock.watch(() => void this.#requestReading(), delayMs);
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
    this.#cancel?.();
    const { signal } = this.#stop;
    const content = await this.#settings.read(signal);
    if (!signal.aborted) this.#schedule(this.#consider(content, requested));
  }

  /** Returns the milliseconds until the next reading. */
  #consider(content: IdentitySnapshot, requested: boolean): number {
    const { pollMs, quietMs, clock, apply } = this.#settings;
    const { digest } = content;
    const isNew = digest !== this.#applied;
    const isQuiet = digest === this.#last || quietMs === 0;
    this.#last = digest;
    if (isNew && !isQuiet && !requested) return quietMs;
    if (isNew || requested || clock.monotonic() >= this.#retryAt) {
      this.#applied = digest;
      this.#retryAt = apply(content, isNew) ? Infinity : clock.monotonic() + RETRY_MS;
    }
    return pollMs;
  }
}
