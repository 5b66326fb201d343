import {
  AxiosHeaders,
  type AxiosHeaderValue,
  isAxiosError,
  type AxiosAdapter,
  type AxiosInstance,
  type InternalAxiosRequestConfig,
} from 'axios';
import { cleanText, ServiceRequestError } from '../errors/index.js';
import { type AllowedUrls, type CallUrl } from './allowed-urls.js';
import { refuseStream, refuseStreamFields, wholeBuffer } from './body.js';
import { checkSignal, checkTimeout } from '../exchange/call-limits.js';
import { callSignal, type CallSignal } from './call.js';
import { type CallsInFlight } from './calls-in-flight.js';

/** The headers that authenticate a call. */
export interface HeaderSource {
  /** At once, where nothing has to be asked for: no promise on the fresh path. */
  peekHeaders(): Readonly<Record<string, string>> | undefined;
  headers(wait: { signal?: AbortSignal; timeoutMs: number }): Promise<Readonly<Record<string, string>>>;
}

export interface AuthHeadersParts {
  urls: AllowedUrls;
  source: HeaderSource;
  inFlight: CallsInFlight;
  appTokenHeader: string;
  timeoutMs: number;
  /** Sends a call that was judged; has to call `end` once, when it is over. */
  send: (config: InternalAxiosRequestConfig, call: JudgedCall) => ReturnType<AxiosAdapter>;
}

/** A call whose address was judged: what the adapter needs of it, and no other code can change. */
export interface JudgedCall extends CallSignal {
  url: CallUrl;
  /** Milliseconds for the whole call, a token's included. */
  timeoutMs: number;
  /** On the monotonic clock. */
  startedAt: number;
  end(): void;
}

/**
 * Adds the two halves of the interceptor to an instance that has none yet. Axios runs the last one registered first, so
 * these two see what all of a host's interceptors did. `judge` decides where the call goes and hands on a new config,
 * which nobody else has; `attach` runs right after it and puts the app token and the bearer in. The adapter takes them
 * out again once it has read them. `attach` refuses a config that `judge` did not make: axios ran the other order.
 */
export function useAuthHeaders(axios: AxiosInstance, parts: AuthHeadersParts): void {
  axios.interceptors.request.use(attach(parts));
  axios.interceptors.request.use(judge(axios, parts));
}

/** The way from one half to the other; the adapter puts another one in its place. */
interface JudgedAdapter extends AxiosAdapter {
  judged?: JudgedCall;
}

type Interceptor = (
  config: InternalAxiosRequestConfig,
) => InternalAxiosRequestConfig | Promise<InternalAxiosRequestConfig>;

function judge(
  axios: AxiosInstance,
  { urls, inFlight, appTokenHeader, timeoutMs, send }: AuthHeadersParts,
): Interceptor {
  return (given) => {
    inFlight.admit();
    given.headers = AxiosHeaders.from(given.headers);
    refuseOptions(given);
    transformBody(given);
    const url = urls.resolve(addressOf(axios, given));
    const timeout = checkTimeout(given.timeout) ?? timeoutMs;
    checkSignal(given.signal);
    const { signal, release } = callSignal(given);
    const end = (): void => {
      inFlight.end();
      release?.();
    };
    const call = { url, timeoutMs: timeout, startedAt: performance.now(), signal, end };
    const adapter: JudgedAdapter = (config) => send(config, call);
    adapter.judged = call;
    const headers = withoutCredentials(given.headers, appTokenHeader);
    return Object.assign(copyOf(given), { url: url.href, headers, adapter });
  };
}

/**
 * Part of the address by now, or of the body. The signal is the adapter's: axios would put the config into an error of
 * its own. The last one is axios's helper.
 */
const DONE_WITH: ReadonlySet<string | symbol> = new Set([
  ...['baseURL', 'params', 'signal', 'cancelToken', 'transformRequest', 'env'],
  'hasOwnProperty',
]);

