import { type Clock } from '../config/clock.js';
import { type AccessToken, LONGEST_LIFETIME_S, type TokenGrant } from './access-token.js';
import { refreshPoint, usableLife } from './token-lifetime.js';

export interface Arrival {
  clock: Clock;
  /** Monotonic milliseconds at which the request left: the token cannot be older. */
  requestedAt: number;
  /** In [0, 1). */
  random: number;
  /** Milliseconds of life that the token must have whenever it is handed out. */
  reserveMs: number;
}

/** A token placed in time: dead, or due for renewal, as soon as either clock says so. */
export class CachedToken {
  readonly token: AccessToken;
  /** Monotonic start; the wall clock's differs by what it has jumped since. */
  readonly #issued: { wall: number; monotonic: number };
  readonly #usableMs: number;
  readonly #refreshAfterMs: number;

  constructor(grant: TokenGrant, { clock, requestedAt, random, reserveMs }: Arrival) {
    const issuedAt = requestedAt - (grant.ageMs ?? 0);
    // By the monotonic clock, because the wall clock may have jumped while the request was under way.
    this.#issued = { monotonic: issuedAt, wall: clock.now() - (clock.monotonic() - issuedAt) };
    const lifetimeMs = Math.min(grant.expiresIn ?? 0, LONGEST_LIFETIME_S) * 1000;
    this.#usableMs = usableLife(lifetimeMs, reserveMs);
    this.#refreshAfterMs = refreshPoint(this.#usableMs, random);
    this.token = Object.freeze({
      accessToken: grant.accessToken,
      tokenType: grant.tokenType,
      scope: grant.scope,
      expiresAt: new Date(this.#issued.wall + lifetimeMs),
    });
  }

  isDead(clock: Clock): boolean {
    return this.#age(clock) >= this.#usableMs;
  }

  isDue(clock: Clock): boolean {
    return this.#age(clock) >= this.#refreshAfterMs;
  }

  /** Milliseconds to the refresh point; negative when it has passed. */
  dueInMs(clock: Clock): number {
    return this.#refreshAfterMs - this.#age(clock);
  }

  /** The older of its two ages: a wall clock set back must not lengthen a life, nor a sleeping machine. */
  #age(clock: Clock): number {
    return Math.max(clock.now() - this.#issued.wall, clock.monotonic() - this.#issued.monotonic);
  }
}
