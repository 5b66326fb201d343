import axios, {
  Axios,
  isAxiosError,
  mergeConfig,
  type AxiosInstance,
  type CreateAxiosDefaults,
  type InternalAxiosRequestConfig,
} from 'axios';
import { ServiceRequestError } from '../errors/index.js';
import { AuthHeadersInterceptor } from './auth-headers.interceptor.js';
import { nestedTooDeep, refuseStream } from './body.js';
import { Aborted } from './call.js';
import { CallObserver } from './call-observer.js';
import { CallRunner } from './call-runner.js';
import { type CallAuthenticator, type ClientContext } from './client-context.js';
import { RetryBudget } from './retry-policy.js';
import { FailedAnswer, serviceAdapter } from './service-adapter.js';

/**
 * Makes the module's own axios instance, with everything behind it; the host's is not touched. It has none of axios's
 * defaults, which a host may have changed for its calls of other services (`baseURL`, headers): this module has its own
 * time limit, makes and reads the JSON, and checks the status itself. A host can set defaults of this instance.
 */
export function createServiceAxios(
  client: ClientContext,
  authenticator: CallAuthenticator,
  budget = new RetryBudget(),
): AxiosInstance {
  const observer = new CallObserver(client);
  const runner = new CallRunner(client, authenticator, budget, observer);
  const authHeaders = new AuthHeadersInterceptor(client, authenticator, observer);
  const adapter = serviceAdapter(client, authHeaders, runner, observer);
  // Ours runs last. A host may have changed that for all of its instances.
  const transitional = { legacyInterceptorReqResOrdering: true };
  const made = new Axios({ adapter, transitional, headers: lazyHeaders(), ...NAMED });
  // The adapter too: another one would not know the call.
  made.interceptors.request.use((given) => authHeaders.attach(Object.assign(ownConfig(given), { adapter })));
  made.interceptors.response.use(undefined, (error: unknown) => {
    throw error instanceof FailedAnswer ? error.reason : error;
  });
  return asInstance(made);
}

/** The keys of calls. Were they not in the defaults, axios would add them to each config, and V8 give each its own hidden class. */
const NAMED = {
  url: undefined,
  method: undefined,
  data: undefined,
  params: undefined,
  signal: undefined,
  timeout: undefined,
  retries: undefined,
  attemptTimeout: undefined,
  maxResponseBytes: undefined,
  route: undefined,
};

/** Axios copies the headers of each method at each call, so they are made only if a host uses them. */
function lazyHeaders(): object {
  const headers = {};
  for (const name of ['common', 'delete', 'get', 'head', 'post', 'put', 'patch']) {
    const set = (value: object): object =>
      Object.defineProperty(headers, name, {
        __proto__: null,
        value,
        enumerable: true,
        writable: true,
        configurable: true,
      } as object);
    const get = (): object => (set({}) as Record<string, object>)[name];
    Object.defineProperty(headers, name, { __proto__: null, get, set, configurable: true } as object);
  }
  return headers;
}

/** Axios's own config has no prototype, and belongs to this call alone. An interceptor may return another, or freeze it. */
function ownConfig(given: InternalAxiosRequestConfig): InternalAxiosRequestConfig {
  if (typeof given !== 'object' || (given as unknown) === null) {
    throw ServiceRequestError.ofCode('call', 'has no config: an interceptor returned none');
  }
  const isOwn = Object.getPrototypeOf(given) === null && Object.isExtensible(given);
  return isOwn ? given : ({ __proto__: null, ...given } as never);
}

type Method = (...given: unknown[]) => Promise<unknown>;

/** Like axios.create(): a function that also has the methods. */
function asInstance(made: Axios): AxiosInstance {
  const { defaults, interceptors } = made;
  const methods = made as unknown as Record<string, Method>;
  const getUri = made.getUri.bind(made);
  const create = (config?: CreateAxiosDefaults): AxiosInstance =>
    axios.create({ ...(defaults as CreateAxiosDefaults), ...config });
  const names = Object.getOwnPropertyNames(Axios.prototype).filter((name) => name !== 'constructor');
  const ours = names.map((name) => [name, asOurs(made, methods[name])]);
  const instance = asOurs(made, methods.request);
  return Object.assign(instance, Object.fromEntries(ours), {
    defaults,
    interceptors,
    getUri,
    create,
  }) as never;
}

/** Axios copies plain objects: it would lose what makes one a stream, and fail if one contains itself. */
function asOurs(made: Axios, method: Method): Method {
  return async (...given) => {
    for (const each of given) {
      refuseStream(each);
      refuseStream((Object(each) as { data?: unknown }).data);
    }
    try {
      return await method.apply(made, given);
    } catch (error) {
      // The second if the host has removed all interceptors.
      if (error instanceof Aborted || error instanceof FailedAnswer) throw error.reason;
      throw error instanceof RangeError || isAxiosError(error) ? refusalOf(given, error) : error;
    }
  };
}

/** The error for what axios could not copy; else the error itself, which is the host's. */
function refusalOf(given: unknown[], error: Error): Error {
  const isCopied = (name: string, value: unknown): boolean => {
    try {
      mergeConfig({}, { [name]: value });
      return true;
    } catch {
      return false;
    }
  };
  for (const each of given) {
    const { params, data } = Object(each) as { params?: unknown; data?: unknown };
    if (!isCopied('params', params)) return nestedTooDeep('params');
    if (!isCopied('data', data) || !isCopied('data', each)) return nestedTooDeep('data');
  }
  return error;
}
