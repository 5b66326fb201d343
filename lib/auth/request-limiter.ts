import { ServiceConnectionError, type ServiceError, ServiceTokenError } from '../errors/index.js';
import { backOff, type Clock, retryDelay } from '../time/time.js';
import { type TokenIo, API_SCOPE } from './access-token.js';
import { isRetryableTokenError, isSecretRefusal, stillFailing } from './endpoint/token-errors.js';

/** Attempts at a token before its callers get the error. */
export const MAX_ATTEMPTS = 3;
/** Callers wait for the end of a pause after a failure if it ends within this time. */
const MAX_WAIT_MS = 1_000;
/** The longest pause after a failure that may pass, also if the response has a longer Retry-After. */
const MAX_PAUSE_MS = 5_000;
/** A failure that is longer ago says nothing about the next request. */
const FORGET_MS = 10_000;
/** Customers take turns after failures of 2 scopes, or refusals of 3, without a granted token in between. */
const LEAST_SCOPES = { failed: 2, refused: 3 };
/** A request without a response holds the turn for this time, which doubles with each such request. Milliseconds. */
const TURN_MS = { least: 500, most: 5_000 };
/** During a longer pause after a 429, one request is sent each time that these milliseconds have passed. */
const TRIAL_MS = 60_000;

/** Milliseconds to wait after a failed renewal in the background, and after a 429: 3 s, doubling to 30 s. */
export function renewalDelay(failures: number): number {
  return backOff(failures - 1, 3_000, 30_000);
}

/** Failures in a row, of one scope or of all customers, and the pause after the last one. */
export class BackOff {
  failures = 0;
  /** The last failure. */
  error?: ServiceError;
  /** The end of the pause, in milliseconds of the monotonic clock. */
  until = -Infinity;
  /** When a caller may send a request although the pause goes on. */
  trialAt = Infinity;

  constructor(readonly clock: Clock) {}

  /** Milliseconds until a caller may send a request. */
  get remainingMs(): number {
    return Math.max(Math.min(this.until, this.trialAt) - this.clock.monotonic(), 0);
  }

  /** Whether the last failure was a refusal, such as invalid_scope. Another request would not help. */
  get isRefusal(): boolean {
    return this.error !== undefined && !isRetryableTokenError(this.error);
  }

  /**
   * Counts a failure. The pause after it is
   * - after a failure that may pass: 100 ms, doubling to 5 s, with jitter
   * - after a refusal, and after the third 401 or 403 of a gateway: 1 s, doubling to 30 s, so that a wrong secret is not sent
   *   to a gateway all the time
   * @param random in [0, 1)
   * @param retryAfter seconds of the Retry-After header. The pause is at least that long, up to 5 s
   */
  record(error: ServiceError, random: number, retryAfter = 0): void {
    const isRefusal = !isRetryableTokenError(error);
    const isForgotten = this.clock.monotonic() - this.until > FORGET_MS;
    if (isRefusal !== this.isRefusal || isForgotten) this.reset();
    const tries = this.failures;
    const isDenied = error instanceof ServiceTokenError && (error.status === 401 || error.status === 403);
    let pauseMs = backOff(tries, 100, MAX_PAUSE_MS) * (0.5 + random / 2);
    if (isRefusal) pauseMs = backOff(tries, 1_000, 30_000);
    else if (tries < MAX_ATTEMPTS - 1) pauseMs = retryDelay(tries, random);
    else if (isDenied) pauseMs = backOff(tries - MAX_ATTEMPTS + 1, 1_000, 30_000);
    this.failures += 1;
    this.pause(error, Math.max(pauseMs, Math.min(retryAfter * 1_000, MAX_PAUSE_MS)));
  }

  /** Pauses for at least this time from now on. */
  pause(error: ServiceError, ms: number): void {
    this.until = Math.max(this.until, this.clock.monotonic() + ms);
    this.error = error;
  }

  /** Forgets the failures and ends the pause, after a success or with other credentials. */
  reset(): void {
    this.failures = 0;
    this.error = undefined;
    this.until = -Infinity;
  }
}

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
 * Decides whether the token of a scope may be requested now, and if not, until when its callers wait.
 * - After a failure, the scope makes a pause.
 * - After a 429, all scopes make a pause. If it is long, one request is sent each minute, for callers without a token.
 * - Of the customers' requests, a limited number is in flight at a time. The others wait in order of arrival.
 * - While the endpoint fails for several scopes, all customers make a pause after each failure, and take turns: one request is
 *   sent at a time, and the next one if it gets no response for a while.
 * - While the endpoint refuses several scopes, customers take turns too. They make no pause together, because the endpoint
 *   may grant tokens to the other customers.
 * - The api token goes first, and never waits for customers' requests or failures. Customers whose last request failed go last.
 */
export class RequestLimiter {
  readonly #max: number;
  readonly #io: Pick<TokenIo, 'clock' | 'random'>;
  /** The pause of all scopes after a 429. */
  readonly #rateLimit: BackOff;
  /** The pause of all customers while the endpoint fails. */
  readonly #shared: BackOff;
  /** Some scopes that have failed, or were refused, since a token was granted last: as many as count. */
  readonly #scopes = { failed: new Set<string>(), refused: new Set<string>() };
  /** The scopes that wait: api, customers, and customers whose last request failed. The first of them go first. */
  readonly #queues = [new Set<Waiting>(), new Set<Waiting>(), new Set<Waiting>()] as const;
  /** The turn of the newest request, until it ends. The time is in milliseconds of the monotonic clock. */
  #turn?: { endsAt: number };
  #turnMs = TURN_MS.least;
  #customersInFlight = 0;
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
   */
  errorFor(scope: LimitedScope, timeoutMs: number): ServiceError | undefined {
    const { error, isRefusal, remainingMs } = this.#pauseOf(scope);
    let maxWaitMs = isRefusal ? 0 : MAX_WAIT_MS;
    if (error?.code === 'token_rate_limited') maxWaitMs = Infinity;
    if (!error || remainingMs <= Math.min(maxWaitMs, Math.max(0, timeoutMs))) return undefined;
    return stillFailing(error, scope.name, remainingMs);
  }

