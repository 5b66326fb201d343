import { type InternalAxiosRequestConfig, type AxiosHeaderValue } from 'axios';
import { cleanText, ServiceRequestError } from '../errors/index.js';
import { HEADER_NAME, isHeaderValue } from '../config/option.js';
import { type ResolvedOptions } from '../config/resolve-options.js';
import { ACCEPTED_ENCODINGS } from '../exchange/body.js';
import { EXCHANGE_HEADERS } from '../exchange/io.js';

export interface EncodedBody {
  body?: string | Uint8Array;
  /** The content type that the body needs, such as that of a form with its boundary. */
  contentType?: string;
}

const NO_BODY: EncodedBody = {};
const PASS_BIGINT = 'Pass the number as text, or with JSON.rawJSON() (Node 22 and later).';
const INSTEAD =
  'send a string, Buffer, FormData or Blob; to stream, use a client of your own with auth.httpsAgent and auth.authorizationHeaders()';

/**
 * Refuses a stream as the body. A stream can be sent only once, so neither a retry nor a replay would be possible. The stream
 * belongs to the host application, so it is not read, not closed, and gets no listener. Throws ServiceRequestError.
 */
function refuseStream(data: unknown): void {
  if (typeof data !== 'object' || data === null) return;
  const { pipe, getReader, getBoundary } = data as Record<string, unknown>;
  if (typeof pipe === 'function' && typeof getBoundary === 'function') {
    throw ServiceRequestError.ofMisuse(
      'data',
      "is a form of the form-data package; use the global FormData, with Blobs for a file's bytes",
    );
  }
  const isStream =
    typeof pipe === 'function' || typeof getReader === 'function' || Symbol.asyncIterator in data;
  if (isStream) throw ServiceRequestError.ofMisuse('data', `is a stream; ${INSTEAD}`);
}

/** Errors of values that a user of the host application may have sent: nested too deep, an invalid date, half of a surrogate pair. */
const OF_USERS = new Set(['RangeError', 'URIError']);

/** Makes the error for data or params that cannot be encoded. A BigInt, a symbol or a circular object is a fault of the code. */
export function notEncoded(property: string, error: unknown): ServiceRequestError {
  const { name, code, message } = Object(error) as Partial<NodeJS.ErrnoException>;
  const text = cleanText(`could not be encoded (${String(message)})`, [], 200);
  // Axios limits the depth of params itself.
  if (OF_USERS.has(String(name)) || code === 'ERR_FORM_DATA_DEPTH_EXCEEDED')
    return ServiceRequestError.of(property, text);
  return ServiceRequestError.ofMisuse(property, text, text.includes('BigInt') ? PASS_BIGINT : undefined);
}

/**
 * Carries a body through axios, which copies plain objects when it merges options. A copy would lose numbers of JSON.rawJSON() and a
 * toJSON() that is not enumerable, and could not be made of an object that contains itself.
 */
class CarriedBody {
  constructor(readonly data: unknown) {}
}

/** The options of a call for axios. */
export function carryBody<T extends { data?: unknown }>(config: T): T {
  const { data } = config;
  return typeof data === 'object' && data !== null ? { ...config, data: new CarriedBody(data) } : config;
}

/**
 * Puts the body back, before a function of the host application sees the options.
 * @param copies whether such a function follows, which may change the body. The caller may send its own object again.
 */
export function takeBody(config: InternalAxiosRequestConfig, copies: boolean): void {
  const carried: unknown = config.data;
  if (!(carried instanceof CarriedBody)) return;
  try {
    config.data = copies ? copyOf(carried.data, new Map()) : carried.data;
  } catch {
    // It is nested too deep, and will be refused when it is encoded.
    config.data = carried.data;
  }
}

