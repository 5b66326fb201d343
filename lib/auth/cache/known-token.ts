import { type Clock } from '../../time/clock.js';
import { type CachedToken, type Need } from './cached-token.js';
import { renewalDelay } from './request-limits.js';

/** After so many dropped tokens of a store in a row, the next one comes from the endpoint. */
const MAX_DROPPED_FROM_STORE = 2;

/** The token of one scope, the tokens that did not work, and when the next may be requested. */
export class KnownToken {
  readonly #clock: Clock;
  #cached?: CachedToken;
  #dropped?: string;
  /** When the newest token that was dropped was issued: wall-clock milliseconds. */
  #droppedIssuedAt = -Infinity;
  /** Tokens of a store that were dropped since the endpoint's last one. */
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

  /** The current token, which may have expired. */
  get cached(): CachedToken | undefined {
    return this.#cached;
  }

  /** The current token, unless it has expired. */
  get living(): CachedToken | undefined {
    return this.need === 'token' ? undefined : this.#cached;
  }

  /** Whether this is the current token, expired or not. */
  holds(accessToken: string): boolean {
    return this.#cached?.token.accessToken === accessToken;
  }

  /**
   * Whether a token of a store may take the current one's place. It must be newer than the current token and all that were
   * dropped: anyone who can write to the store could put old entries back. If there is no current token, it may be due for
   * renewal itself: callers then need not wait for the next.
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
    // A token without a lifetime is no reason to drop one that still has time.
    if (!cached.hasLife && this.living?.outlives(cached, this.#clock)) return this.postpone();
    const isSame = this.holds(cached.token.accessToken);
    this.#cached = cached;
    if (!cached.isFromStore) this.#droppedFromStore = 0;
    // An endpoint that hands out the same token until it ends would be asked ever more often.
    if (isSame) return this.postpone();
    this.#failures = 0;
    this.#renewNotBefore = -Infinity;
  }

  /** @param refused the token that does not work; by default the current one, because it is no longer wanted */
  drop(refused?: string): void {
    const cached = this.#cached;
    this.#dropped = refused ?? cached?.token.accessToken ?? this.#dropped;
    this.#cached = undefined;
    if (!cached || cached.token.accessToken !== refused) return;
    this.#droppedIssuedAt = Math.max(this.#droppedIssuedAt, cached.issued.wall);
    if (cached.isFromStore) this.#droppedFromStore += 1;
  }

  /** Delays the next renewal, because a request brought no token to keep. */
  postpone(): void {
    this.#failures += 1;
    this.#renewNotBefore = this.#clock.monotonic() + renewalDelay(this.#failures);
  }

  /** Milliseconds until a renewal may begin in the background; 0 or less: now. */
  get postponedMs(): number {
    return this.#renewNotBefore - this.#clock.monotonic();
  }
}
