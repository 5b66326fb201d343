import { type TokenRefresh } from '../config/options.js';
import { ServiceConnectionError, type ServiceError } from '../errors/index.js';
import { type TokenGrant, type TokenStatus, type WaitOptions } from './access-token.js';
import { CachedToken } from './cached-token.js';
import { CircuitBreaker, ForcedRefreshLimit, renewalDelay } from './request-limits.js';
import { type CacheTools, type Purpose, TokenRequest } from './token-request.js';

/**
 * With `scheduled`, a timer checks whether a renewal is due: each tenth of the token's usable time, between `least` and `most`,
 * and each second (`withoutToken`) while no token is cached. Milliseconds.
 */
const CHECK_INTERVAL_MS = { least: 50, withoutToken: 1_000, most: 5_000 };

export interface ScopeSettings {
  refresh: TokenRefresh;
  /** Milliseconds that the token must have left to be handed out. At most half of its lifetime counts. */
  reserveMs: number;
}

/** The token of one scope: the cached token, its pending request, and the time of the next renewal. */
export class ScopeToken {
  readonly #settings: ScopeSettings;
  readonly #tools: CacheTools;
  readonly #forcedRefreshes = new ForcedRefreshLimit();
  #ownBreaker?: CircuitBreaker;
  #cached?: CachedToken;
  #request?: TokenRequest;
  /** The last token that did not work. */
  #dropped?: string;
  /** When the newest token that did not work was issued, in milliseconds of the wall clock. */
  #droppedIssuedAt = -Infinity;
  /** Number of requests in a row that brought no token to keep. */
  #withoutToken = 0;
  /** No renewal starts in the background before this time, in milliseconds of the monotonic clock. */
  #renewNotBefore = -Infinity;
  #cancelCheck?: () => void;

  constructor(
    readonly name: string,
    settings: ScopeSettings,
    tools: CacheTools,
  ) {
    this.#settings = settings;
    this.#tools = tools;
  }

