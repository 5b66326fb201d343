import { type TokenRefresh } from '../../config/oauth.options.js';
import { describeError, ServiceConnectionError, ServiceError } from '../../errors/index.js';
import { retryDelay } from '../../time/back-off.js';
import { sleep, untilAborted, within } from '../../time/timers.js';
import {
  type AccessToken,
  type TokenGrant,
  type TokenIo,
  type TokenRequestContext,
  type TokenSource,
  type TokenStatus,
} from '../access-token.js';
import { isTransient, NO_SECRET, tooMany, unanswered } from '../endpoint/token-errors.js';
import { CachedToken } from './cached-token.js';
import { KnownToken } from './known-token.js';
import { ForcedRefreshLimit, type Limit, type RetryAfterGate } from './request-limits.js';
import { type WaitOptions, WaitingCallers } from './waiting-callers.js';

/** Milliseconds for all attempts together; waiting for a Retry-After comes on top. */
const BUDGET_MS = 10_000;
const ATTEMPTS = 3;
/** The shortest time between two renewals by schedule. */
const MIN_DELAY_MS = 250;

/** Shared by all scopes of a cache. */
export interface ScopeTools {
  source: TokenSource;
  io: TokenIo;
  gate: RetryAfterGate;
  /** Aborted when the cache closes. */
  closed: AbortSignal;
  /** Milliseconds that a caller waits by default. */
  timeoutMs: number;
  /** Whether a request may begin, for nobody yet (`renewal`) or for callers. If so, it counts from now on. */
  mayBegin(token: ScopeToken, forWhom: 'renewal' | 'callers'): boolean;
  ended(token: ScopeToken): void;
  /** It has a token now. */
  kept(token: ScopeToken, hasLife: boolean): void;
}

export interface ScopeSettings {
  refresh: TokenRefresh;
  /** Milliseconds that the token must have left to be handed out; at most half of its lifetime counts. */
  reserveMs: number;
  /** Limits how many requests run at a time. Absent for the api token, which never waits for those of customers. */
  lane?: Limit;
}

/** One request, from its beginning to the token or error. */
interface Request {
  readonly callers: WaitingCallers<CachedToken>;
  /** Rises as callers join, and never falls. A probe needs one attempt only. */
  for: 'renewal' | 'probe' | 'callers';
  /** `#outdated` at its beginning: if that has changed, its token goes to those who wait and is not kept. */
  readonly outdated: number;
  /** The attempt that is under way, or comes next. */
  attempt: number;
  /** Milliseconds for this attempt and all that follow. */
  leftMs: number;
  /** Why the attempt before had no secret: the error at the deadline, as the endpoint was not asked. */
  noSecret?: Error;
}

/**
 * The token of one scope: the token itself, its one request, the callers that wait for it, and the time of the next
 * request. Its states:
 *
 * - idle: no request. `get` and `renew` begin one if they have to wait, `use` and the schedule if one is due.
 * - held back, by the endpoint's Retry-After or the pause between attempts: goes on while a caller waits, else ends.
 * - queued, in the lane of customers: ends without asking if all callers have left when its turn comes.
 * - asking: then all callers get the token, or each a copy of the error, and it is idle.
 *
 * A request ends in the tick in which that is decided: a later caller begins another one.
 */
export class ScopeToken {
  readonly scope: string;
  readonly #tools: ScopeTools;
  readonly #settings: ScopeSettings;
  readonly #known: KnownToken;
  readonly #forced = new ForcedRefreshLimit();
  #request?: Request;
  #looking?: Promise<CachedToken | undefined>;
  /** How often another client certificate came into use: what was asked for before is bound to an old one. */
  #outdated = 0;
  /** With `scheduled`. */
  #cancelPlan?: () => void;

  constructor(scope: string, settings: ScopeSettings, tools: ScopeTools) {
    this.scope = scope;
    this.#settings = settings;
    this.#tools = tools;
    this.#known = new KnownToken(tools.io.clock);
  }

