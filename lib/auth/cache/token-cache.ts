import { type Clock } from '../../time/clock.js';
import { type TokenRefresh } from '../../config/oauth.options.js';
import { ServiceConnectionError } from '../../errors/index.js';
import {
  type AccessToken,
  type TokenGrant,
  type TokenIo,
  type TokenSource,
  type TokenStatus,
} from '../access-token.js';
import { API_SCOPE } from '../scope.js';
import { PendingRequests, type RequestSettings } from './pending-requests.js';
import { CachedToken, type TokenSlot, TokenSlots } from './token-slots.js';
import { type WaitOptions } from './waiting-callers.js';

/** The shortest time between two renewals by schedule. */
const MIN_DELAY_MS = 250;

export interface TokenCacheSettings extends RequestSettings {
  refresh: TokenRefresh;
  /** Milliseconds that a customer token must have left to be handed out; at most half of its lifetime counts. */
  customerReserveMs: number;
}

/** With less of its life left, a token is renewed as if a caller waited: one soon will. */
const SOON_MS = 2_000;

/**
 * Keeps tokens as long as they live, makes one request for each however many callers there are, and renews them before
 * they end, while callers get the current one. Knows nothing of HTTP. Scopes are checked by the caller.
 */
export class TokenCache {
  readonly #source: TokenSource;
  readonly #settings: TokenCacheSettings;
  readonly #io: TokenIo;
  readonly #clock: Clock;
  readonly #slots: TokenSlots;
  readonly #pending: PendingRequests;
  /** With `scheduled`, of the api token. */
  #cancelRenewal?: () => void;
  #hasWarned = false;

