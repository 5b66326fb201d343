import { type ServiceError, type ServiceTokenError } from '../errors/index.js';
import { sleep } from '../time/time.js';
import { type TokenIo, API_SCOPE } from './access-token.js';
import { CircuitBreaker, longerOpen, MAX_ATTEMPTS, renewalDelay } from './request-limits.js';

/** The endpoint counts as failing when requests of 2 different scopes in a row have failed, or of 3 were refused. */
const FAILING_SCOPES = { failed: 2, refused: 3 };

/** A customer's request that waits for its turn. */
interface Waiting {
  scope: string;
  start: () => void;
  fail: (error: Error) => void;
}

/**
 * Decides when a token request may be sent.
 * - The api token never waits for customers' requests.
 * - Of the customers' requests, a limited number is in flight at a time. The others wait in order of arrival.
 * - While the endpoint fails, one request is in flight at a time. The api token goes first, and customers whose last request
 *   failed go last. So one customer whose token always fails does not delay the others.
 */
export class RequestQueue {
  readonly #max: number;
  readonly #io: Pick<TokenIo, 'clock' | 'random'>;
  /** Open after a 429, and after any failure with Retry-After. All scopes wait for it. */
  readonly #rateLimit: CircuitBreaker;
  /** Open after failures of several scopes. Customers wait for it. */
  readonly #shared: CircuitBreaker;
  readonly #failedScopes = new Set<string>();
  readonly #running = { api: 0, customers: 0 };
  #waiting: { fresh: Waiting[]; failed: Waiting[] } = { fresh: [], failed: [] };
  #cancelTimer?: () => void;
  /**
   * Number of failures that were counted. Requests in flight at the same time fail together and count once: a request notes
   * this number when it starts, and its failure counts only if the number is still the same.
   */
  failureCount = 0;

  /** @param max customers' requests in flight at a time */
  constructor(max: number, io: Pick<TokenIo, 'clock' | 'random'>) {
    this.#max = max;
    this.#io = io;
    this.#rateLimit = new CircuitBreaker(io.clock);
    this.#shared = new CircuitBreaker(io.clock);
  }

  /** Whether requests of other customers wait, perhaps for the end of a request of this scope. */
  hasWaiting(scope: string): boolean {
    return scope !== API_SCOPE && this.#waiting.fresh.length + this.#waiting.failed.length > 0;
  }

