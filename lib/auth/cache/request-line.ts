import { type ServiceError, type ServiceTokenError } from '../../errors/index.js';
import { sleep } from '../../time/timers.js';
import { type TokenIo } from '../access-token.js';
import { API_SCOPE } from '../scope.js';
import { ATTEMPTS, Hold, longer, renewalDelay } from './request-limits.js';

/** So many different scopes have to fail, or to be refused, in a row before customers wait who have not asked yet. */
const SCOPES = { failed: 2, refused: 3 };

/** A customer's request that waits for its turn. */
interface Waiting {
  scope: string;
  start: () => void;
  fail: (error: Error) => void;
}

/**
 * Whose turn it is to ask the token endpoint. The api token never waits for those of customers, who may have so many
 * requests at a time, first come first served. While the endpoint fails, there is one at a time, the api token goes first,
 * and customers whose request has failed go last. One customer whose token always fails holds no other up.
 */
export class RequestLine {
  readonly #max: number;
  readonly #io: Pick<TokenIo, 'clock' | 'random'>;
  /** After a 429, and after any failure with a Retry-After, all scopes wait. */
  readonly #limited: Hold;
  /** Of all scopes together: customers wait for it. */
  readonly #failures: Hold;
  readonly #failedScopes = new Set<string>();
  readonly #running = { api: 0, customers: 0 };
  #waiting: { fresh: Waiting[]; failed: Waiting[] } = { fresh: [], failed: [] };
  #cancelTimer?: () => void;
  /** Of the failures that were counted. A request that began before the latest of them failed together with it. */
  counted = 0;

  /** @param max requests of customers at a time */
  constructor(max: number, io: Pick<TokenIo, 'clock' | 'random'>) {
    this.#max = max;
    this.#io = io;
    this.#limited = new Hold(io.clock);
    this.#failures = new Hold(io.clock);
  }

  /** Whether others wait until a request of this scope has ended. */
  isWaitedFor(scope: string): boolean {
    return scope !== API_SCOPE && this.#waiting.fresh.length + this.#waiting.failed.length > 0;
  }

  /** For how long no request of this scope may begin. The api token waits for its own failures alone. */
  holdOf(scope: string, own?: Hold): Hold {
    return longer(scope === API_SCOPE ? this.#limited : this.#ofCustomers, own);
  }

  /** Whether a request that began now would have to wait. */
  mustWait(scope: string, own?: Hold): boolean {
    return this.holdOf(scope, own).remainingMs > 0 || (scope !== API_SCOPE && this.#isFull);
  }

  /**
   * Waits for the scope's turn. Resolves with the function to call when its request has ended. Rejects with the error of
   * another request if the endpoint goes on failing.
   */
  async enter(scope: string, own: Hold | undefined, closed: AbortSignal): Promise<() => void> {
    const kind = scope === API_SCOPE ? 'api' : 'customers';
    const { clock } = this.#io;
    if (kind === 'api') this.#running.api += 1;
    const heldMs = () => (kind === 'api' ? this.holdOf(scope, own) : own)?.remainingMs ?? 0;
    while (heldMs() > 0) await sleep(clock, heldMs(), closed);
    const hold = this.#ofCustomers;
    if (kind === 'customers' && hold.isTooLong) throw hold.errorFor(scope);
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
   * @param begunAt what `counted` was when the request began
   * @returns whether its callers get the error, and there is no other attempt
   */
  failed(scope: string, own: Hold, error: ServiceError, begunAt: number): boolean {
    const { retryAfter = 0 } = error as ServiceTokenError;
    const random = this.#io.random();
    if (error.code === 'token_rate_limited') {
      // Five customers who get a 429 at the same moment count once: otherwise the api token would wait for 30 s.
      const isNext = begunAt === this.counted;
      if (isNext) this.counted += 1;
      const inARow = Math.max(1, this.#limited.count + (isNext ? 1 : 0));
      // A Retry-After of 0, or a date in the past by our clock, does not switch the back-off off.
      this.#limited.extend(error, Math.max(retryAfter * 1000, renewalDelay(inARow)), Infinity);
      this.#limited.count = inARow;
      return false;
    }
    if (error.code === 'token_unavailable' && retryAfter > 0) this.#limited.extend(error, retryAfter * 1000);
    own.failed(error, random);
    if (begunAt === this.counted) {
      this.counted += 1;
      this.#failures.failed(error, random, SCOPES.refused);
      if (this.#failures.count === 1) this.#failedScopes.clear();
    }
    if (this.#failedScopes.size < SCOPES.refused) this.#failedScopes.add(scope);
    const hold = this.#ofCustomers;
    const isOver = hold.isTooLong || (this.#isFailing && isFinal(this.#failures));
    if (isOver) this.rejectAll((waiting) => hold.errorFor(waiting));
    return isFinal(own) || this.holdOf(scope, own).isTooLong || (scope !== API_SCOPE && isOver);
  }

  /** @param isGood a living token, and not of a shared store */
  succeeded(isGood: boolean): void {
    this.#limited.count = 0;
    if (isGood) this.reset();
  }

  /** Forgets failures. */
  reset(): void {
    this.#failures.reset();
  }

  rejectAll(errorFor: (scope: string) => Error): void {
    const { fresh, failed } = this.#waiting;
    this.#waiting = { fresh: [], failed: [] };
    for (const { scope, fail } of [...fresh, ...failed]) fail(errorFor(scope));
    this.#cancelTimer?.();
  }

  get #isFailing(): boolean {
    const least = this.#failures.isRefusal ? SCOPES.refused : SCOPES.failed;
    return !this.#failures.isOver && this.#failedScopes.size >= least;
  }

  get #ofCustomers(): Hold {
    return this.#isFailing ? longer(this.#limited, this.#failures) : this.#limited;
  }

  get #isFull(): boolean {
    const { api, customers } = this.#running;
    return this.#isFailing ? api + customers > 0 : customers >= this.#max;
  }

  #startNext(): void {
    this.#cancelTimer?.();
    const { fresh, failed } = this.#waiting;
    while (fresh.length + failed.length > 0 && !this.#isFull) {
      const { remainingMs } = this.#ofCustomers;
      if (remainingMs > 0) {
        this.#cancelTimer = this.#io.clock.watch(() => this.#startNext(), remainingMs);
        return;
      }
      this.#running.customers += 1;
      (fresh.shift() ?? failed.shift())?.start();
    }
  }
}

/** Whether there were enough failures for those who wait to get the error of the last one. */
function isFinal(hold: Hold): boolean {
  return hold.isRefusal || hold.count >= ATTEMPTS;
}
