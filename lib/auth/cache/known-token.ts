import { type Clock } from '../../time/clock.js';
import { type AccessToken, expiryMargin, LIFELESS_MS, type TokenGrant } from '../access-token.js';
import { renewalDelay } from './request-limits.js';

const REFRESH_AT = 0.75;
const MAX_JITTER_MS = 10_000;
const JITTER = 0.02;
/** Of a token that another process got: that one renews it, and this one finds the next in the store. */
const JITTER_FROM_STORE = 0.1;

/** So many tokens of a store in a row may be dropped: the next one comes from the endpoint. */
const MAX_DROPPED_FROM_STORE = 2;

/**
 * What a scope needs: `renewal` has time, in a `hurry` a caller soon waits, and for a `token` callers wait.
 */
export type Need = 'nothing' | 'renewal' | 'hurry' | 'token';

/** With less of its life left, a token is renewed as if a caller waited: one soon will. */
const SOON_MS = 2_000;

/** A token with its times. It has expired, or is due for renewal, as soon as either clock says so. */
export class CachedToken {
  readonly token: AccessToken;
  /** Whether another process got it, and shared it through a store: it may be older than what made the API refuse ours. */
  readonly isFromStore: boolean;
  /** Whether it names an end. */
  readonly hasLife: boolean;
  /** When it was issued, in milliseconds of both clocks, as the wall clock may jump. */
  readonly issued: { wall: number; monotonic: number };
  /** From when on its life counts: a token without one is shared from its arrival on. */
  readonly #since: { wall: number; monotonic: number };
  readonly #usableMs: number;
  readonly #refreshAfterMs: number;

