import { type TokenRefresh } from '../../config/oauth.options.js';
import { copyError, describeError, ServiceConnectionError, ServiceError } from '../../errors/index.js';
import { momentOf } from '../../time/clock.js';
import { within } from '../../time/timers.js';
import {
  type TokenGrant,
  type TokenIo,
  type TokenSource,
  type TokenStatus,
  type WaitOptions,
} from '../access-token.js';
import { expiredOnArrival, isVerdict, NO_SECRET, tooLate, unanswered } from '../endpoint/token-errors.js';
import { CachedToken } from './cached-token.js';
import { ATTEMPTS, ForcedRefreshLimit, Hold, renewalDelay } from './request-limits.js';
import { type RequestLine } from './request-line.js';

// Milliseconds throughout.
/** For all attempts together; waiting for a Retry-After comes on top. */
const BUDGET = 10_000;
/** With less time left, a token is renewed as if a caller waited: one soon will. */
const SOON = 2_000;
/** `scheduled` looks whether a renewal is due each tenth of a token's life, within these; without a token each second. */
const LOOK = { least: 50, without: 1_000, most: 5_000 };

/** Shared by all scopes of a cache. */
export interface ScopeTools {
  source: TokenSource;
  io: TokenIo;
  line: RequestLine;
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
  isAsking?: boolean;
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
  /** Of this scope alone, since its last success. They are forgotten with it. */
  #failures?: Hold;
  #cached?: CachedToken;
  #request?: Request;
  /** The token that did not work, and when the newest such was issued: wall-clock milliseconds. */
  #dropped?: string;
  #droppedIssuedAt = -Infinity;
  /** Requests in a row that brought no token to keep. */
  #withoutToken = 0;
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
    this.#failures = undefined;
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
    const { closed, io, inStart } = this.#tools;
    // Callers without a token go first.
    if (this.#request || closed.aborted || this.#mustWait) return;
    if (io.clock.monotonic() < this.#renewNotBefore) return;
    inStart(() => this.#begin('renewal'));
  }

  get #hold(): Hold {
    return this.#tools.line.holdOf(this.#scope, this.#failures);
  }

  get #mustWait(): boolean {
    return this.#tools.line.mustWait(this.#scope, this.#failures);
  }

  async #join({ timeoutMs = this.#tools.timeoutMs, once, signal }: WaitOptions): Promise<CachedToken> {
    const { io } = this.#tools;
    const hold = this.#hold;
    const patienceMs = once && hold.patienceMs < Infinity ? 0 : hold.patienceMs;
    if (!this.#request?.isAsking && hold.remainingMs > Math.min(patienceMs, Math.max(0, timeoutMs)))
      throw hold.errorFor(this.#scope);
    const request = this.#request ?? this.#begin('probe');
    if (!once) request.for = 'callers';
    else if (request.for === 'renewal') request.for = 'probe';
    request.callers += 1;
    const expired = () =>
      this.#hold.remainingMs > 0 ? this.#hold.errorFor(this.#scope) : tooLate(timeoutMs, io.describeOption);
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
    const { closed, line, io } = this.#tools;
    try {
      for (let attempt = 1; ;) {
        if (request.callers === 0 && (request.for !== 'renewal' || this.#mustWait))
          throw new Error('Nobody waits for this token any more');
        const isHeld = this.#hold.remainingMs > 0;
        const leave = await line.enter(this.#scope, this.#failures, closed);
        // The wall clock may have been set right in the meantime.
        const living = isHeld && this.#living();
        const begunAt = line.counted;
        try {
          if (living) return living;
          const grant = await this.#ask(request);
          closed.throwIfAborted();
          const token = grant && this.#arrived(request, grant);
          if (token) return token;
        } catch (error) {
          // The cache was closed: not a failure.
          closed.throwIfAborted();
          if (!(error instanceof ServiceError)) throw error;
          if (request.callers === 0)
            io.log.warn(`A token request that no caller waits for failed: ${describeError(error)}`);
          // A refused secret is remembered by the token source.
          const isOver = isVerdict(error) || this.#failed(error, begunAt);
          if (request.short?.isAlive) {
            this.#postpone();
            return request.short;
          }
          const isLast = attempt >= (request.for === 'callers' ? ATTEMPTS : 1) || request.callers === 0;
          if (isOver || isLast || request.leftMs <= 0) throw error;
          request.noSecret = error.code === NO_SECRET ? error : undefined;
          attempt += 1;
        } finally {
          leave();
        }
      }
    } catch (error) {
      this.#postpone();
      throw error;
    } finally {
      this.#request = undefined;
    }
  }

  /** Counts a failed attempt. Returns whether it was the last one. */
  #failed(error: ServiceError, begunAt: number): boolean {
    this.#failures ??= new Hold(this.#tools.io.clock);
    return this.#tools.line.failed(this.#scope, this.#failures, error, begunAt);
  }

  /** @returns undefined if nobody waits any more, once it is its turn */
  async #ask(request: Request): Promise<TokenGrant | undefined> {
    const { source, io, line, closed } = this.#tools;
    const { clock } = io;
    const { for: forWhom, leftMs: timeoutMs, noSecret } = request;
    if (forWhom !== 'renewal' && request.callers === 0) return undefined;
    request.isAsking = true;
    const requestedAt = momentOf(clock);
    const expired = (): Error => noSecret ?? unanswered(timeoutMs);
    try {
      const grant = await within({ clock, timeoutMs, signals: [closed], expired }, (signal) =>
        source.request(this.#scope, {
          signal,
          closed,
          timeoutMs,
          isProbe: forWhom === 'probe',
          accepts: (offered) => this.#accepts(offered),
          isAwaited: () =>
            request.callers > 0 || line.isWaitedFor(this.#scope) || this.#living() !== this.#living(SOON),
        }),
      );
      return { requestedAt, ...grant };
    } finally {
      request.isAsking = false;
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
    this.#tools.line.succeeded(cached.isAlive && grant.ageMs === undefined);
    if (!cached.isAlive) throw expiredOnArrival(this.#scope);
    this.#failures = undefined;
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
      this.#withoutToken = 0;
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
    this.#withoutToken += 1;
    this.#renewNotBefore = this.#tools.io.clock.monotonic() + renewalDelay(this.#withoutToken);
  }
}
