import { ServiceConnectionError, type ServiceError, type ServiceTokenError } from '../errors/index.js';
import { type TokenIo, API_SCOPE } from './access-token.js';
import { BackOff, MAX_ATTEMPTS, renewalDelay } from './back-off.js';
import { isSecretRefusal, stillFailing } from './endpoint/token-errors.js';

/** The endpoint counts as failing when requests of 2 different scopes in a row have failed, or of 3 were refused. */
const FAILING_SCOPES = { failed: 2, refused: 3 };

/** A scope whose requests are limited. */
interface LimitedScope {
  readonly name: string;
  /** The failures of this scope alone. */
  readonly backOff: BackOff;
}

/** Called once when a request ends, with its failure if it has failed. Returns whether another attempt may follow. */
export type EndRequest = (failure?: ServiceError) => boolean;

/** A scope that waits for its turn. */
interface Waiting extends LimitedScope {
  start: (end: EndRequest) => void;
  fail: (error: Error) => void;
}

/**
 * Decides when the token of a scope may be requested, and if not now, until when its callers wait.
 * - After a failure, the scope makes a pause. After a 429, all scopes do.
 * - Of the customers' requests, a limited number is in flight at a time. The others wait in order of arrival.
 * - While the endpoint fails, the customers share one pause, and one request is in flight at a time. The api token goes first,
 *   and customers whose last request failed go last. So one customer whose token always fails does not delay the others.
 * - The api token never waits for customers' requests.
 */
export class RequestLimiter {
  readonly #max: number;
  readonly #io: Pick<TokenIo, 'clock' | 'random'>;
  /** After a 429, and after any failure with Retry-After. All scopes wait for it. */
  readonly #rateLimit: BackOff;
  /** The failures of all scopes. Customers wait for it while the endpoint fails. */
  readonly #shared: BackOff;
  readonly #failedScopes = new Set<string>();
  readonly #inFlight = { api: 0, customers: 0 };
  /** The scopes that wait: api, customers, and customers whose last request failed. The first of them go first. */
  readonly #queues = [new Set<Waiting>(), new Set<Waiting>(), new Set<Waiting>()] as const;
  #cancelTimer?: () => void;
  /**
   * Number of failures that were counted. Requests in flight at the same time fail together and count once: a request notes
   * this number when it starts, and its failure counts only if the number is still the same.
   */
  #failureCount = 0;

  /** @param max customers' requests in flight at a time */
  constructor(max: number, io: Pick<TokenIo, 'clock' | 'random'>) {
    this.#max = max;
    this.#io = io;
    this.#rateLimit = new BackOff(io.clock);
    this.#shared = new BackOff(io.clock);
  }

  /** Whether requests of other customers wait, perhaps for the end of a request of this scope. */
  hasWaiting(scope: string): boolean {
    return scope !== API_SCOPE && this.#queues[1].size + this.#queues[2].size > 0;
  }

  /**
   * Makes the error for a caller that does not wait for the next request of its scope, because that is too far away. Returns
   * undefined for a caller that waits.
   * @param timeoutMs the caller waits for at most this time
   * @param once whether the caller waits only for the pause after a 429
   */
  errorFor(scope: LimitedScope, timeoutMs: number, once = false): ServiceError | undefined {
    const pause = this.#pauseOf(scope);
    const maxWaitMs = once && pause.maxWaitMs < Infinity ? 0 : pause.maxWaitMs;
    const isTooLong = pause.remainingMs > Math.min(maxWaitMs, Math.max(0, timeoutMs));
    return isTooLong && pause.error ? stillFailing(pause.error, scope.name, pause.remainingMs) : undefined;
  }

  /** Starts a request for a renewal. Returns undefined if it would have to wait: callers without a token go first. */
  tryStart(scope: LimitedScope): EndRequest | undefined {
    return this.#delayOf(scope) > 0 ? undefined : this.#start(scope);
  }

