import { type ServiceError, ServiceTokenError } from '../../errors/index.js';
import { backOff, retryDelay } from '../../time/back-off.js';
import { type Clock } from '../../time/clock.js';
import { isTransient, notAsked } from '../endpoint/token-errors.js';

const BURST = 3;
const REFILL_MS = 30_000;

/** The wait after a failed renewal in the background: 3 s, doubling to 30 s. */
export function renewalDelay(failures: number): number {
  return backOff(failures - 1, 3_000, 30_000);
}

/** Attempts before the first caller gets an error. */
export const ATTEMPTS = 3;
const MAX_DELAY_MS = 5_000;
const REFUSED = { leastMs: 1_000, mostMs: 30_000 };
/** Callers wait no longer than this for the next request to an endpoint that fails. */
const PATIENCE_MS = 1_000;
/** Failures that are longer ago say nothing of the next request. */
const FORGET_MS = 10_000;

/** After failures in a row, of one scope or of all, the token endpoint is not asked for a while: a circuit breaker. */
export class Hold {
  /** If it takes longer, callers do not wait for its end, but get the error at once. */
  patienceMs = PATIENCE_MS;
  /** How many failures in a row. */
  count = 0;
  #error?: ServiceError;
  #until = -Infinity;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get remainingMs(): number {
    return Math.max(this.#until - this.#clock.monotonic(), 0);
  }

  get isTooLong(): boolean {
    return this.remainingMs > this.patienceMs;
  }

  /** Whether the next failure is the first one: there was none, or it is long ago. */
  get isOver(): boolean {
    return this.#clock.monotonic() - this.#until > FORGET_MS;
  }

  /** Whether the last failure was a refusal, such as invalid_scope: another request would not help. */
  get isRefusal(): boolean {
    return this.patienceMs === 0;
  }

  /** The error of the last failure, for a caller of this scope who does not wait. */
  errorFor(scope: string): ServiceError {
    const error = this.#error ?? new ServiceTokenError({ code: 'token_unavailable', message: '' });
    return notAsked(error, scope, this.remainingMs);
  }

  /**
   * The delay before the next request doubles from 100 ms to 5 s, with jitter. After a refusal, and after the third 401 or
   * 403 of a gateway, it doubles from 1 s to 30 s: a secret that is really wrong must not hammer a gateway.
   * @param random in [0, 1)
   * @param freeRefusals so many refusals do not double it
   */
  failed(error: ServiceError, random: number, freeRefusals = 1): void {
    const isRefusal = !isTransient(error);
    if (isRefusal !== this.isRefusal || this.isOver) this.reset();
    const tries = this.count + 1 - (isRefusal ? freeRefusals : ATTEMPTS);
    const isDenied = error instanceof ServiceTokenError && (error.status === 401 || error.status === 403);
    if (isRefusal) this.extend(error, backOff(Math.max(0, tries), REFUSED.leastMs, REFUSED.mostMs), 0);
    else if (tries < 0) this.extend(error, retryDelay(this.count, random));
    else if (isDenied) this.extend(error, backOff(tries, REFUSED.leastMs, REFUSED.mostMs));
    else this.extend(error, backOff(this.count, 100, MAX_DELAY_MS) * (0.5 + random / 2));
  }

  extend(error: ServiceError, ms: number, patienceMs = PATIENCE_MS): void {
    this.count += 1;
    this.#until = Math.max(this.#until, this.#clock.monotonic() + ms);
    this.#error = error;
    this.patienceMs = patienceMs;
  }

  /** After a success, or with other credentials. */
  reset(): void {
    this.count = 0;
    this.#until = -Infinity;
  }
}

/** The one that ends later. */
export function longer(one: Hold, other: Hold | undefined): Hold {
  return other && other.remainingMs > one.remainingMs ? other : one;
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
