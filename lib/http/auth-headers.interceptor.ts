import {
  AxiosHeaders,
  type AxiosHeaderValue,
  isAxiosError,
  type AxiosAdapter,
  type AxiosInstance,
  type InternalAxiosRequestConfig,
} from 'axios';
import { cleanText, ServiceConnectionError, ServiceRequestError } from '../errors/index.js';
import { type AllowedUrls, type CallUrl } from './allowed-urls.js';
import { refuseStream, refuseStreamFields, wholeBuffer } from './body.js';
import { checkSignal, checkTimeout } from '../exchange/call-limits.js';
import { CallCancelled } from '../exchange/exchange.types.js';
import { toCallSignal, type Credentials, type GivenSignals } from './call.js';
import { type CallsInFlight } from './calls-in-flight.js';

/** The headers that authenticate a call. */
export interface HeaderSource {
  /** At once, where nothing has to be asked for: no promise on the fresh path. */
  peekHeaders(): Credentials | undefined;
  headers(wait: { signal?: AbortSignal; timeoutMs: number }): Promise<Credentials>;
}

export interface AuthHeadersParts {
  urls: AllowedUrls;
  source: HeaderSource;
  inFlight: CallsInFlight;
  appTokenHeader: string;
  timeoutMs: number;
  /** Sends a call that was checked, with these credentials. */
  send: (
    config: InternalAxiosRequestConfig,
    call: CallToSend,
    credentials: Credentials,
  ) => ReturnType<AxiosAdapter>;
}

/** A call whose address and options were checked. */
interface CheckedCall {
  url: CallUrl;
  /** Milliseconds for the whole call, a token's included. */
  timeoutMs: number;
  /** On the monotonic clock. */
  startedAt: number;
  given: GivenSignals;
}

/** What the adapter needs of a checked call, and no other code can change. */
export interface CallToSend extends Omit<CheckedCall, 'given'> {
  signal?: AbortSignal;
}

/** The checked calls, each by the adapter that the first half of the interceptor put into its config. */
type CheckedCalls = WeakMap<object, CheckedCall>;

/**
 * Adds the two halves of the interceptor to an instance that has none yet. Axios runs the last one registered first, so
 * these two see what all of a host's interceptors did. `checkCall` decides where the call goes and returns a new config,
 * which nobody else has; `attach` runs right after it and gives the config an adapter that puts the app token and the
 * bearer in. They are never in the config: code that still runs before the adapter finds none, and another adapter
 * gets none. `attach` refuses a config that `checkCall` did not make: axios ran the other order. Without `attach` the
 * adapter refuses.
 */
export function useAuthHeaders(axios: AxiosInstance, parts: AuthHeadersParts): void {
  const checked: CheckedCalls = new WeakMap();
  axios.interceptors.request.use(attach(parts, checked));
  axios.interceptors.request.use(checkCall(axios, parts, checked));
}

type Interceptor = (
  config: InternalAxiosRequestConfig,
) => InternalAxiosRequestConfig | Promise<InternalAxiosRequestConfig>;

function checkCall(
  axios: AxiosInstance,
  { urls, inFlight, appTokenHeader, timeoutMs }: AuthHeadersParts,
  checked: CheckedCalls,
): Interceptor {
  return (incoming) => {
    inFlight.admit();
    const given = copyOwnProperties(incoming);
    given.headers = AxiosHeaders.from(given.headers);
    refuseOptions(given);
    transformBody(given);
    const url = urls.resolve(addressOf(axios, given));
    const timeout = checkTimeout(given.timeout) ?? timeoutMs;
    checkSignal(given.signal);
    const headers = withoutCredentials(given.headers, appTokenHeader);
    const adapter: AxiosAdapter = (config) => refusingAdapter(config);
    const { signal, cancelToken } = given;
    checked.set(adapter, {
      url,
      timeoutMs: timeout,
      startedAt: performance.now(),
      given: { signal, cancelToken },
    });
    const config = Object.assign(given, { url: url.href, headers, adapter });
    for (const key of KEYS_TO_REMOVE) delete config[key];
    return config;
  };
}

/**
 * Part of the address by now, or of the body. The signal is the adapter's: axios would put the config into an error of
 * its own. The last one is axios's helper.
 */
const KEYS_TO_REMOVE = [
  ...(['baseURL', 'params', 'signal', 'cancelToken', 'transformRequest', 'env'] as const),
  'hasOwnProperty' as 'env',
];

/**
 * A copy of the config's own properties. Without a prototype, as axios's own configs are: what somebody put into
 * Object.prototype is no option, and axios would copy it once more.
 */
function copyOwnProperties(config: InternalAxiosRequestConfig): InternalAxiosRequestConfig {
  const copy = Object.create(null) as Record<string | symbol, unknown>;
  for (const key of Reflect.ownKeys(config)) copy[key] = (config as unknown as typeof copy)[key];
  return copy as unknown as InternalAxiosRequestConfig;
}

function attach(parts: AuthHeadersParts, checked: CheckedCalls): Interceptor {
  return (config) => {
    const call = typeof config.adapter === 'function' ? checked.get(config.adapter) : undefined;
    if (!call) throw refusal('transitional', OTHER_ORDER);
    let wasUsed = false;
    config.adapter = async (last) => {
      if (wasUsed) throw refusal('call', 'was sent already: a config can be sent once');
      wasUsed = true;
      return attachAndSend(parts, last, call);
    };
    return config;
  };
}

/** Waiting for a token is part of the call: in flight, within its time, ended by the caller's own signals. */
async function attachAndSend(
  { source, inFlight, send }: AuthHeadersParts,
  config: InternalAxiosRequestConfig,
  { given, ...call }: CheckedCall,
): ReturnType<AxiosAdapter> {
  inFlight.begin();
  const { signal, release } = toCallSignal(given);
  try {
    const toSend = { ...call, signal };
    return await send(config, toSend, source.peekHeaders() ?? (await source.headers(toSend)));
  } catch (error) {
    if (error instanceof CallCancelled) {
      throw new ServiceConnectionError({ kind: 'closed', message: 'The call was cancelled.' });
    }
    throw error;
  } finally {
    inFlight.end();
    release?.();
  }
}

const NOT_CHECKED =
  "came without this module's interceptor: use axiosRef itself, not axiosRef.create(), the config of an earlier answer, interceptors.request.clear() or eject()";

/** In the place of an adapter for calls that the interceptor did not finish: they would have no credentials. */
export const refusingAdapter: AxiosAdapter = () => Promise.reject(refusal('call', NOT_CHECKED));

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