  constructor(source: TokenSource, settings: TokenCacheSettings, io: TokenIo) {
    this.#source = source;
    this.#settings = settings;
    this.#io = io;
    this.#clock = io.clock;
    this.#slots = new TokenSlots(settings.maxEntries);
    this.#pending = new PendingRequests(source, settings, io, {
      accepts: (scope, grant) => this.#accepts(scope, grant),
      isNeeded: (scope) => !this.#slots.find(scope)?.valid(this.#clock, SOON_MS),
      arrived: (scope, grant, isOutdated) => this.#arrived(scope, grant, isOutdated),
      failed: (scope) => this.#postpone(scope),
    });
  }

  /**
   * The token, if there is a valid one: at once, without a promise. Begins its renewal in the background when that is
   * due. Still answers after {@link close}, for calls that are still under way.
   */
  peek(scope: string): AccessToken | undefined {
    const slot = this.#slots.find(scope);
    const cached = slot?.valid(this.#clock);
    if (!slot || !cached) return undefined;
    if (this.#settings.refresh !== 'on-expiry' && cached.isDue(this.#clock)) this.#renew(scope, slot);
    const { telemetry } = this.#io;
    telemetry.tokenCacheHits.add(1, telemetry.attributes);
    return cached.token;
  }

  /** The times of the valid token. Begins no request. */
  status(scope: string): TokenStatus | undefined {
    const cached = this.#slots.find(scope)?.valid(this.#clock);
    return cached && { issuedAt: new Date(cached.issued.wall), expiresAt: new Date(cached.token.expiresAt) };
  }

  /**
   * The token; waits for one where there is none.
   * @throws ServiceTokenError, ServiceConnectionError; `signal.reason` where this caller aborts
   */
  async get(scope: string, wait: WaitOptions = {}): Promise<AccessToken> {
    this.#throwIfAborted(wait);
    return this.peek(scope) ?? (await this.#pending.join(scope, wait)).token;
  }

  /**
   * For an API that answered 401 to `usedToken`: drops it if it is still the cached one, and gets another.
   * @returns undefined where the limit on forced refreshes is reached (the token stays cached then), or the endpoint
   * hands out the same one again
   */
  async forceRefresh(
    scope: string,
    usedToken: string,
    wait: WaitOptions = {},
  ): Promise<CachedToken | undefined> {
    this.#throwIfAborted(wait);
    const slot = this.#slots.make(scope);
    const current = slot.valid(this.#clock);
    if (current && !slot.holds(usedToken)) return current;
    if (!this.#pending.has(scope)) {
      if (!slot.forced.take(this.#clock.monotonic())) return undefined;
      this.#drop(scope, slot, usedToken);
    }
    const renewed = await this.#pending.join(scope, wait);
    return renewed.token.accessToken === usedToken ? undefined : renewed;
  }

  /** Drops a token that does not work, if it is still the cached one. */
  invalidate(accessToken: string): void {
    for (const [scope, slot] of this.#slots.all()) {
      if (slot.holds(accessToken)) return this.#drop(scope, slot, accessToken);
    }
  }

  /** Drops all tokens, also those under way: they were bound to a client certificate that is no longer in use. */
  invalidateAll(): void {
    this.#pending.markOutdated();
    for (const [, slot] of this.#slots.all()) slot.drop();
  }

  /** With `scheduled`: gets the api token now and renews it from then on. */
  start(): void {
    if (this.#settings.refresh === 'scheduled') this.#renewBySchedule();
  }

  /** Lets the source connect, where it does. */
  open(): void {
    this.#source.open?.();
  }

  /** Ends what is under way and rejects all who wait; no timer is left. */
  close(): void {
    this.#cancelRenewal?.();
    this.#pending.close();
  }

  /** Closes where tokens come from, after {@link close}. */
  async closeSource(): Promise<void> {
    await this.#source.close?.();
  }

  #throwIfAborted({ signal }: WaitOptions): void {
    signal?.throwIfAborted();
    if (this.#pending.closed.aborted) throw ServiceConnectionError.closed();
  }

  #drop(scope: string, slot: TokenSlot, accessToken: string): void {
    slot.drop(accessToken);
    this.#source.dropped?.(scope, accessToken);
  }

  /** @returns whether a request is under way now */
  #renew(scope: string, slot: TokenSlot): boolean {
    if (!this.#pending.has(scope) && slot.postponedMs(this.#clock) > 0) return false;
    return this.#pending.renew(scope);
  }

  /**
   * Whether a token that another process got is of use here: newer than what was here. One that is due itself is, where
   * there is none: callers then need not wait for the next.
   */
  #accepts(scope: string, grant: TokenGrant): boolean {
    const offered = this.#cachedToken(scope, grant);
    const slot = this.#slots.find(scope);
    const living = slot?.valid(this.#clock);
    if (living && !offered.hasLife) return false;
    const isLate = living ? offered.isDue(this.#clock) : offered.isExpired(this.#clock);
    return !isLate && slot?.canTake(offered) !== false;
  }

  #cachedToken(scope: string, grant: TokenGrant): CachedToken {
    const reserveMs = scope === API_SCOPE ? 0 : this.#settings.customerReserveMs;
    return new CachedToken(grant, this.#clock, this.#io.random(), reserveMs);
  }

  /** One that is outdated, or has expired on its way, goes to those who wait and is not kept. */
  #arrived(scope: string, grant: TokenGrant, isOutdated: boolean): CachedToken {
    const cached = this.#cachedToken(scope, grant);
    if (isOutdated) this.#postpone(scope);
    // It is not renewed by schedule either: it would be requested all day, for nobody.
    else if (cached.isExpired(this.#clock)) this.#slots.find(scope)?.postpone(this.#clock);
    else {
      this.#slots.make(scope).keep(cached, this.#clock);
      if (cached.hasLife) this.#planNext(scope);
      else this.#warnOfNoLife(scope);
    }
    return cached;
  }

  /** It is not renewed by schedule: it would be requested each second of the day, for nobody. */
  #warnOfNoLife(scope: string): void {
    if (scope === API_SCOPE) this.#cancelRenewal?.();
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#io.log.warn(
      'The token endpoint gives tokens without a lifetime (expires_in is 0 or missing): each is used for one second. ' +
        "Tell the service's operator.",
    );
  }

  #postpone(scope: string): void {
    this.#slots.find(scope)?.postpone(this.#clock);
    this.#planNext(scope);
  }

  /** Plans the next renewal by schedule, in place of the one planned before. */
  #planNext(scope: string): void {
    const isScheduled = this.#settings.refresh === 'scheduled' && scope === API_SCOPE;
    if (!isScheduled || this.#pending.closed.aborted) return;
    this.#cancelRenewal?.();
    const slot = this.#slots.make(scope);
    const dueInMs = slot.valid(this.#clock)?.dueInMs(this.#clock) ?? 0;
    const heldMs = Math.max(slot.postponedMs(this.#clock), this.#pending.retryAfterMs, MIN_DELAY_MS);
    this.#cancelRenewal = this.#clock.watch(() => this.#renewBySchedule(), Math.max(dueInMs, heldMs));
  }

  #renewBySchedule(): void {
    // Where no request could begin, there is no end of one that plans the next.
    if (!this.#renew(API_SCOPE, this.#slots.make(API_SCOPE))) this.#planNext(API_SCOPE);
  }
}
