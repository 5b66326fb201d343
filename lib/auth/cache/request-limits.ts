import { type Clock } from '../../config/clock.js';
import { ServiceTokenError, type TokenErrorCode } from '../../errors/index.js';
import { backOff } from '../../exchange/timing.js';
import { MAX_RETRY_AFTER_S } from '../access-token.js';

const RENEWAL_BASE_MS = 3_000;
const RENEWAL_CAP_MS = 30_000;

const BURST = 3;
const REFILL_MS = 30_000;

/** The wait after a failed renewal in the background: 3 s, doubling to 30 s. */
export function renewalDelay(failures: number): number {
  return backOff(failures - 1, RENEWAL_BASE_MS, RENEWAL_CAP_MS);
}

/**
 * Closed while the token endpoint asks for no requests: after a 429, and after any answer with a Retry-After. One gate
 * for all scopes, because an endpoint counts the requests of a client. By the monotonic clock.
 */
export class RetryAfterGate {
  readonly #clock: Clock;
  #closedUntil = -Infinity;
  #inARow = 0;
  #cause: { code: TokenErrorCode; status?: number } = { code: 'token_rate_limited' };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until it opens; 0 while it is open. */
  get remainingMs(): number {
    return Math.max(0, this.#closedUntil - this.#clock.monotonic());
  }

  /** Closes after a 429 or a Retry-After: at least 3 s after a 429, doubling to 30 s with each in a row. */
  failed(error: unknown): void {
    if (!(error instanceof ServiceTokenError)) return;
    const { code, status, retryAfter } = error;
    const isLimited = code === 'token_rate_limited';
    if (!isLimited && (code !== 'token_unavailable' || retryAfter === undefined)) return;
    this.#inARow += 1;
    // A Retry-After of 0, or a date in the past by our clock, does not switch the back-off off.
    const minMs = isLimited ? renewalDelay(this.#inARow) : 0;
    const waitMs = Math.min(Math.max((retryAfter ?? 0) * 1000, minMs), MAX_RETRY_AFTER_S * 1000);
    this.#closedUntil = Math.max(this.#closedUntil, this.#clock.monotonic() + waitMs);
    this.#cause = { code, status };
  }

  succeeded(): void {
    this.#inARow = 0;
  }

  /** For a caller that cannot wait until it opens. */
  error(scope: string): ServiceTokenError {
    const retryAfter = Math.ceil(this.remainingMs / 1000);
    return new ServiceTokenError({
      ...this.#cause,
      message: `The token endpoint asked for no requests for another ${retryAfter} s (HTTP ${this.#cause.status})`,
      scope,
      retryAfter,
    });
  }
}

/**
 * How often a 401 may replace a token before its time: a burst of 3, then one in 30 s. Without it, an API that refuses
 * every token would cause a token request with each call.
 */
export class ForcedRefreshLimit {
  #left = BURST;
  #countedAt = 0;

  /** @param now monotonic milliseconds */
  take(now: number): boolean {
    if (this.#left === BURST) this.#countedAt = now;
    const refilled = Math.floor((now - this.#countedAt) / REFILL_MS);
    if (refilled > 0) {
      this.#left = Math.min(BURST, this.#left + refilled);
      this.#countedAt += refilled * REFILL_MS;
    }
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }
}

/** At most so many requests at a time; the others wait for their turn, first come first served. */
export class ConcurrencyLimit {
  #free: number;
  readonly #queue = new Set<() => void>();

  constructor(max: number) {
    this.#free = max;
  }

  /** Resolves, when it is the caller's turn, to the function that ends it. Rejects with the signal's reason. */
  acquire(signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        this.#free -= 1;
        resolve(() => this.#release());
      };
      const onAbort = (): void => {
        this.#queue.delete(begin);
        reject(signal.reason as Error);
      };
      if (this.#free > 0) return begin();
      this.#queue.add(begin);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  #release(): void {
    this.#free += 1;
    const [next] = this.#queue;
    if (next === undefined) return;
    this.#queue.delete(next);
    next();
  }
}
