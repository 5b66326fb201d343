import { type Clock, systemClock } from '../../config/clock.js';
import { type TokenRefresh } from '../../config/oauth.options.js';
import { type AccessToken, type TokenGrant, type TokenSource, type TokenStatus } from '../access-token.js';
import { API_SCOPE } from '../scope.js';
import { CachedToken } from './cached-token.js';
import { PendingRequests } from './pending-requests.js';
import { RenewalSchedule } from './renewal-schedule.js';
import { type TokenObserver } from './token-observer.js';
import { type ArrivedGrant } from './token-request.js';
import { type TokenSlot, TokenSlots } from './token-slots.js';
import { type WaitOptions } from './waiting-callers.js';

/** So many requests may be under way or wait, however small the cache. */
const MIN_REQUESTS = 1_000;
const CUSTOMER_REQUESTS = 50;

export interface TokenCacheOptions {
  source: TokenSource;
  refresh: TokenRefresh;
  /** Customer tokens kept; the api token comes on top. */
  maxEntries: number;
  /** Milliseconds that a customer token must have left to be handed out; at most half of its lifetime counts. */
  customerReserveMs: number;
  /**
   * Requests for customer tokens that the source gets at a time; the others wait for their turn. The api token's never
   * waits for them. Default 50.
   */
  customerRequests?: number;
  clock?: Clock;
  /** In [0, 1). Default Math.random. */
  random?: () => number;
  observer?: TokenObserver;
}

/**
 * Keeps tokens as long as they live, makes one request for each however many callers there are, and renews them before
 * they end, while callers get the current one. Knows nothing of HTTP. Scopes are checked by the caller.
 */
export class TokenCache {
  readonly #options: TokenCacheOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #slots: TokenSlots;
  readonly #pending: PendingRequests;
  readonly #fromStore = new WeakSet<AccessToken>();
  /** With `scheduled`, of the api token. */
  readonly #schedule?: RenewalSchedule;

