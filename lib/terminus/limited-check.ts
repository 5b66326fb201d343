import { type Clock } from '../time/clock.js';
import { ServiceApiError, ServiceError } from '../errors/index.js';
import { within } from '../time/timers.js';

/** Probes may come each second, from several observers: the service gets one request a minute for all of them. */
const INTERVAL_MS = 60_000;
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

/** A check that makes a request: at most one a minute, whose outcome all get who ask within it. */
export class LimitedCheck {
  readonly #clock: Clock;
  readonly #request: (timeoutMs: number) => Promise<unknown>;
  readonly #onFailure: (error: unknown) => void;
  #last?: { at: number; outcome: Promise<CheckOutcome> };

  constructor(
    clock: Clock,
    request: (timeoutMs: number) => Promise<unknown>,
    onFailure: (error: unknown) => void,
  ) {
    this.#clock = clock;
    this.#request = request;
    this.#onFailure = onFailure;
  }

  /** Never rejects. Whoever has less time than the request under way gets `connection_timeout`. */
  async outcome(timeoutMs: number): Promise<CheckOutcome> {
    const now = this.#clock.monotonic();
    if (!this.#last || now - this.#last.at >= INTERVAL_MS) {
      this.#last = { at: now, outcome: this.#run() };
    }
    const { outcome } = this.#last;
    const limit = { clock: this.#clock, timeoutMs, expired: () => new Error('no outcome in time') };
    return within(limit, () => outcome).catch(() => ({ ok: false, code: 'connection_timeout' }));
  }

  async #run(): Promise<CheckOutcome> {
    const checkedAt = new Date(this.#clock.now()).toISOString();
    try {
      await this.#request(REQUEST_MS);
      return { ok: true, checkedAt };
    } catch (error) {
      this.#onFailure(error);
      return { ok: false, checkedAt, code: codeOf(error) };
    }
  }
}

function codeOf(error: unknown): string {
  if (error instanceof ServiceApiError) return `${error.code} ${error.status}`;
  return error instanceof ServiceError ? error.code : 'unknown';
}
