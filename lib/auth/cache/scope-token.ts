import { type TokenRefresh } from '../../config/oauth.options.js';
import { copyError, describeError, ServiceConnectionError, ServiceError } from '../../errors/index.js';
import { retryDelay } from '../../time/back-off.js';
import { momentOf } from '../../time/clock.js';
import { sleep, within } from '../../time/timers.js';
import {
  type TokenGrant,
  type TokenIo,
  type TokenSource,
  type TokenStatus,
  type WaitOptions,
} from '../access-token.js';
import { expiredOnArrival, isTransient, NO_SECRET, tooLate, unanswered } from '../endpoint/token-errors.js';
import { CachedToken } from './cached-token.js';
import { ForcedRefreshLimit, type Lane, renewalDelay, type RetryAfterGate } from './request-limits.js';

// Milliseconds throughout.
/** For all attempts together; waiting for a Retry-After comes on top. */
const BUDGET = 10_000;
const ATTEMPTS = 3;
/** With less time left, a token is renewed as if a caller waited: one soon will. */
const SOON = 2_000;
/** `scheduled` looks whether a renewal is due each tenth of a token's life, within these; without a token each second. */
const LOOK = { least: 50, without: 1_000, most: 5_000 };

/** Shared by all scopes of a cache. */
export interface ScopeTools {
  source: TokenSource;
  io: TokenIo;
  gate: RetryAfterGate;
  /** Aborted when the cache closes. */
  closed: AbortSignal;
  /** Milliseconds that a caller waits by default. */
  timeoutMs: number;
  /** Runs work in the async context of the module's start: a renewal belongs to no caller. */
  inStart: <T>(work: () => T) => T;
}

export interface ScopeSettings {
  refresh: TokenRefresh;
  /** Milliseconds that the token must have left to be handed out; at most half of its lifetime counts. */
  reserveMs: number;
  /** Limits how many requests run at a time. Absent for the api token, which never waits for those of customers. */
  lane?: Lane;
}

/** One request, from its beginning to the token or error, which all its callers get. */
interface Request {
  outcome: Promise<CachedToken>;
  /** How many wait for it. */
  callers: number;
  /** Rises as callers join, and never falls. A probe needs one attempt only. */
  for: 'renewal' | 'probe' | 'callers';
  /** Milliseconds for this attempt and all that follow. */
  leftMs: number;
  /** Another client certificate came into use: its token goes to those who wait, and is not kept. */
  isOutdated: boolean;
  /** A token that had too little time left to be kept. */
  short?: CachedToken;
  /** Why the attempt before had no secret: the error at the deadline, as the endpoint was not asked. */
  noSecret?: Error;
}

/**
 * The token of one scope: the token itself, its one request, and the time of the next. A request ends in the tick in which
 * that is decided: a later caller begins another one.
 */
export class ScopeToken {
  readonly #scope: string;
  readonly #settings: ScopeSettings;
  readonly #tools: ScopeTools;
  readonly #forced = new ForcedRefreshLimit();
  #cached?: CachedToken;
  #request?: Request;
  /** The token that did not work, and when the newest such was issued: wall-clock milliseconds. */
  #dropped?: string;
  #droppedIssuedAt = -Infinity;
  /** Requests in a row that brought no token to keep. */
  #failures = 0;
  /** Monotonic milliseconds before which no renewal begins in the background. */
  #renewNotBefore = -Infinity;
  #cancelLook?: () => void;

  constructor(scope: string, settings: ScopeSettings, tools: ScopeTools) {
    this.#scope = scope;
    this.#settings = settings;
    this.#tools = tools;
  }

