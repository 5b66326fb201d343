import { copyError, describeError, ServiceError } from '../errors/index.js';
import { momentOf, within } from '../time/time.js';
import { type TokenGrant, type TokenIo, type TokenSource, type WaitOptions } from './access-token.js';
import {
  expiredOnArrival,
  isSecretRefusal,
  SECRET_UNAVAILABLE,
  noResponseInTime,
  noTokenInTime,
} from './endpoint/token-errors.js';
import { type CachedToken } from './cached-token.js';
import { MAX_ATTEMPTS } from './request-limits.js';
import { type RequestQueue } from './request-queue.js';
import { type ScopeToken } from './scope-token.js';

/** Milliseconds for all attempts together. Waiting for a Retry-After comes on top. */
const BUDGET_MS = 10_000;
/** The limit here is so much longer than that of the token endpoint, whose error says more and so has to come first. */
const SOURCE_FIRST_MS = 50;
/** If the current token is usable for less than this, its renewal counts as awaited: a caller will soon wait for it. */
const SOON_MS = 2_000;

/** The parts of a token cache that all of its scopes share. */
export interface CacheTools {
  source: TokenSource;
  io: TokenIo;
  queue: RequestQueue;
  /** Aborts when the cache closes. */
  closed: AbortSignal;
  /** Milliseconds that a caller waits by default. */
  timeoutMs: number;
  /** Runs work in the async context of the module's start, because a renewal belongs to no caller. */
  inStartContext: <T>(work: () => T) => T;
}

/**
 * Why a request is made. When a caller joins, the purpose can only change from an earlier value in this list to a later one.
 * - `renewal`: in the background, before the token expires
 * - `probe`: for a health check, which needs one attempt only
 * - `callers`: for callers, with up to three attempts
 */
export type Purpose = 'renewal' | 'probe' | 'callers';

/** One request for the token of a scope, with all its attempts. All callers that join it share its token or error. */
export class TokenRequest {
  /** Whether the token source is being asked, so that a new caller need not wait for the circuit breaker. */
  isSending = false;
  /** Set when another client certificate comes into use. Callers get the token, but it is not cached. */
  isOutdated = false;
  readonly #scope: ScopeToken;
  readonly #tools: CacheTools;
  readonly #outcome: Promise<CachedToken>;
  #purpose: Purpose;
  /** Number of callers that wait now. */
  #callers = 0;
  /** Milliseconds for this attempt and all that follow. */
  #leftMs = BUDGET_MS;
  /** A token that arrived with too little time left to be cached. */
  #shortLived?: CachedToken;
  /** Why the previous attempt had no client secret. The endpoint was not asked, so this is the error at the deadline. */
  #noSecret?: Error;

  constructor(scope: ScopeToken, tools: CacheTools, purpose: Purpose) {
    this.#scope = scope;
    this.#tools = tools;
    this.#purpose = purpose;
    // In a later microtask, so that the caller joins first, and a look at the cache stays fast.
    this.#outcome = Promise.resolve().then(() => this.#run());
    this.#outcome.catch(() => undefined);
  }

  /** Waits for the token. Rejects with the error of the request, or when this caller's time is over or it aborts. */
  async join({ timeoutMs = this.#tools.timeoutMs, once, signal }: WaitOptions): Promise<CachedToken> {
    const { clock, describeOption } = this.#tools.io;
    const scope = this.#scope;
    if (!once) this.#purpose = 'callers';
    else if (this.#purpose === 'renewal') this.#purpose = 'probe';
    this.#callers += 1;
    const expired = () =>
      scope.breaker.remainingMs > 0
        ? scope.breaker.errorFor(scope.name)
        : noTokenInTime(timeoutMs, describeOption);
    // Each caller gets an error of its own.
    const outcome = () =>
      this.#outcome.catch((error: Error) => {
        throw copyError(error);
      });
    try {
      return await within({ clock, timeoutMs, signals: [signal], expired }, outcome);
    } finally {
      this.#callers -= 1;
    }
  }

