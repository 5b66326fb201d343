import { type AxiosInstance, type InternalAxiosRequestConfig } from 'axios';
import { type Targets } from './targets.js';

/** The headers that authenticate a call. */
export interface HeaderSource {
  /** At once, where nothing has to be asked for: no promise on the fresh path. */
  peekHeaders(): Readonly<Record<string, string>> | undefined;
  headers(wait: { signal?: AbortSignal; timeoutMs: number }): Promise<Readonly<Record<string, string>>>;
}

export interface AuthHeadersParts {
  source: HeaderSource;
  targets: Targets;
  appTokenHeader: string;
  timeoutMs: number;
}

/**
 * The request interceptor: finds out where the call goes, refuses what is not the service's own, and only then
 * attaches the app token and the bearer. It is the first one registered, and axios runs the last one first: whatever
 * a host's own interceptors did to the address is judged here.
 */
export function authHeadersInterceptor(
  axios: AxiosInstance,
  { source, targets, appTokenHeader, timeoutMs }: AuthHeadersParts,
) {
  return (
    config: InternalAxiosRequestConfig,
  ): InternalAxiosRequestConfig | Promise<InternalAxiosRequestConfig> => {
    config.url = targets.resolve(addressOf(axios, config)).href;
    config.baseURL = undefined;
    config.params = undefined;
    config.timeout ||= timeoutMs;
    config.headers.delete('authorization');
    config.headers.delete(appTokenHeader);
    const fresh = source.peekHeaders();
    if (fresh) return attach(config, fresh);
    const startedAt = performance.now();
    return source
      .headers({ signal: config.signal as AbortSignal | undefined, timeoutMs: config.timeout })
      .then((headers) => {
        config.timeout = Math.max(1, (config.timeout ?? timeoutMs) - (performance.now() - startedAt));
        return attach(config, headers);
      });
  };
}

function addressOf(
  axios: AxiosInstance,
  { url, baseURL, params, paramsSerializer }: InternalAxiosRequestConfig,
): unknown {
  if (!baseURL && !params) return url ?? '';
  // An empty base address, so that axios does not take its default one.
  return axios.getUri({ url, baseURL: baseURL ?? '', params: params as unknown, paramsSerializer });
}

function attach(
  config: InternalAxiosRequestConfig,
  headers: Readonly<Record<string, string>>,
): InternalAxiosRequestConfig {
  for (const name in headers) config.headers.set(name, headers[name], true);
  return config;
}
