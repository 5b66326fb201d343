import { type AxiosAdapter, type AxiosInstance, type InternalAxiosRequestConfig } from 'axios';
import { discardBody, guardBody } from './body-stream.js';
import { dropCredentials } from './credential-headers.js';
import { checkSignal, checkTimeout } from './call-limits.js';
import { type CallsInFlight } from './calls-in-flight.js';
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
  inFlight: CallsInFlight;
  appTokenHeader: string;
  timeoutMs: number;
}

type Config = InternalAxiosRequestConfig;

/**
 * The request interceptor: finds out where the call goes, refuses what is not the service's own, and only then
 * attaches the app token and the bearer. It is the first one registered, and axios runs the last one first: whatever
 * a host's own interceptors did to the address is judged here. `adapter` is the module's own; another one in a call's
 * config would follow redirects, use the environment's proxy and skip every check, with the headers attached.
 */
export function authHeadersInterceptor(axios: AxiosInstance, parts: AuthHeadersParts, adapter: AxiosAdapter) {
  const { source, appTokenHeader } = parts;
  return (config: Config): Config | Promise<Config> => {
    guardBody(config.data);
    try {
      prepare(axios, config, parts);
      config.adapter = adapter;
    } catch (error) {
      discardBody(config.data);
      throw error;
    }
    dropCredentials(config.headers, appTokenHeader);
    const fresh = source.peekHeaders();
    return fresh ? attach(config, fresh) : attachLater(config, parts);
  };
}

function prepare(
  axios: AxiosInstance,
  config: Config,
  { targets, inFlight, timeoutMs }: AuthHeadersParts,
): void {
  inFlight.admit();
  config.url = targets.resolve(addressOf(axios, config)).href;
  config.baseURL = undefined;
  config.params = undefined;
  config.timeout = checkTimeout(config.timeout) ?? timeoutMs;
  checkSignal(config.signal);
}

async function attachLater(
  config: Config,
  { source, inFlight, timeoutMs }: AuthHeadersParts,
): Promise<Config> {
  const startedAt = performance.now();
  const timeout = config.timeout ?? timeoutMs;
  inFlight.begin();
  try {
    const headers = await source.headers({
      signal: config.signal as AbortSignal | undefined,
      timeoutMs: timeout,
    });
    config.timeout = Math.max(1, timeout - (performance.now() - startedAt));
    return attach(config, headers);
  } catch (error) {
    discardBody(config.data);
    throw error;
  } finally {
    // Not before the adapter has begun: a shutdown that waits for this call would think it had ended.
    setImmediate(() => inFlight.end());
  }
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
  // Checked when they were configured or received, and nothing of that name is left.
  for (const name in headers) config.headers[name] = headers[name];
  return config;
}
