import { type Clock } from '../../time/clock.js';
import { type CachedToken, type Need } from './cached-token.js';
import { renewalDelay } from './request-limits.js';

/** So many tokens of a store in a row may be dropped: the next one comes from the endpoint. */
const MAX_DROPPED_FROM_STORE = 2;

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
