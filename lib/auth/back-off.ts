import { type ServiceError, ServiceTokenError } from '../errors/index.js';
import { backOff, type Clock, retryDelay } from '../time/time.js';
import { isRetryableTokenError } from './endpoint/token-errors.js';

/** Attempts at a token before its callers get the error. */
export const MAX_ATTEMPTS = 3;
/** Callers wait for the end of a pause after a failure if it ends within this time. */
const MAX_WAIT_MS = 1_000;
/** A failure that is longer ago says nothing about the next request. */
const FORGET_MS = 10_000;

/** Milliseconds to wait after a failed renewal in the background, and after a 429: 3 s, doubling to 30 s. */
export function renewalDelay(failures: number): number {
  return backOff(failures - 1, 3_000, 30_000);
}

/** Failures in a row, of one scope or of several, and the pause after the last one. */
export class BackOff {
  failures = 0;
  /** The last failure. */
  error?: ServiceError;
  #until = -Infinity;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until the end of the pause. */
  get remainingMs(): number {
    return Math.max(this.#until - this.#clock.monotonic(), 0);
  }

  /** Callers wait for the end of the pause if it ends within this time. Otherwise they get the last error at once. */
  get maxWaitMs(): number {
    if (this.error?.code === 'token_rate_limited') return Infinity;
    return this.isRefusal ? 0 : MAX_WAIT_MS;
  }

  /** Whether the last failure was a refusal, such as invalid_scope. Another request would not help. */
  get isRefusal(): boolean {
    return this.error !== undefined && !isRetryableTokenError(this.error);
  }

  /** Whether the next failure counts as the first one, because the last one is long ago or there was none. */
  get isForgotten(): boolean {
    return this.#clock.monotonic() - this.#until > FORGET_MS;
  }

  /** Whether callers get the last error, because the pause is too long to wait for. */
  get isTooLong(): boolean {
    return this.remainingMs > this.maxWaitMs;
  }

  /**
   * Counts a failure. The pause after it is
   * - after a failure that may pass: 100 ms, doubling to 5 s, with jitter
   * - after a refusal, and after the third 401 or 403 of a gateway: 1 s, doubling to 30 s, so that a wrong secret is not sent
   *   to a gateway all the time
   * @param random in [0, 1)
   * @param freeRefusals number of refusals that do not double the pause
   */
  record(error: ServiceError, random: number, freeRefusals = 1): void {
    const isRefusal = !isRetryableTokenError(error);
    if (isRefusal !== this.isRefusal || this.isForgotten) this.reset();
    const failures = (this.failures += 1);
    const isDenied = error instanceof ServiceTokenError && (error.status === 401 || error.status === 403);
    if (isRefusal) this.pause(error, backOff(Math.max(0, failures - freeRefusals), 1_000, 30_000));
    else if (failures < MAX_ATTEMPTS) this.pause(error, retryDelay(failures - 1, random));
    else if (isDenied) this.pause(error, backOff(failures - MAX_ATTEMPTS, 1_000, 30_000));
    else this.pause(error, backOff(failures - 1, 100, 5_000) * (0.5 + random / 2));
  }

  /** Pauses for at least this time from now on. */
  pause(error: ServiceError, ms: number): void {
    this.#until = Math.max(this.#until, this.#clock.monotonic() + ms);
    this.error = error;
  }

  /** Forgets the failures and ends the pause, after a success or with other credentials. */
  reset(): void {
    this.failures = 0;
    this.error = undefined;
    this.#until = -Infinity;
  }
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
