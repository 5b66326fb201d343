import { randomUUID } from 'node:crypto';
import { type AxiosHeaderValue, type AxiosRequestHeaders, type InternalAxiosRequestConfig } from 'axios';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { cleanText, ServiceRequestError, type CertificateSummary } from '../errors/index.js';
import { followSignal } from '../exchange/call-limits.js';
import { ACCEPTED_ENCODINGS } from '../exchange/decode.js';
import { emptyHeaders } from '../exchange/own-properties.js';
import { CallCancelled, EXCHANGE_HEADERS, type ExchangeResponse } from '../exchange/exchange.types.js';
import { type CallUrl } from './allowed-urls.js';
import { type EncodedBody } from './body.js';
import { type Credentials } from '../auth/authenticator.js';
import { type RequestIds } from './request-ids.js';

/** By what its caller may end a call: its signal, and axios's older cancel token, which HttpService's Observables use. */
export type CallerSignals = Pick<InternalAxiosRequestConfig, 'signal' | 'cancelToken'>;

/**
 * What a call ends with whose caller has aborted it, on its way to that caller, who gets the reason itself. A host's own
 * interceptors see this: to an error, axios adds the frames of each caller, and thousands may share one signal.
 */
export class Aborted {
  constructor(readonly reason: unknown) {}
}

const BEARER = /^Bearer /i;
const NO_CREDENTIALS: Credentials = {};
const NOT_FOLLOWED = (): void => undefined;

/**
 * One call, from the interceptor to its answer or error, however many attempts it takes. Made where its address is
 * judged, completed where axios and the host's code are done with it, and sent as it is then.
 */
export class Call {
  /** Both on the monotonic clock. */
  readonly startedAt = performance.now();
  readonly endsAt: number;

  // As it goes over the wire. From complete() on.
  body: string | Uint8Array | undefined = undefined;
  /** False where the caller asked for text or bytes. */
  readsJson = true;
  /** The correlation id that is sent with it. */
  correlationId: string | undefined = undefined;
  /** The service carries out one call of this key (`http.idempotencyHeader`), so that it may be sent again. */
  idempotencyKey: string | undefined = undefined;
  /** Of its caller. From follow() on. */
  signal: AbortSignal | undefined = undefined;

  // What became of it.
  /** Exchanges that asked for a connection. */
  attempts = 0;
  /** Attempts after a failure that may pass. */
  retries = 0;
  /** What the last of them took from the budget. */
  budgetTaken: number | undefined = undefined;
  /** Attempts with other credentials. */
  replays = 0;
  mayReplay = true;
  /** Our certificate was read again. */
  reloaded = false;
  /** How often a kept-alive connection was closed already. */
  closedConnections = 0;
  /** One of its attempts may have been carried out. */
  inDoubt = false;
  /** Ours, as it was in use in the last attempt. */
  certificate: CertificateSummary | undefined = undefined;
  /** The one that decides. */
  response: ExchangeResponse | undefined = undefined;

  readonly #caller: CallerSignals;
  #release = NOT_FOLLOWED;
  // Private, as code of the host may look into what an interceptor has made.
  readonly #headers = emptyHeaders<Record<string, string>>();
  #credentials = NO_CREDENTIALS;
  readonly #secrets: string[] = [];

  /** @param route as its caller named it */
  constructor(
    readonly method: string,
    readonly url: CallUrl,
    readonly timeoutMs: number,
    readonly route: string | undefined = undefined,
    caller: CallerSignals = {},
  ) {
    this.endsAt = this.startedAt + timeoutMs;
    this.#caller = caller;
  }

  get leftMs(): number {
    return this.endsAt - performance.now();
  }

  /** Listens to its caller, until release(). Throws ServiceRequestError for what is no signal. */
  follow(): void {
    const { signal, cancelToken } = this.#caller;
    const followed = followSignal(signal as AbortSignal | null | undefined);
    this.signal = followed.signal;
    this.#release = followed.release;
    if (cancelToken?.subscribe) this.#followToken(cancelToken);
  }