  /**
   * Returns the cached token if it can be handed out. Starts its renewal if that is due. After {@link close} it still returns
   * the token, for calls in flight.
   */
  getCached(): CachedToken | undefined {
    const cached = this.#cached;
    if (!cached) return undefined;
    const { ageMs, refreshAfterMs, usableMs } = cached;
    if (ageMs >= usableMs) return undefined;
    if (ageMs >= refreshAfterMs && this.#settings.refresh !== 'on-expiry') this.#renewInBackground();
    return cached;
  }

  /** The times of the token, if it can be handed out. Starts no request. */
  get status(): TokenStatus | undefined {
    const usable = this.usableToken();
    return usable && { issuedAt: new Date(usable.issued.wall), expiresAt: new Date(usable.expiresAt) };
  }

  /**
   * Returns the token, and waits for one if necessary.
   * @throws ServiceTokenError, ServiceConnectionError; `signal.reason` if this caller aborts
   */
  async get(wait: WaitOptions = {}): Promise<CachedToken> {
    this.#checkCaller(wait);
    return this.getCached() ?? (await this.#join(wait));
  }

  /**
   * Gets another token after the API responded with 401 to the token `refused`. Drops that token if it is still the cached one.
   * @returns undefined if the limit on forced refreshes is reached (the token then stays cached), or if the endpoint returns
   * the same token again
   */
  async replace(refused: string, wait: WaitOptions = {}): Promise<CachedToken | undefined> {
    this.#checkCaller(wait);
    const usable = this.usableToken();
    if (usable && usable.accessToken !== refused) return usable;
    if (!this.#request && !this.#forcedRefreshes.take(this.#tools.io.clock.monotonic())) return undefined;
    // If many callers come at once, only the first one drops the token.
    if (usable || this.#dropped !== refused) this.drop(refused);
    const token = await this.#join(wait);
    return token.accessToken === refused ? undefined : token;
  }

  /** Whether this is the cached token, expired or not. */
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
    this.#tools.source.drop?.(this.name, accessToken);
  }

  /**
   * Another client certificate is in use. Drops the cached token, and does not cache the one that is being requested: both are
   * bound to the certificate before (https://www.rfc-editor.org/rfc/rfc8705#section-3).
   */
  dropForNewCertificate(): void {
    this.#cached = undefined;
    this.#ownBreaker = undefined;
    if (this.#request) this.#request.isOutdated = true;
  }

  /** With `scheduled`: requests the token now, and renews it from then on without any call. */
  schedule(): void {
    const { closed, io } = this.#tools;
    if (closed.aborted) return;
    const cached = this.#cached;
    if (!cached || cached.ageMs >= cached.refreshAfterMs) this.#renewInBackground();
    const intervalMs = cached
      ? Math.max(CHECK_INTERVAL_MS.least, cached.usableMs / 10)
      : CHECK_INTERVAL_MS.withoutToken;
    this.#cancelCheck = io.clock.watch(() => this.schedule(), Math.min(CHECK_INTERVAL_MS.most, intervalMs));
  }

  /** Cancels the timer. The pending request ends by the signal `closed`. */
  close(): void {
    this.#cancelCheck?.();
  }

  /** The circuit breaker of this scope alone; undefined without a failure since the last token. */
  get ownBreaker(): CircuitBreaker | undefined {
    return this.#ownBreaker;
  }

  /** The circuit breaker that this scope has to wait for: its own, or one of several scopes. */
  get breaker(): CircuitBreaker {
    return this.#tools.queue.breakerFor(this.name, this.#ownBreaker);
  }

  /** Whether a request that starts now would have to wait. */
  get hasToWait(): boolean {
    return this.#tools.queue.hasToWait(this.name, this.#ownBreaker);
  }

  /** The cached token, if it can still be handed out after so many milliseconds. */
  usableToken(afterMs = 0): CachedToken | undefined {
    const cached = this.#cached;
    return cached?.isUsable(afterMs) ? cached : undefined;
  }

  toCachedToken(grant: TokenGrant): CachedToken {
    const { clock, random } = this.#tools.io;
    return new CachedToken(grant, clock, random(), this.#settings.reserveMs);
  }

  /**
   * Whether a token of another process may replace the cached one.
   *
   * A token of a shared store must be newer than the cached token and than all dropped ones, because anyone who can write to the
   * store could put old entries back. While a token is usable, another one that is itself due for renewal is not accepted.
   * Without a usable token it is: callers then need not wait.
   */
  accepts(grant: TokenGrant): boolean {
    const offered = this.toCachedToken(grant);
    const { accessToken } = offered;
    const maxAgeMs = this.usableToken() ? offered.refreshAfterMs : offered.usableMs;
    const newest = Math.max(this.#droppedIssuedAt, this.#cached?.issued.wall ?? -Infinity);
    const isOther = accessToken !== this.#dropped && !this.holds(accessToken);
    return isOther && offered.issued.wall > newest && offered.ageMs < maxAgeMs;
  }

  /** Caches the token, if it can be handed out. @param isOutdated it was requested with a client certificate that was replaced */
  keep(token: CachedToken, isOutdated: boolean): void {
    const isSame = this.holds(token.accessToken);
    const isKept = !isOutdated && token.isUsable();
    if (isKept) this.#cached = token;
    // An endpoint that returns the same token until it expires would otherwise be asked more and more often.
    if (!isKept || isSame) return this.delayRenewal();
    this.#withoutToken = 0;
    this.#renewNotBefore = -Infinity;
  }

  /** Counts a failure. Returns whether the callers get the error now, without another attempt. */
  recordFailure(error: ServiceError, countAtStart: number): boolean {
    this.#ownBreaker ??= new CircuitBreaker(this.#tools.io.clock);
    return this.#tools.queue.recordFailure(this.name, this.#ownBreaker, error, countAtStart);
  }

  forgetFailures(): void {
    this.#ownBreaker = undefined;
  }

  /** Delays the next renewal in the background, because a request brought no token to keep. */
  delayRenewal(): void {
    this.#withoutToken += 1;
    this.#renewNotBefore = this.#tools.io.clock.monotonic() + renewalDelay(this.#withoutToken);
  }

  /** Called in the tick in which the request settles, so that the next caller starts a new one. */
  endRequest(): void {
    this.#request = undefined;
  }

  #checkCaller({ signal }: WaitOptions): void {
    signal?.throwIfAborted();
    if (this.#tools.closed.aborted) throw ServiceConnectionError.closed();
  }

  #renewInBackground(): void {
    const { closed, io, inStartContext } = this.#tools;
    // Callers without a token go first.
    if (this.#request || closed.aborted || this.hasToWait) return;
    if (io.clock.monotonic() < this.#renewNotBefore) return;
    inStartContext(() => this.#startRequest('renewal'));
  }

  #startRequest(purpose: Purpose): TokenRequest {
    return (this.#request = new TokenRequest(this, this.#tools, purpose));
  }

  /** Joins the pending request, or starts one. While the circuit breaker is open for long, throws the last error at once. */
  async #join(wait: WaitOptions): Promise<CachedToken> {
    const { timeoutMs = this.#tools.timeoutMs, once } = wait;
    const breaker = this.breaker;
    const patienceMs = once && breaker.patienceMs < Infinity ? 0 : breaker.patienceMs;
    if (!this.#request?.isSending && breaker.remainingMs > Math.min(patienceMs, Math.max(0, timeoutMs)))
      throw breaker.errorFor(this.name);
    const request = this.#request ?? this.#startRequest('probe');
    return request.join(wait);
  }
}
