import { type Clock } from '../../time/clock.js';
import { type IdentitySnapshot } from '../material/read-identity.js';

export interface WatchSettings {
  clock: Clock;
  periodMs: number;
  /** Use only what was read twice, because files are written one after the other. */
  needsTwoReads: boolean;
  /** Ends within 30 s, and keeps the process running until then: a caller may wait for it. */
  read: (stopped: AbortSignal) => Promise<IdentitySnapshot>;
  /** Uses the content, unless it is in use already, or notes why it cannot be used. */
  apply: (content: IdentitySnapshot) => void;
}

/**
 * Reads the inputs of an identity again, from time to time and on request, one reading at a time. It compares their
 * content: events of the file system differ between a rename, a write in place and a new symlink (Kubernetes,
 * cert-manager), and between file systems. Between readings nothing keeps the process running.
 */
export class IdentityWatch {
  readonly #settings: WatchSettings;
  readonly #stop = new AbortController();
  #reading = Promise.resolve();
  #requested?: Promise<void>;
  /** Of the content that was read last. */
  #digest: string;
  #cancel?: () => void;

  /** @param digest of the content in use */
  constructor(settings: WatchSettings, digest: string) {
    this.#settings = settings;
    this.#digest = digest;
  }

  /** Each reading plans the next, so that all run in the async context of this call. */
  start(): void {
    const { clock, periodMs } = this.#settings;
    const look = async (): Promise<void> => {
      await this.#enqueue(() => this.#read(this.#settings.needsTwoReads));
      if (!this.#stop.signal.aborted) this.start();
    };
    this.#cancel = clock.watch(() => void look(), periodMs);
  }

  /** Reads and applies at once. Resolves after a reading that began after this call; all who wait share it. */
  readNow(): Promise<void> {
    this.#requested ??= this.#enqueue(() => {
      this.#requested = undefined;
      return this.#read(false);
    });
    return this.#requested;
  }

  /** Also ends a reading under way. */
  stop(): void {
    this.#stop.abort();
    this.#cancel?.();
  }

  #enqueue(read: () => Promise<void>): Promise<void> {
    // An error that nobody foresaw ends neither the process nor the readings that follow.
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
