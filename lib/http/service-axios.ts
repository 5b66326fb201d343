import axios, { type AxiosInstance } from 'axios';
import { guardInterceptor, type GuardParts } from './guard.interceptor.js';
import { cleanErrors } from './clean-errors.interceptor.js';
import { serviceAdapter, type ServiceAdapterParts } from './service-adapter.js';

/** The module's own axios instance; the host's is not touched. */
export function createServiceAxios(guard: GuardParts, adapter: ServiceAdapterParts): AxiosInstance {
  const ownAdapter = serviceAdapter(adapter);
  const instance = axios.create({
    adapter: ownAdapter,
    // The adapter parses: axios would keep text that is no JSON, in silence.
    transformResponse: [],
    // Its statuses are the adapter's to judge; a call may still bring its own validateStatus.
    validateStatus: undefined,
    headers: { common: { Accept: 'application/json' } },
  });
  dropUnused(instance);
  instance.interceptors.request.use(guardInterceptor(instance, guard, ownAdapter));
  instance.interceptors.response.use(undefined, cleanErrors);
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
