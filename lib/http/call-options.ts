import { type AxiosRequestConfig, type InternalAxiosRequestConfig } from 'axios';
import { ServiceRequestError } from '../errors/index.js';
import { hintIfString } from '../config/http.options.js';
import { isSuccess } from '../exchange/response.js';
import { type BodyParser, type ResponseParser } from './parse-option.js';
import { type PathParams } from './call-url.js';

/** Options of every call. */
export interface CallOptions {
  /** Aborts this call, which then rejects with `signal.reason`. */
  signal?: AbortSignal | undefined;
  /**
   * Milliseconds for the whole call, at most a day. Retries, the body and the application's interceptors are included. Default:
   * `http.timeout`, also for 0.
   */
  timeout?: number | undefined;
}

/** Gives the body of the response its type. */
export interface ParseOption<T> {
  /**
   * A function or a Standard Schema that checks the body of the response. The call resolves with what it returns. For a
   * response without a body it gets `undefined`. If the body does not fit, the call rejects with a ServiceApiError
   * `invalid_response`, which keeps the body in `response.data`. The error's message names the places in the body, but shows no
   * value and nothing of what the parser threw. `parse` runs once, after the call: no retry follows, and neither `timeout` nor
   * `signal` ends an asynchronous `parse`.
   */
  parse?: ResponseParser<T> | undefined;
}

/** `parse`, beside `responseType`: a function for `text` may take a string, and one for `bytes` a Uint8Array. */
export type ReadOption<T> =
  | ParseOption<T>
  | { responseType: 'text'; parse: BodyParser<string, T> }
  | { responseType: 'bytes'; parse: BodyParser<Uint8Array, T> };

/** Options of a call that may change something. */
export interface HeaderOptions extends CallOptions {
  /** Further headers, such as a correlation id. Authenticating headers are refused: the module sets its own. */
  headers?: Record<string, string> | undefined;
  /**
   * For a POST or PATCH that the service executes only once for each key. All attempts send this key (1 to 255 visible ASCII
   * characters), or with `true` a random UUID, in the header `http.idempotencyHeader`. The call is then retried like a GET. If
   * the outcome is unknown all the same, the error has the key. Without a key (also for `undefined`) the call is not retried
   * after it may have been executed.
   */
  idempotencyKey?: true | string | undefined;
  /** Number of retries, 0 to 10, in place of `http.retries`. */
  retries?: number | undefined;
  /** Milliseconds for each attempt that a retry may follow, in place of `http.attemptTimeout`. */
  attemptTimeout?: number | undefined;
}

/** Options of a call by its path. */
export interface HttpCallOptions extends HeaderOptions {
  /** Query parameters. */
  params?: Record<string, unknown> | URLSearchParams | undefined;
  /** How `params` are written, as in axios. Example: `{ indexes: null }` gives `a=1&a=2`. */
  paramsSerializer?: AxiosRequestConfig['paramsSerializer'] | undefined;
  /**
   * The values of the names in the path: `{ order_id }` for `/orders/v1/{order_id}`. Each value is encoded, so that a slash in
   * it does not lead to another path. Errors, logs and events then show the template. Pass `{}` for a path that contains no
   * ids, so that it is shown as it is.
   */
  pathParams?: PathParams | undefined;
  /** The call changes nothing, whatever its method, such as a POST that only reads. It is then retried like a GET. */
  readOnly?: boolean | undefined;
  /**
   * For a POST, PUT, PATCH or DELETE that has the same effect if it is sent twice as if it is sent once, such as a PUT with an id of
   * the application. HTTP calls such a request idempotent. It is then retried like a GET. Without effect on a call that changes nothing.
   */
  repeatable?: boolean | undefined;
  /** Maximum size of the decompressed response body in bytes, in place of `http.maxResponseBytes`. */
  maxResponseBytes?: number | undefined;
  /**
   * How the body of a successful response is read, if not as JSON: `text` gives a string, `bytes` a Uint8Array. `parse` gets
   * the same. The body of an error response is read as JSON all the same.
   */
  responseType?: ResponseType | undefined;
}

/** How the body of a successful response is read, if not as JSON. */
export type ResponseType = 'text' | 'bytes';

/** Options of a call by its path, with method and body. */
export interface HttpRequestOptions extends HttpCallOptions {
  /** Default GET. */
  method?: string | undefined;
  /**
   * The body. An object is sent as JSON; a Buffer, typed array, URLSearchParams, FormData or Blob as it is. A string is sent
   * byte for byte, whatever its content type. If no content type is set, a string that begins with `{` or `[` is sent as
   * application/json.
   */
  data?: unknown;
}

/** Returns the whole number, or undefined if the option is not set. Throws ServiceRequestError for any other value. */
export function checkWhole(
  option: 'retries' | 'maxResponseBytes',
  value: unknown,
  min: number,
  max: number,
): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  throw ServiceRequestError.ofMisuse(
    option,
    `must be a whole number from ${min} to ${max}${hintIfString(value)}`,
  );
}

/** Whether a status is a result for the caller. As in axios, `validateStatus: null` accepts every status. */
export function acceptsStatus(
  { validateStatus }: Pick<InternalAxiosRequestConfig, 'validateStatus'>,
  status: number,
): boolean {
  return validateStatus ? validateStatus(status) : isSuccess(status) || validateStatus === null;
}

