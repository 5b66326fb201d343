import { type Clock } from '../config/clock.js';
import { type ConnectionErrorKind, ServiceConnectionError, ServiceTokenError } from '../errors/index.js';
import { isProxyRefusal } from '../exchange/classify.js';
import { type AccessToken, type TokenGrant, type TokenSource } from './access-token.js';
import { retryDelay } from './back-off.js';
import { type EndpointHold } from './endpoint-hold.js';
import { type RequestLane } from './request-lane.js';
import { sleep, within } from './timing.js';
import { type TokenEvents } from './token-events.js';
import { WaitingCallers } from './waiting-callers.js';

/** Milliseconds for all attempts together; what the endpoint holds us back comes on top. */
const BUDGET_MS = 10_000;
const ATTEMPTS = 3;

const TRANSIENT: ReadonlySet<ConnectionErrorKind> = new Set([
  'timeout',
  'reset',
  'refused',
  'dns',
  'protocol',
  'proxy',
  'network',
]);

export interface TokenRequestParts {
  source: TokenSource;
  clock: Clock;
  random: () => number;
  hold: EndpointHold;
  /** Where requests of this kind wait for one another; the api token's has none. */
  lane?: RequestLane;
  events?: TokenEvents;
  /** Ends it when the cache closes. */
  signal: AbortSignal;
}

export interface ArrivedGrant {
  grant: TokenGrant;
  /** Monotonic milliseconds at which the attempt that brought it began. */
  requestedAt: number;
  attempt: number;
}

/** Nobody waits any more for a token whose request was not begun. */
export class AbandonedRequest extends Error {}

/**
 * One token on its way, shared by all who wait for it. While somebody waits it makes up to 3 attempts; a renewal that
 * nobody waits for makes one, and becomes the other kind when a caller joins it.
 */
export class TokenRequest {
  readonly callers: WaitingCallers<AccessToken>;
  readonly #scope: string;
  readonly #accepts: (grant: TokenGrant) => boolean;
  readonly #parts: TokenRequestParts;

  constructor(scope: string, accepts: (grant: TokenGrant) => boolean, parts: TokenRequestParts) {
    this.#scope = scope;
    this.#accepts = accepts;
    this.#parts = parts;
    this.callers = new WaitingCallers(parts.clock);
  }

  async run(): Promise<ArrivedGrant> {
    const { clock, random, hold, signal } = this.#parts;
    let budget = BUDGET_MS;
    let noSecret: Error | undefined;
    for (let attempt = 1; ; attempt += 1) {
      const leave = await this.#admission();
      const requestedAt = clock.monotonic();
      try {
        return { grant: await this.#attempt(attempt, budget, noSecret).finally(leave), requestedAt, attempt };
      } catch (error) {
        if (signal.aborted) throw error;
        const pause = retryDelay(attempt, random());
        budget -= clock.monotonic() - requestedAt + pause;
        const last = attempt >= (this.callers.size > 0 ? ATTEMPTS : 1);
        if (last || budget <= 0 || !isTransient(error)) throw error;
        noSecret = isSecretFailure(error) ? error : undefined;
        if (hold.remainingMs > 0) continue;
        await sleep(clock, pause, signal);
        if (this.callers.size === 0) throw error;
      }
    }
  }

  /** @param noSecret why the attempt before had no secret; then it is not the endpoint that one waits for now */
  async #attempt(attempt: number, timeoutMs: number, noSecret?: Error): Promise<TokenGrant> {
    const { source, clock, hold, events, signal } = this.#parts;
    const begun = clock.monotonic();
    events?.requested(this.#scope, { attempt, waiting: this.callers.size });
    try {
      const limit = { clock, timeoutMs, signal, expired: () => noSecret ?? unanswered(timeoutMs) };
      const grant = await within(limit, (stop) =>
        source.request(this.#scope, { signal: stop, timeoutMs, accepts: this.#accepts }),
      );
      hold.succeeded();
      return grant;
    } catch (error) {
      // The cache was closed: nobody's failure.
      if (signal.aborted) throw error;
      hold.failed(error);
      events?.failed(this.#scope, error, {
        attempt,
        durationMs: clock.monotonic() - begun,
        waiting: this.callers.size,
      });
      throw error;
    }
  }

  /** Waits until the endpoint may be asked; returns what is to be called once it has answered. */
  async #admission(): Promise<() => void> {
    const { lane, hold } = this.#parts;
    for (;;) {
      await this.#waitWhileHeld();
      if (!lane) return () => undefined;
      const leave = await this.#place(lane);
      if (hold.remainingMs === 0) return leave;
      leave();
    }
  }

  async #place(lane: RequestLane): Promise<() => void> {
    const abandoned = new AbortController();
    this.callers.onEmpty = () => abandoned.abort(new AbandonedRequest());
    try {
      return await lane.enter(abandoned.signal);
    } finally {
      this.callers.onEmpty = undefined;
    }
  }

  async #waitWhileHeld(): Promise<void> {
    const { clock, hold, signal } = this.#parts;
    for (let ms = hold.remainingMs; ms > 0; ms = hold.remainingMs) {
      this.callers.rejectImpatient(ms, hold.error(this.#scope));
      if (this.callers.size > 0) await sleep(clock, ms, signal);
      if (this.callers.size === 0) throw hold.error(this.#scope);
    }
  }
}

function isTransient(error: unknown): boolean {
  if (error instanceof ServiceConnectionError) return TRANSIENT.has(error.kind) && !isProxyRefusal(error);
  if (isSecretFailure(error)) return true;
  return (
    error instanceof ServiceTokenError && ['token_unavailable', 'token_rate_limited'].includes(error.code)
  );
}

function isSecretFailure(error: unknown): error is ServiceTokenError {
  return error instanceof ServiceTokenError && error.code === 'client_secret_unavailable';
}

function unanswered(timeoutMs: number): ServiceConnectionError {
  const message = `The token endpoint gave no answer within ${Math.round(timeoutMs)} ms`;
  return new ServiceConnectionError({ kind: 'timeout', message });
}
