import { type Clock } from '../../time/clock.js';
import { type AccessToken, expiryMargin, LIFELESS_MS, type TokenGrant } from '../access-token.js';

const REFRESH_AT = 0.75;
const MAX_JITTER_MS = 10_000;
const JITTER = 0.02;
/** For a token of another process, which renews it first: this process then finds the next in the store. */
const JITTER_FROM_STORE = 0.1;

/** What a scope needs: a `renewal` has time, for `hurry` a caller will soon wait, and for a `token` callers wait now. */
export type Need = 'nothing' | 'renewal' | 'hurry' | 'token';

/** With less time left, a token is renewed as if a caller waited: one soon will. */
const SOON_MS = 2_000;

/** A token with its times. It has expired, or is due for renewal, as soon as either clock says so. */
export class CachedToken {
  readonly token: AccessToken;
  /** Whether another process got it, and shared it through a store: it may be older than what made the API refuse ours. */
  readonly isFromStore: boolean;
  /** Whether it has a lifetime. */
  readonly hasLife: boolean;
  /** When it was issued, in milliseconds of both clocks, as the wall clock may jump. */
  readonly issued: { wall: number; monotonic: number };
  /** When its life begins: for a token without a lifetime, on its arrival. */
  readonly #since: { wall: number; monotonic: number };
  readonly #usableMs: number;
  readonly #refreshAfterMs: number;

  /**
   * @param random in [0, 1)
   * @param reserveMs time that it must have left when it is handed out; at most half of the lifetime counts
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
   * For example, a token of 3,600 s is handed out for 3,570 s, renewed from 2,677.5 s on (75 %, less a jitter), and in a
   * hurry from 3,568 s on. A token of 1 s is handed out for 0.5 s.
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
