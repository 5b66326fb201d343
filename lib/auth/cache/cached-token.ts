import { type Clock } from '../../time/clock.js';
import { type AccessToken, expiryMargin, LIFELESS_MS, type TokenGrant } from '../access-token.js';

const REFRESH_AT = 0.75;
const MAX_JITTER_MS = 10_000;
const JITTER = 0.02;
/** For a token of another process, which renews it first: this process then finds the next in the store. */
const JITTER_FROM_STORE = 0.1;

/**
 * A token with its times. For example, one of 3,600 s is handed out for 3,570 s, and renewed from 2,677.5 s on (75 %, less
 * a jitter). A token of 1 s is handed out for 0.5 s.
 */
export class CachedToken {
  readonly token: AccessToken;
  /** When it was issued, in milliseconds of both clocks, as the wall clock may jump. */
  readonly issued: { wall: number; monotonic: number };
  /** The age, in milliseconds, from which on it is not handed out any more. */
  readonly usableMs: number;
  /** The age from which on it is renewed. */
  readonly refreshAfterMs: number;

  /**
   * @param random in [0, 1)
   * @param reserveMs time that it must have left when it is handed out; at most half of the lifetime counts
   */
  constructor(grant: TokenGrant, clock: Clock, random: number, reserveMs: number) {
    const { accessToken, scope, ageMs, expiresIn, requestedAt = clock.monotonic() } = grant;
    const hasLife = expiresIn > 0;
    const lifetimeMs = hasLife ? expiresIn * 1000 : LIFELESS_MS;
    const monotonic = hasLife ? requestedAt - (ageMs ?? 0) : clock.monotonic();
    // By the monotonic clock, because the wall clock may have jumped while the request was under way.
    this.issued = { monotonic, wall: clock.now() - (clock.monotonic() - monotonic) };
    const marginMs = Math.max(expiryMargin(lifetimeMs), Math.min(reserveMs, lifetimeMs / 2));
    this.usableMs = hasLife ? lifetimeMs - marginMs : lifetimeMs;
    // So that processes that started together do not renew together.
    const jitterMs =
      ageMs !== undefined
        ? this.usableMs * JITTER_FROM_STORE
        : -Math.min(MAX_JITTER_MS, this.usableMs * JITTER);
    this.refreshAfterMs = hasLife ? this.usableMs * REFRESH_AT + random * jitterMs : Infinity;
    const expiresAt = new Date(this.issued.wall + lifetimeMs);
    this.token = Object.freeze({ accessToken, tokenType: 'bearer', scope, expiresAt });
  }

  /** By the clock that says more: neither a wall clock set back nor a machine that slept may lengthen a life. */
  ageMs(clock: Clock): number {
    return Math.max(clock.now() - this.issued.wall, clock.monotonic() - this.issued.monotonic);
  }
}
