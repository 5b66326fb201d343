import { AsyncLocalStorage } from 'node:async_hooks';
import { type TokenRefresh } from '../config/options.js';
import { ServiceConnectionError } from '../errors/index.js';
import { allowManyListeners } from '../time/time.js';
import { type TokenIo, type TokenSource, API_SCOPE } from './access-token.js';
import { RequestLimiter } from './request-limiter.js';
import { ScopeToken } from './scope-token.js';

/**
 * With `scheduled`, a timer checks whether a renewal is due: each tenth of the token's usable time, between `least` and `most`,
 * and each second (`withoutToken`) while no token is cached. Milliseconds.
 */
const CHECK_INTERVAL_MS = { least: 50, withoutToken: 1_000, most: 5_000 };
export interface TokenCacheSettings {
  /** Only the api token is renewed without calls (`scheduled`). */
  refresh: TokenRefresh;
  /** Maximum number of customer tokens in the cache. The api token comes on top. */
  maxEntries: number;
  /** Milliseconds that a customer token must have left to be handed out. At most half of its lifetime counts. */
  customerReserveMs: number;
  /** Maximum number of requests for customer tokens in flight. Others wait. */
  customerRequests: number;
  /** Milliseconds that a caller waits by default. */
  timeoutMs: number;
}

/** The parts of a token cache that all of its scopes share. */
export interface CacheTools {
  source: TokenSource;
  settings: TokenCacheSettings;
  io: TokenIo;
  limiter: RequestLimiter;
  /** Aborts when the cache closes. */
  closed: AbortSignal;
  /** Called when no caller waits for the token of a scope any more, and no request is in flight. */
  onIdle: (scope: string) => void;
  /** Runs work in the async context of the module's start, because a renewal belongs to no caller. */
  inStartContext: <T>(work: () => T) => T;
}

/**
 * Caches the tokens of all scopes. Each token is kept until it expires. However many callers wait for a token, it is requested
 * once. A token is renewed before it expires, while callers get the current one. The cache knows nothing of HTTP, and the
 * caller checks the scopes. Renewals run in the async context in which the cache is created, that of the module's start.
 */
export class TokenCache {
  readonly #tools: CacheTools;
  readonly #api: ScopeToken;
  /** By scope. A Map keeps the order of insertion, so the first entry is the least recently used. */
  readonly #customers = new Map<string, ScopeToken>();
  /** By scope, until they are idle. They can still be found, so that each scope has one request at a time. */
  readonly #evicted = new Map<string, ScopeToken>();
  readonly #closing = new AbortController();
  #cancelCheck?: () => void;

  constructor(source: TokenSource, settings: TokenCacheSettings, io: TokenIo) {
    this.#tools = {
      source,
      settings,
      io,
      limiter: new RequestLimiter(settings.customerRequests, io),
      closed: this.#closing.signal,
      onIdle: (scope) => this.#evicted.delete(scope),
      inStartContext: AsyncLocalStorage.snapshot(),
    };
    this.#api = new ScopeToken(API_SCOPE, this.#tools);
    allowManyListeners(this.#closing.signal);
  }

  /** The token of a scope. Its customer becomes the most recently used. */
  scope(name: string): ScopeToken {
    if (name === API_SCOPE) return this.#api;
    const known = this.#customers.get(name) ?? this.#evicted.get(name);
    const token = known ?? new ScopeToken(name, this.#tools);
    this.#evicted.delete(name);
    this.#customers.delete(name);
    this.#customers.set(name, token);
    if (this.#customers.size > this.#tools.settings.maxEntries) this.#evictOldest();
    return token;
  }

  /** Drops a token that does not work, if it is still cached. */
  invalidate(accessToken: string): void {
    for (const token of this.#scopeTokens()) if (token.holds(accessToken)) return token.drop(accessToken);
  }

  /** As {@link ScopeToken.dropForNewCertificate}, for all scopes. */
  dropAllForNewCertificate(): void {
    this.#tools.limiter.reset();
    for (const token of this.#scopeTokens()) token.dropForNewCertificate();
  }

  /** With `scheduled`: requests the api token now, and renews it from then on without any call. */
  start(): void {
    const { settings, closed, io } = this.#tools;
    if (settings.refresh !== 'scheduled' || closed.aborted) return;
    const token = this.#api.renewIfDue();
    const { least, withoutToken, most } = CHECK_INTERVAL_MS;
    const intervalMs = token ? Math.max(least, token.usableMs / 10) : withoutToken;
    this.#cancelCheck = io.clock.watch(() => this.start(), Math.min(most, intervalMs));
  }

  /** Ends all requests, rejects their callers, and cancels all timers. */
  close(): void {
    this.#closing.abort(ServiceConnectionError.closed());
    this.#tools.limiter.close();
    this.#cancelCheck?.();
  }

  #evictOldest(): void {
    const [[name, oldest]] = this.#customers;
    this.#customers.delete(name);
    if (oldest.isBusy) this.#evicted.set(name, oldest);
  }

  #scopeTokens(): ScopeToken[] {
    return [this.#api, ...this.#customers.values(), ...this.#evicted.values()];
  }
}
