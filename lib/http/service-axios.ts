import axios, { type AxiosInstance } from 'axios';
import { refusingAdapter, useAuthHeaders, type AuthHeadersParts } from './auth-headers.interceptor.js';
import { serviceAdapter, type ServiceAdapterParts } from './service-adapter.js';

export type ServiceAxiosParts = Omit<AuthHeadersParts, 'send'> & ServiceAdapterParts;

/** The module's own axios instance; the host's is not touched. */
export function createServiceAxios(parts: ServiceAxiosParts): AxiosInstance {
  const instance = axios.create({ adapter: refusingAdapter });
  dropUnused(instance);
  useAuthHeaders(instance, { ...parts, send: serviceAdapter(parts) });
  return instance;
}

/**
 * Axios's defaults that no call needs: this module has its own time limit, reads the JSON and checks the status itself.
 * Only axios's own adapters read the others. A `timeout`, `validateStatus` or `transformResponse` that a host sets still
 * applies.
 */
const UNUSED = [
  'transitional',
  'env',
  'xsrfCookieName',
  'xsrfHeaderName',
  'maxContentLength',
  'maxBodyLength',
  'timeout',
  'validateStatus',
  'transformResponse',
] as const;

/** For each call, axios copies each default and merges the headers of all methods: half of what a call costs in axios. */
function dropUnused({ defaults }: AxiosInstance): void {
  for (const key of UNUSED) delete defaults[key];
  const headers: Record<string, unknown> = defaults.headers;
  for (const method of Object.keys(headers)) lazyHeaders(headers, method);
}

/** An empty object that appears when a host asks for it: axios skips it until then. */
function lazyHeaders(headers: Record<string, unknown>, method: string): void {
  const set = (value: unknown): void => {
    Object.defineProperty(headers, method, { value, enumerable: true, writable: true, configurable: true });
  };
  const get = (): unknown => {
    set({});
    return headers[method];
  };
  Object.defineProperty(headers, method, { get, set, enumerable: false, configurable: true });
}
