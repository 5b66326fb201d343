import { type Clock, systemClock } from '../config/clock.js';
import { type TokenRefresh } from '../config/oauth.options.js';
import { ServiceConnectionError, ServiceTokenError } from '../errors/index.js';
import { allowListeners } from '../exchange/call-limits.js';
import { type AccessToken, type TokenGrant, type TokenSource } from './access-token.js';
import { CachedToken } from './cached-token.js';
import { EndpointHold } from './endpoint-hold.js';
import { RenewalSchedule } from './renewal-schedule.js';
import { RequestLane } from './request-lane.js';
import { API_SCOPE } from './scope.js';
import { type TokenEvents } from './token-events.js';
import { AbandonedRequest, type ArrivedGrant, TokenRequest } from './token-request.js';
import { type TokenSlot } from './token-slot.js';
import { TokenSlots } from './token-slots.js';
import { DEFAULT_WAIT_MS, type WaitOptions } from './waiting-callers.js';

/** Customers whose tokens may be under way or waited for at a time, where the cache itself is smaller. */
const LEAST_REQUESTS = 1_000;
const CUSTOMER_REQUESTS = 50;

export interface TokenCacheOptions {
  source: TokenSource;
  refresh: TokenRefresh;
  /** Customer tokens kept; the api token comes on top. */
  maxEntries: number;
  /** Milliseconds that a customer token must have left to be handed out; at most half of its lifetime counts. */
  customerReserveMs: number;
  /**
   * Requests for customer tokens that the source gets at a time, the others wait for their turn; the api token's never
   * waits for them. Default 50.
   */
  customerRequests?: number;
  clock?: Clock;
  /** In [0, 1). Default Math.random. */
  random?: () => number;
  events?: TokenEvents;
}

/**
 * - `absent`: no token, none under way.
 * - `fetching`: none to hand out, one under way.
 * - `fresh`: one to hand out (it may be due: the next look renews it).
 * - `refreshing`: one to hand out, the next one under way.
 * - `dead`: the token has ended, none under way.
 */
export type TokenState = 'absent' | 'fetching' | 'fresh' | 'refreshing' | 'dead';

/**
 * Keeps tokens as long as they live, asks for each of them once however many callers there are, and renews them before
 * they end while callers go on with the current one. Knows nothing of HTTP; scopes come checked.
 */
export class TokenCache {
  readonly #options: TokenCacheOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #hold: EndpointHold;
  readonly #slots: TokenSlots;
  readonly #requests = new Map<string, TokenRequest>();
  readonly #customers: RequestLane;
  readonly #stop = new AbortController();
  /** With `scheduled`, of the api token. */
  readonly #schedule?: RenewalSchedule;
  /** Counts {@link invalidateAll}: what was asked for before is not kept. */
  #era = 0;