  #followToken(token: NonNullable<CallerSignals['cancelToken']>): void {
    const { signal: given } = this;
    const release = this.#release;
    const controller = new AbortController();
    const cancel = (): void => controller.abort(new CallCancelled());
    const abort = (): void => controller.abort(given?.reason);
    if (given?.aborted) abort();
    given?.addEventListener('abort', abort);
    token.subscribe?.(cancel);
    this.signal = controller.signal;
    this.#release = () => {
      given?.removeEventListener('abort', abort);
      release();
      token.unsubscribe?.(cancel);
    };
  }

  release(): void {
    this.#release();
  }

  /** The error that it ends with, as axios is to pass it on. */
  ending(error: unknown): unknown {
    return this.signal?.aborted && error === this.signal.reason ? new Aborted(error) : error;
  }

  /** In lower case, with the credentials. */
  get headers(): Record<string, string> {
    return this.#headers;
  }

  get credentials(): Credentials {
    return this.#credentials;
  }

  /** Each credential that was given to it, those before a replay too: no error may show one. */
  get secrets(): readonly string[] {
    return this.#secrets;
  }

  /** Gives it credentials, in place of those that it has. */
  authenticate(credentials: Credentials): void {
    this.#credentials = credentials;
    for (const name of Object.keys(credentials)) {
      const value = credentials[name];
      this.#headers[name.toLowerCase()] = value;
      this.#secrets.push(value.replace(BEARER, ''));
    }
  }

  /**
   * Takes headers and body as axios and the host's code have left them; credentials among them are not sent.
   * @throws ServiceRequestError for what cannot be sent
   */
  complete(
    { headers, responseType }: InternalAxiosRequestConfig,
    { body, contentType }: EncodedBody,
    { appTokenHeader, http }: ResolvedOptions,
    requestIds: RequestIds | undefined,
  ): void {
    const { correlationIdHeader, idempotencyHeader } = http;
    this.body = body;
    this.readsJson = responseType !== 'arraybuffer' && responseType !== 'text';
    const sent = this.#headers;
    sent['user-agent'] = http.userAgent;
    takeHeaders(sent, headers, this.readsJson, appTokenHeader.toLowerCase());
    if (contentType) sent['content-type'] = contentType;
    // Axios gives any POST the type of a form.
    if (body === undefined) delete sent['content-type'];
    requestIds?.addTo(sent);
    this.correlationId = sent[correlationIdHeader];
    if (idempotencyHeader !== undefined && (this.method === 'POST' || this.method === 'PATCH')) {
      this.idempotencyKey = sent[idempotencyHeader] = sent[idempotencyHeader]?.trim() || randomUUID();
    }
  }
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
// RFC 9110, 9.1: a method is a token.
const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;

/** In capitals. Throws ServiceRequestError. */
export function toMethod(given: unknown = 'get'): string {
  const method = typeof given === 'string' ? given.toUpperCase() : '';
  if (METHOD.test(method) && method !== 'CONNECT' && method !== 'TRACE') return method;
  throw ServiceRequestError.of('method', 'cannot be sent');
}

/** In lower case. A host may pass on those of its own caller: what we read is encoded as we know it, and JSON is whole. */
function takeHeaders(
  headers: Record<string, string>,
  given: AxiosRequestHeaders,
  readsJson: boolean,
  appTokenHeader: string,
): void {
  headers.accept = readsJson ? 'application/json' : '*/*';
  headers['accept-encoding'] = ACCEPTED_ENCODINGS;
  for (const name of Object.keys(given)) {
    const key = name.toLowerCase();
    const value = given[name] as AxiosHeaderValue | undefined;
    if (value === null || value === undefined || value === false || EXCHANGE_HEADERS.has(key)) continue;
    if (key === 'authorization' || key === appTokenHeader) continue;
    if (key === 'accept-encoding' || (key === 'range' && readsJson)) continue;
    const text = Array.isArray(value) ? value.join(', ') : String(value);
    if (!HEADER_NAME.test(key))
      throw ServiceRequestError.of('a header', 'has a name that no header can have');
    if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) {
      throw ServiceRequestError.of(`header ${key}`, 'holds a character no header can hold');
    }
    headers[key] = text;
  }
  // A part of what is compressed cannot be read (RFC 9110, 14.2).
  if (headers.range !== undefined) headers['accept-encoding'] = 'identity';
}

/** The correlation id of a call, for an error. It may be the caller's own. */
export function sentId({ correlationId, secrets }: Call): string | undefined {
  return correlationId === undefined ? undefined : cleanText(correlationId, secrets, 128);
}

/** The key of a call, for an error: as it was sent, so none where the caller's own holds a credential. */
export function sentKey({ idempotencyKey: key, secrets }: Call): string | undefined {
  return secrets.some((secret) => secret !== '' && key?.includes(secret)) ? undefined : key;
}
