import { type Authenticator, BEARER, type Credentials } from '../auth/authenticator.js';
import { type ResolvedOptions } from '../config/resolve-options.js';
import { type ServiceIo, type ExchangeResponse } from '../exchange/io.js';
import { type Identity } from '../tls/client-identity.js';
import { type CallsInFlight } from '../auth/calls-in-flight.js';
import { randomUUID } from 'node:crypto';
import { type InternalAxiosRequestConfig } from 'axios';
import { cleanText, ServiceApiError, ServiceRequestError, type CertificateSummary } from '../errors/index.js';
import { checkSignal } from '../config/http.options.js';
import { CallCancelled } from '../exchange/fault.js';
import { ignoreErrors } from '../telemetry/log.js';
import { type CallUrl, routeOf } from './call-url.js';
import { type EncodedBody, takeHeaders } from './call-content.js';

/** The shared parts of one client: its options, its TLS identity, its clock and network, and its count of calls in flight. */
export interface ClientContext {
  options: ResolvedOptions;
  identity: Identity;
  io: ServiceIo;
  calls: CallsInFlight;
}

/** The parts of the authenticator that calls use. */
export type CallAuthenticator = Pick<Authenticator, 'getCached' | 'get' | 'replace' | 'areStillValid'>;

/** The parts of a client that the text of an error depends on. */
export type ErrorClient = Pick<ClientContext, 'options' | 'identity'>;

/**
 * Wraps an error while it passes through axios, because axios changes the errors it sees. It adds fields to the `response` of a
 * ServiceApiError. It also appends the caller's stack to the reason of an abort, and if thousands of calls share one
 * AbortSignal, that reason grows with each of them. createServiceAxios() unwraps the error before the caller gets it. The
 * host application's response interceptors get a ServiceApiError itself, but the reason of an abort wrapped.
 */
export class HiddenFromAxios {
  constructor(readonly reason: unknown) {}
}

/** What the caller passed for one call. `cancelToken` is axios's older way to abort; HttpService's Observables use it. */
export interface CallerInput extends Pick<InternalAxiosRequestConfig, 'signal' | 'cancelToken'> {
  path?: string;
  /** The path with the values of `pathParams` filled in. */
  filled?: string;
  /** Whether the path is a template, because the call has `pathParams`. */
  isTemplate?: boolean;
  /** The path of the base address, such as `/api` of `https://service.example/api`. */
  basePath?: string;
}

/** Counts requests in flight. */
interface RequestCounter {
  enter(): void;
  leave(call: Call): void;
}

const NO_CREDENTIALS: Credentials = {};
const NO_INPUT: CallerInput = {};
/** Visible ASCII, because the id goes into a header and into log lines. */
const USABLE_ID = /^[\x21-\x7e]{1,128}$/;

/**
 * One call, from the interceptor to its result or error, however many attempts it takes. CONTRIBUTING.md lists who writes
 * which field, and when.
 */
export class Call {
  // Times are milliseconds of the monotonic clock.
  readonly startedAt = performance.now();
  endsAt: number;

  /** Counts this request while it is in flight, if the host application has interceptors; otherwise the client counts it. */
  counter: RequestCounter | undefined = undefined;

  // Options of this call that replace those of the client.
  maxRetries: number | undefined = undefined;
  attemptTimeoutMs: number | undefined = undefined;
  maxResponseBytes: number | undefined = undefined;

  // The request. These fields are set by prepare(), or by the interceptor.
  body: string | Uint8Array | undefined = undefined;
  /** The correlation id that is sent with the request. */
  correlationId: string | undefined = undefined;
  /** The caller says that the call changes nothing, whatever its method. */
  readOnly = false;
  /** The service executes a request with this key only once, so the request may be sent again. */
  idempotencyKey: string | undefined = undefined;
  /** Whether the caller supplied the key. Only then can the caller repeat the call later. */
  hasCallerKey = false;
  /** Aborts when the caller aborts. Set by followSignals(). */
  signal: AbortSignal | undefined = undefined;

