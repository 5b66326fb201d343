import { type CancelToken } from 'axios';
import { type Authenticator, BEARER, type Credentials } from '../auth/authenticator.js';
import { type CallsInFlight } from '../auth/calls-in-flight.js';
import { type ResolvedOptions } from '../config/resolve-options.js';
import { cleanText, ServiceRequestError, type CertificateSummary } from '../errors/index.js';
import { CallCancelled } from '../exchange/fault.js';
import { type ServiceIo, type ExchangeResponse } from '../exchange/io.js';
import { type AttemptTrace, ignoreErrors } from '../telemetry/telemetry.js';
import { type Identity } from '../tls/client-identity.js';
import { type CallUrl, routeOf } from './call-url.js';
import { CONDITIONS, type EncodedBody, takeHeaders } from './call-content.js';
import { type CallConfig } from './call-factory.js';
import { acceptsStatus } from './call-options.js';
import { type HostCall } from './host-call.js';

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

/** What the caller and the interceptors passed for one call, checked by CallFactory. Nothing of it changes afterwards. */
export interface CallDetails {
  /** The path as the caller wrote it, if it has `pathParams`: `/accounts/{account_id}`. */
  readonly template?: string;
  /** The path with the values of `pathParams` filled in. */
  readonly filled?: string;
  /** The path of the base address, such as `/api` of `https://service.example/api`. */
  readonly basePath?: string;
  /** The caller says that the call changes nothing, whatever its method. */
  readonly readOnly?: boolean;
  /** The caller says that sending the call twice has the effect of sending it once. */
  readonly repeatable?: boolean;
  /** The service executes a request with this key only once, so the request may be sent again. */
  readonly idempotencyKey?: string;
  /** Whether the caller supplied the key. Only then can the caller repeat the call later. */
  readonly hasCallerKey?: boolean;
  readonly maxRetries?: number;
  readonly attemptTimeoutMs?: number;
  readonly maxResponseBytes?: number;
  readonly signal?: AbortSignal;
  /** Axios's older way to abort. HttpService's Observables use it. */
  readonly cancelToken?: Partial<CancelToken>;
  /** If the host application has interceptors: its call that this request is a part of. */
  readonly hostCall?: HostCall;
}

const NO_DETAILS: CallDetails = {};
const NO_CREDENTIALS: Credentials = {};
/** Visible ASCII, because the id goes into a header and into log lines. */
const USABLE_ID = /^[\x21-\x7e]{1,128}$/;

/**
 * One call, from the interceptor to its result or error, however many attempts it takes. CONTRIBUTING.md lists who writes
 * which field, and when.
 */
export class Call {
  // Times are milliseconds of the monotonic clock.
  readonly startedAt = performance.now();
  readonly endsAt: number;

  // Set by the adapter before the first attempt.
  body: string | Uint8Array | undefined = undefined;
  /** The correlation id that is sent with the request. */
  correlationId: string | undefined = undefined;
  /** Aborts when the caller aborts. */
  signal: AbortSignal | undefined = undefined;

  // Written by the runner.
  /** Set if `http.onCall` or `http.logCalls` is. One of each exchange that asked the agent for a connection. */
  traces: AttemptTrace[] | undefined = undefined;
  /** The client certificate of the last attempt. */
  certificate: CertificateSummary | undefined = undefined;
  /** Whether the service may have acted on an attempt that has ended, also after a success. False for a call that changes nothing. */
  mayHaveActed = false;
  /** The last response. */
  response: ExchangeResponse | undefined = undefined;

  // Private fields, because the axios config holds the call while `transformRequest` of the host application runs, and
  // util.inspect() of that config must not show a credential.
  readonly #headers: Record<string, string> = {};
  /** All credentials that the call has ever had, the current ones last. */
  readonly #credentials: Credentials[] = [];

  constructor(
    readonly method: string,
    readonly url: CallUrl,
    /** The time limit that the error of a time-out shows. */
    readonly timeoutMs: number,
    readonly details: CallDetails = NO_DETAILS,
    endsAt?: number,
  ) {
    this.endsAt = endsAt ?? this.startedAt + timeoutMs;
  }

