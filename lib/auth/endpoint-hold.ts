import { type Clock } from '../config/clock.js';
import { ServiceTokenError, type TokenErrorCode } from '../errors/index.js';
import { renewalDelay } from './back-off.js';

/** The longest that an endpoint may hold us back, in seconds. */
export const LONGEST_HOLD_S = 3_600;

/**
 * How long the token endpoint wants to be left alone: after a 429, or any answer with a Retry-After. It holds for all
 * scopes, because an endpoint counts the requests of a client. By the monotonic clock.
 */
export class EndpointHold {
  readonly #clock: Clock;
  #until = -Infinity;
  #inARow = 0;
  #cause: { code: TokenErrorCode; status?: number } = { code: 'token_rate_limited' };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get remainingMs(): number {
    return Math.max(0, this.#until - this.#clock.monotonic());
  }

  /** At least 3 s after a 429, doubling to 30 s with each in a row. */
  failed(error: unknown): void {
    if (!(error instanceof ServiceTokenError)) return;
    const limited = error.code === 'token_rate_limited';
    if (!limited && error.retryAfter === undefined) return;
    if (!limited && error.code !== 'token_unavailable') return;
    this.#inARow += 1;
    // A Retry-After of 0, or a date that a skewed clock puts into the past, does not switch the back-off off.
    const leastMs = limited || error.retryAfter === undefined ? renewalDelay(this.#inARow) : 0;
    const holdMs = Math.max((error.retryAfter ?? 0) * 1000, leastMs);
    this.#until = Math.max(this.#until, this.#clock.monotonic() + Math.min(holdMs, LONGEST_HOLD_S * 1000));
    this.#cause = { code: error.code, status: error.status };
  }

  succeeded(): void {
    this.#inARow = 0;
  }

  /** What a caller gets who cannot wait that long. */
  error(scope: string): ServiceTokenError {
    const retryAfter = Math.ceil(this.remainingMs / 1000);
    return new ServiceTokenError({
      ...this.#cause,
      message: `The token endpoint asked to be left alone for another ${retryAfter} s (HTTP ${this.#cause.status})`,
      scope,
      retryAfter,
    });
  }
}
