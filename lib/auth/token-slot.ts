import { type Clock } from '../config/clock.js';
import { renewalDelay } from './back-off.js';
import { type CachedToken } from './cached-token.js';
import { ForcedRefreshLimit } from './forced-refresh-limit.js';

/** What is known of one scope. */
export class TokenSlot {
  #cached?: CachedToken;
  #dropped?: string;
  /** Requests that brought nothing of use, in a row. */
  #failures = 0;
  /** Monotonic milliseconds before which no renewal begins in the background. */
  #renewNotBefore = -Infinity;
  #forced?: ForcedRefreshLimit;

  /** Dead or alive; absent before the first and after one was dropped. */
  get cached(): CachedToken | undefined {
    return this.#cached;
  }

  get forced(): ForcedRefreshLimit {
    return (this.#forced ??= new ForcedRefreshLimit());
  }

  live(clock: Clock): CachedToken | undefined {
    return this.#cached?.isDead(clock) === false ? this.#cached : undefined;
  }

  /** Whether this is the token in the slot, or the one that was dropped last: neither may come back from a store. */
  hasHad(accessToken: string): boolean {
    return accessToken === this.#dropped || accessToken === this.#cached?.token.accessToken;
  }

  keep(cached: CachedToken, clock: Clock): void {
    const same = this.#cached?.token.accessToken === cached.token.accessToken;
    this.#cached = cached;
    // An endpoint that hands out the same token until it ends would be asked ever more often.
    if (same) return this.postpone(clock);
    this.#failures = 0;
    this.#renewNotBefore = -Infinity;
  }

  /** @param accessToken the one that does not work */
  drop(accessToken = this.#cached?.token.accessToken): void {
    this.#dropped = accessToken ?? this.#dropped;
    this.#cached = undefined;
  }

  /** A request brought nothing that can be kept: the next renewal has to wait. */
  postpone(clock: Clock): void {
    this.#failures += 1;
    this.#renewNotBefore = clock.monotonic() + renewalDelay(this.#failures);
  }

  /** Milliseconds until a renewal may begin in the background; 0 or less: now. */
  postponedMs(clock: Clock): number {
    return this.#renewNotBefore - clock.monotonic();
  }
}
