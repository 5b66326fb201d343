import { copyError, describeError, ServiceConnectionError, ServiceError } from '../errors/index.js';
import { momentOf, within } from '../time/time.js';
import { type TokenGrant, type WaitOptions, API_SCOPE, CachedToken } from './access-token.js';
import { expiredOnArrival, noResponseInTime, noTokenInTime } from './endpoint/token-errors.js';
import { BackOff, type EndRequest, MAX_ATTEMPTS, renewalDelay } from './request-limiter.js';
import { type CacheTools } from './token-cache.js';

/** Milliseconds for up to 3 attempts together. Waiting for their turns comes on top. */
const BUDGET_MS = 10_000;
/** The request ends this much later than the time limit of the endpoint, whose error names the cause and has to come first. */
const SOURCE_FIRST_MS = 50;
/** If the current token is usable for less than this, its renewal counts as awaited: a caller will soon wait for it. */
const SOON_MS = 2_000;
/** A 401 of the API replaces a token before it expires at most 3 times in a burst, and then once in 30 s. */
const FORCED_REFRESHES = { burst: 3, refillMs: 30_000 };

/** One attempt to get a token. All callers that come while it is pending share its token or error. */
class Attempt {
  /** Aborts when the last caller stops waiting before the attempt was sent. */
  readonly abandoned = new AbortController();
  readonly token: Promise<CachedToken>;
  /** When the token source was asked, in milliseconds of the monotonic clock. Undefined while the attempt waits for its turn. */
  sentAt?: number;
  /** Whether callers make another attempt after its error. */
  mayRetry = false;

  constructor(run: (attempt: Attempt) => Promise<CachedToken>) {
    this.token = run(this);
    this.token.catch(() => undefined);
  }
}

/** The token of one scope: the cached token, the pending attempt to get one, and the time of the next renewal. */
export class ScopeToken {
  readonly backOff: BackOff;
  readonly #tools: CacheTools;
  #cached?: CachedToken;
  #attempt?: Attempt;
  /** Milliseconds for the pending attempt and those that follow it. */
  #leftMs = BUDGET_MS;
  /** Number of callers that wait now, and of those among them that make a single attempt (`once`). */
  #callers = 0;
  #probes = 0;
  /** When a whole burst of forced refreshes is available again, in milliseconds of the monotonic clock. */
  #burstFullAt = -Infinity;
  /** The last token that did not work. */
  #dropped?: string;
  /** When the newest token that did not work was issued, in milliseconds of the wall clock. */
  #droppedIssuedAt = -Infinity;
  /** Number of client certificates so far. A token that was requested with an earlier one is not cached. */
  #certificates = 0;
  /** Number of requests in a row that brought no token to keep. */
  #withoutToken = 0;
  /** No renewal starts in the background before this time, in milliseconds of the monotonic clock. */
  #renewNotBefore = -Infinity;

  constructor(
    readonly name: string,
    tools: CacheTools,
  ) {
    this.#tools = tools;
    this.backOff = new BackOff(tools.io.clock);
  }

