import { randomUUID } from 'node:crypto';
import { type InternalAxiosRequestConfig } from 'axios';
import { BEARER, type Credentials } from '../../auth/authenticator.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import {
  cleanText,
  ServiceApiError,
  ServiceRequestError,
  type CertificateSummary,
} from '../../errors/index.js';
import { checkSignal } from '../../exchange/call-limits.js';
import { CallCancelled, type ExchangeResponse } from '../../exchange/exchange.types.js';
import { harmless } from '../../telemetry/harmless.js';
import { type CallUrl } from './allowed-urls.js';
import { type EncodedBody } from './body.js';
import { takeHeaders } from './call-headers.js';
import { type InterceptedCall } from '../intercepted-call.js';
import { routeOf } from './path-template.js';

/**
 * Wraps an error while it passes through axios. The caller gets the error itself. Axios would add fields to the `response`
 * of a ServiceApiError, and append the stack of each caller to the reason of an abort: thousands of calls may share one
 * AbortSignal, and so one reason. That is why the application's interceptors see the reason of an abort wrapped, too.
 */
export class PastAxios {
  constructor(readonly reason: unknown) {}
}

/** What its caller gave. Axios's older cancel token ends a call too: HttpService's Observables use it. */
export interface GivenCall extends Pick<InternalAxiosRequestConfig, 'signal' | 'cancelToken'> {
  path?: string;
  /** The same with the values of `pathParams` in it. */
  filled?: string;
  /** With `pathParams`. */
  isTemplate?: boolean;
  /** The path of the service's address. */
  basePath?: string;
}

const NO_CREDENTIALS: Credentials = {};
const NOTHING: GivenCall = {};
/** Visible ASCII, as it goes into a header and log lines. */
const USABLE_ID = /^[\x21-\x7e]{1,128}$/;

/**
 * One call, from the interceptor to its answer or error, however many attempts it takes. The interceptor makes it and attaches
 * the credentials that are at hand. The adapter completes it, after all code of the application. The runner replaces the
 * credentials if others are to be sent.
 */
export class Call {
  /** Both on the monotonic clock. */
  readonly startedAt = performance.now();
  endsAt: number;

  /** What it is a part of, if the application has interceptors. */
  intercepted: InterceptedCall | undefined = undefined;

  // Its own, in place of the module's.
  maxRetries: number | undefined = undefined;
  attemptTimeoutMs: number | undefined = undefined;
  maxResponseBytes: number | undefined = undefined;

  // The request, from complete() on.
  body: string | Uint8Array | undefined = undefined;
  /** The correlation id that is sent with it. */
  correlationId: string | undefined = undefined;
  /** It changes nothing, whatever its method. */
  readOnly = false;
  /** The service carries out one call of this key, so that it may be sent again. */
  idempotencyKey: string | undefined = undefined;
  /** The key is its caller's own, who can send it again later. */
  isKeyNamed = false;
  /** The caller's signal, from follow() on. */
  signal: AbortSignal | undefined = undefined;

  // What has happened so far.
  /** Exchanges that asked for a connection. */
  attempts = 0;
  /** Attempts after a failure that may pass. */
  retries = 0;
  /** How much the last retry took from the budget. */
  budgetTaken: number | undefined = undefined;
  /** After a 401, another token was asked for; there may have been none. */
  triedToken = false;
  /** After ours was refused, another certificate was found. */
  hasOtherCertificate = false;
  /** The server had closed the kept connection that it took first. */
  reconnected = false;
  /** An attempt may have been carried out. */
  outcomeUnknown = false;
  /** Our certificate in the last attempt. */
  certificate: CertificateSummary | undefined = undefined;
  /** The last answer. */
  response: ExchangeResponse | undefined = undefined;
  /** The error that it ended with. */
  failure: unknown = undefined;

  // Private fields, because the call hangs on the axios config while `transformRequest` of the application runs:
  // util.inspect() of that config must not show a credential.
  readonly #headers: Record<string, string> = {};
  #credentials = NO_CREDENTIALS;
  readonly #secrets: string[] = [];

  readonly #given: GivenCall;
  /** The call that it belongs to, if the application has interceptors. */
  #of: Call | undefined = undefined;
  #release: (() => void) | undefined = undefined;

  constructor(
    readonly method: string,
    readonly url: CallUrl,
    public timeoutMs: number,
    given: GivenCall = {},
  ) {
    this.endsAt = this.startedAt + timeoutMs;
    this.#given = given;
  }

  // Methods, because util.inspect() reads getters if it is told to.
  /** In lower case, with the credentials. */
  getHeaders(): Record<string, string> {
    return this.#headers;
  }

