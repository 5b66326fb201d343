import { randomUUID } from 'node:crypto';
import { type AxiosHeaderValue, type AxiosRequestHeaders, type InternalAxiosRequestConfig } from 'axios';
import { type Credentials } from '../auth/authenticator.js';
import { type HttpSettings } from '../config/resolved-options.js';
import { cleanText, ServiceRequestError } from '../errors/index.js';
import { followSignal, type FollowedSignal } from '../exchange/call-limits.js';
import { ACCEPTED_ENCODINGS } from '../exchange/decode.js';
import { noHeaders } from '../exchange/own-properties.js';
import { CallCancelled, EXCHANGE_HEADERS } from '../exchange/exchange.types.js';
import { type CallUrl } from './allowed-urls.js';
import { encodeBody } from './body.js';

/** One call as it goes over the wire, however many attempts it takes. */
export interface Call {
  method: string;
  url: CallUrl;
  headers: Record<string, string>;
  body?: string | Uint8Array;
  /** The correlation id that is sent with it. */
  correlationId?: string;
  /** The service carries out one call of this key (`http.idempotencyHeader`), so that it may be sent again. */
  idempotencyKey?: string;
  /** One of its attempts may have been carried out. */
  inDoubt?: boolean;
  /** False where the caller asked for text or bytes. */
  readsJson: boolean;
  /** Those that it has now. */
  credentials: Credentials;
  /** Each credential that was sent with it, those before a replay too: no error may show one. */
  secrets: string[];
}

/** When a call ends without an answer. */
export interface CallLimits {
  /** Of the caller: its signal, its cancel token, or both. */
  signal?: AbortSignal;
  /** Both on the monotonic clock. */
  startedAt: number;
  endsAt: number;
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
// RFC 9110, 9.1: a method is a token.
const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;

/**
 * A config as it goes over the wire, with its credentials.
 * @throws ServiceRequestError for what cannot be sent
 */
export async function toCall(
  config: InternalAxiosRequestConfig,
  url: CallUrl,
  credentials: Credentials,
  { correlationIdHeader, idempotencyHeader }: Pick<HttpSettings, 'correlationIdHeader' | 'idempotencyHeader'>,
): Promise<Call> {
  const encoded = encodeBody(config.data);
  const { body, contentType } = encoded instanceof Promise ? await encoded : encoded;
  const readsJson = config.responseType !== 'arraybuffer' && config.responseType !== 'text';
  const headers = toHeaders(config.headers, readsJson);
  if (contentType) headers['content-type'] = contentType;
  if (body === undefined) delete headers['content-type'];
  const method = toMethod(config.method);
  const correlationId = headers[correlationIdHeader];
  const isKeyed = idempotencyHeader !== undefined && (method === 'POST' || method === 'PATCH');
  const idempotencyKey = isKeyed ? headers[idempotencyHeader]?.trim() || randomUUID() : undefined;
  if (isKeyed && idempotencyKey) headers[idempotencyHeader] = idempotencyKey;
  const call = {
    method,
    url,
    headers,
    body,
    correlationId,
    idempotencyKey,
    readsJson,
    credentials,
    secrets: [],
  };
  setCredentials(call, credentials);
  return call;
}

const BEARER = /^Bearer /i;

function toMethod(given: unknown = 'get'): string {
  const method = typeof given === 'string' ? given.toUpperCase() : '';
  if (METHOD.test(method) && method !== 'CONNECT' && method !== 'TRACE') return method;
  throw ServiceRequestError.of('method', 'is none that can be sent');
}

/** In lower case. A host may pass on those of its own caller: what we read is encoded as we know it, and JSON is whole. */
function toHeaders(given: AxiosRequestHeaders, readsJson: boolean): Record<string, string> {
  // Without a prototype: a setter that somebody put into Object.prototype would get their values.
  const headers = noHeaders<Record<string, string>>();
  headers.accept = readsJson ? 'application/json' : '*/*';
  headers['accept-encoding'] = ACCEPTED_ENCODINGS;
  for (const name of Object.keys(given)) {
    const key = name.toLowerCase();
    const value = given[name] as AxiosHeaderValue | undefined;
    if (value === null || value === undefined || value === false || EXCHANGE_HEADERS.has(key)) continue;
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
  return headers;
}

/** Puts credentials into a call, in place of those that it has. */
export function setCredentials(call: Call, credentials: Credentials): void {
  const { headers, secrets } = call;
  call.credentials = credentials;
  for (const [name, value] of Object.entries(credentials)) {
    headers[name.toLowerCase()] = value;
    secrets.push(value.replace(BEARER, ''));
  }
}

/** The correlation id of a call, for an error. It may be the caller's own. */
export function sentId({ correlationId, secrets = [] }: Partial<Call>): string | undefined {
  return correlationId === undefined ? undefined : cleanText(correlationId, secrets, 128);
}

/** The key of a call, for an error: as it was sent, so none where the caller's own holds a secret. */
export function sentKey({ idempotencyKey: key, secrets = [] }: Partial<Call>): string | undefined {
  return key !== undefined && cleanText(key, secrets, Infinity) === key ? key : undefined;
}

/**
 * A call's AbortSignal and axios's older cancel token, by which HttpService's Observables unsubscribe, as one signal.
 * `release` removes our listeners.
 */
export function toCallSignal({
  signal,
  cancelToken,
}: Pick<InternalAxiosRequestConfig, 'signal' | 'cancelToken'>): FollowedSignal {
  const followed = followSignal(signal as AbortSignal | null | undefined);
  const { signal: given } = followed;
  if (!cancelToken?.subscribe) return followed;
  const controller = new AbortController();
  const cancel = (): void => controller.abort(new CallCancelled());
  const abort = (): void => controller.abort(given?.reason);
  if (given?.aborted) abort();
  given?.addEventListener('abort', abort);
  cancelToken.subscribe(cancel);
  return {
    signal: controller.signal,
    release: () => {
      given?.removeEventListener('abort', abort);
      followed.release();
      cancelToken.unsubscribe?.(cancel);
    },
  };
}
