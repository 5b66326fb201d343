import { type AxiosAdapter, type AxiosInstance, type InternalAxiosRequestConfig } from 'axios';
import { discardBody, guardBody } from './body-stream.js';
import { checkSignal, checkTimeout } from './call-limits.js';
import { type CallsInFlight } from './calls-in-flight.js';
import { dropCredentials } from './credential-headers.js';
import { type Targets } from './targets.js';

export interface GuardParts {
  targets: Targets;
  inFlight: CallsInFlight;
  appTokenHeader: string;
  timeoutMs: number;
}

/**
 * The request interceptor: finds out where the call goes, refuses what is not the service's own, takes out a caller's
 * authenticating headers and puts the module's adapter in place, which attaches ours. It is the first one registered,
 * and axios runs the last one first: whatever a host's own interceptors did is judged here. (Where a config makes
 * axios run them in the other order, the adapter judges the address once more.)
 */
export function guardInterceptor(axios: AxiosInstance, parts: GuardParts, adapter: AxiosAdapter) {
  return (config: InternalAxiosRequestConfig): InternalAxiosRequestConfig => {
    guardBody(config.data);
    try {
      parts.inFlight.admit();
      config.url = parts.targets.resolve(addressOf(axios, config)).href;
      config.timeout = checkTimeout(config.timeout) ?? parts.timeoutMs;
      checkSignal(config.signal);
    } catch (error) {
      discardBody(config.data);
      throw error;
    }
    config.baseURL = undefined;
    config.params = undefined;
    config.adapter = adapter;
    config.data = wholeBuffer(config.data);
    dropCredentials(config.headers, parts.appTokenHeader);
    return config;
  };
}

function addressOf(
  axios: AxiosInstance,
  { url, baseURL, params, paramsSerializer }: InternalAxiosRequestConfig,
): unknown {
  if (!baseURL && !params) return url;
  // An empty base address, so that axios does not take its default one.
  return axios.getUri({ url, baseURL: baseURL ?? '', params: params as unknown, paramsSerializer });
}

/** Axios would send all of the memory that a view is part of. */
function wholeBuffer(data: unknown): unknown {
  if (!ArrayBuffer.isView(data) || Buffer.isBuffer(data)) return data;
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
