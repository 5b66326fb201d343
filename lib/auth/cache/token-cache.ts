import { type TokenRefresh } from '../../config/oauth.options.js';
import { ServiceConnectionError } from '../../errors/index.js';
import { allowListeners } from '../../exchange/call-limits.js';
import { type AccessToken, type TokenIo, type TokenSource, type TokenStatus } from '../access-token.js';
import { API_SCOPE } from '../scope.js';
import { type CachedToken } from './cached-token.js';
import { Limit, RetryAfterGate } from './request-limits.js';
import { ScopeToken, type ScopeSettings, type ScopeTools } from './scope-token.js';
import { type WaitOptions } from './waiting-callers.js';

/** At least so many requests may be under way or wait, however small the cache. */
const MIN_REQUESTS = 1_000;

export interface TokenCacheSettings {
  refresh: TokenRefresh;
  /** Customer tokens to keep; the api token comes on top. */
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
 * before it expires, while callers get the current one. Knows nothing of HTTP. The caller checks scopes.
 */
export class TokenCache {
  readonly #settings: TokenCacheSettings;
  readonly #tools: ScopeTools;
  readonly #customer: ScopeSettings;
  readonly #api: ScopeToken;
  /** Customers that have, or had, a token. A Map keeps the order of insertion: the first is the least recently used. */
  readonly #customers = new Map<string, ScopeToken>();
  /** Customers with a request under way: until it has a token, a scope takes no place in `#customers`. */
  readonly #requests = new Map<string, ScopeToken>();
  readonly #stop = new AbortController();
  #hasWarned = false;

  constructor(source: TokenSource, settings: TokenCacheSettings, io: TokenIo) {
    const { refresh, customerReserveMs, customerRequests, timeoutMs } = settings;
    this.#settings = settings;
    this.#tools = {
      source,
      io,
      timeoutMs,
      gate: new RetryAfterGate(io.clock),
      closed: this.#stop.signal,
      mayBegin: (token, forWhom) => this.#mayBegin(token, forWhom),
      ended: (token) => void this.#requests.delete(token.scope),
      kept: (token, hasLife) => this.#kept(token, hasLife),
    };
    // Only the api token is renewed by schedule.
    const customerRefresh = refresh === 'scheduled' ? 'ahead' : refresh;
    const lane = new Limit(customerRequests);
    this.#customer = { refresh: customerRefresh, reserveMs: customerReserveMs, lane };
    this.#api = new ScopeToken(API_SCOPE, { refresh, reserveMs: 0 }, this.#tools);
    allowListeners(this.#stop.signal);
  }

  /** As {@link ScopeToken.use}. The customer becomes the most recently used. */
  use(scope: string): AccessToken | undefined {
    if (scope === API_SCOPE) return this.#api.use();
    this.#touch(scope);
    return this.#known(scope)?.use();
  }

  /** The times of the valid token. Begins no request. */
  status(scope: string): TokenStatus | undefined {
    return this.#known(scope)?.status;
  }

  /** As {@link ScopeToken.get}. */
  async get(scope: string, wait: WaitOptions = {}): Promise<AccessToken> {
    this.#touch(scope);
    return this.#of(scope).get(wait);
  }

  /** As {@link ScopeToken.renew}. */
  async renew(scope: string, refused: string, wait: WaitOptions = {}): Promise<CachedToken | undefined> {
    return this.#of(scope).renew(refused, wait);
  }

  /** Drops a token that does not work, if it is still cached. */
  invalidate(accessToken: string): void {
    for (const token of this.#all()) if (token.holds(accessToken)) return token.drop(accessToken);
  }

  /** Drops all tokens, also those under way: they are bound to a client certificate that is no longer in use. */
  invalidateAll(): void {
    for (const token of this.#all()) token.outdate();
  }

  /** With `scheduled`: gets the api token now and renews it from then on. */
  start(): void {
    if (this.#settings.refresh === 'scheduled') this.#api.schedule();
  }

  /** Ends all requests and rejects their callers; no timer is left. */
  close(): void {
    this.#stop.abort(ServiceConnectionError.closed());
    for (const token of this.#all()) token.close();
    this.#requests.clear();
  }

  #known(scope: string): ScopeToken | undefined {
    return scope === API_SCOPE ? this.#api : (this.#requests.get(scope) ?? this.#customers.get(scope));
  }

  #of(scope: string): ScopeToken {
    return this.#known(scope) ?? new ScopeToken(scope, this.#customer, this.#tools);
  }

  *#all(): Generator<ScopeToken> {
    yield* new Set([this.#api, ...this.#customers.values(), ...this.#requests.values()]);
  }

  #touch(scope: string): void {
    const token = this.#customers.get(scope);
    if (!token) return;
    this.#customers.delete(scope);
    this.#customers.set(scope, token);
  }

  #mayBegin(token: ScopeToken, forWhom: 'renewal' | 'callers'): boolean {
    const { customerRequests, maxEntries } = this.#settings;
    const { gate, closed } = this.#tools;
    const isRenewal = forWhom === 'renewal';
    if (isRenewal && (closed.aborted || gate.remainingMs > 0)) return false;
    if (token === this.#api) return true;
    // Callers without a token go first.
    if (this.#requests.size >= (isRenewal ? customerRequests : Math.max(maxEntries, MIN_REQUESTS)))
      return false;
    this.#requests.set(token.scope, token);
    return true;
  }

  #kept(token: ScopeToken, hasLife: boolean): void {
    if (!hasLife) this.#warnOfNoLife();
    const { scope } = token;
    if (scope === API_SCOPE) return;
    this.#customers.delete(scope);
    this.#customers.set(scope, token);
    const [oldest] = this.#customers.keys();
    if (this.#customers.size > this.#settings.maxEntries && oldest !== undefined)
      this.#customers.delete(oldest);
  }

  #warnOfNoLife(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#tools.io.log.warn(
      'The token endpoint gives tokens without a lifetime (expires_in is 0 or missing): each is used for one second. ' +
        "Tell the service's operator.",
    );
  }
}