/** Without a prototype, as axios's own configs are: axios would copy it once more. */
function copyOf(config: InternalAxiosRequestConfig): InternalAxiosRequestConfig {
  const copy = Object.create(null) as Record<string | symbol, unknown>;
  for (const key of Reflect.ownKeys(config)) {
    if (!DONE_WITH.has(key)) copy[key] = (config as unknown as typeof copy)[key];
  }
  return copy as unknown as InternalAxiosRequestConfig;
}

function attach({ source, inFlight }: AuthHeadersParts): Interceptor {
  return (config) => {
    const call = (config.adapter as JudgedAdapter | undefined)?.judged;
    if (!call) throw refusal('transitional', OTHER_ORDER);
    inFlight.begin();
    const attachAll = (headers: Readonly<Record<string, string>>): InternalAxiosRequestConfig => {
      for (const name in headers) config.headers[name] = headers[name];
      return config;
    };
    const fresh = source.peekHeaders();
    if (fresh) return attachAll(fresh);
    return source.headers(call).then(attachAll, (error: unknown) => {
      call.end();
      throw error;
    });
  };
}

const OTHER_ORDER =
  "must not change the order of interceptors (legacyInterceptorReqResOrdering): this module's has to run last";

function refuseOptions({ transitional, responseType, data, headers }: InternalAxiosRequestConfig): void {
  if (transitional !== undefined) {
    throw refusal('transitional', "cannot be set: it can make a host's interceptors run after this module's");
  }
  if (responseType === 'stream') {
    throw refusal(
      'responseType',
      "cannot be 'stream': use 'arraybuffer', or a client of your own with auth.httpsAgent",
    );
  }
  if (typeof data !== 'object' || data === null) return;
  refuseStream(data);
  if (/form/i.test(String(headers.getContentType() ?? ''))) refuseStreamFields(data);
}

/** Runs the transforms of request bodies, axios's own and a host's, which may also change the config. */
function transformBody(config: InternalAxiosRequestConfig): void {
  const { transformRequest } = config;
  if (typeof config.data === 'object') {
    config.data = wholeBuffer(config.data);
    // For postForm and the like axios would take the form-data package.
    config.env = { FormData };
  }
  try {
    for (const transform of transformRequest ? [transformRequest].flat() : []) {
      const data = transform.call(config, config.data, config.headers) as unknown;
      if (data !== config.data) config.data = data;
    }
  } catch (error) {
    // Axios's own says nothing of a call; what a host's transform throws is the host's.
    if (!isAxiosError(error) || error.config || error.response) throw error;
    throw refusal('data', cleanText(`could not be encoded (${error.message})`, [], 200));
  }
}

function addressOf(
  axios: AxiosInstance,
  { url, baseURL, params, paramsSerializer }: InternalAxiosRequestConfig,
): unknown {
  if (!baseURL && !params) return url;
  // An empty base address, so that axios does not take its default one.
  return axios.getUri({ url, baseURL: baseURL ?? '', params: params as unknown, paramsSerializer });
}

/** A copy without the authenticating headers, however they are spelt. */
export function withoutCredentials(given: AxiosHeaders, appTokenHeader: string): AxiosHeaders {
  const headers = new AxiosHeaders();
  for (const name of Object.keys(given)) {
    if (!isCredential(name, appTokenHeader)) headers[name] = given[name] as AxiosHeaderValue;
  }
  return headers;
}

/** Takes the authenticating headers out, however they are spelt. */
export function dropCredentials(headers: AxiosHeaders, appTokenHeader: string): void {
  for (const name of Object.keys(headers)) if (isCredential(name, appTokenHeader)) delete headers[name];
}

function isCredential(name: string, appTokenHeader: string): boolean {
  const key = name.toLowerCase();
  return key === 'authorization' || key === appTokenHeader.toLowerCase();
}

function refusal(property: string, message: string): ServiceRequestError {
  return new ServiceRequestError([{ property, message }]);
}
