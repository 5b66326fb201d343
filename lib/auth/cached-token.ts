import { type Clock, elapsedMs, type Moment, momentOf } from '../time/time.js';
import {
  type AccessToken,
  expiryMargin,
  LIFELESS_MS,
  type TokenGrant,
  type TokenStatus,
} from './access-token.js';

const REFRESH_AT = 0.75;
const MAX_JITTER_MS = 10_000;
const JITTER = 0.02;
/** For a token from a shared store. Its own process renews it first, and this process then finds the new token in the store. */
const JITTER_FROM_STORE = 0.1;

/**
 * A token with its times. For example, a token of 3,600 s is handed out for 3,570 s, and renewed after 2,677.5 s (75 % of
 * that, minus a jitter). A token of 1 s is handed out for 0.5 s.
 */
export class CachedToken implements AccessToken {
  readonly accessToken: string;
  readonly tokenType = 'bearer';
  readonly scope: string;
  readonly expiresAt: Date;
  readonly issued: Moment;
  /** The age in milliseconds at which the token is no longer handed out. */
  readonly usableMs: number;
  /** The age in milliseconds at which the renewal is due. */
  readonly refreshAfterMs: number;
  readonly #lifetimeMs: number;
  readonly #clock: Clock;

  /**
   * @param random in [0, 1)
   * @param reserveMs milliseconds that the token must have left when it is handed out. At most half of the lifetime counts
   */
  constructor(grant: TokenGrant, clock: Clock, random: number, reserveMs: number) {
    const { accessToken, scope, ageMs, expiresIn, requestedAt = momentOf(clock) } = grant;
    const hasLife = expiresIn > 0;
    const lifetimeMs = hasLife ? expiresIn * 1000 : LIFELESS_MS;
    this.issued = momentOf(clock, hasLife ? (ageMs ?? 0) + elapsedMs(clock, requestedAt) : 0);
    const marginMs = Math.max(expiryMargin(lifetimeMs), Math.min(reserveMs, lifetimeMs / 2));
    this.usableMs = hasLife ? lifetimeMs - marginMs : lifetimeMs;
    // With a jitter, so that processes that started together do not renew together.
    const jitterMs =
      ageMs !== undefined
        ? this.usableMs * JITTER_FROM_STORE
        : -Math.min(MAX_JITTER_MS, this.usableMs * JITTER);
    this.refreshAfterMs = hasLife ? this.usableMs * REFRESH_AT + random * jitterMs : Infinity;
    this.accessToken = accessToken;
    this.scope = scope;
    this.expiresAt = new Date(this.issued.wall + lifetimeMs);
    this.#lifetimeMs = lifetimeMs;
    this.#clock = clock;
  }

  get status(): TokenStatus {
    return { issuedAt: new Date(this.issued.wall), expiresAt: new Date(this.expiresAt) };
  }

  get ageMs(): number {
    return elapsedMs(this.#clock, this.issued);
  }

  /** Whether the token has not expired. It may expire soon. */
  get isAlive(): boolean {
    return this.ageMs < this.#lifetimeMs;
  }

  /** Whether the token can be handed out, now or after so many milliseconds. */
  isUsable(inMs = 0): boolean {
    return this.ageMs + inMs < this.usableMs;
  }

  /**
   * Whether this token of a shared store may replace the current one. It must be newer, because anyone who can write to the
   * store could put old entries back. While the current token is usable, another one that is itself due for renewal may not
   * replace it. Without a usable token it may: callers then need not wait.
   */
  canReplace(current: CachedToken | undefined): boolean {
    const isNewer = this.issued.wall > (current?.issued.wall ?? -Infinity);
    const maxAgeMs = current?.isUsable() ? this.refreshAfterMs : this.usableMs;
    return isNewer && this.accessToken !== current?.accessToken && this.ageMs < maxAgeMs;
  }
}
