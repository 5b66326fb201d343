import { type Clock } from '../../config/clock.js';
import { API_SCOPE } from '../scope.js';
import { type CachedToken } from './cached-token.js';
import { ForcedRefreshLimit, renewalDelay } from './request-limits.js';

/** So many tokens of a store in a row may be dropped: the next one comes from the endpoint. */
const MAX_DROPPED_FROM_STORE = 2;

/** What is known of one scope. */
export class TokenSlot {
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
  readonly forced = new ForcedRefreshLimit();

  /** Expired or not; absent before the first and after one was dropped. */
  get cached(): CachedToken | undefined {
    return this.#cached;
  }

  valid(clock: Clock): CachedToken | undefined {
    return this.#cached?.isExpired(clock) === false ? this.#cached : undefined;
  }

  /**
   * Whether a token of a store may come here. It has to be newer than the one in the slot and than all that were dropped:
   * whoever can write to the store may put old entries back.
   */
  canTake({ token: { accessToken }, issuedAt }: CachedToken): boolean {
    const known = [this.#dropped, this.#cached?.token.accessToken];
    const newest = Math.max(this.#droppedIssuedAt, this.#cached?.issuedAt.getTime() ?? -Infinity);
    return (
      !known.includes(accessToken) &&
      issuedAt.getTime() > newest &&
      this.#droppedFromStore < MAX_DROPPED_FROM_STORE
    );
  }

  keep(cached: CachedToken, clock: Clock): void {
    const isSame = this.#cached?.token.accessToken === cached.token.accessToken;
    this.#cached = cached;
    if (!cached.isFromStore) this.#droppedFromStore = 0;
    // An endpoint that hands out the same token until it ends would be asked ever more often.
    if (isSame) return this.postpone(clock);
    this.#failures = 0;
    this.#renewNotBefore = -Infinity;
  }

  /** @param refused the token that does not work; without it, the one here, because it is no longer wanted */
  drop(refused?: string): void {
    const cached = this.#cached;
    this.#dropped = refused ?? cached?.token.accessToken ?? this.#dropped;
    this.#cached = undefined;
    if (!cached || cached.token.accessToken !== refused) return;
    this.#droppedIssuedAt = Math.max(this.#droppedIssuedAt, cached.issuedAt.getTime());
    if (cached.isFromStore) this.#droppedFromStore += 1;
  }

  /** A request brought no token to keep: the next renewal has to wait. */
  postpone(clock: Clock): void {
    this.#failures += 1;
    this.#renewNotBefore = clock.monotonic() + renewalDelay(this.#failures);
  }

  /** Milliseconds until a renewal may begin in the background; 0 or less: now. */
  postponedMs(clock: Clock): number {
    return this.#renewNotBefore - clock.monotonic();
  }
}

/** One slot for each scope: the most recently used customers, and the api, which no customer pushes out. */
export class TokenSlots {
  readonly #api = new TokenSlot();
  /** A Map keeps the order of insertion: the first is the least recently used. */
  readonly #customers = new Map<string, TokenSlot>();
  readonly #maxCustomers: number;

  constructor(maxCustomers: number) {
    this.#maxCustomers = maxCustomers;
  }

  find(scope: string): TokenSlot | undefined {
    if (scope === API_SCOPE) return this.#api;
    const slot = this.#customers.get(scope);
    if (slot) this.#markUsed(scope, slot);
    return slot;
  }

  make(scope: string): TokenSlot {
    const found = this.find(scope);
    if (found) return found;
    const slot = new TokenSlot();
    this.#markUsed(scope, slot);
    const [oldest] = this.#customers.keys();
    if (this.#customers.size > this.#maxCustomers && oldest !== undefined) this.#customers.delete(oldest);
    return slot;
  }

  *all(): Generator<[scope: string, slot: TokenSlot]> {
    yield [API_SCOPE, this.#api];
    yield* this.#customers;
  }

  #markUsed(scope: string, slot: TokenSlot): void {
    this.#customers.delete(scope);
    this.#customers.set(scope, slot);
  }
}