  /**
   * Returns the cached token if it can be handed out, also after the cache has closed, for calls in flight. Starts its renewal
   * if that is due.
   */
  getCached(): CachedToken | undefined {
    const cached = this.#cached;
    if (!cached) return undefined;
    const { ageMs, refreshAfterMs, usableMs } = cached;
    if (ageMs >= usableMs) return undefined;
    if (ageMs >= refreshAfterMs && this.#tools.settings.refresh !== 'on-expiry') this.#renewInBackground();
    return cached;
  }

  /** The times of the token, if it can be handed out. Starts no request. */
  get status() {
    return this.#usableToken()?.status;
  }

  /** Returns the token, and waits for one if necessary. @throws ServiceTokenError, ServiceConnectionError, `signal.reason` */
  async get(wait: WaitOptions = {}): Promise<CachedToken> {
    this.#checkCaller(wait);
    return this.getCached() ?? (await this.#join(wait));
  }

  /**
   * Gets another token after the API responded with 401 to the token `refused`. Drops that token if it is still the cached one.
   * @returns undefined if too many tokens were replaced (the token then stays cached), or if the endpoint returns the same one
   */
  async replace(refused: string, wait: WaitOptions = {}): Promise<CachedToken | undefined> {
    this.#checkCaller(wait);
    const usable = this.#usableToken();
    if (usable && usable.accessToken !== refused) return usable;
    if (!this.#attempt) {
      const now = this.#tools.io.clock.monotonic();
      const fullAt = Math.max(this.#burstFullAt, now) + FORCED_REFRESHES.refillMs;
      if (fullAt - now > FORCED_REFRESHES.burst * FORCED_REFRESHES.refillMs) return undefined;
      this.#burstFullAt = fullAt;
    }
    // If many callers come at once, only the first one drops the token.
    if (usable || this.#dropped !== refused) this.drop(refused);
    const token = await this.#join(wait);
    return token.accessToken === refused ? undefined : token;
  }

  /** Whether callers wait, or a request is in flight. */
  get isBusy(): boolean {
    return this.#callers > 0 || this.#attempt !== undefined;
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
    this.#certificates += 1;
    this.backOff.reset();
  }

  /** Starts the renewal of the token if that is due, or if there is none. Returns the token. */
  renewIfDue(): CachedToken | undefined {
    const cached = this.#cached;
    if (!cached || cached.ageMs >= cached.refreshAfterMs) this.#renewInBackground();
    return cached;
  }

  #checkCaller({ signal }: WaitOptions): void {
    signal?.throwIfAborted();
    if (this.#tools.closed.aborted) throw ServiceConnectionError.closed();
  }

  /** Waits for a token. While the next request is too far away, throws the last error at once. */
  async #join(wait: WaitOptions): Promise<CachedToken> {
    const { limiter, io, settings } = this.#tools;
    const { timeoutMs = settings.timeoutMs, once, signal } = wait;
    const isSent = this.#attempt?.sentAt !== undefined;
    const rejection = isSent ? undefined : limiter.errorFor(this, once ? 0 : timeoutMs);
    if (rejection) throw rejection;
    const expired = () => limiter.errorFor(this, 0) ?? noTokenInTime(timeoutMs, io.describeOption);
    this.#callers += 1;
    if (once) this.#probes += 1;
    try {
      const limit = { clock: io.clock, timeoutMs, signals: [signal], expired };
      return await within(limit, (ended) => this.#waitForToken(ended));
    } finally {
      this.#callers -= 1;
      if (once) this.#probes -= 1;
      if (this.#callers === 0 && this.#attempt?.sentAt === undefined) {
        this.#attempt?.abandoned.abort(new Error('No caller waits for this token any more'));
        this.#attempt = undefined;
      }
      if (!this.isBusy) this.#tools.onIdle(this.name);
    }
  }

  /**
   * Joins one attempt after another until one brings a token. If a token arrives with too little time left to be cached, one
   * more attempt follows. If its token is no better, as from an endpoint that is slower than its tokens live, the caller gets it.
   * @param ended aborts when the caller does not wait any more
   */
  async #waitForToken(ended: AbortSignal): Promise<CachedToken> {
    let shortLived: CachedToken | undefined;
    for (let failures = 0; ;) {
      const attempt = (this.#attempt ??= new Attempt((self) => this.#run(self)));
      try {
        const token = await attempt.token;
        if (token.isUsable() || shortLived || ended.aborted) return token;
        shortLived = token;
      } catch (error) {
        if (shortLived?.isAlive) return shortLived;
        failures += 1;
        // Each caller gets an error of its own.
        if (!attempt.mayRetry || failures >= MAX_ATTEMPTS || ended.aborted) throw copyError(error as Error);
      }
    }
  }

  /** Starts the renewal of the token, unless it would have to wait: callers without a token go first. */
  #renewInBackground(): void {
    const { closed, io, inStartContext, limiter } = this.#tools;
    if (this.#attempt || closed.aborted || io.clock.monotonic() < this.#renewNotBefore) return;
    const turn = limiter.tryStart(this);
    if (turn) inStartContext(() => (this.#attempt = new Attempt((self) => this.#run(self, turn))));
  }

  /** @param renewal the turn of a renewal, which waits for nothing */
  async #run(attempt: Attempt, renewal?: EndRequest): Promise<CachedToken> {
    const { closed, io, limiter } = this.#tools;
    let end: EndRequest | undefined;
    let failure: ServiceError | undefined;
    try {
      end = await (renewal ?? limiter.waitForTurn(this, attempt.abandoned.signal));
      attempt.abandoned.signal.throwIfAborted();
      // The wall clock may have been corrected during the wait, so that the cached token is usable again.
      const usable = renewal ? undefined : this.#usableToken();
      if (usable) return usable;
      attempt.sentAt = io.clock.monotonic();
      return await this.#request(renewal ? BUDGET_MS : this.#leftMs);
    } catch (error) {
      closed.throwIfAborted();
      this.#delayRenewal();
      if (attempt.sentAt !== undefined && error instanceof ServiceError) failure = error;
      if (failure && this.#callers === 0)
        io.log.warn(`A token request that no caller waits for failed: ${describeError(failure)}`);
      throw error;
    } finally {
      // The time of a renewal does not count: a caller that has joined it still has all of its time.
      if (!renewal && attempt.sentAt !== undefined) this.#leftMs -= io.clock.monotonic() - attempt.sentAt;
      // A caller with `once` joins another attempt only if others make it anyway.
      attempt.mayRetry = end?.(failure) === true && this.#leftMs > 0 && this.#callers > this.#probes;
      if (!attempt.mayRetry) this.#leftMs = BUDGET_MS;
      if (this.#attempt === attempt) this.#attempt = undefined;
      if (!this.isBusy) this.#tools.onIdle(this.name);
    }
  }

  /** Asks the token source, and caches the token if it can be handed out. */
  async #request(timeoutMs: number): Promise<CachedToken> {
    const { source, limiter, closed } = this.#tools;
    const { clock } = this.#tools.io;
    const { error } = this.backOff;
    // If the attempt before had no client secret, the endpoint is perhaps not being asked this time either.
    const expired = () => (error?.code === 'client_secret_unavailable' ? error : noResponseInTime(timeoutMs));
    const isNeededSoon = () => this.#usableToken() !== this.#usableToken(SOON_MS);
    const certificates = this.#certificates;
    const requestedAt = momentOf(clock);
    const limit = { clock, timeoutMs: timeoutMs + SOURCE_FIRST_MS, signals: [closed], expired };
    const grant = await within(limit, (signal) =>
      source.request(this.name, {
        signal,
        closed,
        timeoutMs,
        isProbe: this.#callers > 0 && this.#callers === this.#probes,
        accepts: (offered) => this.#accepts(offered),
        isAwaited: () => this.#callers > 0 || limiter.hasWaiting(this.name) || isNeededSoon(),
      }),
    );
    closed.throwIfAborted();
    const token = this.#toCachedToken({ requestedAt, ...grant });
    // A token of the shared store does not show that the endpoint works.
    if (grant.ageMs === undefined) limiter.reset();
    // The process or its machine was suspended, or the endpoint takes longer than its tokens live.
    if (!token.isAlive) throw expiredOnArrival(this.name);
    this.backOff.reset();
    const isSame = this.holds(token.accessToken);
    const isKept = certificates === this.#certificates && token.isUsable();
    if (isKept) this.#cached = token;
    // An endpoint that returns the same token until it expires would otherwise be asked more and more often.
    if (!isKept || isSame) this.#delayRenewal();
    else [this.#withoutToken, this.#renewNotBefore] = [0, -Infinity];
    return token;
  }

  /** Delays the next renewal in the background, because a request brought no token to keep. */
  #delayRenewal(): void {
    const now = this.#tools.io.clock.monotonic();
    // The attempts of one caller follow each other within this time, and count once.
    if (now >= this.#renewNotBefore) this.#withoutToken += 1;
    this.#renewNotBefore = now + renewalDelay(this.#withoutToken);
  }

  /** The cached token, if it can still be handed out after so many milliseconds. */
  #usableToken(afterMs = 0): CachedToken | undefined {
    const cached = this.#cached;
    return cached?.isUsable(afterMs) ? cached : undefined;
  }

  #toCachedToken(grant: TokenGrant): CachedToken {
    const { io, settings } = this.#tools;
    const reserveMs = this.name === API_SCOPE ? 0 : settings.customerReserveMs;
    return new CachedToken(grant, io.clock, io.random(), reserveMs);
  }

  /** Whether a token of a shared store can be used. It must be newer than the dropped ones too. */
  #accepts(grant: TokenGrant): boolean {
    const offered = this.#toCachedToken(grant);
    const isDropped = offered.accessToken === this.#dropped || offered.issued.wall <= this.#droppedIssuedAt;
    return !isDropped && offered.canReplace(this.#cached);
  }
}
