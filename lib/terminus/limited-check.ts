import { type Clock } from '../time/clock.js';
import { ServiceApiError, ServiceError } from '../errors/index.js';
import { within } from '../time/timers.js';

/** Probes may come each second, from several observers: the service gets one request a minute for all of them. */
const INTERVAL_MS = 60_000;
/** A connection that failed may be there a moment later, and the application is out of service until this says so. */
const RECONNECT_MS = 5_000;
const PASSING = /^connection_(timeout|reset|refused|dns|proxy|network)$/;
/** Not the time of the probe that began it: a probe in a hurry would decide for all others. */
const REQUEST_MS = 10_000;

/** What a check brought; nothing in it is secret. */
export interface CheckOutcome {
  ok: boolean;
  /** ISO 8601, UTC. Absent where nothing had to be asked for. */
  checkedAt?: string;
  /** Why not: the code of the error, with the status of an answer. */
  code?: string;
}

interface Check {
  request: (timeoutMs: number) => Promise<unknown>;
  onFailure: (error: unknown) => void;
  /** The client certificate that is in use. Another one may be accepted where this one is refused. */
  certificate: () => string | undefined;
}

/**
 * A check that makes a request: at most one a minute, or in 5 s after one that found no connection, whose outcome all get
 * who ask within it. With another certificate it asks at once.
 */
export class LimitedCheck {
  readonly #clock: Clock;
  readonly #check: Check;
  #last?: { until: number; certificate: string | undefined; outcome: Promise<CheckOutcome> };

  constructor(clock: Clock, check: Check) {
    this.#clock = clock;
    this.#check = check;
  }

  /** Never rejects. Whoever has less time than the request under way gets `connection_timeout`. */
  async outcome(timeoutMs: number): Promise<CheckOutcome> {
    const now = this.#clock.monotonic();
    const certificate = this.#check.certificate();
    if (!this.#last || now >= this.#last.until || certificate !== this.#last.certificate) {
      const outcome = this.#run();
      const last = (this.#last = { until: now + INTERVAL_MS, certificate, outcome });
      void outcome.then(({ code }) => {
        if (PASSING.test(code ?? '')) last.until = now + RECONNECT_MS;
      });
    }
    const { outcome } = this.#last;
    const limit = { clock: this.#clock, timeoutMs, expired: () => new Error('no outcome in time') };
    return within(limit, () => outcome).catch(() => ({ ok: false, code: 'connection_timeout' }));
  }

  async #run(): Promise<CheckOutcome> {
    const checkedAt = new Date(this.#clock.now()).toISOString();
    try {
      await this.#check.request(REQUEST_MS);
      return { ok: true, checkedAt };
    } catch (error) {
      this.#check.onFailure(error);
      return { ok: false, checkedAt, code: codeOf(error) };
    }
  }
}

function codeOf(error: unknown): string {
  if (error instanceof ServiceApiError) return `${error.code} ${error.status}`;
  return error instanceof ServiceError ? error.code : 'unknown';
}
