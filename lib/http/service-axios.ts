import axios, {
  Axios,
  type AxiosAdapter,
  type AxiosInstance,
  type CreateAxiosDefaults,
  type InternalAxiosRequestConfig,
} from 'axios';
import { ServiceRequestError } from '../errors/index.js';
import { type AuthHeadersInterceptor } from './auth-headers.interceptor.js';
import { encodeData, refuseNesting, refuseStream } from './body.js';

/**
 * The module's own axios instance; the host's is not touched. It has none of axios's defaults, which a host may have
 * changed for its calls of other services (`baseURL`, headers): this module has its own time limit, reads the JSON and
 * checks the status itself. What a host sets on this instance applies.
 */
export function createServiceAxios(
  authHeaders: AuthHeadersInterceptor,
  adapter: AxiosAdapter,
): AxiosInstance {
  const headers = { common: {}, delete: {}, get: {}, head: {}, post: {}, put: {}, patch: {} };
  // A host may have changed the order for all of its instances.
  const transitional = { legacyInterceptorReqResOrdering: true };
  const made = new Axios({
    adapter,
    transformRequest: [encodeData],
    transitional,
    headers: headers as object,
  });
  // The adapter too: another one would get the credentials.
  made.interceptors.request.use((given) => authHeaders.attach(Object.assign(ownConfig(given), { adapter })));
  return asInstance(made, passingReasons(made));
}

/** Axios's own config has no prototype and is this call's alone. One that an interceptor made, or froze, is the host's. */
function ownConfig(given: InternalAxiosRequestConfig): InternalAxiosRequestConfig {
  if (typeof given !== 'object' || (given as unknown) === null) {
    throw ServiceRequestError.of('call', 'is none: an interceptor returned no config');
  }
  const isOwn = Object.getPrototypeOf(given) === null && Object.isExtensible(given);
  return isOwn ? given : ({ __proto__: null, ...given } as never);
}

type Method = (...given: unknown[]) => Promise<unknown>;
/** `request` calls `_request`, which is not among axios's types, and has all interceptors in it. */
type Methods = Record<string, Method>;

/** The outcome of a call that its caller aborted. */
class Aborted {
  constructor(readonly reason: Error) {}
}

/**
 * Axios's `request` adds the caller's frames to the stack of an error. Many calls may share the reason of one signal:
 * its stack would grow with each, for seconds. So the reason goes past `request`, as a result.
 */
function passingReasons(made: Axios): Methods {
  const methods = made as unknown as Methods;
  const { request, _request } = methods;
  methods._request = (...given) =>
    _request.apply(made, given).catch((error: unknown) => {
      const { signal } = Object(typeof given[0] === 'string' ? given[1] : given[0]) as {
        signal?: AbortSignal;
      };
      if (error !== undefined && error === signal?.reason) return new Aborted(error as Error);
      throw error;
    });
  methods.request = async (...given) => {
    const outcome = await request.apply(made, given);
    if (outcome instanceof Aborted) throw outcome.reason;
    return outcome;
  };
  return methods;
}

/** As axios.create() makes one: a function that has the methods of the object too. */
function asInstance(made: Axios, methods: Methods): AxiosInstance {
  const { defaults, interceptors } = made;
  const getUri = made.getUri.bind(made);
  const create = (config?: CreateAxiosDefaults): AxiosInstance =>
    axios.create({ ...(defaults as CreateAxiosDefaults), ...config });
  const names = Object.getOwnPropertyNames(Axios.prototype).filter((name) => name !== 'constructor');
  const checked = names.map((name) => [name, checkedMethod(made, methods[name])]);
  const instance = checkedMethod(made, methods.request);
  return Object.assign(instance, Object.fromEntries(checked), {
    defaults,
    interceptors,
    getUri,
    create,
  }) as never;
}

/** Axios copies plain objects. It would lose what makes one of them a stream, and fail where one contains itself. */
function checkedMethod(made: Axios, method: Method): Method {
  return async (...given) => {
    for (const each of given) {
      const { data, params } = Object(each) as { data?: unknown; params?: unknown };
      for (const body of [data, each]) refuseStream(body);
      refuseNesting('params', params);
      refuseNesting('data', data);
      refuseNesting('data', each);
    }
    return method.apply(made, given);
  };
}
