import { type Clock } from '../time/clock.js';
import { ServiceApiError, ServiceError } from '../errors/index.js';
import { within } from '../time/timers.js';

/** Probes may come each second, from several observers: the service gets one request a minute for all of them. */
const INTERVAL_MS = 60_000;
/** What failed may work a moment later, and the application is out of service until this says so. */
const FAILED_MS = 10_000;
/** Not the time of the probe that began it: a probe in a hurry would decide for all others. */
const REQUEST_MS = 10_000;

/** The outcome of a check, without secrets. */
export interface CheckOutcome {
  ok: boolean;
  /** ISO 8601, UTC. Absent if nothing had to be requested. */
  checkedAt?: string;
  /** Why not: the code of the error, with the status of an answer. */
  code?: string;
}

interface Check {
  request: (timeoutMs: number) => Promise<unknown>;
  /** Called once a minute at most for the same failure. */
  onFailure: (error: unknown) => void;
}

/** A check that makes a request, whose outcome is that of all who ask within a minute; within 10 s if it failed. */
export class LimitedCheck {
  readonly #clock: Clock;
  readonly #check: Check;
  #outcome?: Promise<CheckOutcome>;
  /** Monotonic milliseconds. */
  #until = -Infinity;
  #told?: { code: string; until: number };

  constructor(clock: Clock, check: Check) {
    this.#clock = clock;
    this.#check = check;
  }

  /** Never rejects. Whoever has less time than the request under way gets `connection_timeout`. */
  async outcome(timeoutMs: number): Promise<CheckOutcome> {
    const now = this.#clock.monotonic();
    if (!this.#outcome || now >= this.#until) {
      this.#until = now + INTERVAL_MS;
      this.#outcome = this.#request();
    }
    const outcome = this.#outcome;
    const limit = { clock: this.#clock, timeoutMs, expired: () => new Error('no outcome in time') };
    return within(limit, () => outcome).catch(() => ({ ok: false, code: 'connection_timeout' }));
  }

  async #request(): Promise<CheckOutcome> {
    const checkedAt = new Date(this.#clock.now()).toISOString();
    try {
      await this.#check.request(REQUEST_MS);
      return { ok: true, checkedAt };
    } catch (error) {
      const code = codeOf(error);
      this.#until = this.#clock.monotonic() + FAILED_MS;
      this.#tell(code, error);
      return { ok: false, checkedAt, code };
    }
  }

  #tell(code: string, error: unknown): void {
    const now = this.#clock.monotonic();
    if (this.#told?.code === code && now < this.#told.until) return;
    this.#told = { code, until: now + INTERVAL_MS };
    this.#check.onFailure(error);
  }
}

function codeOf(error: unknown): string {
  if (error instanceof ServiceApiError) return `${error.code} ${error.status}`;
  return error instanceof ServiceError ? error.code : 'unknown';
}
