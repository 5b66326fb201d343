import { type AxiosAdapter, type InternalAxiosRequestConfig } from 'axios';
import { ExchangeFault, INTERCEPTOR_TIMEOUT } from '../exchange/fault.js';
import { setImmediate, systemClock } from '../time/time.js';
import { ignoreErrors } from '../telemetry/log.js';
import { type Call, type ClientContext } from './call.js';
import { faultToError } from './call-error.js';
import { type CallObserver } from './call-observer.js';
import { isSafe } from './repeatability.js';

const HOST_CALL = Symbol('host call');

/**
 * Finds the call to which a config belongs, by the config's adapter: every copy of a config keeps its adapter, and axios sends
 * no request without one.
 */
export function hostCallOf(adapter: unknown): HostCall | undefined {
  return (Object(adapter) as { [HOST_CALL]?: HostCall })[HOST_CALL];
}

/**
 * An error on its way through axios, which appends the caller's stack to each error that it sees. If thousands of calls share
 * one AbortSignal, its reason would grow with each of them. Interceptors of the host application see this object.
 */
export class HiddenError {
  constructor(readonly reason: unknown) {}
}

/**
 * A call of a host application that has interceptors of its own, from before the first interceptor until after the last.
 *
 * An interceptor may wait forever, so the call's time limit, its signal and the shutdown reject the call here, whatever an
 * interceptor waits for. An interceptor may also send the request again with the config of the call, and each such request is
 * a {@link Call} within this one. After the caller has got an error, no further request is sent, because the caller may have
 * repeated the change meanwhile.
 */
export class HostCall {
  /** The adapter of the call's config, by which {@link hostCallOf} finds this object. */
  readonly adapter: AxiosAdapter;
  readonly #client: ClientContext;
  readonly #observer: CallObserver;
  #timeoutMs: number;
  /** How many requests are in flight. */
  #running = 0;
  #hasRequest = false;
  /** The error of the last request, if it has failed. */
  #failure: { outcomeUnknown?: boolean } | undefined = undefined;
  #isSettled = false;
  /** The error that the caller got although the interceptors had not settled yet. */
  #earlyError: HiddenError | undefined = undefined;
  #reject: ((error: unknown) => void) | undefined = undefined;
  #stopTimer: (() => void) | undefined = undefined;

  /** @param call the call as the caller made it, which is never sent itself */
  constructor(
    readonly call: Call,
    adapter: AxiosAdapter,
    client: ClientContext,
    observer: CallObserver,
  ) {
    this.#client = client;
    this.#observer = observer;
    this.#timeoutMs = call.timeoutMs;
    const own: AxiosAdapter = (config: InternalAxiosRequestConfig) => adapter(config);
    this.adapter = Object.assign(own, { [HOST_CALL]: this });
  }

  /** Whether the interceptors have settled. A config that is used again later makes a new call. */
  get isDone(): boolean {
    return this.#isSettled && this.#earlyError === undefined;
  }

  /** Settles like `work`, which runs the interceptors. Rejects earlier after a time-out, an abort or at shutdown. */
  async run(work: () => Promise<unknown>): Promise<unknown> {
    const { calls } = this.#client;
    calls.throwIfDraining();
    calls.enter();
    // The request refuses a cancel token that throws.
    const stopFollowing = ignoreErrors(() => this.call.followSignals());
    const { signal } = this.call;
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
      stopFollowing?.();
      // The host application may keep the config, and with it this object.
      this.#failure = undefined;
      calls.leave();
    }
  }

  /**
   * Makes a request with this time limit a part of the call. A longer limit extends the call, and a shorter one applies to the
   * request alone. Throws if the caller has already got an error.
   */
  addRequest(timeoutMs: number): { timeoutMs: number; endsAt: number } {
    if (this.#earlyError) throw this.#earlyError as unknown;
    this.#hasRequest = true;
    this.#failure = undefined;
    this.#timeoutMs = Math.max(this.#timeoutMs, timeoutMs);
    const endsAt = performance.now() + timeoutMs;
    return endsAt < this.#endsAt
      ? { timeoutMs, endsAt }
      : { timeoutMs: this.#timeoutMs, endsAt: this.#endsAt };
  }

  /**
   * Puts the template of the call back into a filled path. An interceptor may have added a prefix to that path. Returns
   * undefined if the path does not contain the filled path of the call.
   */
  templateOf(path: string): string | undefined {
    const { template, filled = '' } = this.call.details;
    return template !== undefined && path.includes(filled) ? path.replace(filled, () => template) : undefined;
  }

  /** A request is sent. */
  enter(): void {
    this.#running += 1;
  }

  /** A request has ended. */
  leave(request: Call, failure?: unknown): void {
    this.#running -= 1;
    this.#failure = failure as { outcomeUnknown?: boolean } | undefined;
    if (mayHaveExecuted(request, this.#failure)) this.call.outcomeUnknown = true;
    // The interceptors get the error of a request that ended at the time limit, but they cannot wait any longer.
    if (this.#isTimeOver) setImmediate(this.#onLimit);
  }

  get #endsAt(): number {
    return this.call.startedAt + this.#timeoutMs;
  }

  get #isTimeOver(): boolean {
    return this.#client.calls.closed.aborted || performance.now() >= this.#endsAt;
  }

  #setTimer(): void {
    this.#stopTimer = systemClock.schedule(this.#onLimit, Math.ceil(this.#endsAt - performance.now()));
  }

  readonly #onAbort = (): void =>
    this.#rejectEarly(this.#client.calls.toCallerError(this.call.signal?.reason));

  readonly #onLimit = (): void => {
    // The timer fired early, because an interceptor has set a longer `timeout`.
    if (!this.#isTimeOver) return this.#setTimer();
    // A request in flight ends at the same time limit, and its error says more.
    if (this.#running > 0) return;
    const isInDoubt = this.call.outcomeUnknown && !isSafe(this.call);
    const saysOutcome = this.#failure !== undefined && (!isInDoubt || this.#failure.outcomeUnknown === true);
    this.#rejectEarly(saysOutcome ? this.#failure : this.#timeoutOrClosedError());
  };

  #timeoutOrClosedError(): Error {
    const kind = this.#client.calls.closed.aborted ? 'closed' : 'timeout';
    const limit = kind === 'timeout' ? { reason: INTERCEPTOR_TIMEOUT, limitMs: this.#timeoutMs } : {};
    return faultToError(new ExchangeFault({ phase: 'waiting', kind, ...limit }), this.call, this.#client);
  }

  #rejectEarly(error: unknown): void {
    if (this.#isSettled || this.#earlyError) return;
    this.#earlyError = new HiddenError(error);
    if (!this.#hasRequest) this.#observer.failed(this.call, error);
    this.#reject?.(error);
  }
}

/** Whether the service may have executed a request that has ended. */
function mayHaveExecuted(call: Call, failure: { outcomeUnknown?: boolean } | undefined): boolean {
  if (isSafe(call)) return false;
  if (failure === undefined) return call.response !== undefined;
  return failure.outcomeUnknown ?? call.attempts > 0;
}
