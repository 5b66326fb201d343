import { AsyncLocalStorage } from 'node:async_hooks';
import { type TokenRefresh } from '../config/options.js';
import { ServiceConnectionError } from '../errors/index.js';
import { allowManyListeners } from '../config/http.options.js';
import { type TokenIo, type TokenSource, API_SCOPE } from './access-token.js';
import { RequestQueue } from './request-queue.js';
import { ScopeToken, type ScopeSettings } from './scope-token.js';
import { type CacheTools } from './token-request.js';

export interface TokenCacheSettings {
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

/**
 * Caches the tokens of all scopes. Each token is kept until it expires. However many callers wait for a token, it is requested
 * once. A token is renewed before it expires, while callers get the current one. The cache knows nothing of HTTP, and the
 * caller checks the scopes. Renewals run in the async context in which the cache is created, that of the module's start.
 */
export class TokenCache {
  readonly #settings: TokenCacheSettings;
  readonly #tools: CacheTools;
  readonly #customerSettings: ScopeSettings;
  readonly #api: ScopeToken;
  /** By scope. A Map keeps the order of insertion, so the first entry is the least recently used. */
  readonly #customers = new Map<string, ScopeToken>();
  readonly #closing = new AbortController();

  constructor(source: TokenSource, settings: TokenCacheSettings, io: TokenIo) {
    const { refresh, customerReserveMs, customerRequests, timeoutMs } = settings;
    this.#settings = settings;
    this.#tools = {
      source,
      io,
      timeoutMs,
      queue: new RequestQueue(customerRequests, io),
      closed: this.#closing.signal,
      inStartContext: AsyncLocalStorage.snapshot(),
    };
    // Only the api token is renewed without calls (`scheduled`).
    const customerRefresh = refresh === 'scheduled' ? 'ahead' : refresh;
    this.#customerSettings = { refresh: customerRefresh, reserveMs: customerReserveMs };
    this.#api = new ScopeToken(API_SCOPE, { refresh, reserveMs: 0 }, this.#tools);
    allowManyListeners(this.#closing.signal);
  }

  /** The token of a scope. Its customer becomes the most recently used. */
  scope(name: string): ScopeToken {
    if (name === API_SCOPE) return this.#api;
    const token = this.#customers.get(name) ?? new ScopeToken(name, this.#customerSettings, this.#tools);
    this.#customers.delete(name);
    this.#customers.set(name, token);
    const [oldest] = this.#customers.keys();
    if (this.#customers.size > this.#settings.maxEntries) this.#customers.delete(oldest);
    return token;
  }

  /** Drops a token that does not work, if it is still cached. */
  invalidate(accessToken: string): void {
    for (const token of this.#scopeTokens()) if (token.holds(accessToken)) return token.drop(accessToken);
  }

  /** As {@link ScopeToken.dropForNewCertificate}, for all scopes. */
  dropAllForNewCertificate(): void {
    this.#tools.queue.reset();
    for (const token of this.#scopeTokens()) token.dropForNewCertificate();
  }

  /** With `scheduled`: requests the api token now, and renews it from then on. */
  start(): void {
    if (this.#settings.refresh === 'scheduled') this.#api.schedule();
  }

  /** Ends all requests, rejects their callers, and cancels all timers. */
  close(): void {
    this.#closing.abort(ServiceConnectionError.closed());
    this.#tools.queue.rejectAll(() => ServiceConnectionError.closed());
    this.#api.close();
  }

  #scopeTokens(): ScopeToken[] {
    return [this.#api, ...this.#customers.values()];
  }
}
