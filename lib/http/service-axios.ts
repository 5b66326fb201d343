import axios, { Axios, type AxiosInstance, type AxiosRequestConfig, type CreateAxiosDefaults } from 'axios';
import { reasonOf } from '../exchange/call-limits.js';
import { refusingAdapter, useAuthHeaders, type AuthHeadersParts } from './auth-headers.interceptor.js';
import { refuseNesting, refuseStream } from './body.js';
import { encodeData } from './encode-data.js';
import { serviceAdapter, type ServiceAdapterParts } from './service-adapter.js';

export type ServiceAxiosParts = Omit<AuthHeadersParts, 'send'> & ServiceAdapterParts;

/** The module's own axios instance; the host's is not touched. */
export function createServiceAxios(parts: ServiceAxiosParts): AxiosInstance {
  const instance = ownInstance(axios.create({ adapter: refusingAdapter, transformRequest: [encodeData] }));
  dropDefaults(instance);
  useAuthHeaders(instance, { ...parts, send: serviceAdapter(parts) });
  return instance;
}

type Request = (...given: unknown[]) => Promise<unknown>;

// Not among axios's types: what its `request` calls, with all interceptors in it.
const { _request: requestOfAxios } = Axios.prototype as unknown as { _request: Request };

/** The outcome of a call that its caller aborted. */
class Aborted {
  readonly reason: Error;

  constructor(reason: Error) {
    this.reason = reason;
  }
}

/**
 * Axios's `request` adds the caller's frames to the stack of an error. Many calls may share the reason of one signal:
 * its stack would grow with each, for seconds. So the reason goes past `request`, as a result.
 */
class ServiceAxios extends Axios {
  async _request(...given: unknown[]): Promise<unknown> {
    try {
      return await requestOfAxios.apply(this, given);
    } catch (error) {
      const { signal } = Object(given.find(isObject)) as AxiosRequestConfig;
      if (isObject(error) && error === reasonOf(signal as AbortSignal | undefined)) {
        return new Aborted(error as Error);
      }
      throw error;
    }
  }
}

/** The same instance, with each method over a {@link ServiceAxios}. */
function ownInstance(made: AxiosInstance): AxiosInstance {
  const { defaults, interceptors } = made;
  const context = Object.assign(new ServiceAxios(), { defaults, interceptors });
  const methodOf = (name: string): Request => {
    const method = (context as unknown as Record<string, Request>)[name].bind(context);
    return async (...given) => {
      refuseUnsendable(name, given);
      const result = await method(...given);
      if (result instanceof Aborted) throw result.reason;
      return result;
    };
  };
  const names = ['request', ...Object.keys(Axios.prototype)];
  const methods = Object.fromEntries(names.map((name) => [name, methodOf(name)]));
  return Object.assign(methodOf('request'), methods, {
    defaults,
    interceptors,
    create: (config?: CreateAxiosDefaults) => made.create(config),
    getUri: (config?: AxiosRequestConfig) => made.getUri(config),
  }) as unknown as AxiosInstance;
}

const TAKES_DATA = /^(post|put|patch|query)/;

/** Axios copies plain objects. It would lose what makes one of them a stream, and fail where one contains itself. */
function refuseUnsendable(name: string, given: unknown[]): void {
  const takesData = TAKES_DATA.test(name);
  const config = Object(given.at(takesData ? 2 : -1)) as AxiosRequestConfig;
  const data: unknown = takesData ? given[1] : config.data;
  refuseStream(data);
  refuseNesting('data', data);
  refuseNesting('params', config.params);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
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