/** Copies plain objects and lists. What JSON.stringify() writes in a form of its own stays the same object. */
function copyOf(value: unknown, copies: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (copies.has(value)) return copies.get(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  const { isRawJSON } = JSON as { isRawJSON?: (given: unknown) => boolean };
  const isOwnForm = typeof (value as { toJSON?: unknown }).toJSON === 'function' || isRawJSON?.(value);
  if (isOwnForm || !(isPlain || Array.isArray(value))) return value;
  const copy: object = Array.isArray(value) ? [] : {};
  copies.set(value, copy);
  for (const [key, each] of Object.entries(value)) {
    // A plain assignment to `__proto__` would set the prototype.
    const property = { value: copyOf(each, copies), writable: true, enumerable: true, configurable: true };
    Object.defineProperty(copy, key, property);
  }
  return copy;
}

const FORM = 'application/x-www-form-urlencoded;charset=utf-8';

/** A string that begins like a JSON object or array. */
const JSON_TEXT = /^\s*[[{]/;

/**
 * Runs before the host application's `transformRequest`. Refuses streams, and sets the content type if the application has not
 * set one. Axios then sets the content type of a form for any other string.
 */
export function prepareBody(config: InternalAxiosRequestConfig): void {
  const { headers } = config;
  const data: unknown = config.data;
  if (typeof data === 'string' && JSON_TEXT.test(data)) headers.setContentType('application/json', false);
  if (typeof data !== 'object' || data === null) return;
  refuseStream(data);
  // Axios's own transform, which the host application may use, would send the whole ArrayBuffer behind a view.
  if (ArrayBuffer.isView(data)) config.data = bytesOf(data);
  const kind = classNameOf(data);
  if (kind === 'URLSearchParams') headers.setContentType(FORM, false);
  else if (!SENT_AS_IS.has(kind) && !ArrayBuffer.isView(data))
    headers.setContentType('application/json', false);
}

/** Classes that are not sent as JSON. They are compared by name, because they may come from another realm or a polyfill. */
const SENT_AS_IS = new Set(['ArrayBuffer', 'Blob', 'File', 'FormData', 'URLSearchParams']);

function classNameOf(data: unknown): string {
  return Object.prototype.toString.call(data).slice(8, -1);
}

/**
 * Encodes a body after axios and the host application's `transformRequest` have run. An object becomes JSON. Strings, bytes,
 * forms and Blobs are sent byte for byte, because the application may have signed them. Returns a promise for forms and Blobs
 * only. Throws ServiceRequestError for a body that cannot be sent.
 */
export function encodeBody({
  headers,
  data,
}: Pick<InternalAxiosRequestConfig, 'headers' | 'data'>): EncodedBody | Promise<EncodedBody> {
  if (data === undefined) return NO_BODY;
  const contentType = String(headers.getContentType() ?? '');
  const isJson = contentType.includes('application/json');
  if (data === null && !isJson) return NO_BODY;
  refuseStream(data);
  if (typeof data === 'string') return { body: data };
  if (ArrayBuffer.isView(data)) return { body: bytesOf(data) };
  if (data instanceof ArrayBuffer) return { body: Buffer.from(data) };
  const kind = classNameOf(data);
  if (kind === 'URLSearchParams') return { body: (data as URLSearchParams).toString() };
  if (data instanceof FormData || data instanceof Blob) return encodeForm(data);
  const isValue = ['number', 'boolean', 'bigint'].includes(typeof data) && isJson;
  if (SENT_AS_IS.has(kind) || (typeof data !== 'object' && !isValue)) {
    const advice = typeof data === 'bigint' ? PASS_BIGINT : undefined;
    throw ServiceRequestError.ofMisuse('data', 'is of a kind that cannot be sent', advice);
  }
  if (/form/i.test(contentType)) {
    throw ServiceRequestError.ofMisuse(
      'data',
      'is an object, but the content type is that of a form: send URLSearchParams or FormData',
    );
  }
  return { body: toJson(data), contentType: contentType || 'application/json' };
}

function toJson(data: unknown): string | undefined {
  try {
    return JSON.stringify(data);
  } catch (error) {
    throw notEncoded('data', error);
  }
}

async function encodeForm(data: FormData | Blob): Promise<EncodedBody> {
  const encoded = new Response(data);
  const contentType = encoded.headers.get('content-type') ?? undefined;
  return { body: Buffer.from(await encoded.arrayBuffer()), contentType };
}

/** The bytes of the view alone, without the rest of the ArrayBuffer behind it. */
function bytesOf(data: ArrayBufferView): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

const LEAVE_OUT =
  'Leave this header out: the module authenticates its calls with the credentials of its configuration. If the application passes on the headers of its own callers, it has to leave out this one.';

/** Conditions of a read, which a server may answer with 304. Other conditions, such as `if-match`, protect a change, and are always sent. */
export const CONDITIONS = ['if-none-match', 'if-modified-since'];

/**
 * Copies the headers that the host application has set, with names in lower case. The application may pass on its own caller's
 * headers. So `accept-encoding` is replaced by the encodings that we can decode, `range` is dropped if the response is JSON, and
 * conditions are dropped if a 304 would be an error.
 * @param takesNotModified whether a 304 is a result for the caller. Asked only for a request with a condition
 * @throws ServiceRequestError for a name or a value that cannot be sent, and for credentials: if they were ignored, code that still
 * makes its own token would never learn why it gets 401
 */
export function takeHeaders(
  headers: Record<string, string>,
  { headers: given, responseType }: Pick<InternalAxiosRequestConfig, 'headers' | 'responseType'>,
  takesNotModified: () => boolean,
  { appTokenHeader, http }: Pick<ResolvedOptions, 'appTokenHeader' | 'http'>,
): void {
  const readsJson = (responseType ?? 'json') === 'json';
  const appTokenKey = appTokenHeader.toLowerCase();
  headers.accept = readsJson ? 'application/json' : '*/*';
  Object.assign(headers, http.headers);
  headers['accept-encoding'] = ACCEPTED_ENCODINGS;
  for (const name of Object.keys(given)) {
    const key = name.toLowerCase();
    const value = given[name] as AxiosHeaderValue | undefined;
    if (value === null || value === undefined || value === false || EXCHANGE_HEADERS.has(key)) continue;
    if (key === 'authorization' || key === appTokenKey)
      throw ServiceRequestError.ofMisuse(`header ${key}`, 'is set by the module itself', LEAVE_OUT);
    if (key === 'accept-encoding' || (key === 'range' && readsJson)) continue;
    if (CONDITIONS.includes(key) && !takesNotModified()) continue;
    const text = Array.isArray(value) ? value.join(', ') : String(value);
    if (!HEADER_NAME.test(key))
      throw ServiceRequestError.of('a header', 'has a name that no header can have');
    if (!isHeaderValue(text)) {
      throw ServiceRequestError.of(`header ${key}`, 'holds a character no header can hold');
    }
    headers[key] = text;
  }
  // A part of a compressed body cannot be decoded (RFC 9110, section 14.2).
  if (headers.range !== undefined) headers['accept-encoding'] = 'identity';
}
