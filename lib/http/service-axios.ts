import axios, { type AxiosInstance } from 'axios';
import { refusingAdapter, useAuthHeaders, type AuthHeadersParts } from './auth-headers.interceptor.js';
import { encodeData } from './encode-data.js';
import { serviceAdapter, type ServiceAdapterParts } from './service-adapter.js';

export type ServiceAxiosParts = Omit<AuthHeadersParts, 'send'> & ServiceAdapterParts;

/** The module's own axios instance; the host's is not touched. */
export function createServiceAxios(parts: ServiceAxiosParts): AxiosInstance {
  const instance = axios.create({ adapter: refusingAdapter, transformRequest: [encodeData] });
  dropDefaults(instance);
  useAuthHeaders(instance, { ...parts, send: serviceAdapter(parts) });
  return instance;
}

/** This module has its own time limit, reads the JSON and checks the status itself. */
const USED_DEFAULTS = new Set(['adapter', 'headers', 'transformRequest']);

/**
 * Drops the defaults that no call needs. A host may have changed the global ones (`baseURL`, `params`, headers) for its
 * calls of other services. And for each call axios copies each default and merges the headers of all methods: half of
 * what a call costs in axios. What a host sets on this instance itself applies.
 */
function dropDefaults(instance: AxiosInstance): void {
  const defaults = instance.defaults as unknown as Record<string, unknown>;
  for (const key of Object.keys(defaults)) if (!USED_DEFAULTS.has(key)) delete defaults[key];
  const headers: Record<string, unknown> = instance.defaults.headers;
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'object') lazyHeaders(headers, name);
    else delete headers[name];
  }
}

/** Makes the object at its first use. Until then the property is not enumerable, and axios does not merge it. */
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