  constructor(options: TokenCacheOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#slots = new TokenSlots(options.maxEntries);
    this.#pending = new PendingRequests({
      source: options.source,
      clock: this.#clock,
      random: this.#random,
      observer: options.observer,
      customerRequests: options.customerRequests ?? CUSTOMER_REQUESTS,
      maxRequests: Math.max(options.maxEntries, MIN_REQUESTS),
      accepts: (scope, grant) => this.#accepts(scope, grant),
      onArrival: (scope, arrived, isOutdated) => this.#arrived(scope, arrived, isOutdated),
      onFailure: (scope) => this.#postpone(scope),
    });
    if (options.refresh === 'scheduled') this.#schedule = this.#renewalSchedule(this.#slots.make(API_SCOPE));
  }

  /**
   * The token, if there is a valid one: at once, without a promise. Begins its renewal in the background when that is
   * due. Still answers after {@link close}, for calls that are still under way.
   */
  peek(scope: string): AccessToken | undefined {
    const slot = this.#slots.find(scope);
    const cached = slot?.valid(this.#clock);
    if (!slot || !cached) return undefined;
    if (this.#options.refresh !== 'on-expiry' && cached.isDue(this.#clock)) this.#renew(scope, slot);
    this.#options.observer?.servedFromCache();
    return cached.token;
  }

  /** The times of the valid token. Begins no request. */
  status(scope: string): TokenStatus | undefined {
    const cached = this.#slots.find(scope)?.valid(this.#clock);
    return cached && { issuedAt: cached.issuedAt, expiresAt: new Date(cached.token.expiresAt) };
  }

  /**
   * The token; waits for one where there is none.
   * @throws ServiceTokenError, ServiceConnectionError; `signal.reason` where this caller aborts
   */
  async get(scope: string, wait: WaitOptions = {}): Promise<AccessToken> {
    this.#throwIfAborted(wait);
    return this.peek(scope) ?? this.#pending.join(scope, wait);
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
  ): Promise<AccessToken | undefined> {
    this.#throwIfAborted(wait);
    const slot = this.#slots.make(scope);
    const current = slot.valid(this.#clock)?.token;
    if (current && current.accessToken !== usedToken) return current;
    if (!this.#pending.has(scope)) {
      if (!slot.forced.take(this.#clock.monotonic())) return undefined;
      this.#drop(scope, slot, usedToken);
    }
    const token = await this.#pending.join(scope, wait);
    return token.accessToken === usedToken ? undefined : token;
  }

  /** Whether another process got this token: it may be older than what made the API refuse ours. */
  isFromStore(token: AccessToken): boolean {
    return this.#fromStore.has(token);
  }

  /** Drops a token that does not work, if it is still the cached one. */
  invalidate(accessToken: string): void {
    for (const [scope, slot] of this.#slots.all()) {
      if (slot.cached?.token.accessToken === accessToken) return this.#drop(scope, slot, accessToken);
    }
  }

  /** Drops all tokens, also those under way: they were bound to a client certificate that is no longer in use. */
  invalidateAll(): void {
    this.#pending.markOutdated();
    for (const [, slot] of this.#slots.all()) slot.drop();
  }

  /** With `scheduled`: gets the api token now and renews it from then on. */
  start(): void {
    this.#schedule?.start();
  }

  /** Lets the source connect, where it does. */
  open(): void {
    this.#options.source.open?.();
  }

  /** Ends what is under way and rejects all who wait; no timer is left. */
  close(): void {
    this.#schedule?.stop();
    this.#pending.close();
  }

  /** Closes where tokens come from, after {@link close}. */
  async closeSource(): Promise<void> {
    await this.#options.source.close?.();
  }

  #throwIfAborted({ signal }: WaitOptions): void {
    signal?.throwIfAborted();
    this.#pending.closed.throwIfAborted();
  }

  #drop(scope: string, slot: TokenSlot, accessToken: string): void {
    slot.drop(accessToken);
    this.#options.source.dropped?.(scope, accessToken);
  }

  /** @returns whether a request is under way now */
  #renew(scope: string, slot: TokenSlot): boolean {
    if (!this.#pending.has(scope) && slot.postponedMs(this.#clock) > 0) return false;
    return this.#pending.renew(scope);
  }

  /** Whether a token that another process got is of use here: newer than what was here, and not due itself. */
  #accepts(scope: string, grant: TokenGrant): boolean {
    const offered = this.#cachedToken(scope, grant, this.#clock.monotonic());
    return !offered.isDue(this.#clock) && this.#slots.find(scope)?.canTake(offered) !== false;
  }

  #cachedToken(scope: string, grant: TokenGrant, requestedAt: number): CachedToken {
    const reserveMs = scope === API_SCOPE ? 0 : this.#options.customerReserveMs;
    return new CachedToken(grant, { clock: this.#clock, random: this.#random(), requestedAt, reserveMs });
  }

  /** One that is outdated, or has expired on its way, goes to those who wait and is not kept. */
  #arrived(scope: string, { grant, requestedAt }: ArrivedGrant, isOutdated: boolean): AccessToken {
    const cached = this.#cachedToken(scope, grant, requestedAt);
    if (cached.isFromStore) this.#fromStore.add(cached.token);
    if (isOutdated) this.#postpone(scope);
    // It is not renewed by schedule either: it would be requested all day, for nobody.
    else if (cached.isExpired(this.#clock)) this.#slots.find(scope)?.postpone(this.#clock);
    else {
      this.#slots.make(scope).keep(cached, this.#clock);
      this.#planNext(scope);
    }
    return cached.token;
  }

  #postpone(scope: string): void {
    this.#slots.find(scope)?.postpone(this.#clock);
    this.#planNext(scope);
  }

  #planNext(scope: string): void {
    if (scope === API_SCOPE) this.#schedule?.plan();
  }

  #renewalSchedule(slot: TokenSlot): RenewalSchedule {
    const clock = this.#clock;
    return new RenewalSchedule({
      clock,
      delayMs: () =>
        Math.max(slot.valid(clock)?.dueInMs(clock) ?? 0, slot.postponedMs(clock), this.#pending.retryAfterMs),
      renew: () => this.#renew(API_SCOPE, slot),
    });
  }
}