  /** The circuit breaker that this scope has to wait for. The api token waits for the rate limit and its own breaker only. */
  breakerFor(scope: string, own?: CircuitBreaker): CircuitBreaker {
    return longerOpen(scope === API_SCOPE ? this.#rateLimit : this.#customerBreaker, own);
  }

  /** Whether a request that starts now would have to wait. */
  hasToWait(scope: string, own?: CircuitBreaker): boolean {
    return this.breakerFor(scope, own).remainingMs > 0 || (scope !== API_SCOPE && this.#isFull);
  }

  /**
   * Waits for the scope's turn. Resolves with a function to call when the request has ended. Rejects with the error of another
   * request if the endpoint goes on failing.
   */
  async waitForTurn(
    scope: string,
    own: CircuitBreaker | undefined,
    closed: AbortSignal,
  ): Promise<() => void> {
    const kind = scope === API_SCOPE ? 'api' : 'customers';
    const { clock } = this.#io;
    if (kind === 'api') this.#running.api += 1;
    const remainingMs = () => (kind === 'api' ? this.breakerFor(scope, own) : own)?.remainingMs ?? 0;
    while (remainingMs() > 0) await sleep(clock, remainingMs(), closed);
    const breaker = this.#customerBreaker;
    if (kind === 'customers' && breaker.exceedsPatience) throw breaker.errorFor(scope);
    if (kind === 'customers')
      await new Promise<void>((start, fail) => {
        this.#waiting[own ? 'failed' : 'fresh'].push({ scope, start, fail });
        this.#startNext();
      });
    return () => {
      this.#running[kind] -= 1;
      this.#startNext();
    };
  }

  /**
   * Counts a failure.
   * @param countAtStart `failureCount` when the request started
   * @returns whether the callers get the error now, without another attempt
   */
  recordFailure(scope: string, own: CircuitBreaker, error: ServiceError, countAtStart: number): boolean {
    const { retryAfter = 0 } = error as ServiceTokenError;
    const random = this.#io.random();
    if (error.code === 'token_rate_limited') {
      // Five customers that get a 429 at the same moment count once. Otherwise the api token would wait for 30 s.
      const isNext = countAtStart === this.failureCount;
      if (isNext) this.failureCount += 1;
      const inARow = Math.max(1, this.#rateLimit.failures + (isNext ? 1 : 0));
      // A Retry-After of 0, or a date that has passed by our clock, must not switch the back-off off.
      this.#rateLimit.openFor(error, Math.max(retryAfter * 1000, renewalDelay(inARow)), Infinity);
      this.#rateLimit.failures = inARow;
      return false;
    }
    if (error.code === 'token_unavailable' && retryAfter > 0)
      this.#rateLimit.openFor(error, retryAfter * 1000);
    own.recordFailure(error, random);
    if (countAtStart === this.failureCount) {
      this.failureCount += 1;
      this.#shared.recordFailure(error, random, FAILING_SCOPES.refused);
      if (this.#shared.failures === 1) this.#failedScopes.clear();
    }
    if (this.#failedScopes.size < FAILING_SCOPES.refused) this.#failedScopes.add(scope);
    const breaker = this.#customerBreaker;
    const isOver = breaker.exceedsPatience || (this.#isFailing && isExhausted(this.#shared));
    if (isOver) this.rejectAll((waiting) => breaker.errorFor(waiting));
    return isExhausted(own) || this.breakerFor(scope, own).exceedsPatience || (scope !== API_SCOPE && isOver);
  }

  /** @param isFromEndpoint whether the endpoint has just issued the token, and the token has not expired */
  recordSuccess(isFromEndpoint: boolean): void {
    this.#rateLimit.failures = 0;
    if (isFromEndpoint) this.reset();
  }

  /** Forgets the failures of several scopes. */
  reset(): void {
    this.#shared.reset();
  }

  rejectAll(errorFor: (scope: string) => Error): void {
    const { fresh, failed } = this.#waiting;
    this.#waiting = { fresh: [], failed: [] };
    for (const { scope, fail } of [...fresh, ...failed]) fail(errorFor(scope));
    this.#cancelTimer?.();
  }

  get #isFailing(): boolean {
    const least = this.#shared.isRefusal ? FAILING_SCOPES.refused : FAILING_SCOPES.failed;
    return !this.#shared.isForgotten && this.#failedScopes.size >= least;
  }

  get #customerBreaker(): CircuitBreaker {
    return this.#isFailing ? longerOpen(this.#rateLimit, this.#shared) : this.#rateLimit;
  }

  get #isFull(): boolean {
    const { api, customers } = this.#running;
    return this.#isFailing ? api + customers > 0 : customers >= this.#max;
  }

  #startNext(): void {
    this.#cancelTimer?.();
    const { fresh, failed } = this.#waiting;
    while (fresh.length + failed.length > 0 && !this.#isFull) {
      const { remainingMs } = this.#customerBreaker;
      if (remainingMs > 0) {
        this.#cancelTimer = this.#io.clock.watch(() => this.#startNext(), remainingMs);
        return;
      }
      this.#running.customers += 1;
      (fresh.shift() ?? failed.shift())?.start();
    }
  }
}

/** Whether the failures are so many that callers that wait get the last error. */
function isExhausted(breaker: CircuitBreaker): boolean {
  return breaker.isRefusal || breaker.failures >= MAX_ATTEMPTS;
}
