import { AsyncLocalStorage } from 'node:async_hooks';
import { type TokenRefresh } from '../../config/oauth.options.js';
import { ServiceConnectionError } from '../../errors/index.js';
import { allowManyListeners } from '../../exchange/call-limits.js';
import { type TokenIo, type TokenSource, type TokenStatus, type WaitOptions } from '../access-token.js';
import { API_SCOPE } from '../scope.js';
import { type CachedToken } from './cached-token.js';
import { RequestLine } from './request-line.js';
import { ScopeToken, type ScopeSettings, type ScopeTools } from './scope-token.js';

export interface TokenCacheSettings {
  refresh: TokenRefresh;
  /** Customers to keep the tokens of; the api token comes on top. */
  maxEntries: number;
  /** Milliseconds that a customer token must have left to be handed out; at most half of its lifetime counts. */
  customerReserveMs: number;
  /** Requests for customer tokens at a time; others wait for their turn. */
  customerRequests: number;
  /** Milliseconds that a caller waits by default. */
  timeoutMs: number;
}

/**
 * The tokens of all scopes. Keeps each until it expires, makes one request for it however many callers wait, and renews it
 * before it expires, while callers get the current one. Knows nothing of HTTP. The caller checks scopes. It is made in the
 * async context of the module's start.
 */
export class TokenCache {
  readonly #settings: TokenCacheSettings;
  readonly #tools: ScopeTools;
  readonly #customer: ScopeSettings;
  readonly #api: ScopeToken;
  /** A Map keeps the order of insertion: the first is the least recently used. */
  readonly #customers = new Map<string, ScopeToken>();
  readonly #stop = new AbortController();

  constructor(source: TokenSource, settings: TokenCacheSettings, io: TokenIo) {
    const { refresh, customerReserveMs, customerRequests, timeoutMs } = settings;
    this.#settings = settings;
    this.#tools = {
      source,
      io,
      timeoutMs,
      line: new RequestLine(customerRequests, io),
      closed: this.#stop.signal,
      inStart: AsyncLocalStorage.snapshot(),
    };
    // Only the api token is renewed by schedule.
    const customerRefresh = refresh === 'scheduled' ? 'ahead' : refresh;
    this.#customer = { refresh: customerRefresh, reserveMs: customerReserveMs };
    this.#api = new ScopeToken(API_SCOPE, { refresh, reserveMs: 0 }, this.#tools);
    allowManyListeners(this.#stop.signal);
  }

  /** As {@link ScopeToken.use}. The customer becomes the most recently used. */
  use(scope: string): CachedToken | undefined {
    if (scope === API_SCOPE) return this.#api.use();
    return this.#customers.has(scope) ? this.#of(scope).use() : undefined;
  }

  /** The times of the valid token. Begins no request. */
  status(scope: string): TokenStatus | undefined {
    return (scope === API_SCOPE ? this.#api : this.#customers.get(scope))?.status;
  }

  /** As {@link ScopeToken.get}. */
  async get(scope: string, wait: WaitOptions = {}): Promise<CachedToken> {
    return this.#of(scope).get(wait);
  }

  /** As {@link ScopeToken.replace}. */
  async replace(scope: string, refused: string, wait: WaitOptions = {}): Promise<CachedToken | undefined> {
    return this.#of(scope).replace(refused, wait);
  }

  /** Drops a token that does not work, if it is still cached. */
  invalidate(accessToken: string): void {
    for (const token of this.#all()) if (token.holds(accessToken)) return token.drop(accessToken);
  }

  /** Drops all tokens, also those under way: they are bound to a client certificate that is no longer in use. */
  outdateAll(): void {
    this.#tools.line.reset();
    for (const token of this.#all()) token.outdate();
  }

  /** With `scheduled`: gets the api token now and renews it from then on. */
  start(): void {
    if (this.#settings.refresh === 'scheduled') this.#api.schedule();
  }

  /** Ends all requests and rejects their callers; no timer is left. */
  close(): void {
    this.#stop.abort(ServiceConnectionError.closed());
    this.#tools.line.rejectAll(() => ServiceConnectionError.closed());
    this.#api.close();
  }

  #of(scope: string): ScopeToken {
    if (scope === API_SCOPE) return this.#api;
    const token = this.#customers.get(scope) ?? new ScopeToken(scope, this.#customer, this.#tools);
    this.#customers.delete(scope);
    this.#customers.set(scope, token);
    const [oldest] = this.#customers.keys();
    if (this.#customers.size > this.#settings.maxEntries) this.#customers.delete(oldest);
    return token;
  }

  #all(): ScopeToken[] {
    return [this.#api, ...this.#customers.values()];
  }
}