  async #run(): Promise<CachedToken> {
    const { closed, queue, io } = this.#tools;
    const scope = this.#scope;
    try {
      for (let attempt = 1; ;) {
        if (this.#callers === 0 && (this.#purpose !== 'renewal' || scope.hasToWait))
          throw new Error('No caller waits for this token any more');
        const wasOpen = scope.breaker.remainingMs > 0;
        const leave = await queue.waitForTurn(scope.name, scope.ownBreaker, closed);
        // The wall clock may have been corrected during the wait, so that the cached token is usable again.
        const usable = wasOpen && scope.usableToken();
        const countAtStart = queue.failureCount;
        try {
          if (usable) return usable;
          const grant = await this.#send();
          closed.throwIfAborted();
          const token = grant && this.#receive(grant);
          if (token) return token;
        } catch (error) {
          // If the cache was closed, the error is not a failure of the endpoint.
          closed.throwIfAborted();
          if (!(error instanceof ServiceError)) throw error;
          if (this.#callers === 0)
            io.log.warn(`A token request that no caller waits for failed: ${describeError(error)}`);
          // The token source remembers a refused secret by itself.
          const isOver = isSecretRefusal(error) || scope.recordFailure(error, countAtStart);
          if (this.#shortLived?.isAlive) {
            scope.delayRenewal();
            return this.#shortLived;
          }
          const attempts = this.#purpose === 'callers' && this.#callers > 0 ? MAX_ATTEMPTS : 1;
          if (isOver || attempt >= attempts || this.#leftMs <= 0) throw error;
          this.#noSecret = error.code === SECRET_UNAVAILABLE ? error : undefined;
          attempt += 1;
        } finally {
          leave();
        }
      }
    } catch (error) {
      scope.delayRenewal();
      throw error;
    } finally {
      scope.endRequest();
    }
  }

  /** Asks the token source once. Resolves with undefined if no caller waits any more. */
  async #send(): Promise<TokenGrant | undefined> {
    const { source, io, queue, closed } = this.#tools;
    const { clock } = io;
    const scope = this.#scope;
    const timeoutMs = this.#leftMs;
    const purpose = this.#purpose;
    const noSecret = this.#noSecret;
    if (purpose !== 'renewal' && this.#callers === 0) return undefined;
    this.isSending = true;
    const requestedAt = momentOf(clock);
    const expired = (): Error => noSecret ?? noResponseInTime(timeoutMs);
    const isNeededSoon = () => scope.usableToken() !== scope.usableToken(SOON_MS);
    try {
      const limit = { clock, timeoutMs: timeoutMs + SOURCE_FIRST_MS, signals: [closed], expired };
      const grant = await within(limit, (signal) =>
        source.request(scope.name, {
          signal,
          closed,
          timeoutMs,
          isProbe: purpose === 'probe',
          accepts: (offered) => scope.accepts(offered),
          isAwaited: () => this.#callers > 0 || queue.hasWaiting(scope.name) || isNeededSoon(),
        }),
      );
      return { requestedAt, ...grant };
    } finally {
      this.isSending = false;
      // The time of a renewal does not count: a caller that joined it meanwhile still has all of its time.
      if (purpose !== 'renewal') this.#leftMs -= clock.monotonic() - requestedAt.monotonic;
    }
  }

  /**
   * Handles a token that has arrived.
   * - If it has already expired, because the process or its machine was suspended, the attempt counts as failed.
   * - If it has too little time left to be cached, the endpoint is asked once more (returns undefined). If the next token is no
   *   better, as from an endpoint that takes longer than its tokens are usable, the callers get it, and it is not cached.
   */
  #receive(grant: TokenGrant): CachedToken | undefined {
    const scope = this.#scope;
    const token = scope.toCachedToken(grant);
    this.#tools.queue.recordSuccess(token.isAlive && grant.ageMs === undefined);
    if (!token.isAlive) throw expiredOnArrival(scope.name);
    scope.forgetFailures();
    if (!token.isUsable() && !this.#shortLived) {
      this.#shortLived = token;
      return undefined;
    }
    scope.keep(token, this.isOutdated);
    return token;
  }
}