/** In axios, `arraybuffer` means a Buffer. */
const TYPES: readonly unknown[] = ['json', 'text', 'bytes', 'arraybuffer'];

/** Throws ServiceRequestError for the other response types of axios: for `stream`, the caller would get a string. */
export function checkResponseType(type: unknown): void {
  if (!type || TYPES.includes(type)) return;
  throw ServiceRequestError.ofMisuse(
    'responseType',
    "must be 'json', 'text' or 'bytes'; to stream, use a client of your own with auth.httpsAgent",
  );
}

/** Throws ServiceRequestError for a call that changes nothing and something at the same time. */
export function checkRepeatable(repeatable: unknown, readOnly: boolean): boolean {
  if (repeatable === true && readOnly)
    throw ServiceRequestError.ofMisuse('repeatable', 'cannot be combined with readOnly');
  return repeatable === true;
}

/** Throws ServiceRequestError for a key that the call cannot have. */
export function checkIdempotencyKey(
  key: unknown,
  method: string,
  readOnly: boolean,
): true | string | undefined {
  if (key === undefined || key === null) return undefined;
  const isKey = key === true || (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key));
  if (!isKey) {
    throw ServiceRequestError.ofMisuse('idempotencyKey', 'must be true or 1 to 255 visible ASCII characters');
  }
  if (readOnly || (method !== 'POST' && method !== 'PATCH')) {
    throw ServiceRequestError.ofMisuse(
      'idempotencyKey',
      'is for a POST or PATCH, and cannot be combined with readOnly',
    );
  }
  return key;
}

const PARSED =
  "is not used, because the response is parsed before axios would call it: set responseType 'text', and parse the text in parse";
const BROWSER = 'is for browsers: leave it out';
const CONNECTS =
  'is not used, because the module opens its own connections: set its options urls, tls and http, or use a client of your own with auth.httpsAgent';
const REDIRECTS = 'is not used, because redirects are never followed: set the address they lead to';
const PROGRESS = 'is never called, because bodies are sent and read as a whole: leave it out';
const FORMS = 'is not used, because objects are never converted to forms: send URLSearchParams or FormData';
const UNSET = [null];

/**
 * The options of axios that have no effect here. If they were ignored silently, an application that moves its calls to this
 * module would get other data, or use another connection, without noticing. So a call with one of them is refused.
 */
const REFUSALS: readonly [names: string, instead: string, same?: readonly unknown[]][] = [
  // In axios, `transformResponse: null` switches the parsing off, so null is refused too.
  ['transformResponse', PARSED, []],
  ['parseReviver', PARSED],
  ['responseEncoding', "is not used: set responseType 'bytes', and decode them", [null, 'utf8', 'utf-8']],
  ['auth', 'is not sent, because the module authenticates its calls by itself: leave it out'],
  ['proxy', "is not used: set the module's option http.proxy", [null, false]],
  // `auth.httpsAgent` itself is accepted.
  ['httpAgent httpsAgent', CONNECTS],
  ['socketPath allowedSocketPaths transport lookup family env fetchOptions http2Options', CONNECTS],
  ['httpVersion', CONNECTS, [null, 1]],
  ['insecureHTTPParser', CONNECTS, [null, false]],
  ['maxRedirects', REDIRECTS, [null, 0]],
  ['beforeRedirect', REDIRECTS],
  ['decompress', 'is not used, because responses are always decompressed: leave it out', [null, true]],
  ['maxContentLength', 'is not used: set maxResponseBytes'],
  ['maxBodyLength', 'is not used, because a body may be of any size: leave it out', [null, -1, Infinity]],
  ['maxRate', 'is not used: leave it out'],
  ['timeoutErrorMessage', 'is not used: a time-out is a ServiceConnectionError, with a message of its own'],
  ['onUploadProgress onDownloadProgress', PROGRESS],
  ['formSerializer formDataHeaderPolicy', FORMS],
  ['withCredentials withXSRFToken', BROWSER, [null, false]],
  ['xsrfCookieName xsrfHeaderName', BROWSER, [null, '']],
];

/** The refusals, by the name of the option. */
export const REFUSED = new Map(
  REFUSALS.flatMap(([names, instead, same = UNSET]) =>
    names.split(' ').map((name) => [name, { instead, same }] as const),
  ),
);

/**
 * Throws ServiceRequestError for an option of axios that has no effect here.
 * @param config the options of a call, merged with the defaults of its instance
 * @param ownAgent `auth.httpsAgent`, over which calls are sent anyway
 */
export function refuseAxiosOptions(config: InternalAxiosRequestConfig, ownAgent: unknown): void {
  for (const name of Object.keys(config)) {
    const refusal = REFUSED.get(name);
    if (refusal === undefined) continue;
    const value = config[name as 'auth'] as unknown;
    const isSame = value === undefined || value === ownAgent || refusal.same.includes(value);
    if (!isSame) throw ServiceRequestError.ofMisuse(name, refusal.instead);
  }
  if (config.transitional?.forcedJSONParsing === false)
    throw ServiceRequestError.ofMisuse('transitional.forcedJSONParsing', PARSED);
}
