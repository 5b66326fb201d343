import { type ServiceError, ServiceTokenError } from '../errors/index.js';
import { backOff, retryDelay, type Clock } from '../time/time.js';
import { isRetryableTokenError, stillFailing } from './endpoint/token-errors.js';

/** Attempts of one token request before its callers get the error. */
export const MAX_ATTEMPTS = 3;
/** The circuit breaker stays open for at most this time after a failure that may pass. */
const MAX_OPEN_MS = 5_000;
/** The same after a refusal. */
const REFUSED_OPEN_MS = { least: 1_000, most: 30_000 };
/** If the circuit breaker stays open for longer, callers get the last error at once instead of waiting. */
const PATIENCE_MS = 1_000;
/** A failure that is longer ago says nothing about the next request. */
const FORGET_MS = 10_000;

/** Milliseconds to wait after a failed renewal in the background: 3 s, doubling to 30 s. */
export function renewalDelay(failures: number): number {
  return backOff(failures - 1, 3_000, 30_000);
}

/**
 * A circuit breaker for the token endpoint, for one scope or for several. After failures in a row it is open for a while: no
 * request is sent, and callers wait or get the last error.
 */
export class CircuitBreaker {
  /** If the breaker stays open for longer than this, callers get the last error at once. */
  patienceMs = PATIENCE_MS;
  /** Number of failures in a row. */
  failures = 0;
  #error?: ServiceError;
  #openUntil = -Infinity;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds for which the breaker stays open; 0 if it is closed. */
  get remainingMs(): number {
    return Math.max(this.#openUntil - this.#clock.monotonic(), 0);
  }

  get exceedsPatience(): boolean {
    return this.remainingMs > this.patienceMs;
  }

  /** Whether the next failure counts as the first one, because the last one is long ago or there was none. */
  get isForgotten(): boolean {
    return this.#clock.monotonic() - this.#openUntil > FORGET_MS;
  }

  /** Whether the last failure was a refusal, such as invalid_scope. Another request would not help. */
  get isRefusal(): boolean {
    return this.patienceMs === 0;
  }

  /** Makes the error for a caller of this scope that does not wait: that of the last failure. */
  errorFor(scope: string): ServiceError {
    const error = this.#error ?? new ServiceTokenError({ code: 'token_unavailable', message: '' });
    return stillFailing(error, scope, this.remainingMs);
  }

  /**
   * Opens the breaker after a failure:
   * - after a failure that may pass: for 100 ms, doubling to 5 s, with jitter
   * - after a refusal, and after the third 401 or 403 of a gateway: for 1 s, doubling to 30 s, so that a wrong secret is not
   *   sent to a gateway all the time
   * @param random in [0, 1)
   * @param freeRefusals number of refusals that do not double the time
   */
  recordFailure(error: ServiceError, random: number, freeRefusals = 1): void {
    const isRefusal = !isRetryableTokenError(error);
    if (isRefusal !== this.isRefusal || this.isForgotten) this.reset();
    const doublings = this.failures + 1 - (isRefusal ? freeRefusals : MAX_ATTEMPTS);
    const { least, most } = REFUSED_OPEN_MS;
    const isDenied = error instanceof ServiceTokenError && (error.status === 401 || error.status === 403);
    if (isRefusal) this.openFor(error, backOff(Math.max(0, doublings), least, most), 0);
    else if (doublings < 0) this.openFor(error, retryDelay(this.failures, random));
    else if (isDenied) this.openFor(error, backOff(doublings, least, most));
    else this.openFor(error, backOff(this.failures, 100, MAX_OPEN_MS) * (0.5 + random / 2));
  }

  /** Counts a failure and keeps the breaker open for at least this time from now on. */
  openFor(error: ServiceError, ms: number, patienceMs = PATIENCE_MS): void {
    this.failures += 1;
    this.#openUntil = Math.max(this.#openUntil, this.#clock.monotonic() + ms);
    this.#error = error;
    this.patienceMs = patienceMs;
  }

  /** Closes the breaker, after a success or with other credentials. */
  reset(): void {
    this.failures = 0;
    this.#openUntil = -Infinity;
  }
}

/** Returns the breaker that stays open for longer. */
export function longerOpen(one: CircuitBreaker, other: CircuitBreaker | undefined): CircuitBreaker {
  return other && other.remainingMs > one.remainingMs ? other : one;
}

const BURST = 3;
const REFILL_MS = 30_000;

/**
 * Limits how often a 401 of the API may replace a token before it expires: a burst of 3, then one in 30 s. Without this limit, an
 * API that refuses every token would cause a token request with each call.
 */
export class ForcedRefreshLimit {
  /** When the whole burst is available again, in milliseconds of the monotonic clock. */
  #fullAt = -Infinity;

  /** Takes one refresh if the limit allows it. @param now milliseconds of the monotonic clock */
  take(now: number): boolean {
    const fullAt = Math.max(this.#fullAt, now) + REFILL_MS;
    if (fullAt - now > BURST * REFILL_MS) return false;
    this.#fullAt = fullAt;
    return true;
  }
}
