import { editsBetween } from '../config/misspelling.js';
import { ServiceRequestError } from '../errors/index.js';

/** Options of every call. */
export interface CallOptions {
  /** Aborts this call alone; it then rejects with `signal.reason`. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for the whole call, retries and body included. Default: `http.timeout`. */
  timeout?: number | undefined;
}

export interface HeaderOptions extends CallOptions {
  /** Further headers, such as an idempotency key or a correlation id; the authenticating ones are the module's. */
  headers?: Record<string, string> | undefined;
  /** Attempts after the first, 0 to 10, in place of `http.retries`. */
  retries?: number | undefined;
  /** Milliseconds for an attempt that another may follow, in place of `http.attemptTimeout`. */
  attemptTimeout?: number | undefined;
}

export interface HttpCallOptions extends HeaderOptions {
  /** Query parameters. */
  params?: Record<string, unknown> | URLSearchParams | undefined;
  /** The path with names for its ids, `/orders/v1/{id}`: for traces, metrics and `http.onCall`. Default: its first part. */
  route?: string | undefined;
  /** Bytes of the answer, decompressed, in place of `http.maxResponseBytes`. */
  maxResponseBytes?: number | undefined;
}

export interface HttpRequestOptions extends HttpCallOptions {
  /** Default GET. */
  method?: string | undefined;
  /** An object is sent as JSON; a string, Buffer, typed array, URLSearchParams, FormData or Blob as it is. */
  data?: unknown;
}

/** Of a call, and of axios: those that have an effect. Whatever else a host adds is for its own interceptors. */
const NAMES = [
  'url',
  'method',
  'params',
  'data',
  'headers',
  'signal',
  'timeout',
  'retries',
  'attemptTimeout',
  'route',
  'maxResponseBytes',
  'parse',
  'responseType',
  'baseURL',
  'cancelToken',
  'paramsSerializer',
  'transformRequest',
  'transformResponse',
  'validateStatus',
];
const KNOWN = new Set(NAMES);
/** A shorter word has too many neighbours that mean something else. */
const MIN_LENGTH = 6;

/** Options of axios's adapters: what has that effect here. */
const OF_ADAPTERS: Partial<Record<string, string>> = {
  httpAgent: 'the connections are those of the module',
  httpsAgent: 'the client certificate and the chain are the options `tls` of the module',
  proxy: 'set `http.proxy` of the module',
  maxRedirects: 'redirects are never followed',
  maxContentLength: 'set `maxResponseBytes`',
  maxBodyLength: 'there is no limit',
  auth: 'calls are authenticated by the module',
  adapter: 'calls are made by the module',
  decompress: 'answers are always decompressed',
  responseEncoding: 'text is read as UTF-8',
  onUploadProgress: 'bodies are sent at once',
  onDownloadProgress: 'answers are read at once',
  socketPath: 'calls go to the addresses of the module',
  lookup: 'calls go to the addresses of the module',
  beforeRedirect: 'redirects are never followed',
};
/** Values, beside false, that ask for what is done anyway; some are axios's defaults. */
const HARMLESS = new Map<string, readonly unknown[]>([
  ['maxRedirects', [0]],
  ['decompress', [true]],
  ['maxContentLength', [-1]],
  ['maxBodyLength', [-1, Infinity]],
  ['responseEncoding', ['utf8', 'utf-8']],
]);

/**
 * @throws ServiceRequestError for an option that would be ignored: one of axios's adapters, or a misspelt one. With
 * `Retries: 0`, a POST would be sent again
 */
export function checkCallOptions(options: object): void {
  for (const name of Object.keys(options)) {
    if (KNOWN.has(name)) continue;
    const value = (options as Record<string, unknown>)[name];
    if (value === undefined || value === null) continue;
    const instead = Object.hasOwn(OF_ADAPTERS, name) ? OF_ADAPTERS[name] : undefined;
    const isHarmless = HARMLESS.get(name)?.includes(value) ?? value === false;
    if (instead !== undefined && !isHarmless) {
      throw ServiceRequestError.ofCode(name, `has no effect here: ${instead}`);
    }
    const meant = instead === undefined && NAMES.find((known) => isMisspelt(name, known));
    if (meant) throw ServiceRequestError.ofCode(name, `is not an option: did you mean ${meant}?`);
  }
}

function isMisspelt(name: string, known: string): boolean {
  if (name.toLowerCase() === known.toLowerCase()) return true;
  return known.length >= MIN_LENGTH && editsBetween(name, known, 1) === 1;
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
  throw ServiceRequestError.ofCode(option, `must be a whole number from ${min} to ${max}`);
}
