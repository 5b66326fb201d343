import { isCredentialRefusal } from '../auth/endpoint/token-errors.js';
import { type Clock } from '../time/clock.js';
import { ServiceApiError, ServiceError, ServiceTokenError } from '../errors/index.js';
import { within } from '../time/timers.js';

/** Probes may come each second, from several observers: the service gets one request a minute for all of them. */
const INTERVAL_MS = 60_000;
/** What failed may work a moment later, and the application is out of service until this says so. */
const PASSING_MS = 5_000;
const PASSING = /^(connection_(timeout|reset|refused|dns|proxy|network)|client_secret_unavailable)$/;
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
  /** The client certificate in use. If it is refused, another one may be accepted. */
  certificate: () => string | undefined;
}

/** Times are monotonic milliseconds. */
interface Run {
  certificate: string | undefined;
  begun: number;
  /** Until then its outcome counts. */
  until: number;
}

/**
 * A check that makes a request, whose outcome is that of all who ask within a minute; within 5 s if no connection was found
 * or credentials were refused (the token endpoint gets the same ones once a minute). With another certificate it asks at once.
 */
export class LimitedCheck {
  readonly #clock: Clock;
  readonly #check: Check;
  #last?: Run & { outcome: Promise<CheckOutcome> };
  #told?: { code: string; until: number };

  constructor(clock: Clock, check: Check) {
    this.#clock = clock;
    this.#check = check;
  }

  /** Never rejects. Whoever has less time than the request under way gets `connection_timeout`. */
  async outcome(timeoutMs: number): Promise<CheckOutcome> {
    const now = this.#clock.monotonic();
    const certificate = this.#check.certificate();
    if (!this.#last || now >= this.#last.until || certificate !== this.#last.certificate) {
      const run = { certificate, begun: now, until: now + INTERVAL_MS };
      this.#last = Object.assign(run, { outcome: this.#request(run) });
    }
    const { outcome } = this.#last;
    const limit = { clock: this.#clock, timeoutMs, expired: () => new Error('no outcome in time') };
    return within(limit, () => outcome).catch(() => ({ ok: false, code: 'connection_timeout' }));
  }

  async #request(run: Run): Promise<CheckOutcome> {
    const checkedAt = new Date(this.#clock.now()).toISOString();
    try {
      await this.#check.request(REQUEST_MS);
      return { ok: true, checkedAt };
    } catch (error) {
      const code = codeOf(error);
      // Of this run alone: the next one may have begun, with another certificate.
      if (mayPass(error)) run.until = run.begun + PASSING_MS;
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

function mayPass(error: unknown): boolean {
  if (error instanceof ServiceTokenError && isCredentialRefusal(error)) return true;
  if (error instanceof ServiceApiError && error.credentialFault) return true;
  return error instanceof ServiceError && PASSING.test(error.code);
}

function codeOf(error: unknown): string {
  if (error instanceof ServiceApiError) return `${error.code} ${error.status}`;
  return error instanceof ServiceError ? error.code : 'unknown';
}
