import { type AxiosRequestConfig } from 'axios';
import { ServiceRequestError } from '../../errors/index.js';
import { ifText } from '../../exchange/call-limits.js';
import { type AnswerParser } from './parse-option.js';
import { type PathParams } from './path-template.js';

/** Options of every call. */
export interface CallOptions {
  /** Aborts this call alone; it then rejects with `signal.reason`. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for the whole call, at most a day: retries, body and the application's interceptors included. Default (also for 0): `http.timeout`. */
  timeout?: number | undefined;
}

/** Gives an answer its type. */
export interface ParseOption<T> {
  /**
   * Checks the body of the answer; the call resolves with what it returns. It also gets the `undefined` of an answer
   * without a body. If the body does not fit, the call rejects with a ServiceApiError `invalid_response` that keeps it in
   * `response.data`; the message names the places in it and no value, and nothing of what a parser throws. It runs once,
   * when the call is over: no retry follows, and neither `timeout` nor `signal` ends an asynchronous one.
   */
  parse?: AnswerParser<T> | undefined;
}

/** Of a call that may change something. */
export interface HeaderOptions extends CallOptions {
  /** Further headers, such as a correlation id; the authenticating ones are the module's. */
  headers?: Record<string, string> | undefined;
  /**
   * For a POST or PATCH that the service carries out once for each key: all attempts carry this key (1 to 255 visible ASCII
   * characters), or with `true` a random UUID, in `http.idempotencyHeader`. It may then be sent again like a GET. If the
   * outcome is lost all the same, the error has the key.
   */
  idempotencyKey?: true | string | undefined;
  /** Retries of a call that failed, 0 to 10, in place of `http.retries`. */
  retries?: number | undefined;
  /** Milliseconds for an attempt that another may follow, in place of `http.attemptTimeout`. */
  attemptTimeout?: number | undefined;
}

/** Of a call by its path. */
export interface HttpCallOptions extends HeaderOptions {
  /** Query parameters. */
  params?: Record<string, unknown> | URLSearchParams | undefined;
  /** How `params` are written, as in axios: `{ indexes: null }` for `a=1&a=2`. */
  paramsSerializer?: AxiosRequestConfig['paramsSerializer'] | undefined;
  /**
   * The values of the names in the path: `{ order_id }` for `/orders/v1/{order_id}`. They are encoded: a slash in one does
   * not lead to another path. Errors, logs and events then have the path with its names. `{}`: the path holds no ids.
   */
  pathParams?: PathParams | undefined;
  /** The call changes nothing, whatever its method (a POST that only reads): it may be sent again like a GET. */
  readOnly?: boolean | undefined;
  /** Bytes of the answer, decompressed, in place of `http.maxResponseBytes`. */
  maxResponseBytes?: number | undefined;
  /**
   * What the body of a success is read as, if not as JSON. `text`: a string; `bytes`: a Uint8Array, both for `parse` too.
   * An error's body is JSON all the same.
   */
  responseType?: ResponseType | undefined;
}

/** What the body of a success is read as, if not as JSON. */
export type ResponseType = 'text' | 'bytes';

/** The same, with method and body. */
export interface HttpRequestOptions extends HttpCallOptions {
  /** Default GET. */
  method?: string | undefined;
  /**
   * An object is sent as JSON; a Buffer, typed array, URLSearchParams, FormData or Blob as it is. A string is sent byte for
   * byte, whatever its content type. Without one, a string that begins with `{` or `[` is application/json.
   */
  data?: unknown;
}

/** Undefined if the call brings none. Throws ServiceRequestError. */
export function checkWhole(
  option: 'retries' | 'maxResponseBytes',
  value: unknown,
  min: number,
  max: number,
): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  throw ServiceRequestError.ofMisuse(option, `must be a whole number from ${min} to ${max}${ifText(value)}`);
}

/** `arraybuffer` is axios's name of a Buffer. */
const TYPES: readonly unknown[] = ['json', 'text', 'bytes', 'arraybuffer'];

/** Axios knows more types: of a stream, a caller would get text. Throws ServiceRequestError. */
export function checkResponseType(type: unknown): void {
  if (TYPES.includes(type)) return;
  throw ServiceRequestError.ofMisuse(
    'responseType',
    "must be 'json', 'text' or 'bytes'; to stream, use a client of your own with auth.httpsAgent",
  );
}

/** Throws ServiceRequestError for a key that the call cannot have. */
export function checkKey(key: unknown, method: string, readOnly: boolean): true | string | undefined {
  if (key === undefined || key === null) return undefined;
  const isKey = key === true || (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key));
  if (!isKey) {
    throw ServiceRequestError.ofMisuse('idempotencyKey', 'must be true or 1 to 255 visible ASCII characters');
  }
  if (readOnly || (method !== 'POST' && method !== 'PATCH')) {
    throw ServiceRequestError.ofMisuse('idempotencyKey', 'is for a POST or PATCH, and not beside readOnly');
  }
  return key;
}
