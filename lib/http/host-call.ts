import { type AxiosAdapter, type InternalAxiosRequestConfig } from 'axios';
import { type ServiceApiError, ServiceError, withDoubt } from '../errors/index.js';
import { CallCancelled, ExchangeFault, INTERCEPTOR_TIMEOUT } from '../exchange/fault.js';
import { setImmediate, systemClock } from '../time/time.js';
import { ignoreErrors } from '../telemetry/telemetry.js';
import { Call, type ClientContext } from './call.js';
import { faultToError } from './call-error.js';
import { type CallObserver } from './call-observer.js';
import { CallResponse } from './call-response.js';
import { isRepeatableByCaller, isSafe } from './repeatability.js';
import { type ServiceResponse } from './service-axios.js';

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
 * - An interceptor may wait forever, so the call's time limit, its signal and the shutdown reject the call here, whatever an
 *   interceptor waits for.
 * - An interceptor may send the request again with the config of the call, or another one. Each such request is a {@link Call}
 *   within this one. The error of the call says whether the service may have executed any of them.
 * - After the caller has got an error, no further request is sent, because the caller may have repeated the change meanwhile.
 */
export class HostCall {
  /** The adapter of the call's config, by which {@link hostCallOf} finds this object. */
  readonly adapter: AxiosAdapter;
  readonly #client: ClientContext;
  readonly #observer: CallObserver;
  #timeoutMs: number;
  /** The requests in flight. */
  readonly #running = new Set<Call>();
  #hasRequest = false;
  /** The error of the last request, if it has failed. */
  #failure: unknown = undefined;
  /** What the error of the call says, if the service may have executed a request that changes something. */
  #doubt: { idempotencyKey?: string; retryable: boolean } | undefined = undefined;
  /** The error that the caller got, perhaps before the interceptors have settled. */
  #callerError: HiddenError | undefined = undefined;
  /** Whether the interceptors have settled before the caller got an error. A config that is used again later makes a new call. */
  isDone = false;
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

  /**
   * Settles like `work`, which runs the interceptors. After a time-out, an abort or at shutdown it rejects earlier, with a
   * {@link HiddenError}.
   */
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
        calls.closed.addEventListener('abort', this.#onEnd);
        this.#setTimer();
        void work()
          .finally(() => (this.isDone = this.#callerError === undefined))
          .then(resolve, reject);
      });
    } finally {
      this.#stopTimer?.();
      signal?.removeEventListener('abort', this.#onAbort);
      calls.closed.removeEventListener('abort', this.#onEnd);
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
    this.#throwIfFailed();
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

  /** A request is about to be sent. Throws if the caller has already got an error. */
  enter(request: Call): void {
    this.#throwIfFailed();
    this.#running.add(request);
  }

  /** A request has ended. */
  leave(request: Call, failure?: unknown): void {
    this.#running.delete(request);
    this.#failure = failure;
    if (request.mayHaveActed) this.#addDoubt(request);
    // The interceptors get the error of a request that ended at the time limit, but they cannot wait any longer.
    if (this.#isOver) setImmediate(this.#onEnd);
  }

  /**
   * Makes the error of the call from what the interceptors left: an error of this module says so if any request of the call may
   * have been executed. Another error is the host application's own.
   */
  toCallerError(error: unknown): unknown {
    const own = this.#withDoubt(error, true);
    this.#callerError ??= new HiddenError(own);
    return own;
  }

  /** Makes the error for a body that `parse` refused. An interceptor may have made the response itself. */
  toParseError({ data, status, toParseError }: Partial<ServiceResponse>, where: string): ServiceApiError {
    const make = toParseError ?? ((body, at) => this.#toResponse(status).toParseError(body, at));
    // Not retryable: another call would get the same body, and `parse` would refuse it again.
    return this.#withDoubt(make(data, where), false);
  }

  /** A response that no request of the call has got. */
  #toResponse(status = 200): CallResponse {
    const { method, url, timeoutMs, details } = this.call;
    const received = { status, statusText: '', headers: {}, body: Buffer.alloc(0), untilClose: false };
    const unsent = new Call(method, url, timeoutMs, { ...details, readOnly: true });
    return new CallResponse(received, unsent, this.#client);
  }

  #throwIfFailed(): void {
    if (this.#callerError) throw this.#callerError as unknown;
  }

  get #endsAt(): number {
    return this.call.startedAt + this.#timeoutMs;
  }

  /** Whether the time is over, the client is closed, or the cancel token of the call is cancelled. */
  get #isOver(): boolean {
    const isClosed = this.#client.calls.closed.aborted || this.call.signal?.reason instanceof CallCancelled;
    return isClosed || performance.now() >= this.#endsAt;
  }

  #withDoubt<T>(error: T, isRepeatable: boolean): T {
    // An interceptor has not waited for this request, which may still be executed.
    for (const request of this.#running) if (!isSafe(request)) this.#addDoubt(request);
    if (!(error instanceof ServiceError) || !this.#doubt) return error;
    const { idempotencyKey, retryable } = this.#doubt;
    return withDoubt(error, { idempotencyKey, retryable: retryable && isRepeatable }) as T;
  }

  #addDoubt(request: Call): void {
    const { details } = request;
    const before = this.#doubt;
    const idempotencyKey =
      before?.idempotencyKey ?? details.idempotencyKey ?? this.call.details.idempotencyKey;
    const isSame = details.repeatable === true || details.idempotencyKey === idempotencyKey;
    const retryable = isSame && isRepeatableByCaller(request) && before?.retryable !== false;
    this.#doubt = { idempotencyKey, retryable };
  }

  #setTimer(): void {
    this.#stopTimer = systemClock.schedule(this.#onEnd, Math.ceil(this.#endsAt - performance.now()));
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.call.signal?.reason;
    if (reason instanceof CallCancelled) this.#onEnd();
    else this.#rejectEarly(reason);
  };

  readonly #onEnd = (): void => {
    // The timer fired early, because an interceptor has set a longer `timeout`.
    if (!this.#isOver) return this.#setTimer();
    // A request in flight ends at the same time, and its error says more.
    if (this.#running.size > 0) return;
    // The service may have executed an earlier request of this call. The caller has to find that out, so the error is about the
    // time limit of the whole call, and not about a later request such as a GET.
    const isOfChange =
      !this.#doubt || (this.#failure instanceof ServiceError && this.#failure.outcomeUnknown);
    const error = isOfChange && this.#failure !== undefined ? this.#failure : this.#endError();
    this.#rejectEarly(this.#withDoubt(error, true));
  };

  #endError(): unknown {
    const { calls } = this.#client;
    const reason: unknown = this.call.signal?.reason;
    if (reason instanceof CallCancelled) return calls.toCallerError(reason);
    const kind = calls.closed.aborted ? 'closed' : 'timeout';
    const limit = kind === 'timeout' ? { reason: INTERCEPTOR_TIMEOUT, limitMs: this.#timeoutMs } : {};
    return faultToError(new ExchangeFault({ phase: 'waiting', kind, ...limit }), this.call, this.#client);
  }

  #rejectEarly(error: unknown): void {
    if (this.isDone || this.#callerError) return;
    this.#callerError = new HiddenError(error);
    if (!this.#hasRequest) this.#observer.failed(this.call, error);
    this.#reject?.(this.#callerError);
  }
}