  /**
   * Waits until the scope may be requested. Rejects with the error of another request if the endpoint goes on failing.
   * @param left aborts when no caller waits for the token any more
   */
  waitForTurn({ name, backOff }: LimitedScope, left: AbortSignal): Promise<EndRequest> {
    const queue = this.#queues[name === API_SCOPE ? 0 : backOff.failures > 0 ? 2 : 1];
    return new Promise((start, reject) => {
      const fail = (error: Error): void => {
        if (!queue.delete(waiting)) return;
        reject(error);
        this.#startNext();
      };
      const waiting: Waiting = { name, backOff, start, fail };
      left.addEventListener('abort', () => fail(left.reason as Error));
      queue.add(waiting);
      this.#startNext();
    });
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

  /** Rejects the scopes that wait. */
  close(): void {
    for (const queue of this.#queues)
      for (const waiting of queue) waiting.fail(ServiceConnectionError.closed());
  }

  /** Starts the requests that may start now, and sets a timer for the next one. */
  #startNext(): void {
    this.#cancelTimer?.();
    let soonestMs = Infinity;
    for (const queue of this.#queues) {
      for (const waiting of queue) {
        const delayMs = this.#delayOf(waiting);
        if (delayMs > 0) soonestMs = Math.min(soonestMs, delayMs);
        else if (queue.delete(waiting)) waiting.start(this.#start(waiting));
        // The scopes behind this one wait for the same.
        if (delayMs > waiting.backOff.remainingMs) break;
      }
    }
    if (soonestMs < Infinity) this.#cancelTimer = this.#io.clock.watch(() => this.#startNext(), soonestMs);
  }

  #start(scope: LimitedScope): EndRequest {
    const kind = scope.name === API_SCOPE ? 'api' : 'customers';
    const countAtStart = this.#failureCount;
    this.#inFlight[kind] += 1;
    return (failure) => {
      this.#inFlight[kind] -= 1;
      const mayRetry = failure !== undefined && this.#recordFailure(scope, failure, countAtStart);
      this.#startNext();
      return mayRetry;
    };
  }

  /** Counts a failure. Returns whether another attempt may follow. */
  #recordFailure(scope: LimitedScope, error: ServiceError, countAtStart: number): boolean {
    // The token source remembers a refused secret by itself.
    if (isSecretRefusal(error)) return false;
    const { retryAfter = 0 } = error as ServiceTokenError;
    const random = this.#io.random();
    const isNext = countAtStart === this.#failureCount;
    if (isNext) this.#failureCount += 1;
    if (error.code === 'token_rate_limited') {
      const limit = this.#rateLimit;
      // Five customers that get a 429 at the same moment count once. Otherwise the api token would wait for 30 s.
      if (isNext || limit.failures === 0) limit.failures += 1;
      // A Retry-After of 0, or a date that has passed by our clock, must not switch the back-off off.
      limit.pause(error, Math.max(retryAfter * 1000, renewalDelay(limit.failures)));
      return true;
    }
    if (error.code === 'token_unavailable' && retryAfter > 0) this.#rateLimit.pause(error, retryAfter * 1000);
    scope.backOff.record(error, random);
    if (isNext) {
      this.#shared.record(error, random, FAILING_SCOPES.refused);
      if (this.#shared.failures === 1) this.#failedScopes.clear();
    }
    if (this.#failedScopes.size < FAILING_SCOPES.refused) this.#failedScopes.add(scope.name);
    const isOver = this.#isFailing && (this.#shared.failures >= MAX_ATTEMPTS || this.#shared.isTooLong);
    if (isOver || this.#rateLimit.isTooLong) {
      for (const waiting of [...this.#queues[1], ...this.#queues[2]]) {
        const last = this.errorFor(waiting, 0);
        if (last) waiting.fail(last);
      }
      if (scope.name !== API_SCOPE) return false;
    }
    const { failures, isTooLong } = scope.backOff;
    return failures < MAX_ATTEMPTS && !isTooLong && !this.#rateLimit.isTooLong;
  }

  /** Milliseconds until the scope may be requested; Infinity if it waits for the end of another request. */
  #delayOf(scope: LimitedScope): number {
    return scope.name !== API_SCOPE && this.#isFull ? Infinity : this.#pauseOf(scope).remainingMs;
  }

  /** The pause that ends last of those that this scope waits for. */
  #pauseOf({ name, backOff }: LimitedScope): BackOff {
    const pauses = [backOff, this.#rateLimit];
    if (name !== API_SCOPE && this.#isFailing) pauses.push(this.#shared);
    return pauses.reduce((one, other) => (other.remainingMs > one.remainingMs ? other : one));
  }

  get #isFailing(): boolean {
    const least = this.#shared.isRefusal ? FAILING_SCOPES.refused : FAILING_SCOPES.failed;
    return !this.#shared.isForgotten && this.#failedScopes.size >= least;
  }

  get #isFull(): boolean {
    const { api, customers } = this.#inFlight;
    return this.#isFailing ? this.#queues[0].size + api + customers > 0 : customers >= this.#max;
  }
}
