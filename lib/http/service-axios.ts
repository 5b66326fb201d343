import axios, { Axios, type AxiosInstance, type CreateAxiosDefaults, mergeConfig } from 'axios';
import { ServiceApiError } from '../errors/index.js';
import { AuthHeadersInterceptor, type CallConfig } from './auth-headers.interceptor.js';
import { PastAxios } from './request/call.js';
import { CallObserver } from './attempts/call-observer.js';
import { CallRunner } from './attempts/call-runner.js';
import { type CallAuthenticator, type ClientContext } from './request/client-context.js';
import { InterceptedCall, interceptedCallOf } from './intercepted-call.js';
import { RetryBudget } from './request/repeatability.js';
import { serviceAdapter } from './service-adapter.js';

type Method = (...given: unknown[]) => Promise<unknown>;

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
  const adapter = serviceAdapter(client, runner, observer);
  const authHeaders = new AuthHeadersInterceptor(client, authenticator, adapter);
  // Ours runs last. A host may have changed that for all of its instances.
  const transitional = { legacyInterceptorReqResOrdering: true };
  const made = newAxios({ adapter, transitional, headers: headersByMethod() });
  // A synchronous one saves 3 us of a call. Axios 1.13 wants a second function if one throws.
  made.interceptors.request.use(authHeaders.intercept, rethrow, { synchronous: true });
  made.interceptors.response.use(undefined, (error: unknown) => {
    throw error instanceof PastAxios && error.reason instanceof ServiceApiError ? error.reason : error;
  });
  const send = made.request.bind(made) as Method;
  const intercept: Method = async (target, options) => {
    const url = typeof target === 'string' ? { url: target } : undefined;
    const config = { ...(url ? (options as CallConfig) : (target as CallConfig)), ...url };
    const earlier = interceptedCallOf(config.adapter);
    // An interceptor repeats a request.
    if (earlier && !earlier.isDone) return send(config);
    const asked = mergeConfig(made.defaults as object, { ...config, params: undefined }) as CallConfig;
    const call = new InterceptedCall(authHeaders.ask(asked), adapter, client, observer);
    const { route, pathParams, idempotencyKey } = asked;
    Object.assign(config, { url: asked.url, route, pathParams, idempotencyKey });
    if (earlier || asked.adapter === adapter) config.adapter = call.adapter;
    return call.run(() => send(config));
  };
  return asInstance(made, send, intercept);
}

const MOCKED =
  "nestjs-service got a mock in place of axios, probably by jest.mock('axios'), and cannot work with it. Remove that mock: stubService() of nestjs-service/testing answers without a network. To mock your own calls, use jest.spyOn(axios, 'get') and the like.";

/** @throws TypeError if a test has mocked axios: jest replaces it in this package too */
function newAxios(config: ConstructorParameters<typeof Axios>[0]): Axios {
  const made = typeof Axios === 'function' ? new Axios(config) : undefined;
  // A class that jest has mocked sets no fields.
  if (made?.interceptors as unknown) return made as Axios;
  throw new TypeError(MOCKED);
}

function rethrow(error: unknown): never {
  throw error;
}

/** For a host's own default headers. */
function headersByMethod(): object {
  const methods = ['common', 'delete', 'get', 'head', 'post', 'put', 'patch'];
  return Object.fromEntries(methods.map((name) => [name, {}]));
}

/**
 * Like axios.create(): a function that also has the methods.
 * @param send as axios does
 * @param intercept the same for an application that has interceptors of its own
 */
function asInstance(made: Axios, send: Method, intercept: Method): AxiosInstance {
  const { defaults, interceptors } = made;
  let run = send;
  for (const manager of Object.values(interceptors) as { use: (...given: unknown[]) => number }[]) {
    const use = manager.use.bind(manager);
    manager.use = (...given) => {
      run = intercept;
      return use(...given);
    };
  }
  // The methods call it too.
  const request: Method = async (...given) => {
    try {
      return await run(...given);
    } catch (error) {
      throw error instanceof PastAxios ? error.reason : error;
    }
  };
  made.request = request as never;
  const names = Object.getOwnPropertyNames(Axios.prototype).filter((name) => name !== 'constructor');
  const methods = names.map((name) => [name, (made[name as 'request'] as Method).bind(made)]);
  const create = (config?: CreateAxiosDefaults): AxiosInstance =>
    axios.create({ ...(defaults as CreateAxiosDefaults), ...config });
  return Object.assign(request, Object.fromEntries(methods), { defaults, interceptors, create }) as never;
}
