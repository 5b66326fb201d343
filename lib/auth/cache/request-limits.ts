import { type Clock } from '../../time/clock.js';
import { ServiceTokenError } from '../../errors/index.js';
import { backOff } from '../../time/back-off.js';
import { notAsked } from '../endpoint/token-errors.js';

const BURST = 3;
const REFILL_MS = 30_000;

/** The wait after a failed renewal in the background: 3 s, doubling to 30 s. */
export function renewalDelay(failures: number): number {
  return backOff(failures - 1, 3_000, 30_000);
}

/**
 * Closed while the token endpoint wants no requests: after a 429, after any answer with a Retry-After, and after an
 * acquisition that ended with a 401 or 403 that says nothing of OAuth, so that a secret that is really wrong does not hammer
 * a gateway. Uses the monotonic clock.
 */
export class RetryAfterGate {
  readonly #clock: Clock;
  #closedUntil = -Infinity;
  #inARow = 0;
  #cause?: ServiceTokenError;

  readonly #shared?: RetryAfterGate;

  /**
   * @param shared of the api token, for the gate of customers: what a gateway refuses to a customer does not hold that token
   * up. A 429 closes both, because an endpoint counts the requests of a client
   */
  constructor(clock: Clock, shared?: RetryAfterGate) {
    this.#clock = clock;
    this.#shared = shared;
  }

  /** Milliseconds until it opens; 0 while it is open. */
  get remainingMs(): number {
    return Math.max(this.#shared?.remainingMs ?? 0, this.#closedUntil - this.#clock.monotonic(), 0);
  }

  /** An attempt failed: at least 3 s after a 429, doubling to 30 s with each in a row. */
  failed(error: unknown): void {
    if (this.#shared) return this.#shared.failed(error);
    if (!(error instanceof ServiceTokenError)) return;
    const { code, retryAfter = 0 } = error;
    // A Retry-After of 0, or a date in the past by our clock, does not switch the back-off off.
    if (code === 'token_rate_limited')
      this.#close(error, Math.max(retryAfter * 1000, renewalDelay(this.#inARow + 1)));
    else if (code === 'token_unavailable' && retryAfter > 0) this.#close(error, retryAfter * 1000);
  }

  /** An acquisition failed. Those of several scopes that end together count once. */
  ended(error: unknown): void {
    if (!(error instanceof ServiceTokenError) || error.code !== 'token_unavailable') return;
    const isDenied = error.status === 401 || error.status === 403;
    if (isDenied && this.remainingMs === 0) this.#close(error, backOff(this.#inARow, 1_000, 30_000));
  }

  #close(error: ServiceTokenError, ms: number): void {
    this.#inARow += 1;
    this.#closedUntil = Math.max(this.#closedUntil, this.#clock.monotonic() + ms);
    this.#cause = error;
  }

  succeeded(): void {
    this.#shared?.succeeded();
    this.#inARow = 0;
  }

  /** For a caller that cannot wait until it opens. */
  error(scope: string): ServiceTokenError {
    if (this.#shared && this.#shared.remainingMs > 0) return this.#shared.error(scope);
    const cause = this.#cause ?? new ServiceTokenError({ code: 'token_unavailable', message: '' });
    return notAsked(cause, scope, this.remainingMs);
  }
}

/**
 * How often a 401 may replace a token before its time: a burst of 3, then one in 30 s. Without it, an API that refuses
 * every token would cause a token request with each call.
 */
export class ForcedRefreshLimit {
  /** When the whole burst may be taken again. */
  #fullAt = -Infinity;

  /** @param now monotonic milliseconds */
  take(now: number): boolean {
    const fullAt = Math.max(this.#fullAt, now) + REFILL_MS;
    if (fullAt - now > BURST * REFILL_MS) return false;
    this.#fullAt = fullAt;
    return true;
  }
}

/** Limits how many requests run at a time; the others wait for their turn, first come first served. */
export class Lane {
  #free: number;
  readonly #queue: (() => void)[] = [];

  constructor(max: number) {
    this.#free = max;
  }

  get isFull(): boolean {
    return this.#free === 0;
  }

  get isWaitedFor(): boolean {
    return this.#queue.length > 0;
  }

  /** Runs the work when its turn comes. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#queue.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