  /**
   * The token if it can be handed out now. Begins its renewal if that is due. Still answers after {@link close}, for calls
   * that are under way.
   */
  use(): CachedToken | undefined {
    const cached = this.#cached;
    if (!cached) return undefined;
    const { ageMs, refreshAfterMs, usableMs } = cached;
    if (ageMs >= usableMs) return undefined;
    if (ageMs >= refreshAfterMs && this.#settings.refresh !== 'on-expiry') this.#renewInBackground();
    return cached;
  }

  /** The times of the valid token. Begins no request. */
  get status(): TokenStatus | undefined {
    const living = this.#living();
    return living && { issuedAt: new Date(living.issued.wall), expiresAt: new Date(living.expiresAt) };
  }

  /**
   * The token; waits for one if necessary.
   * @throws ServiceTokenError, ServiceConnectionError; `signal.reason` if this caller aborts
   */
  async get(wait: WaitOptions): Promise<CachedToken> {
    this.#admit(wait);
    return this.use() ?? (await this.#join(wait));
  }

  /**
   * For an API that answered 401 to `refused`: drops it if it is still the current token, and gets another.
   * @returns undefined if the limit on forced refreshes is reached (the current one stays then), or if the endpoint returns
   * the same token again
   */
  async replace(refused: string, wait: WaitOptions): Promise<CachedToken | undefined> {
    this.#admit(wait);
    const living = this.#living();
    if (living && living.accessToken !== refused) return living;
    if (!this.#request && !this.#forced.take(this.#tools.io.clock.monotonic())) return undefined;
    // Of many callers at once, the first one.
    if (living || this.#dropped !== refused) this.drop(refused);
    const token = await this.#join(wait);
    return token.accessToken === refused ? undefined : token;
  }

  /** Whether this is the current token, expired or not. */
  holds(accessToken: string): boolean {
    return this.#cached?.accessToken === accessToken;
  }

  /** Drops a token that does not work. */
  drop(accessToken: string): void {
    if (this.#cached && this.holds(accessToken)) {
      this.#droppedIssuedAt = Math.max(this.#droppedIssuedAt, this.#cached.issued.wall);
      this.#cached = undefined;
    }
    this.#dropped = accessToken;
    this.#tools.source.dropped?.(this.#scope, accessToken);
  }

  /** Drops the token, and any that is under way: it is bound to a client certificate that is no longer in use. */
  outdate(): void {
    this.#cached = undefined;
    if (this.#request) this.#request.isOutdated = true;
  }

  /** With `scheduled`: gets the token now, and renews it without calls from then on. */
  schedule(): void {
    const { closed, io } = this.#tools;
    if (closed.aborted) return;
    const cached = this.#cached;
    if (!cached || cached.ageMs >= cached.refreshAfterMs) this.#renewInBackground();
    const lookMs = cached ? Math.max(LOOK.least, cached.usableMs / 10) : LOOK.without;
    this.#cancelLook = io.clock.watch(() => this.schedule(), Math.min(LOOK.most, lookMs));
  }

  /** No timer is left. The tools are closed already, which ends the request. */
  close(): void {
    this.#cancelLook?.();
  }

  #admit({ signal }: WaitOptions): void {
    signal?.throwIfAborted();
    if (this.#tools.closed.aborted) throw ServiceConnectionError.closed();
  }

  /** The current token, if it is still handed out after so many milliseconds. */
  #living(afterMs = 0): CachedToken | undefined {
    const cached = this.#cached;
    return cached?.isUsable(afterMs) ? cached : undefined;
  }

  #renewInBackground(): void {
    const { gate, closed, io, inStart } = this.#tools;
    const isHeld = gate.remainingMs > 0 || io.clock.monotonic() < this.#renewNotBefore;
    // Callers without a token go first.
    if (this.#request || closed.aborted || isHeld || this.#settings.lane?.isFull) return;
    inStart(() => this.#begin('renewal'));
  }

  async #join({ timeoutMs = this.#tools.timeoutMs, once, signal }: WaitOptions): Promise<CachedToken> {
    const { gate, io } = this.#tools;
    if (gate.remainingMs > Math.max(0, timeoutMs)) throw gate.error(this.#scope);
    const request = this.#request ?? this.#begin('probe');
    if (!once) request.for = 'callers';
    else if (request.for === 'renewal') request.for = 'probe';
    request.callers += 1;
    const expired = () =>
      gate.remainingMs > 0 ? gate.error(this.#scope) : tooLate(timeoutMs, io.describeOption);
    // Each caller gets an error of its own.
    const outcome = () =>
      request.outcome.catch((error: Error) => {
        throw copyError(error);
      });
    try {
      return await within({ clock: io.clock, timeoutMs, signals: [signal], expired }, outcome);
    } finally {
      request.callers -= 1;
    }
  }

  #begin(forWhom: Request['for']): Request {
    // Not in this tick: the caller joins first, and a look at the cache stays quick.
    const outcome = Promise.resolve().then(() => this.#acquire(request));
    const request: Request = { outcome, callers: 0, for: forWhom, leftMs: BUDGET, isOutdated: false };
    outcome.catch(() => undefined);
    return (this.#request = request);
  }

  async #acquire(request: Request): Promise<CachedToken> {
    const { gate, io, closed } = this.#tools;
    const { lane } = this.#settings;
    try {
      for (let attempt = 1; ;) {
        const isHeld = gate.remainingMs > 0;
        if (request.callers === 0 && (request.for !== 'renewal' || isHeld || lane?.isFull))
          throw new Error('Nobody waits for this token any more');
        if (isHeld) await sleep(io.clock, gate.remainingMs, closed);
        // The wall clock may have been set right in the meantime.
        const living = isHeld && this.#living();
        if (living) return living;
        try {
          const grant = await (lane ? lane.run(() => this.#ask(request)) : this.#ask(request));
          closed.throwIfAborted();
          const token = grant && this.#arrived(request, grant);
          if (token) return token;
        } catch (error) {
          // The cache was closed: not a failure.
          closed.throwIfAborted();
          if (request.short?.isAlive) {
            this.#postpone();
            return request.short;
          }
          const pauseMs = retryDelay(attempt - 1, io.random());
          request.leftMs -= pauseMs;
          const isLast = attempt >= (request.for === 'callers' ? ATTEMPTS : 1) || request.callers === 0;
          const hasFailed = isLast || request.leftMs <= 0 || !isTransient(error);
          if (hasFailed) gate.ended(error);
          if (request.callers === 0 && error instanceof ServiceError)
            io.log.warn(`A token request that no caller waits for failed: ${describeError(error)}`);
          if (hasFailed) throw error;
          request.noSecret = error instanceof ServiceError && error.code === NO_SECRET ? error : undefined;
          attempt += 1;
          if (gate.remainingMs === 0) await sleep(io.clock, pauseMs, closed);
        }
      }
    } catch (error) {
      this.#postpone();
      throw error;
    } finally {
      this.#request = undefined;
    }
  }

  /** @returns undefined if nobody waits any more, or the endpoint wants no requests, once it is its turn in the lane */
  async #ask(request: Request): Promise<TokenGrant | undefined> {
    const { source, io, gate, closed } = this.#tools;
    const { clock } = io;
    const { lane } = this.#settings;
    const { for: forWhom, leftMs: timeoutMs, noSecret } = request;
    if (gate.remainingMs > 0 || (forWhom !== 'renewal' && request.callers === 0)) return undefined;
    const requestedAt = momentOf(clock);
    const expired = (): Error => noSecret ?? unanswered(timeoutMs);
    try {
      const grant = await within({ clock, timeoutMs, signals: [closed], expired }, (signal) =>
        source.request(this.#scope, {
          signal,
          timeoutMs,
          isProbe: forWhom === 'probe',
          accepts: (offered) => this.#accepts(offered),
          isAwaited: () =>
            request.callers > 0 || lane?.isWaitedFor === true || this.#living() !== this.#living(SOON),
        }),
      );
      return { requestedAt, ...grant };
    } catch (error) {
      // Before the next one in the lane asks.
      if (!closed.aborted) gate.failed(error);
      throw error;
    } finally {
      // A caller that joined a renewal in the background has not had its time yet.
      if (forWhom !== 'renewal') request.leftMs -= clock.monotonic() - requestedAt.monotonic;
    }
  }

  /**
   * A token that has expired on its way, because the process or its machine was suspended, counts as a failed attempt. For
   * one that has too little time left to be kept, the endpoint is asked once more: undefined. If the next is no better, as of
   * an endpoint that takes longer than its tokens are usable, it goes to those who wait, and is not kept.
   */
  #arrived(request: Request, grant: TokenGrant): CachedToken | undefined {
    const cached = this.#cachedToken(grant);
    if (!cached.isAlive) throw expiredOnArrival(this.#scope);
    this.#tools.gate.succeeded();
    if (!cached.isUsable() && !request.short) {
      request.short = cached;
      return undefined;
    }
    const isSame = this.holds(cached.accessToken);
    const isKept = !request.isOutdated && cached.isUsable();
    if (isKept) this.#cached = cached;
    // An endpoint that hands out the same token until it ends would be asked ever more often.
    if (!isKept || isSame) this.#postpone();
    else {
      this.#failures = 0;
      this.#renewNotBefore = -Infinity;
    }
    return cached;
  }

  #cachedToken(grant: TokenGrant): CachedToken {
    const { clock, random } = this.#tools.io;
    return new CachedToken(grant, clock, random(), this.#settings.reserveMs);
  }

  /**
   * Whether a token of a store may take the current one's place. It must be newer than the current token and all that were
   * dropped: anyone who can write to the store could put old entries back. If there is no current token, it may be due for
   * renewal itself: callers then need not wait for the next.
   */
  #accepts(grant: TokenGrant): boolean {
    const offered = this.#cachedToken(grant);
    const { accessToken } = offered;
    const untilMs = this.#living() ? offered.refreshAfterMs : offered.usableMs;
    const newest = Math.max(this.#droppedIssuedAt, this.#cached?.issued.wall ?? -Infinity);
    const isOther = accessToken !== this.#dropped && !this.holds(accessToken);
    return isOther && offered.issued.wall > newest && offered.ageMs < untilMs;
  }

  /** Delays the next renewal, because a request brought no token to keep. */
  #postpone(): void {
    this.#failures += 1;
    this.#renewNotBefore = this.#tools.io.clock.monotonic() + renewalDelay(this.#failures);
  }
}
