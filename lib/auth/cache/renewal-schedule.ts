import { type Clock } from '../../config/clock.js';

/** The shortest time between two renewals. */
const MIN_DELAY_MS = 250;

export interface RenewalScheduleParts {
  clock: Clock;
  /** Milliseconds from now to the next renewal. */
  delayMs: () => number;
  /** Begins a request. Returns whether one is under way: its end has to call {@link RenewalSchedule.plan}. */
  renew: () => boolean;
}

/** Renews a token again and again, without calls. One timer at a time, which does not keep the process alive. */
export class RenewalSchedule {
  readonly #parts: RenewalScheduleParts;
  #cancel?: () => void;
  #stopped = false;

  constructor(parts: RenewalScheduleParts) {
    this.#parts = parts;
  }

  /** Renews now. */
  readonly start = (): void => {
    // Where no request could begin, there is no end of one that plans the next.
    if (!this.#parts.renew()) this.plan();
  };

  /** Plans the next renewal, in place of the one planned before. */
  plan(): void {
    if (this.#stopped) return;
    this.#cancel?.();
    const { clock, delayMs } = this.#parts;
    this.#cancel = clock.watch(this.start, Math.max(delayMs(), MIN_DELAY_MS));
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }
}
