import axios, { type AxiosInstance } from 'axios';
import { useAuthHeaders, type AuthHeadersParts } from './auth-headers.interceptor.js';
import { serviceAdapter, unjudgedAdapter, type ServiceAdapterParts } from './service-adapter.js';

export type ServiceAxiosParts = Omit<AuthHeadersParts, 'send'> & ServiceAdapterParts;

/** The module's own axios instance; the host's is not touched. */
export function createServiceAxios(parts: ServiceAxiosParts): AxiosInstance {
  const instance = axios.create({
    adapter: unjudgedAdapter,
    // The adapter parses: axios would keep text that is no JSON, in silence.
    transformResponse: [],
    // Its statuses are the adapter's to judge; a call may still bring its own validateStatus.
    validateStatus: undefined,
    headers: { common: { Accept: 'application/json' } },
  });
  dropUnused(instance);
  useAuthHeaders(instance, { ...parts, send: serviceAdapter(parts) });
  return instance;
}

/** What axios's browser and node adapters want, and ours does not: axios copies all of it at each call. */
function dropUnused({ defaults }: AxiosInstance): void {
  const unused = [
    'transitional',
    'env',
    'xsrfCookieName',
    'xsrfHeaderName',
    'maxContentLength',
    'maxBodyLength',
  ] as const;
  for (const key of [...unused, 'timeout', 'validateStatus'] as const) delete defaults[key];
}
