const CAPACITY = 500;
const RETRY_COST = 5;
const TIMEOUT_COST = 10;

/**
 * Limits the retries of a whole client, so that a service in trouble does not get several times its normal load. The budget
 * is a token bucket: each retry takes units, and each successful call gives back what its last retry took (one unit if it had no
 * retry).
 */
export class RetryBudget {
  #left = CAPACITY;

  /** Takes the cost of a retry and returns it. Returns undefined, and takes nothing, if too little is left. */
  take(afterTimeout: boolean): number | undefined {
    const cost = afterTimeout ? TIMEOUT_COST : RETRY_COST;
    if (cost > this.#left) return undefined;
    this.#left -= cost;
    return cost;
  }

  giveBack(taken = 1): void {
    this.#left = Math.min(CAPACITY, this.#left + taken);
  }
}