  /** Those of the last attempt, or from the interceptor on those of the next one. */
  getCredentials(): Credentials {
    return this.#credentials;
  }

  /** All credentials that it ever had: no error may show one. */
  getSecrets(): readonly string[] {
    return this.#secrets;
  }

  /** How messages and log lines begin: `GET /banks/v1`. */
  get name(): string {
    return `${this.method} ${this.route}`;
  }

  /** How messages, logs and events name its path. */
  get route(): string {
    const { pathname } = this.url;
    const { path = pathname, basePath = '', isTemplate = false } = this.#given;
    return routeOf(path, pathname, basePath, isTemplate);
  }

  get leftMs(): number {
    return this.endsAt - performance.now();
  }

  /**
   * Makes it a request of a call that began earlier, and follows that one's signal too. It ends with that call, unless an
   * interceptor has set another `timeout`: a longer one prolongs that call, a shorter one is for this request.
   */
  belongTo(call: Call): void {
    this.#of = call;
    this.outcomeUnknown = call.outcomeUnknown;
    if (this.idempotencyKey === call.idempotencyKey) this.isKeyNamed = call.isKeyNamed;
    if (this.timeoutMs > call.timeoutMs) {
      call.timeoutMs = this.timeoutMs;
      call.endsAt = call.startedAt + call.timeoutMs;
    }
    if (this.endsAt < call.endsAt) return;
    this.endsAt = call.endsAt;
    this.timeoutMs = call.timeoutMs;
  }

  /** The template of a path that has the filled path of this call in it: an interceptor may have put a prefix before it. */
  templateOf(path: string): string | undefined {
    const { path: template = '', filled = '', isTemplate } = this.#given;
    return isTemplate && path.includes(filled) ? path.replace(filled, () => template) : undefined;
  }

  /** Follows the signals of its caller until release(). Throws ServiceRequestError if one is not a signal. */
  follow(): void {
    const { signal, cancelToken } = this.#given;
    const asked = this.#of ? this.#of.#given : NOTHING;
    const ofAsked = this.#of?.signal;
    // Of an interceptor, if that call has another one.
    const own = signal && signal !== asked.signal ? checkSignal(signal) : undefined;
    const token = cancelToken === asked.cancelToken ? undefined : cancelToken;
    this.signal = ofAsked ?? own;
    if ((ofAsked && own) || token?.subscribe) this.#followAll([ofAsked, own], token);
  }

  #followAll(signals: readonly (AbortSignal | undefined)[], token: GivenCall['cancelToken']): void {
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

  /** The error that it ends with, as axios is to pass it on. */
  ending(error: unknown): unknown {
    const isAbort = this.signal?.aborted && error === this.signal.reason;
    return isAbort || error instanceof ServiceApiError ? new PastAxios(error) : error;
  }

  /** Replaces its credentials. */
  authenticate(credentials: Credentials): void {
    this.#credentials = credentials;
    for (const name of Object.keys(credentials)) {
      const value = credentials[name];
      this.#headers[name.toLowerCase()] = value;
      this.#secrets.push(name === 'Authorization' ? value.slice(BEARER.length) : value);
    }
  }

  /**
   * Takes headers and body as axios and the application's code have left them. Of the headers that authenticate, it keeps its
   * own.
   * @throws ServiceRequestError for headers that cannot be sent
   */
  complete(
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
    // Axios gives any POST the type of a form.
    if (body === undefined) delete sent['content-type'];
    this.correlationId = sent[correlationIdHeader] ?? (http.requestId && madeId(http.requestId));
    if (this.correlationId !== undefined) sent[correlationIdHeader] = this.correlationId;
    if (this.idempotencyKey === undefined) return;
    if ((sent[idempotencyHeader] ??= this.idempotencyKey) !== this.idempotencyKey) {
      throw ServiceRequestError.ofMisuse(`header ${idempotencyHeader}`, 'is another key than idempotencyKey');
    }
  }

  setKey(key: true | string | undefined): void {
    this.idempotencyKey = key === true ? randomUUID() : key;
    this.isKeyNamed = typeof key === 'string';
  }
}

/** The host's own id of a call; undefined if there is none, or none that can be sent. */
function madeId(make: () => unknown): string | undefined {
  const id = harmless(make);
  return typeof id === 'string' && USABLE_ID.test(id) ? id : undefined;
}

/** The correlation id of a call, for an error. It may be the caller's own. */
export function sentId(call: Call): string | undefined {
  const { correlationId } = call;
  return correlationId === undefined ? undefined : cleanText(correlationId, call.getSecrets(), 128);
}
