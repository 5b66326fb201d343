import { type ConnectionErrorKind, ServiceConnectionError, ServiceTokenError } from '../../errors/index.js';
import { isProxyRefusal } from '../../exchange/classify.js';
import { type ServiceIo } from '../../exchange/io.js';
import { retryDelay, sleep, within } from '../../exchange/timing.js';
import { type TokenGrant, type TokenSource } from '../access-token.js';
import { type TokenObserver } from '../token-observers.js';
import { type CachedToken } from './cached-token.js';
import { type ConcurrencyLimit, type RetryAfterGate } from './request-limits.js';
import { type WaitOptions, WaitingCallers } from './waiting-callers.js';

/** Milliseconds for all attempts together; waiting for a Retry-After comes on top. */
const BUDGET_MS = 10_000;
const ATTEMPTS = 3;

/** Another attempt would fail in the same way. */
const LASTING: ReadonlySet<ConnectionErrorKind> = new Set(['tls', 'redirect', 'too_large', 'closed']);

/** What all requests of a cache use. */
export interface RequestTools {
  source: TokenSource;
  io: Pick<ServiceIo, 'clock' | 'random'>;
  observer: TokenObserver;
  gate: RetryAfterGate;
  /** Whether a token that exists already elsewhere can be used. */
  accepts: (scope: string, grant: TokenGrant) => boolean;
  /** Aborted when the cache closes. */
  signal: AbortSignal;
}

export interface ArrivedGrant {
  grant: TokenGrant;
  /** Monotonic milliseconds at which the attempt that brought it began. */
  requestedAt: number;
}

/** All callers left before the request began. */
export class AbandonedRequest extends Error {}

/**
 * The request for one token, shared by all who wait for it. While somebody waits it makes up to 3 attempts; a renewal
 * in the background, and one for a health check, makes one.
 */
export class TokenRequest {
  readonly callers: WaitingCallers<CachedToken>;
  /** Its token is for those who wait, and is not to be kept. */
  isOutdated = false;
  readonly #scope: string;
  readonly #tools: RequestTools;
  readonly #limit: ConcurrencyLimit | undefined;
  readonly #inBackground: boolean;
  /** In all; more as soon as somebody waits who wants more. */
  #attempts = 1;

  /**
   * @param limit of requests for customer tokens; the api token's has none
   * @param inBackground a renewal that nobody has to wait for
   */
  constructor(
    scope: string,
    tools: RequestTools,
    limit: ConcurrencyLimit | undefined,
    inBackground: boolean,
  ) {
    this.#scope = scope;
    this.#tools = tools;
    this.#limit = limit;
    this.#inBackground = inBackground;
    this.callers = new WaitingCallers(tools.io.clock);
  }

  /** The outcome. Rejects as {@link WaitingCallers.join} does. */
  join(wait: WaitOptions): Promise<CachedToken> {
    if (!wait.once) this.#attempts = ATTEMPTS;
    return this.callers.join(wait);
  }

  async run(): Promise<ArrivedGrant> {
    const { gate, signal } = this.#tools;
    const { clock, random } = this.#tools.io;
    let budget = BUDGET_MS;
    let noSecret: Error | undefined;
    for (let attempt = 1; ; attempt += 1) {
      const release = await this.#admission();
      const requestedAt = clock.monotonic();
      try {
        const grant = await this.#attempt(budget, noSecret).finally(release);
        return { grant, requestedAt: grant.requestedAt ?? requestedAt };
      } catch (error) {
        if (signal.aborted) throw error;
        const pause = retryDelay(attempt - 1, random());
        budget -= clock.monotonic() - requestedAt + pause;
        const isLast = attempt >= this.#attempts || this.callers.size === 0;
        if (isLast || budget <= 0 || !isTransient(error)) throw error;
        noSecret = isSecretFailure(error) ? error : undefined;
        if (gate.remainingMs > 0) continue;
        await sleep(clock, pause, signal);
        if (this.callers.size === 0) throw error;
      }
    }
  }

  /** @param noSecret why the attempt before had no secret: the error at the deadline, as the endpoint was not asked */
  async #attempt(timeoutMs: number, noSecret?: Error): Promise<TokenGrant> {
    const { source, io, accepts, gate, observer, signal } = this.#tools;
    const scope = this.#scope;
    try {
      const expired = (): Error => noSecret ?? unanswered(timeoutMs);
      const limit = { clock: io.clock, timeoutMs, signals: [signal], expired };
      const grant = await within(limit, (stop) =>
        source.request(scope, { signal: stop, timeoutMs, accepts: (grant) => accepts(scope, grant) }),
      );
      gate.succeeded();
      return grant;
    } catch (error) {
      // The cache was closed: not a failure.
      if (signal.aborted) throw error;
      gate.failed(error);
      observer.failed(error, this.callers.size);
      throw error;
    }
  }

  /** Waits until a request may begin; returns what is to be called at its end. */
  async #admission(): Promise<() => void> {
    for (;;) {
      await this.#gateOpen();
      if (!this.#limit) return () => undefined;
      const release = await this.#turn(this.#limit);
      if (this.#tools.gate.remainingMs === 0) return release;
      release();
    }
  }

  async #turn(limit: ConcurrencyLimit): Promise<() => void> {
    // All callers may have left by now. Then the request takes no place in the queue.
    if (this.callers.size === 0 && !this.#inBackground) throw new AbandonedRequest();
    const abandoned = new AbortController();
    this.callers.onEmpty = () => abandoned.abort(new AbandonedRequest());
    try {
      return await limit.acquire(abandoned.signal);
    } finally {
      this.callers.onEmpty = undefined;
    }
  }

  async #gateOpen(): Promise<void> {
    const { io, gate, signal } = this.#tools;
    for (let ms = gate.remainingMs; ms > 0; ms = gate.remainingMs) {
      this.callers.rejectDueWithin(ms, gate.error(this.#scope));
      if (this.callers.size > 0) await sleep(io.clock, ms, signal);
      if (this.callers.size === 0) throw gate.error(this.#scope);
    }
  }
}

function isTransient(error: unknown): boolean {
  if (error instanceof ServiceConnectionError) return !LASTING.has(error.kind) && !isProxyRefusal(error);
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
