import { type AxiosAdapter, type InternalAxiosRequestConfig } from 'axios';
import { ExchangeFault, INTERCEPTOR_TIMEOUT } from '../exchange/exchange.types.js';
import { setImmediate, systemClock } from '../time/clock.js';
import { type Call, PastAxios } from './request/call.js';
import { type CallObserver } from './attempts/call-observer.js';
import { type ClientContext } from './request/client-context.js';
import { faultToError } from './attempts/fault-to-error.js';
import { isSafe } from './request/repeatability.js';

const INTERCEPTED = Symbol('intercepted');

/** The call that a config belongs to. Its adapter tells: copies of a config keep it, and no request is sent without it. */
export function interceptedCallOf(adapter: unknown): InterceptedCall | undefined {
  return (Object(adapter) as { [INTERCEPTED]?: InterceptedCall })[INTERCEPTED];
}

/**
 * A call of an application that has interceptors of its own, from before the first of them until after the last. Its time
 * limit, its signal and the shutdown end it, whatever an interceptor waits for. A request that an interceptor repeats with the
 * config of the call belongs to it, too. None is sent once the caller has got an error: the caller may have sent the same
 * change again.
 */
export class InterceptedCall {
  readonly adapter: AxiosAdapter;
  readonly #client: ClientContext;
  readonly #observer: CallObserver;
  /** As its caller asked for it. */
  readonly #asked: Call;
  #last: Call | undefined = undefined;
  #running = 0;
  #isSettled = false;
  /** The error that its caller got before the interceptors settled. */
  #cutBy: PastAxios | undefined = undefined;
  #reject: ((error: unknown) => void) | undefined = undefined;
  #stopTimer: (() => void) | undefined = undefined;

  constructor(asked: Call, adapter: AxiosAdapter, client: ClientContext, observer: CallObserver) {
    this.#asked = asked;
    this.#client = client;
    this.#observer = observer;
    const own: AxiosAdapter = (config: InternalAxiosRequestConfig) => adapter(config);
    this.adapter = Object.assign(own, { [INTERCEPTED]: this });
  }

  /** Its interceptors have settled: a config that is used later makes a new call. */
  get isDone(): boolean {
    return this.#isSettled && this.#cutBy === undefined;
  }

  /** Settles like `work`, which runs the interceptors; rejects earlier if it is ended before. */
  async run(work: () => Promise<unknown>): Promise<unknown> {
    const { calls } = this.#client;
    const { signal } = this.#asked;
    calls.admit();
    calls.enter();
    try {
      return await new Promise((resolve, reject) => {
        this.#reject = reject;
        if (signal?.aborted) return this.#onAbort();
        signal?.addEventListener('abort', this.#onAbort);
        calls.closed.addEventListener('abort', this.#onLimit);
        this.#setTimer();
        void work()
          .finally(() => (this.#isSettled = true))
          .then(resolve, reject);
      });
    } finally {
      this.#stopTimer?.();
      signal?.removeEventListener('abort', this.#onAbort);
      calls.closed.removeEventListener('abort', this.#onLimit);
      this.#asked.release();
      // The application may keep the config.
      this.#last = undefined;
      calls.leave();
    }
  }

  /** Makes a request a part of it. Throws if its caller has got an error before. */
  add(call: Call): void {
    if (this.#cutBy) throw this.#cutBy as unknown;
    call.belongTo(this.#asked);
    call.intercepted = this;
    this.#last = call;
  }

  /** For the template of its path, if an interceptor has changed the path. */
  templateOf(path: string): string | undefined {
    return this.#asked.templateOf(path);
  }

  enter(): void {
    this.#running += 1;
  }

  leave(call: Call): void {
    this.#running -= 1;
    if (mayBeDone(call)) this.#asked.outcomeUnknown = true;
    // Interceptors get the error of a request that ended at the limit, but cannot wait any more.
    if (this.#isLate) setImmediate(this.#onLimit);
  }

  get #isLate(): boolean {
    return this.#client.calls.closed.aborted || this.#asked.leftMs <= 0;
  }

  #setTimer(): void {
    this.#stopTimer = systemClock.schedule(this.#onLimit, Math.ceil(this.#asked.leftMs));
  }

  readonly #onAbort = (): void => this.#cut(this.#client.calls.ending(this.#asked.signal?.reason));

  readonly #onLimit = (): void => {
    // An interceptor has set a longer `timeout`.
    if (!this.#isLate) return this.#setTimer();
    // A request that is running ends by itself, and its error says more.
    if (this.#running > 0) return;
    const failure = this.#last?.failure as { outcomeUnknown?: boolean } | undefined;
    const hidesDoubt = isInDoubt(this.#asked) && failure?.outcomeUnknown !== true;
    this.#cut(failure === undefined || hidesDoubt ? this.#notSettled() : failure);
  };

  #notSettled(): Error {
    const unsent = { phase: 'connecting', reusedSocket: true } as const;
    const fault = this.#client.calls.closed.aborted
      ? new ExchangeFault({ ...unsent, kind: 'closed' })
      : new ExchangeFault({
          ...unsent,
          kind: 'timeout',
          reason: INTERCEPTOR_TIMEOUT,
          limitMs: this.#asked.timeoutMs,
        });
    return faultToError(fault, this.#asked, this.#client);
  }

  #cut(error: unknown): void {
    if (this.#isSettled || this.#cutBy) return;
    this.#cutBy = new PastAxios(error);
    if (!this.#last) this.#observer.failed(this.#asked, error);
    this.#reject?.(error);
  }
}

function isInDoubt(call: Call): boolean {
  return call.outcomeUnknown && !isSafe(call);
}

/** Whether the service may have carried out a request that has ended. */
function mayBeDone(call: Call): boolean {
  const { failure, response, attempts } = call;
  if (isSafe(call)) return false;
  if (failure === undefined) return response !== undefined;
  return (failure as { outcomeUnknown?: boolean }).outcomeUnknown ?? attempts > 0;
}
