import { type CachedToken } from './cached-token.js';
import { ForcedRefreshLimit } from './forced-refresh-limit.js';
import { LeastRecentlyUsed } from './least-recently-used.js';
import { API_SCOPE } from './scope.js';

/** What is known of one scope. */
export class TokenSlot {
  /** Dead or alive; absent before the first and after one was dropped. */
  cached?: CachedToken;
  /** The access token that was dropped last: it must not come back from a shared store. */
  dropped?: string;
  /** Requests that brought nothing of use, in a row. */
  failures = 0;
  /** Monotonic milliseconds before which no renewal begins in the background. */
  renewNotBefore = -Infinity;
  #forced?: ForcedRefreshLimit;

  get forced(): ForcedRefreshLimit {
    return (this.#forced ??= new ForcedRefreshLimit());
  }
}

/** The api token has a place of its own, so that no number of customers can push it out. */
export class TokenSlots {
  readonly #api = new TokenSlot();
  readonly #customers: LeastRecentlyUsed<TokenSlot>;

  constructor(maxEntries: number) {
    this.#customers = new LeastRecentlyUsed(maxEntries);
  }

  /** Customers' slots; the api's does not count. */
  get size(): number {
    return this.#customers.size;
  }

  find(scope: string): TokenSlot | undefined {
    return scope === API_SCOPE ? this.#api : this.#customers.get(scope);
  }

  make(scope: string): TokenSlot {
    const found = this.find(scope);
    if (found) return found;
    const slot = new TokenSlot();
    this.#customers.set(scope, slot);
    return slot;
  }

  *all(): Generator<[scope: string, slot: TokenSlot]> {
    yield [API_SCOPE, this.#api];
    yield* this.#customers.entries();
  }
}