  /** Starts a request for a renewal. Returns undefined if it would have to wait: callers without a token go first. */
  tryStart(scope: LimitedScope): EndRequest | undefined {
    const isLimited = this.#rateLimit.until > this.#io.clock.monotonic();
    return isLimited || this.#delayOf(scope) > 0 ? undefined : this.#start(scope);
  }

  /**
   * Waits until the scope may be requested. Rejects with the error of another request if the endpoint goes on failing.
   * @param abandoned aborts when no caller waits for the token any more
   */
  waitForTurn({ name, backOff }: LimitedScope, abandoned: AbortSignal): Promise<EndRequest> {
    const queue = this.#queues[name === API_SCOPE ? 0 : backOff.failures > 0 ? 2 : 1];
    return new Promise((start, reject) => {
      const fail = (error: Error): void => {
        if (!queue.delete(waiting)) return;
        reject(error);
        this.#startNext();
      };
      const waiting: Waiting = { name, backOff, start, fail };
      abandoned.addEventListener('abort', () => fail(abandoned.reason as Error));
      queue.add(waiting);
      this.#startNext();
    });
  }

  /** Forgets the failures of several scopes, after the endpoint has granted a token, or with other credentials. */
  reset(): void {
    this.#rateLimit.failures = 0;
    this.#shared.reset();
    this.#scopes.failed.clear();
    this.#scopes.refused.clear();
    this.#turnMs = TURN_MS.least;
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
    const now = this.#io.clock.monotonic();
    const customers = scope.name === API_SCOPE ? 0 : 1;
    const countAtStart = this.#failureCount;
    const hasPassed = this.#turn !== undefined && this.#turn.endsAt <= now;
    if (hasPassed && this.#takesTurns) this.#turnMs = Math.min(2 * this.#turnMs, TURN_MS.most);
    const turn = (this.#turn = { endsAt: now + this.#turnMs });
    this.#customersInFlight += customers;
    this.#rateLimit.trialAt = now + TRIAL_MS;
    return (failure) => {
      if (this.#turn === turn) this.#turn = undefined;
      this.#customersInFlight -= customers;
      const mayRetry = failure !== undefined && this.#recordFailure(scope, failure, countAtStart);
      this.#startNext();
      return mayRetry;
    };
  }

  /** Counts a failure. Returns whether another attempt may follow. */
  #recordFailure(scope: LimitedScope, error: ServiceError, countAtStart: number): boolean {
    // The token source remembers a refused secret by itself.
    if (isSecretRefusal(error)) return false;
    const { name, backOff } = scope;
    const { retryAfter = 0 } = error as ServiceTokenError;
    const random = this.#io.random();
    const isNext = countAtStart === this.#failureCount;
    if (isNext) this.#failureCount += 1;
    if (error.code === 'token_rate_limited') {
      // Five customers that get a 429 at the same moment count once. Otherwise the api token would wait for 30 s.
      if (isNext || this.#rateLimit.failures === 0) this.#rateLimit.failures += 1;
      // A Retry-After of 0, or a date that has passed by our clock, must not switch the back-off off.
      this.#rateLimit.pause(error, Math.max(retryAfter * 1000, renewalDelay(this.#rateLimit.failures)));
      this.#rateLimit.trialAt = this.#io.clock.monotonic() + TRIAL_MS;
      return true;
    }
    backOff.record(error, random, retryAfter);
    const scopes = backOff.isRefusal ? this.#scopes.refused : this.#scopes.failed;
    if (scopes.size < LEAST_SCOPES.refused) scopes.add(name);
    if (!backOff.isRefusal && this.#isFailing) {
      if (isNext || this.#shared.failures === 0) this.#shared.record(error, random);
      if (this.#shared.failures >= MAX_ATTEMPTS) {
        for (const waiting of [...this.#queues[1], ...this.#queues[2]])
          waiting.fail(this.errorFor(waiting, 0) ?? error);
        if (name !== API_SCOPE) return false;
      }
    }
    return backOff.failures < MAX_ATTEMPTS && !backOff.isRefusal && backOff.remainingMs <= MAX_WAIT_MS;
  }

  /** Milliseconds until the scope may be requested; Infinity if it waits for the end of another request. */
  #delayOf(scope: LimitedScope): number {
    const { remainingMs } = this.#pauseOf(scope);
    if (scope.name === API_SCOPE) return remainingMs;
    if (this.#customersInFlight >= this.#max) return Infinity;
    if (!this.#takesTurns) return remainingMs;
    return Math.max(remainingMs, (this.#turn?.endsAt ?? 0) - this.#io.clock.monotonic());
  }

  /** The pause that ends last of those that this scope waits for. */
  #pauseOf({ name, backOff }: LimitedScope): BackOff {
    const pauses = [backOff, this.#rateLimit];
    if (name !== API_SCOPE && this.#isFailing) pauses.push(this.#shared);
    return pauses.reduce((one, other) => (other.remainingMs > one.remainingMs ? other : one));
  }

  get #isFailing(): boolean {
    return this.#scopes.failed.size >= LEAST_SCOPES.failed;
  }

  get #takesTurns(): boolean {
    return this.#isFailing || this.#scopes.refused.size >= LEAST_SCOPES.refused;
  }
}