  /**
   * The token if it can be handed out now. Begins its renewal if that is due. Still answers after {@link close}, for calls
   * that are under way.
   */
  use(): AccessToken | undefined {
    const { need } = this.#known;
    if (need === 'token') return undefined;
    if (need !== 'nothing' && this.#settings.refresh !== 'on-expiry') this.#renewInBackground();
    return this.#known.cached?.token;
  }

  /** The times of the valid token. Begins no request. */
  get status(): TokenStatus | undefined {
    const { living } = this.#known;
    return living && { issuedAt: new Date(living.issued.wall), expiresAt: new Date(living.token.expiresAt) };
  }

  /**
   * The token; waits for one if necessary.
   * @throws ServiceTokenError, ServiceConnectionError; `signal.reason` if this caller aborts
   */
  async get(wait: WaitOptions): Promise<AccessToken> {
    this.#admit(wait);
    return this.use() ?? (await this.#join(wait)).token;
  }

  /**
   * For an API that answered 401 to `refused`: drops it if it is still the current token, and gets another.
   * @returns undefined if the limit on forced refreshes is reached and no other process has a newer token (the current one
   * stays then), or if the endpoint returns the same token again
   */
  async renew(refused: string, wait: WaitOptions): Promise<CachedToken | undefined> {
    this.#admit(wait);
    const { living } = this.#known;
    if (living && !this.#known.holds(refused)) return living;
    if (!this.#request) {
      if (!this.#forced.take(this.#tools.io.clock.monotonic())) return this.#look(wait);
      this.drop(refused);
    }
    const renewed = await this.#join(wait);
    return renewed.token.accessToken === refused ? undefined : renewed;
  }

  holds(accessToken: string): boolean {
    return this.#known.holds(accessToken);
  }

  /** Drops a token that does not work. */
  drop(accessToken: string): void {
    this.#known.drop(accessToken);
    this.#tools.source.dropped?.(this.scope, accessToken);
  }

  /** Drops the token, and any that is under way: it is bound to a client certificate that is no longer in use. */
  outdate(): void {
    this.#outdated += 1;
    this.#known.drop();
  }

  /** Gets the token now and renews it from then on, by `scheduled`. */
  schedule(): void {
    // The end of a request plans the next one. If none could begin, plan it here.
    if (!this.#renewInBackground()) this.#plan();
  }

  /** Ends the request and rejects its callers; no timer is left. The tools are closed already. */
  close(): void {
    this.#cancelPlan?.();
    const request = this.#request;
    this.#request = undefined;
    request?.callers.reject(ServiceConnectionError.closed());
  }

  #admit({ signal }: WaitOptions): void {
    signal?.throwIfAborted();
    if (this.#tools.closed.aborted) throw ServiceConnectionError.closed();
  }

  /** @returns whether a request is under way now */
  #renewInBackground(): boolean {
    return !!this.#request || (this.#known.postponedMs <= 0 && !!this.#begin('renewal'));
  }

  #join({ timeoutMs = this.#tools.timeoutMs, once, signal }: WaitOptions): Promise<CachedToken> {
    const { gate } = this.#tools;
    const gateMs = gate.remainingMs;
    if (gateMs > 0 && gateMs > timeoutMs) throw gate.error(this.scope);
    const request = this.#request ?? this.#begin('callers');
    if (!request) throw tooMany(this.scope);
    if (!once) request.for = 'callers';
    else if (request.for === 'renewal') request.for = 'probe';
    return request.callers.join(timeoutMs, signal);
  }

  #begin(forWhom: 'renewal' | 'callers'): Request | undefined {
    if (!this.#tools.mayBegin(this, forWhom)) return undefined;
    const { clock, describeOption } = this.#tools.io;
    const callers = new WaitingCallers<CachedToken>(clock, describeOption);
    const outdated = this.#outdated;
    const request: Request = { callers, for: 'renewal', outdated, attempt: 1, leftMs: BUDGET_MS };
    this.#request = request;
    // Not in this tick: the caller joins first, and a look at the cache stays quick. Not queueMicrotask: a test's fake
    // timers may have replaced it.
    void Promise.resolve()
      .then(() => this.#run(request))
      .catch((error: Error) => this.#fail(request, error));
    return request;
  }

  async #run(request: Request): Promise<void> {
    const { lane } = this.#settings;
    while (this.#request === request) {
      if (this.#tools.gate.remainingMs > 0) {
        await this.#holdBack(request);
        continue;
      }
      const failed = await (lane ? lane.run(() => this.#ask(request)) : this.#ask(request));
      if (failed && this.#request === request) await this.#pause(request, failed);
    }
  }

  /** Waits until the endpoint takes requests again. Callers with less time are rejected at once. */
  async #holdBack(request: Request): Promise<void> {
    const { gate, io, closed } = this.#tools;
    const { callers } = request;
    const ms = gate.remainingMs;
    callers.reject(gate.error(this.scope), ms);
    if (callers.size > 0) await sleep(io.clock, ms, closed);
    if (callers.size === 0) this.#fail(request, gate.error(this.scope));
  }

  /** Waits from a failed attempt to the next. */
  async #pause(request: Request, error: Error): Promise<void> {
    const { gate, io, closed } = this.#tools;
    const { callers, attempt } = request;
    const pauseMs = retryDelay(attempt - 1, io.random());
    request.leftMs -= pauseMs;
    const isLast = attempt >= (request.for === 'callers' ? ATTEMPTS : 1) || callers.size === 0;
    if (isLast || request.leftMs <= 0 || !isTransient(error)) return this.#fail(request, error);
    request.attempt += 1;
    request.noSecret = error instanceof ServiceError && error.code === NO_SECRET ? error : undefined;
    if (gate.remainingMs > 0) return;
    await sleep(io.clock, pauseMs, closed);
  }

  /** One attempt. @returns why it failed; undefined if the request has ended or is held back */
  async #ask(request: Request): Promise<Error | undefined> {
    const { source, io, gate, closed } = this.#tools;
    const { clock } = io;
    if (this.#request !== request) return undefined;
    // All callers may have left, and the endpoint may have asked for no requests, while it stood in the lane.
    if (request.for !== 'renewal' && request.callers.size === 0) return void this.#end();
    if (gate.remainingMs > 0) return undefined;
    const requestedAt = clock.monotonic();
    const { for: forWhom, leftMs: timeoutMs, noSecret } = request;
    let grant: TokenGrant;
    try {
      const expired = (): Error => noSecret ?? unanswered(timeoutMs);
      grant = await within({ clock, timeoutMs, signals: [closed], expired }, (signal) =>
        source.request(this.scope, {
          ...this.#context(request),
          isProbe: forWhom === 'probe',
          signal,
          timeoutMs,
        }),
      );
    } catch (error) {
      // The cache was closed: not a failure.
      if (closed.aborted) return undefined;
      gate.failed(error);
      this.#report(request, error);
      // A caller that joined a renewal in the background has not had its time yet.
      if (forWhom !== 'renewal') request.leftMs -= clock.monotonic() - requestedAt;
      return error as Error;
    }
    if (closed.aborted) return undefined;
    gate.succeeded();
    return void this.#arrived(request, { requestedAt, ...grant });
  }

  #context(request?: Request): Pick<TokenRequestContext, 'accepts' | 'isAwaited'> {
    const { lane } = this.#settings;
    return {
      accepts: (grant) => this.#known.accepts(this.#cachedToken(grant)),
      isAwaited: () => {
        if (!request || request.callers.size > 0 || lane?.isWaitedFor) return true;
        const { need } = this.#known;
        return need === 'hurry' || need === 'token';
      },
    };
  }

  #cachedToken(grant: TokenGrant): CachedToken {
    const { clock, random } = this.#tools.io;
    return new CachedToken(grant, clock, random(), this.#settings.reserveMs);
  }

  /** A token that is outdated, or has expired on its way, goes to the callers and is not kept. */
  #arrived(request: Request, grant: TokenGrant): void {
    const cached = this.#cachedToken(grant);
    const isOutdated = request.outdated !== this.#outdated;
    if (isOutdated || cached.need(this.#tools.io.clock) === 'token') this.#end();
    else {
      this.#leave();
      this.#keep(cached);
    }
    request.callers.resolve(cached);
  }

  #keep(cached: CachedToken): void {
    this.#known.keep(cached);
    this.#tools.kept(this, cached.hasLife);
    // Without a lifetime, a token is not renewed by schedule: it would be requested every second, for nobody.
    if (cached.hasLife) this.#plan();
    else this.#cancelPlan?.();
  }

  #fail(request: Request, error: Error): void {
    if (this.#request !== request) return;
    this.#end();
    request.callers.reject(error);
  }

  /** Ends the request without a token to keep. */
  #end(): void {
    this.#leave();
    this.#known.postpone();
    this.#plan();
  }

  #leave(): void {
    this.#request = undefined;
    this.#tools.ended(this);
  }

  /** Plans the next renewal by schedule, in place of the one planned before. */
  #plan(): void {
    const { closed, io, gate } = this.#tools;
    if (this.#settings.refresh !== 'scheduled' || closed.aborted) return;
    this.#cancelPlan?.();
    const dueInMs = this.#known.living?.dueInMs(io.clock) ?? 0;
    const heldMs = Math.max(this.#known.postponedMs, gate.remainingMs, MIN_DELAY_MS);
    this.#cancelPlan = io.clock.watch(() => this.schedule(), Math.max(dueInMs, heldMs));
  }

  /** At the limit on forced refreshes, looks for another process's token: once for all callers. */
  async #look({ signal }: WaitOptions): Promise<CachedToken | undefined> {
    const { source, closed } = this.#tools;
    if (!source.look) return undefined;
    this.#looking ??= untilAborted(this.#lookInStore(), closed).finally(() => (this.#looking = undefined));
    try {
      return await (signal ? untilAborted(this.#looking, signal) : this.#looking);
    } finally {
      // At the end each caller gets an error of its own.
      this.#admit({});
    }
  }

  async #lookInStore(): Promise<CachedToken | undefined> {
    const { source, closed } = this.#tools;
    for (;;) {
      const outdated = this.#outdated;
      const grant = await source.look?.(this.scope, { ...this.#context(), signal: closed });
      if (closed.aborted) return undefined;
      if (outdated !== this.#outdated) continue;
      // In the meantime, a request may have brought another token.
      const cached = grant && this.#cachedToken(grant);
      if (!cached || !this.#known.accepts(cached)) return undefined;
      this.#keep(cached);
      return cached;
    }
  }

  /** Logs a failure that no caller gets. */
  #report({ callers }: Request, error: unknown): void {
    if (callers.size > 0 || !(error instanceof ServiceError)) return;
    this.#tools.io.log.warn(`A token request that no caller waits for failed: ${describeError(error)}`);
  }
}