  constructor(options: TokenCacheOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#hold = new EndpointHold(this.#clock);
    this.#slots = new TokenSlots(options.maxEntries);
    this.#customers = new RequestLane(options.customerRequests ?? CUSTOMER_REQUESTS);
    if (options.refresh === 'scheduled') this.#schedule = this.#renewalSchedule(this.#slots.make(API_SCOPE));
    allowListeners(this.#stop.signal);
  }

  /** Customers that something is known of. */
  get size(): number {
    return this.#slots.size;
  }

  state(scope: string): TokenState {
    const slot = this.#slots.find(scope);
    if (slot?.live(this.#clock)) return this.#requests.has(scope) ? 'refreshing' : 'fresh';
    if (this.#requests.has(scope)) return 'fetching';
    return slot?.cached ? 'dead' : 'absent';
  }

  /**
   * The token, if there is a live one: at once, without a promise. Starts its renewal in the background when that is
   * due. Still answers after {@link close}, for calls that come to their end.
   */
  peek(scope: string): AccessToken | undefined {
    const slot = this.#slots.find(scope);
    const cached = slot?.live(this.#clock);
    if (!slot || !cached) return undefined;
    if (this.#options.refresh !== 'on-expiry' && cached.isDue(this.#clock)) this.#renew(scope, slot);
    this.#options.events?.servedFromCache(scope);
    return cached.token;
  }

  /**
   * The token; waits for one where there is none.
   * @throws ServiceTokenError, ServiceConnectionError; `signal.reason` where this caller aborts
   */
  async get(scope: string, wait: WaitOptions = {}): Promise<AccessToken> {
    wait.signal?.throwIfAborted();
    this.#stop.signal.throwIfAborted();
    return this.peek(scope) ?? this.#join(scope, wait);
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
    wait.signal?.throwIfAborted();
    this.#stop.signal.throwIfAborted();
    const slot = this.#slots.make(scope);
    const live = slot.live(this.#clock)?.token;
    if (live && live.accessToken !== usedToken) return live;
    if (!this.#requests.has(scope)) {
      if (!slot.forced.take(this.#clock.monotonic())) return undefined;
      this.#drop(scope, slot, usedToken);
    }
    const token = await this.#join(scope, wait);
    return token.accessToken === usedToken ? undefined : token;
  }

  /** Drops a token that does not work, if it is still the cached one. */
  invalidate(accessToken: string): void {
    for (const [scope, slot] of this.#slots.all()) {
      if (slot.cached?.token.accessToken === accessToken) return this.#drop(scope, slot, accessToken);
    }
  }

  /** Drops every token, also those under way: they were bound to a client certificate that is no longer in use. */
  invalidateAll(): void {
    this.#era += 1;
    for (const [, slot] of this.#slots.all()) slot.drop();
  }

  /** With `scheduled`: gets the api token now and renews it from then on. */
  start(): void {
    this.#schedule?.start();
  }

  /** Ends what is under way and rejects all who wait; no timer is left. */
  close(): void {
    if (this.#stop.signal.aborted) return;
    const reason = new ServiceConnectionError({ kind: 'closed', message: 'The module was shut down' });
    this.#stop.abort(reason);
    this.#schedule?.stop();
    for (const request of this.#requests.values()) request.callers.reject(reason);
    this.#requests.clear();
  }

  #drop(scope: string, slot: TokenSlot, accessToken: string): void {
    slot.drop(accessToken);
    this.#options.source.dropped?.(scope, accessToken);
  }

  /** @returns whether a request is under way now */
  #renew(scope: string, slot: TokenSlot): boolean {
    if (this.#requests.has(scope)) return true;
    if (this.#stop.signal.aborted || this.#isFull(scope) || this.#hold.remainingMs > 0) return false;
    if (slot.postponedMs(this.#clock) > 0) return false;
    // Callers that have no token go first.
    if (this.#lane(scope)?.isFull) return false;
    this.#request(scope);
    return true;
  }

  async #join(scope: string, wait: WaitOptions): Promise<AccessToken> {
    const heldMs = this.#hold.remainingMs;
    if (heldMs > (wait.timeoutMs ?? DEFAULT_WAIT_MS)) throw this.#hold.error(scope);
    if (!this.#requests.has(scope) && this.#isFull(scope)) throw tooMany(scope);
    return (this.#requests.get(scope) ?? this.#request(scope)).callers.join(wait);
  }

  #isFull(scope: string): boolean {
    return scope !== API_SCOPE && this.#requests.size >= Math.max(this.#options.maxEntries, LEAST_REQUESTS);
  }

  #request(scope: string): TokenRequest {
    const { source, events } = this.#options;
    const request = new TokenRequest(scope, (grant) => this.#accepts(scope, grant), {
      source,
      events,
      clock: this.#clock,
      random: this.#random,
      hold: this.#hold,
      lane: this.#lane(scope),
      signal: this.#stop.signal,
    });
    this.#requests.set(scope, request);
    this.#run(scope, request);
    return request;
  }

  #run(scope: string, request: TokenRequest): void {
    const era = this.#era;
    // Not in this tick: whoever asked joins first, and a look at the cache stays as quick as it is. A promise, because
    // a test's fake timers may have replaced queueMicrotask.
    void Promise.resolve()
      .then(() => request.run())
      .then(
        (arrived) => this.#arrived(scope, request, arrived, era),
        (error: Error) => this.#failed(scope, request, error),
      );
  }

  #lane(scope: string): RequestLane | undefined {
    return scope === API_SCOPE ? undefined : this.#customers;
  }

  /** Whether a token that another process got is of use here: neither the one to be replaced, nor due itself. */
  #accepts(scope: string, grant: TokenGrant): boolean {
    if (this.#slots.find(scope)?.hasHad(grant.accessToken)) return false;
    return !this.#place(scope, grant, this.#clock.monotonic()).isDue(this.#clock);
  }

  #place(scope: string, grant: TokenGrant, requestedAt: number): CachedToken {
    const reserveMs = scope === API_SCOPE ? 0 : this.#options.customerReserveMs;
    return new CachedToken(grant, { clock: this.#clock, random: this.#random(), requestedAt, reserveMs });
  }

  #arrived(
    scope: string,
    request: TokenRequest,
    { grant, requestedAt, attempt }: ArrivedGrant,
    era: number,
  ): void {
    if (this.#stop.signal.aborted) return;
    this.#requests.delete(scope);
    const cached = this.#place(scope, grant, requestedAt);
    const { expiresAt } = cached.token;
    const durationMs = this.#clock.monotonic() - requestedAt;
    this.#options.events?.refreshed(scope, { expiresAt: new Date(expiresAt), durationMs, attempt });
    // One that is dead already, or has no lifetime, is for those who wait and nobody else.
    if (era !== this.#era) this.#discard(scope, { again: true });
    else if (cached.isDead(this.#clock)) this.#discard(scope, { again: false });
    else this.#keep(scope, cached);
    request.callers.resolve(cached.token);
  }

  #keep(scope: string, cached: CachedToken): void {
    this.#slots.make(scope).keep(cached, this.#clock);
    if (scope === API_SCOPE) this.#schedule?.plan();
  }

  /** No schedule for tokens that cannot be kept: it would ask for them all day, for nobody. */
  #discard(scope: string, { again }: { again: boolean }): void {
    this.#slots.find(scope)?.postpone(this.#clock);
    if (again && scope === API_SCOPE) this.#schedule?.plan();
  }

  #failed(scope: string, request: TokenRequest, error: Error): void {
    if (this.#stop.signal.aborted) return;
    // Somebody came for it after the last one had left.
    if (error instanceof AbandonedRequest && request.callers.size > 0) return this.#run(scope, request);
    this.#requests.delete(scope);
    this.#discard(scope, { again: true });
    request.callers.reject(error);
  }

  #renewalSchedule(slot: TokenSlot): RenewalSchedule {
    const clock = this.#clock;
    return new RenewalSchedule({
      clock,
      delayMs: () =>
        Math.max(slot.live(clock)?.dueInMs(clock) ?? 0, slot.postponedMs(clock), this.#hold.remainingMs),
      renew: () => this.#renew(API_SCOPE, slot),
    });
  }
}

function tooMany(scope: string): ServiceTokenError {
  const message = 'Too many token requests are under way; this one was not begun';
  return new ServiceTokenError({ code: 'token_unavailable', message, scope });
}
