import { type AxiosHeaders, type InternalAxiosRequestConfig } from 'axios';
import { EXCHANGE_HEADERS } from '../config/reserved-headers.js';
import { ServiceConnectionError, ServiceRequestError } from '../errors/index.js';
import { allowListeners } from '../exchange/call-limits.js';
import { ACCEPTED_ENCODINGS } from '../exchange/decode.js';
import { type CallUrl } from './allowed-urls.js';
import { type EncodedBody } from './body.js';

/** One call as it goes over the wire, however many attempts it takes. */
export interface Call {
  method: string;
  url: CallUrl;
  headers: Record<string, string>;
  body?: string | Uint8Array;
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
// RFC 9110, 9.1: a method is a token.
const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;

/** Throws ServiceRequestError for a method that cannot be sent. */
export function toCall(
  { method }: InternalAxiosRequestConfig,
  url: CallUrl,
  headers: Record<string, string>,
  { body, contentType }: EncodedBody,
): Call {
  if (contentType) headers['content-type'] = contentType;
  if (body === undefined) delete headers['content-type'];
  return { method: toMethod(method), url, headers, body };
}

function toMethod(given: unknown = 'get'): string {
  const method = typeof given === 'string' ? given.toUpperCase() : '';
  if (METHOD.test(method) && method !== 'CONNECT' && method !== 'TRACE') return method;
  throw new ServiceRequestError([{ property: 'method', message: 'is none that can be sent' }]);
}

/** Axios's headers as they go over the wire, in lower case. Throws ServiceRequestError for what cannot be sent. */
export function toHeaders(given: AxiosHeaders): Record<string, string> {
  const headers: Record<string, string> = { 'accept-encoding': ACCEPTED_ENCODINGS };
  for (const [name, value] of Object.entries(given)) {
    const key = name.toLowerCase();
    if (value === null || value === undefined || value === false || EXCHANGE_HEADERS.has(key)) continue;
    const text = Array.isArray(value) ? value.join(', ') : String(value);
    if (!HEADER_NAME.test(key)) throw refusedHeader('a header', 'has a name that no header can have');
    if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) {
      throw refusedHeader(`header ${key}`, 'holds a character no header can hold');
    }
    headers[key] = text;
  }
  return headers;
}

/** Adds headers to a call. */
export function setHeaders({ headers }: Call, more: Readonly<Record<string, string>>): void {
  for (const name in more) headers[name.toLowerCase()] = more[name];
}

function refusedHeader(property: string, message: string): ServiceRequestError {
  return new ServiceRequestError([{ property, message }]);
}

/** What ends one call early. */
export interface CallSignal {
  signal?: AbortSignal;
  /** Takes our listener off the caller's cancel token. */
  release?: () => void;
}

/** Joins the caller's AbortSignal and axios's older cancel token, with which HttpService's Observables unsubscribe. */
export function callSignal({ signal, cancelToken }: InternalAxiosRequestConfig): CallSignal {
  const given = signal as AbortSignal | undefined;
  allowListeners(given);
  if (!cancelToken?.subscribe) return { signal: given };
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(new ServiceConnectionError({ kind: 'closed', message: 'The call was cancelled.' }));
  };
  cancelToken.subscribe(abort);
  return {
    signal: given ? AbortSignal.any([given, controller.signal]) : controller.signal,
    release: () => cancelToken.unsubscribe?.(abort),
  };
}
