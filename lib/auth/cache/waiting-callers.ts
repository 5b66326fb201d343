import { type Clock } from '../../time/clock.js';
import { copyOf, type DescribeOption, ServiceConnectionError } from '../../errors/index.js';
import { checkTimeout } from '../../exchange/call-limits.js';
import { startTimer } from '../../time/timers.js';

/** How long a caller waits for a token. */
export interface TokenOptions {
  /** Only the caller that aborts is rejected, with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds, at most a day. Default (also for 0): `http.timeout`. */
  timeout?: number | undefined;
  /**
   * One attempt is enough for this caller, as for a health check, and a secret that was refused is not sent again for 60 s;
   * more are made if others wait too. Default false.
   */
  once?: boolean | undefined;
}

/** The same, checked. */
export interface WaitOptions {
  signal?: AbortSignal | undefined;
  /** Milliseconds. Default: that of the cache. */
  timeoutMs?: number | undefined;
  once?: boolean | undefined;
}

/** @throws ServiceRequestError if the time limit is not valid */
export function checkedWait({ signal, timeout, once }: TokenOptions = {}): WaitOptions {
  return { signal, timeoutMs: checkTimeout(timeout), once };
}

interface Waiting<T> {
  until: number;
  resolve(value: T): void;
  reject: (reason: Error) => void;
}

/** Callers that wait for one shared outcome, each with its own deadline and signal. */
export class WaitingCallers<T> {
  readonly #clock: Clock;
  readonly #describeOption: DescribeOption;
  readonly #waiting = new Set<Waiting<T>>();

  constructor(clock: Clock, describeOption: DescribeOption) {
    this.#clock = clock;
    this.#describeOption = describeOption;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** @throws ServiceConnectionError `timeout` at the caller's deadline; the signal's reason when it aborts */
  join(timeoutMs: number, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const leave = (): void => {
        cancel();
        this.#waiting.delete(waiting);
      };
      const waiting: Waiting<T> = {
        until: this.#clock.monotonic() + timeoutMs,
        resolve: (value) => (leave(), resolve(value)),
        reject: (reason) => (leave(), reject(reason)),
      };
      const expire = (): void => waiting.reject(tooLate(timeoutMs, this.#describeOption));
      const cancel = startTimer(this.#clock, timeoutMs, [signal], expire, waiting.reject);
      this.#waiting.add(waiting);
    });
  }

  resolve(value: T): void {
    for (const waiting of [...this.#waiting]) waiting.resolve(value);
  }

  /**
   * Each gets an error of its own.
   * @param withinMs rejects only callers whose deadline comes within this time
   */
  reject(reason: Error, withinMs = Infinity): void {
    const then = this.#clock.monotonic() + withinMs;
    for (const waiting of [...this.#waiting]) if (waiting.until < then) waiting.reject(copyOf(reason));
  }
}

function tooLate(timeoutMs: number, describeOption: DescribeOption): ServiceConnectionError {
  return new ServiceConnectionError({
    kind: 'timeout',
    message: `There was no token within ${Math.max(0, Math.round(timeoutMs))} ms.`,
    hint: `That time is ${describeOption('http.timeout')}, or the call's own. npx nestjs-service doctor asks the token endpoint.`,
    options: ['http.timeout'],
  });
}
