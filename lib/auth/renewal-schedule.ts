import { type Clock } from '../config/clock.js';

/** No schedule fires more often than that, in milliseconds. */
const SHORTEST_DELAY = 250;

export interface RenewalScheduleParts {
  clock: Clock;
  /** Milliseconds from now to the next renewal. */
  delayMs: () => number;
  /** Whether a request is under way then; its end is to call {@link RenewalSchedule.plan}. */
  renew: () => boolean;
}

/** Renews a token for as long as it is left alone: one timer at a time, which does not keep the process alive. */
export class RenewalSchedule {
  readonly #parts: RenewalScheduleParts;
  #cancel?: () => void;
  #stopped = false;

  constructor(parts: RenewalScheduleParts) {
    this.#parts = parts;
  }

  /** Renews now. */
  readonly start = (): void => {
    // The request's end plans the next one; where none could begin, that has to be done here.
    if (!this.#parts.renew()) this.plan();
  };

  /** Plans the next renewal, in place of the one planned before. */
  plan(): void {
    if (this.#stopped) return;
    this.#cancel?.();
    const { clock, delayMs } = this.#parts;
    this.#cancel = clock.schedule(this.start, Math.max(delayMs(), SHORTEST_DELAY));
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }
}
