import { LeastRecentlyUsed } from './least-recently-used.js';
import { API_SCOPE } from './scope.js';
import { TokenSlot } from './token-slot.js';

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
