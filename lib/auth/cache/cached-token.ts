import { type Clock } from '../../config/clock.js';
import { type AccessToken, MAX_LIFETIME_S, type TokenGrant } from '../access-token.js';

// Milliseconds throughout.
const MIN_MARGIN = 1_000;
const MAX_MARGIN = 30_000;
const REFRESH_AT = 0.75;
const MAX_JITTER = 10_000;
const JITTER = 0.02;

export interface Arrival {
  clock: Clock;
  /** Monotonic milliseconds at which the request left: the token cannot be older. */
  requestedAt: number;
  /** In [0, 1). */
  random: number;
  /** Milliseconds of life that the token must have whenever it is handed out. */
  reserveMs: number;
}

/** A token with its times. It has expired, or is due for renewal, as soon as either clock says so. */
export class CachedToken {
  readonly token: AccessToken;
  /** Whether another process got it, and shared it through a store: it may be older than what made the API refuse ours. */
  readonly isFromStore: boolean;
  /** By both clocks, as the wall clock may jump. */
  readonly #issued: { wall: number; monotonic: number };
  readonly #usableMs: number;
  readonly #refreshAfterMs: number;

  constructor(grant: TokenGrant, { clock, requestedAt, random, reserveMs }: Arrival) {
    this.isFromStore = grant.ageMs !== undefined;
    const issuedAt = requestedAt - (grant.ageMs ?? 0);
    // By the monotonic clock, because the wall clock may have jumped while the request was under way.
    this.#issued = { monotonic: issuedAt, wall: clock.now() - (clock.monotonic() - issuedAt) };
    const lifetimeMs = Math.min(grant.expiresIn ?? 0, MAX_LIFETIME_S) * 1000;
    this.#usableMs = usableLife(lifetimeMs, reserveMs);
    this.#refreshAfterMs = refreshPoint(this.#usableMs, random);
    this.token = Object.freeze({
      accessToken: grant.accessToken,
      tokenType: grant.tokenType,
      scope: grant.scope,
      expiresAt: new Date(this.#issued.wall + lifetimeMs),
    });
  }

  /** By the wall clock. */
  get issuedAt(): Date {
    return new Date(this.#issued.wall);
  }

  isExpired(clock: Clock): boolean {
    return this.#age(clock) >= this.#usableMs;
  }

  isDue(clock: Clock): boolean {
    return this.#age(clock) >= this.#refreshAfterMs;
  }

  /** Milliseconds to the refresh point; negative when it has passed. */
  dueInMs(clock: Clock): number {
    return this.#refreshAfterMs - this.#age(clock);
  }

  /** By the clock that says more: neither a wall clock set back nor a machine that slept may lengthen a life. */
  #age(clock: Clock): number {
    return Math.max(clock.now() - this.#issued.wall, clock.monotonic() - this.#issued.monotonic);
  }
}

/**
 * How long before its end a token counts as expired: a tenth of the lifetime, at least 1 s (an `exp` of whole seconds
 * ends up to a second early), at most 30 s, and never over half the lifetime.
 */
export function expiryMargin(lifetime: number): number {
  return Math.min(Math.max(lifetime / 10, MIN_MARGIN), MAX_MARGIN, lifetime / 2);
}

/**
 * How long a token may be handed out.
 * @param reserve life that it must still have when it is handed out; at most half of the lifetime counts
 */
function usableLife(lifetime: number, reserve: number): number {
  return lifetime - Math.max(expiryMargin(lifetime), Math.min(reserve, lifetime / 2));
}

/**
 * When to renew: at 75 % of the usable life less a jitter (at most 10 s and 2 %), so that processes that started
 * together do not renew together.
 * @param random in [0, 1)
 */
function refreshPoint(usable: number, random: number): number {
  return usable * REFRESH_AT - random * Math.min(MAX_JITTER, usable * JITTER);
}