  /**
   * @param random in [0, 1)
   * @param reserveMs life that it must have left whenever it is handed out; at most half of the lifetime counts
   */
  constructor(grant: TokenGrant, clock: Clock, random: number, reserveMs: number) {
    const { accessToken, scope, ageMs, expiresIn, requestedAt = clock.monotonic() } = grant;
    this.isFromStore = ageMs !== undefined;
    this.hasLife = expiresIn > 0;
    const monotonic = requestedAt - (ageMs ?? 0);
    // By the monotonic clock, because the wall clock may have jumped while the request was under way.
    this.issued = { monotonic, wall: clock.now() - (clock.monotonic() - monotonic) };
    this.#since = this.hasLife ? this.issued : { monotonic: clock.monotonic(), wall: clock.now() };
    const lifetimeMs = this.hasLife ? expiresIn * 1000 : LIFELESS_MS;
    const marginMs = Math.max(expiryMargin(lifetimeMs), Math.min(reserveMs, lifetimeMs / 2));
    const usableMs = this.hasLife ? lifetimeMs - marginMs : LIFELESS_MS;
    this.#usableMs = usableMs;
    // So that processes that started together do not renew together.
    const jitterMs = this.isFromStore
      ? usableMs * JITTER_FROM_STORE
      : -Math.min(MAX_JITTER_MS, usableMs * JITTER);
    this.#refreshAfterMs = this.hasLife ? usableMs * REFRESH_AT + random * jitterMs : Infinity;
    const expiresAt = new Date(this.#since.wall + lifetimeMs);
    this.token = Object.freeze({ accessToken, tokenType: 'bearer', scope, expiresAt });
  }

  /**
   * For example 3,600 s by the endpoint: it is handed out for 3,570 s, renewed from 2,677.5 s on (75 %, less a jitter),
   * in a hurry from 3,568 s on, and of no use from 3,570 s on. Of 1 s: handed out for 0.5 s.
   */
  need(clock: Clock): Need {
    const ageMs = this.#age(clock);
    if (ageMs >= this.#usableMs) return 'token';
    if (ageMs < this.#refreshAfterMs) return 'nothing';
    return ageMs + SOON_MS >= this.#usableMs ? 'hurry' : 'renewal';
  }

  /** Whether it can be used for longer than the other. */
  outlives(other: CachedToken, clock: Clock): boolean {
    return this.#usableMs - this.#age(clock) > other.#usableMs - other.#age(clock);
  }

  /** Milliseconds to the refresh point; negative when it has passed. */
  dueInMs(clock: Clock): number {
    return this.#refreshAfterMs - this.#age(clock);
  }

  /** By the clock that says more: neither a wall clock set back nor a machine that slept may lengthen a life. */
  #age(clock: Clock): number {
    return Math.max(clock.now() - this.#since.wall, clock.monotonic() - this.#since.monotonic);
  }
}

/** What is known of the token of one scope: the one here, those that did not work, and when the next may be asked for. */
export class KnownToken {
  readonly #clock: Clock;
  #cached?: CachedToken;
  #dropped?: string;
  /** When the newest token that was dropped was issued: wall-clock milliseconds. */
  #droppedIssuedAt = -Infinity;
  /** Tokens of a store that were dropped since the last one of the endpoint. */
  #droppedFromStore = 0;
  /** Requests in a row that brought no token to keep. */
  #failures = 0;
  /** Monotonic milliseconds before which no renewal begins in the background. */
  #renewNotBefore = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get need(): Need {
    return this.#cached?.need(this.#clock) ?? 'token';
  }

  /** The one here, which may have expired. */
  get cached(): CachedToken | undefined {
    return this.#cached;
  }

  /** The one here, while it lives. */
  get living(): CachedToken | undefined {
    return this.need === 'token' ? undefined : this.#cached;
  }

  /** Whether this token is the one here, expired or not. */
  holds(accessToken: string): boolean {
    return this.#cached?.token.accessToken === accessToken;
  }

  /**
   * Whether a token of a store may come here. It has to be newer than the one here and than all that were dropped: whoever
   * can write to the store may put old entries back. One that is due itself may, where there is none: callers then need
   * not wait for the next.
   */
  accepts(offered: CachedToken): boolean {
    const { token, issued, hasLife } = offered;
    const offers = offered.need(this.#clock);
    if (this.living ? offers !== 'nothing' || !hasLife : offers === 'token') return false;
    const newest = Math.max(this.#droppedIssuedAt, this.#cached?.issued.wall ?? -Infinity);
    const isKnown = token.accessToken === this.#dropped || this.holds(token.accessToken);
    return !isKnown && issued.wall > newest && this.#droppedFromStore < MAX_DROPPED_FROM_STORE;
  }

  keep(cached: CachedToken): void {
    // One without a life is no reason to drop one that lives.
    if (!cached.hasLife && this.living?.outlives(cached, this.#clock)) return this.postpone();
    const isSame = this.holds(cached.token.accessToken);
    this.#cached = cached;
    if (!cached.isFromStore) this.#droppedFromStore = 0;
    // An endpoint that hands out the same token until it ends would be asked ever more often.
    if (isSame) return this.postpone();
    this.#failures = 0;
    this.#renewNotBefore = -Infinity;
  }

  /** @param refused the token that does not work; without it, the one here, because it is no longer wanted */
  drop(refused?: string): void {
    const cached = this.#cached;
    this.#dropped = refused ?? cached?.token.accessToken ?? this.#dropped;
    this.#cached = undefined;
    if (!cached || cached.token.accessToken !== refused) return;
    this.#droppedIssuedAt = Math.max(this.#droppedIssuedAt, cached.issued.wall);
    if (cached.isFromStore) this.#droppedFromStore += 1;
  }

  /** A request brought no token to keep: the next renewal has to wait. */
  postpone(): void {
    this.#failures += 1;
    this.#renewNotBefore = this.#clock.monotonic() + renewalDelay(this.#failures);
  }

  /** Milliseconds until a renewal may begin in the background; 0 or less: now. */
  get postponedMs(): number {
    return this.#renewNotBefore - this.#clock.monotonic();
  }
}
