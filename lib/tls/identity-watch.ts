import { type Clock } from '../time/time.js';
import { type IdentitySnapshot } from './material/read-identity.js';

export interface WatchSettings {
  clock: Clock;
  periodMs: number;
  /** Whether content is applied only once two readings have returned the same, because files are written one after the other. */
  needsTwoReads: boolean;
  /** Reads the inputs. Must settle within 30 s. It keeps the process running until then, because a caller may wait for it. */
  read: (stopped: AbortSignal) => Promise<IdentitySnapshot>;
  /** Puts the content into use, unless it is in use already, or records why it cannot be used. */
  apply: (content: IdentitySnapshot) => void;
}

/**
 * Reads the inputs of an identity again, periodically and on request, with one reading at a time. It polls and compares the content
 * instead of using fs.watch(): file system events differ between a rename, a write in place and a new symlink (Kubernetes,
 * cert-manager), and between file systems. Its timer does not keep the process running.
 */
export class IdentityWatch {
  readonly #settings: WatchSettings;
  readonly #stop = new AbortController();
  #reading = Promise.resolve();
  #requested?: Promise<void>;
  /** The digest of the content that was read last. */
  #digest: string;
  #cancel?: () => void;

  /** @param digest the digest of the content in use */
  constructor(settings: WatchSettings, digest: string) {
    this.#settings = settings;
    this.#digest = digest;
  }

  /** Starts to poll. Each reading schedules the next, so that all of them run in the async context of this call. */
  start(): void {
    const { clock, periodMs } = this.#settings;
    const poll = async (): Promise<void> => {
      await this.#enqueue(() => this.#read(this.#settings.needsTwoReads));
      if (!this.#stop.signal.aborted) this.start();
    };
    this.#cancel = clock.watch(() => void poll(), periodMs);
  }

  /**
   * Reads and applies the inputs now. Resolves when a reading has ended that began after this call. Callers that wait at the
   * same time share one reading.
   */
  readNow(): Promise<void> {
    this.#requested ??= this.#enqueue(() => {
      this.#requested = undefined;
      return this.#read(false);
    });
    return this.#requested;
  }

  /** Stops polling. Also aborts a reading in progress. */
  stop(): void {
    this.#stop.abort();
    this.#cancel?.();
  }

  #enqueue(read: () => Promise<void>): Promise<void> {
    // An unexpected error must neither end the process nor stop later readings.
    this.#reading = this.#reading.then(read).catch(() => undefined);
    return this.#reading;
  }

  async #read(twice: boolean): Promise<void> {
    const { read, apply } = this.#settings;
    const content = await read(this.#stop.signal);
    if (this.#stop.signal.aborted) return;
    const isSettled = !twice || content.digest === this.#digest;
    this.#digest = content.digest;
    if (isSettled) apply(content);
  }
}
