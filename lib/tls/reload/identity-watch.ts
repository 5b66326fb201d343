import { type Clock } from '../../config/clock.js';

export interface WatchSettings<T extends { digest: string }> {
  /** Milliseconds between two looks. */
  pollMs: number;
  /** Milliseconds without a change before what was seen is taken; 0: at once. */
  quietMs: number;
  clock: Clock;
  /** Reads what is watched; `digest` is equal for equal content. Never rejects. */
  read: () => Promise<T>;
  /** The content changed and has been quiet since. Never throws. */
  onQuiet: (content: T) => void;
}

/**
 * Looks at content at intervals and tells when it has changed and come to rest. Content rather than events: rename,
 * writing in place and a symlink swapped above the file (Kubernetes, cert-manager) look the same, on every file
 * system. Its timers hold no process.
 */
export class IdentityWatch<T extends { digest: string }> {
  readonly #settings: WatchSettings<T>;
  #settled: string;
  #last: string;
  #cancel?: () => void;
  #stopped = false;

  constructor(settings: WatchSettings<T>, digest: string) {
    this.#settings = settings;
    this.#settled = digest;
    this.#last = digest;
  }

  start(): void {
    this.#schedule(this.#settings.pollMs);
  }

  /** What is taken as known; a further look reports only what differs from it. */
  settle(digest: string): void {
    this.#settled = digest;
    this.#last = digest;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  #schedule(delayMs: number): void {
    if (this.#stopped) return;
    this.#cancel = this.#settings.clock.schedule(() => void this.#look(), delayMs);
  }

  async #look(): Promise<void> {
    const { pollMs, quietMs, read, onQuiet } = this.#settings;
    const content = await read();
    const { digest } = content;
    if (this.#stopped) return;
    if (digest === this.#settled) {
      this.#last = digest;
      this.#schedule(pollMs);
    } else if (digest !== this.#last && quietMs > 0) {
      this.#last = digest;
      this.#schedule(quietMs);
    } else {
      this.#settled = digest;
      onQuiet(content);
      this.#schedule(pollMs);
    }
  }
}