  // What has happened so far. Almost all of it is written by the runner.
  /** Number of exchanges that asked the agent for a connection. */
  attempts = 0;
  /** Number of attempts that followed a pause. */
  retries = 0;
  /** What the last retry took from the retry budget. */
  budgetTaken: number | undefined = undefined;
  /** Whether another token was requested after a 401, successfully or not. */
  triedOtherToken = false;
  /** Whether another client certificate was found after the server refused ours. */
  hasOtherCertificate = false;
  /** Whether the call was sent again because the server had closed the reused connection. */
  reconnected = false;
  /** Whether the service may have executed an earlier attempt. */
  outcomeUnknown = false;
  /** The client certificate of the last attempt. */
  certificate: CertificateSummary | undefined = undefined;
  /** The last response. */
  response: ExchangeResponse | undefined = undefined;
  /** The error that the call ended with. */
  failure: unknown = undefined;

  // Private fields, because the axios config holds the call while `transformRequest` of the host application runs, and
  // util.inspect() of that config must not show a credential.
  readonly #headers: Record<string, string> = {};
  #credentials = NO_CREDENTIALS;
  readonly #secrets: string[] = [];

  readonly #given: CallerInput;
  /** If the host application has interceptors: the call that this request is a part of. */
  #parent: Call | undefined = undefined;
  #release: (() => void) | undefined = undefined;

  constructor(
    readonly method: string,
    readonly url: CallUrl,
    public timeoutMs: number,
    given: CallerInput = {},
  ) {
    this.endsAt = this.startedAt + timeoutMs;
    this.#given = given;
  }

  // Methods rather than getters, because util.inspect() with `getters: true` would show a getter's value.
  /** Header names are in lower case. The credentials are among them. */
  getHeaders(): Record<string, string> {
    return this.#headers;
  }

  /** The credentials of the last attempt. Before the first attempt: those that the interceptor attached. */
  getCredentials(): Credentials {
    return this.#credentials;
  }

  /** All credentials that this call has ever had. No error may show one of them. */
  getSecrets(): readonly string[] {
    return this.#secrets;
  }

  /** The beginning of messages and log lines: `GET /banks/v1`. */
  get name(): string {
    return `${this.method} ${this.route}`;
  }

  /** The path as messages, logs and events show it: without ids. */
  get route(): string {
    const { pathname } = this.url;
    const { path = pathname, basePath = '', isTemplate = false } = this.#given;
    return routeOf(path, pathname, basePath, isTemplate);
  }

  get leftMs(): number {
    return this.endsAt - performance.now();
  }

  /**
   * Makes this request a part of a call that began before the host application's interceptors. The request ends when that call
   * ends, and is aborted by that call's signal too. If an interceptor has set another `timeout`, a longer one extends the whole
   * call, and a shorter one applies to this request alone.
   */
  belongTo(call: Call): void {
    this.#parent = call;
    this.outcomeUnknown = call.outcomeUnknown;
    if (this.idempotencyKey === call.idempotencyKey) this.hasCallerKey = call.hasCallerKey;
    if (this.timeoutMs > call.timeoutMs) {
      call.timeoutMs = this.timeoutMs;
      call.endsAt = call.startedAt + call.timeoutMs;
    }
    if (this.endsAt < call.endsAt) return;
    this.endsAt = call.endsAt;
    this.timeoutMs = call.timeoutMs;
  }

  /**
   * Puts the template of this call back into a filled path. An interceptor may have added a prefix to that path. Returns
   * undefined if the path does not contain the filled path of this call.
   */
  templateOf(path: string): string | undefined {
    const { path: template = '', filled = '', isTemplate } = this.#given;
    return isTemplate && path.includes(filled) ? path.replace(filled, () => template) : undefined;
  }

