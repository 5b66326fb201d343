import { Axios, AxiosHeaders, type AxiosHeaderValue, type InternalAxiosRequestConfig } from 'axios';
import { ServiceRequestError } from '../errors/index.js';
import { notEncoded, refuseStream, refuseStreamFields, wholeBuffer } from './body.js';

/** A config that no interceptor of the host has, with its body encoded. Throws ServiceRequestError. */
export function toOwnConfig(incoming: InternalAxiosRequestConfig): InternalAxiosRequestConfig {
  // Without a prototype, as axios's own: what somebody put into Object.prototype is no option.
  const config: InternalAxiosRequestConfig = { __proto__: null, ...incoming } as never;
  config.headers = AxiosHeaders.from(config.headers);
  refuseOptions(config);
  transformBody(config);
  return config;
}

function refuseOptions({ transitional, responseType, data, headers }: InternalAxiosRequestConfig): void {
  if (transitional !== undefined) {
    throw ServiceRequestError.of(
      'transitional',
      "cannot be set: it can make a host's interceptors run after this module's",
    );
  }
  if (responseType === 'stream') {
    throw ServiceRequestError.of(
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
  if (!transformRequest) return;
  for (const transform of Array.isArray(transformRequest) ? transformRequest : [transformRequest]) {
    const data = transform.call(config, config.data, config.headers) as unknown;
    if (data !== config.data) config.data = data;
  }
}

/** The address that axios would call. */
export function addressOf({ url, baseURL, params, paramsSerializer }: InternalAxiosRequestConfig): unknown {
  if (!baseURL && !params) return url;
  try {
    // Not of the call's own instance: that would add again what an interceptor took out of the defaults.
    return new Axios({}).getUri({ url, baseURL, params: params as unknown, paramsSerializer });
  } catch (error) {
    // What a host's own serializer throws is the host's.
    throw paramsSerializer ? error : notEncoded('params', error);
  }
}

/** A copy without the authenticating headers, however they are spelt. */
export function withoutCredentials(given: AxiosHeaders, appTokenHeader: string): AxiosHeaders {
  const headers = new AxiosHeaders();
  for (const name of Object.keys(given)) {
    if (!isCredential(name.toLowerCase(), appTokenHeader)) headers[name] = given[name] as AxiosHeaderValue;
  }
  return headers;
}

/** @param name in lower case, as is `appTokenHeader` */
export function isCredential(name: string, appTokenHeader: string): boolean {
  return name === 'authorization' || name === appTokenHeader;
}
