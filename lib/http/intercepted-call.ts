import { type AxiosAdapter, type InternalAxiosRequestConfig } from 'axios';
import { ExchangeFault, INTERCEPTOR_TIMEOUT } from '../exchange/fault.js';
import { setImmediate, systemClock } from '../time/time.js';
import { type Call, HiddenFromAxios, type ClientContext } from './call.js';
import { type CallObserver } from './call-observer.js';
import { faultToError } from './call-error.js';
import { isSafe } from './repeatability.js';

const INTERCEPTED = Symbol('intercepted');

/**
 * Finds the call to which a config belongs, by the config's adapter: every copy of a config keeps its adapter, and axios sends
 * no request without one.
 */
export function interceptedCallOf(adapter: unknown): InterceptedCall | undefined {
  return (Object(adapter) as { [INTERCEPTED]?: InterceptedCall })[INTERCEPTED];
}

/**
 * A call of a host application that has interceptors of its own, from before the first interceptor until after the last.
 *
 * An interceptor may wait forever, so the call's time limit, its signal and the shutdown reject the call here, whatever an
 * interceptor waits for. A request that an interceptor repeats with the config of the call is a part of the same call. After
 * the caller has got an error, no such request is sent any more, because the caller may have repeated the change meanwhile.
 */
export class InterceptedCall {
  readonly adapter: AxiosAdapter;
  readonly #client: ClientContext;
  readonly #observer: CallObserver;
  /** The call as the caller made it. Each request that is sent for it is a Call of its own. */
  readonly #outerCall: Call;
  #lastRequest: Call | undefined = undefined;
  #running = 0;
  #isSettled = false;
  /** The error that the caller got although the interceptors had not settled yet. */
  #earlyError: HiddenFromAxios | undefined = undefined;
  #reject: ((error: unknown) => void) | undefined = undefined;
  #stopTimer: (() => void) | undefined = undefined;

  constructor(asked: Call, adapter: AxiosAdapter, client: ClientContext, observer: CallObserver) {
    this.#outerCall = asked;
    this.#client = client;
    this.#observer = observer;
    const own: AxiosAdapter = (config: InternalAxiosRequestConfig) => adapter(config);
    this.adapter = Object.assign(own, { [INTERCEPTED]: this });
  }

  /** Whether the interceptors have settled. A config that is used again later makes a new call. */
  get isDone(): boolean {
    return this.#isSettled && this.#earlyError === undefined;
  }

  /** Settles like `work`, which runs the interceptors. Rejects earlier after a time-out, an abort or at shutdown. */
  async run(work: () => Promise<unknown>): Promise<unknown> {
    const { calls } = this.#client;
    const { signal } = this.#outerCall;
    calls.throwIfDraining();
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
      this.#outerCall.release();
      // The host application may keep the config, and with it this object.
      this.#lastRequest = undefined;
      calls.leave();
    }
  }

  /** Makes a request a part of this call. Throws if the caller has already got an error. */
  add(call: Call): void {
    if (this.#earlyError) throw this.#earlyError as unknown;
    call.belongTo(this.#outerCall);
    call.counter = this;
    this.#lastRequest = call;
  }

  /** The template of a path that an interceptor has changed. */
  templateOf(path: string): string | undefined {
    return this.#outerCall.templateOf(path);
  }

  enter(): void {
    this.#running += 1;
  }

  leave(call: Call): void {
    this.#running -= 1;
    if (mayHaveExecuted(call)) this.#outerCall.outcomeUnknown = true;
    // The interceptors get the error of a request that ended at the time limit, but they cannot wait any longer.
    if (this.#isTimeOver) setImmediate(this.#onLimit);
  }

  get #isTimeOver(): boolean {
    return this.#client.calls.closed.aborted || this.#outerCall.leftMs <= 0;
  }

  #setTimer(): void {
    this.#stopTimer = systemClock.schedule(this.#onLimit, Math.ceil(this.#outerCall.leftMs));
  }

  readonly #onAbort = (): void =>
    this.#rejectEarly(this.#client.calls.toCallerError(this.#outerCall.signal?.reason));

  readonly #onLimit = (): void => {
    // The timer fired early, because an interceptor has set a longer `timeout`.
    if (!this.#isTimeOver) return this.#setTimer();
    // A request in flight ends at the same time limit, and its error says more.
    if (this.#running > 0) return;
    const failure = this.#lastRequest?.failure as { outcomeUnknown?: boolean } | undefined;
    const hidesOutcome = isInDoubt(this.#outerCall) && failure?.outcomeUnknown !== true;
    this.#rejectEarly(failure === undefined || hidesOutcome ? this.#timeoutOrClosedError() : failure);
  };

  #timeoutOrClosedError(): Error {
    const phase = 'waiting';
    const fault = this.#client.calls.closed.aborted
      ? new ExchangeFault({ phase, kind: 'closed' })
      : new ExchangeFault({
          phase,
          kind: 'timeout',
          reason: INTERCEPTOR_TIMEOUT,
          limitMs: this.#outerCall.timeoutMs,
        });
    return faultToError(fault, this.#outerCall, this.#client);
  }

  #rejectEarly(error: unknown): void {
    if (this.#isSettled || this.#earlyError) return;
    this.#earlyError = new HiddenFromAxios(error);
    if (!this.#lastRequest) this.#observer.failed(this.#outerCall, error);
    this.#reject?.(error);
  }
}

function isInDoubt(call: Call): boolean {
  return call.outcomeUnknown && !isSafe(call);
}

/** Whether the service may have executed a request that has ended. */
function mayHaveExecuted(call: Call): boolean {
  const { failure, response, attempts } = call;
  if (isSafe(call)) return false;
  if (failure === undefined) return response !== undefined;
  return (failure as { outcomeUnknown?: boolean }).outcomeUnknown ?? attempts > 0;
}
