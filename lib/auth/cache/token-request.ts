import {
  type ConnectionErrorKind,
  describeError,
  nameOptions,
  ServiceConnectionError,
  ServiceError,
  ServiceTokenError,
  type TokenErrorCode,
} from '../../errors/index.js';
import { isProxyRefusal } from '../../exchange/classify.js';
import { retryDelay } from '../../time/back-off.js';
import { sleep, within } from '../../time/timers.js';
import { type TokenGrant, type TokenIo, type TokenSource } from '../access-token.js';
import { API_SCOPE } from '../scope.js';
import { type ConcurrencyLimit, type RetryAfterGate } from './request-limits.js';
import { type CachedToken } from './token-slots.js';
import { type WaitOptions, WaitingCallers } from './waiting-callers.js';

/** Milliseconds for all attempts together; waiting for a Retry-After comes on top. */
const BUDGET_MS = 10_000;
const ATTEMPTS = 3;

/** Another attempt would fail in the same way. */
const LASTING: ReadonlySet<ConnectionErrorKind> = new Set(['tls', 'redirect', 'too_large', 'closed']);
const NO_SECRET = 'client_secret_unavailable';
const TRANSIENT: readonly TokenErrorCode[] = ['token_unavailable', 'token_rate_limited', NO_SECRET];

/** Where the tokens go. */
export interface TokenKeeper {
  /** Whether a token that exists already elsewhere can be used. */
  accepts(scope: string, grant: TokenGrant): boolean;
  /** Whether the token here ends soon, or there is none. */
  isNeeded(scope: string): boolean;
  /** Called before those who wait get the token. `isOutdated`: as {@link TokenRequest.isOutdated}. */
  arrived(scope: string, grant: TokenGrant, isOutdated: boolean): CachedToken;
  failed(scope: string): void;
}

/** What all requests of a cache use. */
export interface RequestTools {
  source: TokenSource;
  io: TokenIo;
  gate: RetryAfterGate;
  /** Of requests for customer tokens. The api token's has none: it never waits for those of customers. */
  customers: ConcurrencyLimit;
  keeper: TokenKeeper;
  /** Aborted when the cache closes. */
  signal: AbortSignal;
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
  /** Somebody waits for it, or has waited. */
  #isWanted = false;
  /** In all; more as soon as somebody waits who wants more. */
  #attempts = 1;

  constructor(scope: string, tools: RequestTools) {
    this.#scope = scope;
    this.#tools = tools;
    this.#limit = scope === API_SCOPE ? undefined : tools.customers;
    this.callers = new WaitingCallers(tools.io.clock);
  }

  /** The outcome. Rejects as {@link WaitingCallers.join} does. */
  join(timeoutMs: number, { once, signal }: WaitOptions): Promise<CachedToken> {
    this.#isWanted = true;
    if (!once) this.#attempts = ATTEMPTS;
    return this.callers.join(timeoutMs, signal);
  }

  async run(): Promise<TokenGrant> {
    const { gate, io, signal } = this.#tools;
    const { clock, random } = io;
    let budget = BUDGET_MS;
    let noSecret: Error | undefined;
    for (let attempt = 1; ; attempt += 1) {
      await this.#admission();
      const requestedAt = clock.monotonic();
      const isRenewal = !this.#isWanted;
      try {
        return { requestedAt, ...(await this.#attempt(budget, noSecret)) };
      } catch (error) {
        if (signal.aborted) throw error;
        const pause = retryDelay(attempt - 1, random());
        // A caller that joined a renewal in the background has not had its time yet.
        if (!isRenewal) budget -= clock.monotonic() - requestedAt + pause;
        const isLast = attempt >= this.#attempts || this.callers.size === 0;
        if (isLast || budget <= 0 || !isTransient(error)) throw error;
        noSecret = error.code === NO_SECRET ? error : undefined;
        if (gate.remainingMs > 0) continue;
        await sleep(clock, pause, signal);
        if (this.callers.size === 0) throw error;
      }
    }
  }

  /** @param noSecret why the attempt before had no secret: the error at the deadline, as the endpoint was not asked */
  async #attempt(timeoutMs: number, noSecret?: Error): Promise<TokenGrant> {
    const { source, io, keeper, gate, signal } = this.#tools;
    const { clock, telemetry } = io;
    const scope = this.#scope;
    try {
      const expired = (): Error => noSecret ?? unanswered(timeoutMs);
      const grant = await within({ clock, timeoutMs, signals: [signal], expired }, (stop) =>
        source.request(scope, {
          signal: stop,
          timeoutMs,
          accepts: (grant) => keeper.accepts(scope, grant),
          isAwaited: () =>
            this.callers.size > 0 || this.#limit?.isWaitedFor === true || keeper.isNeeded(scope),
        }),
      );
      gate.succeeded();
      // One from a shared store is no request to the endpoint.
      if (grant.ageMs === undefined) telemetry.tokenRequests.add(1, telemetry.attributes);
      return grant;
    } catch (error) {
      // Where the cache was closed it is no failure.
      if (!signal.aborted) {
        gate.failed(error);
        this.#report(error);
      }
      throw error;
    } finally {
      this.#limit?.release();
    }
  }

  /** Counts a failure, and logs it where no caller gets it. */
  #report(error: unknown): void {
    const { telemetry, log, describeOption } = this.#tools.io;
    const isOurs = error instanceof ServiceError;
    const code = isOurs ? error.code : 'unknown';
    telemetry.tokenRequests.add(1, { ...telemetry.attributes, 'error.type': code });
    if (this.callers.size > 0 || !isOurs) return;
    const described = describeError(nameOptions(error, describeOption));
    log.warn(`A token request that no caller waits for failed: ${described}`);
  }

  /** Waits until a request may begin. */
  async #admission(): Promise<void> {
    const { gate } = this.#tools;
    const limit = this.#limit;
    for (;;) {
      await this.#gateOpen();
      if (!limit) return;
      await limit.acquire();
      // All callers may have left while it stood in the queue.
      const isAbandoned = this.#isWanted && this.callers.size === 0;
      if (!isAbandoned && gate.remainingMs === 0) return;
      limit.release();
      if (isAbandoned) throw new AbandonedRequest();
    }
  }

  async #gateOpen(): Promise<void> {
    const { io, gate, signal } = this.#tools;
    for (let ms = gate.remainingMs; ms > 0; ms = gate.remainingMs) {
      this.callers.reject(gate.error(this.#scope), ms);
      if (this.callers.size > 0) await sleep(io.clock, ms, signal);
      if (this.callers.size === 0) throw gate.error(this.#scope);
    }
  }
}

function isTransient(error: unknown): error is ServiceError {
  if (error instanceof ServiceConnectionError) return !LASTING.has(error.kind) && !isProxyRefusal(error);
  return error instanceof ServiceTokenError && TRANSIENT.includes(error.code);
}

function unanswered(timeoutMs: number): ServiceConnectionError {
  const message = `There was no answer of the token endpoint within ${Math.round(timeoutMs)} ms.`;
  return new ServiceConnectionError({ kind: 'timeout', message });
}
