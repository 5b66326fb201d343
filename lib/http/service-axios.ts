import axios, { type AxiosInstance } from 'axios';
import { authHeadersInterceptor, type AuthHeadersParts } from './auth-headers.interceptor.js';
import { cleanErrors } from './clean-errors.interceptor.js';
import { serviceAdapter, type ServiceAdapterParts } from './service-adapter.js';

/** The module's own axios instance; the host's is not touched. */
export function createServiceAxios(headers: AuthHeadersParts, adapter: ServiceAdapterParts): AxiosInstance {
  const instance = axios.create({
    adapter: serviceAdapter(adapter),
    // The adapter parses: axios would keep text that is no JSON, in silence.
    transformResponse: [],
    // Its statuses are the adapter's to judge; a call may still bring its own validateStatus.
    validateStatus: undefined,
    headers: { common: { Accept: 'application/json' } },
  });
  instance.interceptors.request.use(authHeadersInterceptor(instance, headers));
  instance.interceptors.response.use(undefined, cleanErrors);
  return instance;
}