  /** Listens to the caller's abort signals until release(). Throws ServiceRequestError if `signal` is not an AbortSignal. */
  followSignals(): void {
    const { signal, cancelToken } = this.#given;
    const parent = this.#parent ? this.#parent.#given : NO_INPUT;
    const parentSignal = this.#parent?.signal;
    // An interceptor may have set another signal than the caller.
    const own = signal && signal !== parent.signal ? checkSignal(signal) : undefined;
    const token = cancelToken === parent.cancelToken ? undefined : cancelToken;
    this.signal = parentSignal ?? own;
    if ((parentSignal && own) || token?.subscribe) this.#followAll([parentSignal, own], token);
  }

  #followAll(signals: readonly (AbortSignal | undefined)[], token: CallerInput['cancelToken']): void {
    const controller = new AbortController();
    const cancel = (): void => controller.abort(new CallCancelled());
    const abort = (): void => controller.abort(signals.find((signal) => signal?.aborted)?.reason);
    if (signals.some((signal) => signal?.aborted)) abort();
    for (const signal of signals) signal?.addEventListener('abort', abort);
    token?.subscribe?.(cancel);
    this.signal = controller.signal;
    this.#release = () => {
      for (const signal of signals) signal?.removeEventListener('abort', abort);
      token?.unsubscribe?.(cancel);
    };
  }

  release(): void {
    this.#release?.();
  }

  /** Wraps an error that axios would change (see {@link HiddenFromAxios}); returns any other error as it is. */
  hideFromAxios(error: unknown): unknown {
    const isAbort = this.signal?.aborted && error === this.signal.reason;
    return isAbort || error instanceof ServiceApiError ? new HiddenFromAxios(error) : error;
  }

  /** Replaces the credentials and their headers. */
  setCredentials(credentials: Credentials): void {
    this.#credentials = credentials;
    for (const name of Object.keys(credentials)) {
      const value = credentials[name];
      this.#headers[name.toLowerCase()] = value;
      this.#secrets.push(name === 'Authorization' ? value.slice(BEARER.length) : value);
    }
  }

  /**
   * Sets the headers and the body, after axios and all code of the host application have run. Authenticating headers of the
   * host application are ignored.
   * @throws ServiceRequestError for headers that cannot be sent
   */
  prepare(
    { headers, responseType }: InternalAxiosRequestConfig,
    { body, contentType }: EncodedBody,
    { appTokenHeader, http }: ResolvedOptions,
  ): void {
    const { correlationIdHeader, idempotencyHeader } = http;
    this.body = body;
    const readsJson = (responseType ?? 'json') === 'json';
    const sent = this.#headers;
    sent['user-agent'] = http.userAgent;
    takeHeaders(sent, headers, readsJson, appTokenHeader.toLowerCase());
    if (contentType) sent['content-type'] = contentType;
    // Axios sets the content type of a form for every POST.
    if (body === undefined) delete sent['content-type'];
    this.correlationId = sent[correlationIdHeader] ?? (http.requestId && makeCorrelationId(http.requestId));
    if (this.correlationId !== undefined) sent[correlationIdHeader] = this.correlationId;
    if (this.idempotencyKey === undefined) return;
    if ((sent[idempotencyHeader] ??= this.idempotencyKey) !== this.idempotencyKey) {
      throw ServiceRequestError.ofMisuse(`header ${idempotencyHeader}`, 'is another key than idempotencyKey');
    }
  }

  setKey(key: true | string | undefined): void {
    this.idempotencyKey = key === true ? randomUUID() : key;
    this.hasCallerKey = typeof key === 'string';
  }
}

/** Asks the host application for the id of a call. Returns undefined if it returns none, or one that cannot be sent. */
function makeCorrelationId(make: () => unknown): string | undefined {
  const id = ignoreErrors(make);
  return typeof id === 'string' && USABLE_ID.test(id) ? id : undefined;
}

/** The correlation id that was sent, for an error or a log line. The caller may have set it, so secrets are removed. */
export function sentCorrelationId(call: Call): string | undefined {
  const { correlationId } = call;
  return correlationId === undefined ? undefined : cleanText(correlationId, call.getSecrets(), 128);
}
