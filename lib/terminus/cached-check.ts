import { type Clock, within } from '../time/time.js';
import { ServiceApiError, ServiceError } from '../errors/index.js';

/** Several observers may probe once a second. The service gets one request a minute for all of them. */
const SUCCESS_TTL_MS = 60_000;
/** A failure may be over a moment later, and it is reported as `down` until the next request: so it is cached for less. */
const FAILURE_TTL_MS = 10_000;
/** The request has a time limit of its own. With the limit of the probe that starts it, a short probe would fail for all. */
const REQUEST_TIMEOUT_MS = 10_000;

/** The outcome of a check, without secrets. */
export interface CheckOutcome {
  ok: boolean;
  /** When the request was made: ISO 8601, UTC. Absent if no request was needed. */
  checkedAt?: string;
  /** If not ok: the error's code, and the HTTP status if there was one, for example `api_error 503`. */
  code?: string;
}

interface CheckRequest {
  request: (timeoutMs: number) => Promise<unknown>;
  /** Called at most once a minute for the same failure, so that probes do not fill the log. */
  onFailure: (error: unknown, code: string) => void;
}

/** A check that makes a request. Its outcome is cached: for a minute if it succeeded, for 10 s if it failed. */
export class CachedCheck {
  readonly #clock: Clock;
  readonly #check: CheckRequest;
  #outcome?: Promise<CheckOutcome>;
  /** When the cached outcome expires, in monotonic milliseconds. */
  #expiresAt = -Infinity;
  #lastReported?: { code: string; until: number };

  constructor(clock: Clock, check: CheckRequest) {
    this.#clock = clock;
    this.#check = check;
  }

  /**
   * Returns the cached outcome or makes the request. Never rejects. If the request takes longer than the caller's time
   * limit, this caller gets `connection_timeout`, and the request goes on for the others.
   */
  async getOutcome(timeoutMs: number): Promise<CheckOutcome> {
    const now = this.#clock.monotonic();
    if (!this.#outcome || now >= this.#expiresAt) {
      this.#expiresAt = now + SUCCESS_TTL_MS;
      this.#outcome = this.#makeRequest();
    }
    const outcome = this.#outcome;
    const limit = { clock: this.#clock, timeoutMs, expired: () => new Error('no outcome in time') };
    return within(limit, () => outcome).catch(() => ({ ok: false, code: 'connection_timeout' }));
  }

  async #makeRequest(): Promise<CheckOutcome> {
    const checkedAt = new Date(this.#clock.now()).toISOString();
    try {
      await this.#check.request(REQUEST_TIMEOUT_MS);
      return { ok: true, checkedAt };
    } catch (error) {
      const code = outcomeCode(error);
      this.#expiresAt = this.#clock.monotonic() + FAILURE_TTL_MS;
      this.#reportFailure(code, error);
      return { ok: false, checkedAt, code };
    }
  }

  #reportFailure(code: string, error: unknown): void {
    const now = this.#clock.monotonic();
    if (this.#lastReported?.code === code && now < this.#lastReported.until) return;
    this.#lastReported = { code, until: now + SUCCESS_TTL_MS };
    this.#check.onFailure(error, code);
  }
}

function outcomeCode(error: unknown): string {
  if (error instanceof ServiceApiError) return `${error.code} ${error.status}`;
  return error instanceof ServiceError ? error.code : 'unknown';
}