  // Methods rather than getters, because util.inspect() with `getters: true` would show a getter's value.
  /** Header names are in lower case. The credentials are among them. */
  getHeaders(): Record<string, string> {
    return this.#headers;
  }

  /** The credentials of the last attempt. Before the first attempt: those that the interceptor attached. */
  getCredentials(): Credentials {
    return this.#credentials.at(-1) ?? NO_CREDENTIALS;
  }

  /** All credentials that this call has ever had. No error may show one of them. */
  getSecrets(): readonly string[] {
    return this.#credentials
      .flatMap((credentials) => Object.entries(credentials))
      .map(([name, value]) => (name === 'Authorization' ? value.slice(BEARER.length) : value));
  }

  /** The beginning of messages and log lines: `GET /banks/v1`. */
  get name(): string {
    return `${this.method} ${this.route}`;
  }

  /** The path as messages, logs and events show it: without ids. */
  get route(): string {
    const { template, basePath = '' } = this.details;
    return routeOf(this.url.pathname, basePath, template);
  }

  get #isRead(): boolean {
    return this.method === 'GET' || this.method === 'HEAD';
  }

  /** Whether the server may answer 304 (RFC 9110, section 13.1). */
  get isConditionalRead(): boolean {
    return this.#isRead && CONDITIONS.some((name) => this.#headers[name] !== undefined);
  }

  get leftMs(): number {
    return this.endsAt - performance.now();
  }

  /** Attaches credentials and their headers, in place of the previous ones. */
  setCredentials(credentials: Credentials): void {
    this.#credentials.push(credentials);
    for (const name of Object.keys(credentials)) this.#headers[name.toLowerCase()] = credentials[name];
  }

  /**
   * Sets the headers and the body, after axios and all code of the host application have run.
   * @throws ServiceRequestError for headers that cannot be sent
   */
  fill(config: CallConfig, { body, contentType }: EncodedBody, options: ResolvedOptions): void {
    const { idempotencyKey } = this.details;
    const { http } = options;
    const { correlationIdHeader, idempotencyHeader } = http;
    this.body = body;
    const sent = this.#headers;
    sent['user-agent'] = http.userAgent;
    const takesNotModified = () =>
      !this.#isRead || config.takesNotModified === true || acceptsStatus(config, 304);
    takeHeaders(sent, config, takesNotModified, options);
    if (contentType) sent['content-type'] = contentType;
    // Axios sets the content type of a form for every POST.
    if (body === undefined) delete sent['content-type'];
    this.correlationId = sent[correlationIdHeader] ?? (http.requestId && makeCorrelationId(http.requestId));
    if (this.correlationId !== undefined) sent[correlationIdHeader] = this.correlationId;
    if (idempotencyKey !== undefined && (sent[idempotencyHeader] ??= idempotencyKey) !== idempotencyKey) {
      throw ServiceRequestError.ofMisuse(`header ${idempotencyHeader}`, 'is another key than idempotencyKey');
    }
  }

  /** Listens to the abort signals of the caller and of interceptors. Returns a function that stops listening. */
  followSignals(): (() => void) | undefined {
    const { cancelToken, hostCall, signal } = this.details;
    const outer = hostCall?.call.signal;
    this.signal = outer ?? signal;
    return (outer && signal) || cancelToken ? this.#followAll([outer, signal], cancelToken ?? {}) : undefined;
  }

  #followAll(signals: readonly (AbortSignal | undefined)[], token: Partial<CancelToken>): () => void {
    const controller = new AbortController();
    const cancel = (): void => controller.abort(new CallCancelled());
    const abort = (): void => controller.abort(signals.find((signal) => signal?.aborted)?.reason);
    token.subscribe?.(cancel);
    if (signals.some((signal) => signal?.aborted)) abort();
    for (const signal of signals) signal?.addEventListener('abort', abort);
    this.signal = controller.signal;
    return () => {
      for (const signal of signals) signal?.removeEventListener('abort', abort);
      token.unsubscribe?.(cancel);
    };
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
