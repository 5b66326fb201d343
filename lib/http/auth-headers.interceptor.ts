import { type AxiosAdapter, type AxiosInstance, type InternalAxiosRequestConfig } from 'axios';
import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { copyOf, ServiceConnectionError, ServiceRequestError } from '../errors/index.js';
import { checkSignal, checkTimeout } from '../exchange/call-limits.js';
import { CallCancelled } from '../exchange/exchange.types.js';
import { type AllowedUrls, type CallUrl } from './allowed-urls.js';
import { addressOf, toOwnConfig, withoutCredentials } from './call-config.js';
import { toCallSignal, type CallLimits, type Credentials } from './call.js';
import { type CallsInFlight } from './calls-in-flight.js';

export interface AuthHeadersParts {
  urls: AllowedUrls;
  /** Of the headers that authenticate a call. */
  source: Pick<ServiceAuthService, 'peekHeaders' | 'headers'>;
  inFlight: CallsInFlight;
  /** In lower case. */
  appTokenHeader: string;
  timeoutMs: number;
  /** Sends a call that was checked, with these credentials. */
  send: (
    config: InternalAxiosRequestConfig,
    call: CallToSend,
    credentials: Credentials,
  ) => ReturnType<AxiosAdapter>;
}

/** What is sent of a call that was checked. Waiting for a token is within its limits. */
export interface CallToSend extends CallLimits {
  url: CallUrl;
}

/** The options of a call that may not change after they were checked. */
type CheckedOptions = Pick<InternalAxiosRequestConfig, 'timeout' | 'signal' | 'cancelToken'>;

/**
 * Adds the interceptor to an instance that has none yet. Axios runs the one registered first as the last, so this one
 * sees what all of a host's interceptors did. It decides where the call goes, and returns a new config whose adapter
 * puts the app token and the bearer in. They are never in the config: code that still runs before the adapter finds
 * none, and another adapter gets none. Without the interceptor, each call is refused ({@link refusingAdapter}).
 */
export function useAuthHeaders(axios: AxiosInstance, parts: AuthHeadersParts): void {
  const { urls, inFlight, appTokenHeader } = parts;
  axios.interceptors.request.use((incoming) => {
    inFlight.admit();
    const config = toOwnConfig(incoming);
    const url = urls.resolve(addressOf(config));
    const { timeout, signal, cancelToken } = config;
    checkSignal(signal);
    config.url = url.href;
    config.headers = withoutCredentials(config.headers, appTokenHeader);
    config.adapter = adapterFor(parts, url, { timeout, signal, cancelToken });
    for (const key of USED_OPTIONS) delete config[key];
    return config;
  });
}

/**
 * They are part of the address or the body by now. The adapter has the signals: axios's own error for an aborted call
 * would hold the config.
 */
const USED_OPTIONS = ['baseURL', 'params', 'signal', 'cancelToken', 'transformRequest', 'env'] as const;

/** Sends one call, once: in flight, within its time, ended by the caller's own signals. */
function adapterFor(
  { source, inFlight, send, timeoutMs: defaultTimeoutMs }: AuthHeadersParts,
  url: CallUrl,
  options: CheckedOptions,
): AxiosAdapter {
  const timeoutMs = checkTimeout(options.timeout) ?? defaultTimeoutMs;
  const endsAt = performance.now() + timeoutMs;
  let wasUsed = false;
  return async (config) => {
    if (wasUsed) throw ServiceRequestError.of('call', 'was sent already: a config can be sent once');
    wasUsed = true;
    refuseChanges(config, url, options);
    inFlight.begin();
    let release: (() => void) | undefined;
    try {
      const callSignal = toCallSignal(options);
      const { signal } = callSignal;
      release = callSignal.release;
      const credentials = source.peekHeaders() ?? (await source.headers({ signal, timeoutMs }));
      return await send(config, { url, endsAt, signal }, credentials);
    } catch (error) {
      if (error instanceof CallCancelled) {
        throw new ServiceConnectionError({ kind: 'closed', message: 'The call was cancelled.' });
      }
      // Of all calls that a shutdown ends: each may be given more frames or fields.
      throw error === inFlight.closed.reason ? copyOf(error as Error) : error;
    } finally {
      inFlight.end();
      release?.();
    }
  };
}

/** By code that ran after the interceptor: axios can be told to run interceptors in the other order. */
function refuseChanges(config: InternalAxiosRequestConfig, url: CallUrl, { timeout }: CheckedOptions): void {
  const changed =
    (config.url !== url.href && 'url') ||
    (config.timeout !== timeout && 'timeout') ||
    (['baseURL', 'params', 'signal', 'cancelToken'] as const).find((key) => config[key] !== undefined);
  if (changed) throw ServiceRequestError.of(changed, 'was changed after it had been checked');
}

const NOT_CHECKED =
  "came without this module's interceptor: use axiosRef itself, not axiosRef.create(), the config of an earlier answer, interceptors.request.clear() or eject()";

/** In the place of an adapter for calls that the interceptor did not see: they would have no credentials. */
export const refusingAdapter: AxiosAdapter = () =>
  Promise.reject(ServiceRequestError.of('call', NOT_CHECKED));
