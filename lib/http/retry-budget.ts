const CAPACITY = 500;
const RETRY_COST = 5;
const TIMEOUT_COST = 10;

/**
 * Bounds the retries of a whole module, so that a service in trouble is not given several times its load: a retry
 * takes tokens, a call that succeeds gives back what its last retry took, or one.
 */
export class RetryBudget {
  private tokens = CAPACITY;

  /** Takes what a retry costs and returns it; undefined where the budget does not allow one. */
  take(afterTimeout: boolean): number | undefined {
    const cost = afterTimeout ? TIMEOUT_COST : RETRY_COST;
    if (cost > this.tokens) return undefined;
    this.tokens -= cost;
    return cost;
  }

  giveBack(taken = 1): void {
    this.tokens = Math.min(CAPACITY, this.tokens + taken);
  }
}
