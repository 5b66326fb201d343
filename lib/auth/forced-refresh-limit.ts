const BURST = 3;
const REFILL_MS = 30_000;

/**
 * How often a 401 may have a token replaced before its time: a burst of 3, then one in 30 s. An API that refuses every
 * token would otherwise have us ask for one with each call.
 */
export class ForcedRefreshLimit {
  #left = BURST;
  #countedAt = 0;

  /** @param now monotonic milliseconds */
  take(now: number): boolean {
    if (this.#left === BURST) this.#countedAt = now;
    const refilled = Math.floor((now - this.#countedAt) / REFILL_MS);
    if (refilled > 0) {
      this.#left = Math.min(BURST, this.#left + refilled);
      this.#countedAt += refilled * REFILL_MS;
    }
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }
}
