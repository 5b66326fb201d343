import axios, {
  AxiosHeaders,
  type AxiosAdapter,
  type AxiosResponse,
  type InternalAxiosRequestConfig,
  Axios,
  type AxiosInstance,
  type CreateAxiosDefaults,
  mergeConfig,
} from 'axios';
import { ServiceApiError } from '../errors/index.js';
import { isSuccess } from '../exchange/response.js';
import { CallResponse } from './call-response.js';
import { toResponseError } from './call-error.js';
import { takeCall, AuthHeadersInterceptor, type CallConfig } from './auth-headers.interceptor.js';
import { encodeBody } from './call-content.js';
import { sentCorrelationId, type ClientContext, HiddenFromAxios, type CallAuthenticator } from './call.js';
import { CallObserver } from './call-observer.js';
import { CallRunner, RetryBudget } from './call-runner.js';
import { InterceptedCall, interceptedCallOf } from './intercepted-call.js';

/**
 * The axios adapter: takes a config with the Call that AuthHeadersInterceptor has made, and returns an axios response or throws
 * one of our errors. The layers below import no functions of axios, only types.
 */
function serviceAdapter(client: ClientContext, runner: CallRunner, observer: CallObserver): AxiosAdapter {
  const { options, calls } = client;
  return async (config) => {
    const call = takeCall(config);
    const counter = call.counter ?? calls;
    counter.enter();
    try {
      call.followSignals();
      const body = encodeBody(config);
      call.prepare(config, body instanceof Promise ? await body : body, options);
      try {
        const response = await runner.run(call);
        const axiosResponse = toAxiosResponse(new CallResponse(response, call, client), config);
        observer.succeeded(call, axiosResponse.status);
        return axiosResponse;
      } catch (error) {
        observer.failed(call, error);
        throw error;
      }
    } catch (error) {
      call.failure = calls.toCallerError(error);
      throw call.hideFromAxios(call.failure);
    } finally {
      call.release();
      counter.leave(call);
    }
  };
}

/** The axios response of this module. */
export interface ServiceResponse extends AxiosResponse {
  /** The service's correlation id; if it sent none, the one that we sent. */
  correlationId?: string;
  /** The correlation id that we sent. */
  requestId?: string;
  /** Makes the error for a body that `parse` refused. */
  toParseError: (body: unknown, where: string) => ServiceApiError;
}

/** A plain object, because an interceptor of the host application may copy it. */
function toAxiosResponse(response: CallResponse, config: InternalAxiosRequestConfig): ServiceResponse {
  const { call } = response;
  const { status, statusText, headers } = response.received;
  const { validateStatus } = config;
  // As in axios, `validateStatus: null` accepts every status.
  const accepted = validateStatus ? validateStatus(status) : isSuccess(status) || validateStatus === null;
  if (!accepted) throw toResponseError(response);
  const requestId = call.correlationId && sentCorrelationId(call);
  return {
    data: response.readBody(config.responseType),
    status,
    statusText,
    headers: Object.assign(new AxiosHeaders(), headers),
    config,
    correlationId: response.correlationId ?? requestId,
    requestId,
    toParseError: (body, where) => response.toParseError(body, where),
  };
}

type SendMethod = (...given: unknown[]) => Promise<unknown>;

/**
 * Makes the client's own axios instance, with the interceptor, the runner and the adapter behind it. It takes none of axios's
 * global defaults, because a host application may have changed them for its calls of other services (`baseURL`, headers). This
 * module has a time limit of its own, writes and reads the JSON, and checks the status. The host application can set defaults
 * of this instance.
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
  // With this order our interceptor runs last. The host application may have changed axios's global default.
  const transitional = { legacyInterceptorReqResOrdering: true };
  const made = newAxios({ adapter, transitional, headers: headersByMethod() });
  // A synchronous interceptor saves 3 us of a call. Axios 1.13 needs the second function if an interceptor throws.
  made.interceptors.request.use(authHeaders.intercept, rethrow, { synchronous: true });
  made.interceptors.response.use(undefined, (error: unknown) => {
    throw error instanceof HiddenFromAxios && error.reason instanceof ServiceApiError ? error.reason : error;
  });
  const send = made.request.bind(made) as SendMethod;
  const intercept: SendMethod = async (target, options) => {
    const url = typeof target === 'string' ? { url: target } : undefined;
    const config = { ...(url ? (options as CallConfig) : (target as CallConfig)), ...url };
    const ongoing = interceptedCallOf(config.adapter);
    // An interceptor repeats a request of a call that is still in progress.
    if (ongoing && !ongoing.isDone) return send(config);
    const merged = mergeConfig(made.defaults as object, { ...config, params: undefined }) as CallConfig;
    const call = new InterceptedCall(authHeaders.beginCall(merged), adapter, client, observer);
    const { route, pathParams, idempotencyKey } = merged;
    Object.assign(config, { url: merged.url, route, pathParams, idempotencyKey });
    if (ongoing || merged.adapter === adapter) config.adapter = call.adapter;
    return call.run(() => send(config));
  };
  return asInstance(made, send, intercept);
}

const MOCKED =
  "nestjs-service got a mock in place of axios, probably by jest.mock('axios'), and cannot work with it. Remove that mock: stubService() of nestjs-service/testing answers without a network. To mock your own calls, use jest.spyOn(axios, 'get') and the like.";

/** @throws TypeError if a test has mocked axios: jest replaces it in this package too */
function newAxios(config: ConstructorParameters<typeof Axios>[0]): Axios {
  const made = typeof Axios === 'function' ? new Axios(config) : undefined;
  // The constructor of a class that jest has mocked sets no fields.
  if (made?.interceptors as unknown) return made as Axios;
  throw new TypeError(MOCKED);
}

function rethrow(error: unknown): never {
  throw error;
}

/** Axios keeps default headers by method. The host application may set some. */
function headersByMethod(): object {
  const methods = ['common', 'delete', 'get', 'head', 'post', 'put', 'patch'];
  return Object.fromEntries(methods.map((name) => [name, {}]));
}

/**
 * Makes what axios.create() returns: a function that also has the methods.
 * @param send sends a request as axios does
 * @param intercept sends a request of a host application that has interceptors of its own
 */
function asInstance(made: Axios, send: SendMethod, intercept: SendMethod): AxiosInstance {
  const { defaults, interceptors } = made;
  let run = send;
  for (const manager of Object.values(interceptors) as { use: (...given: unknown[]) => number }[]) {
    const use = manager.use.bind(manager);
    manager.use = (...given) => {
      run = intercept;
      return use(...given);
    };
  }
  // axios's methods, such as get(), call this function too.
  const request: SendMethod = async (...given) => {
    try {
      return await run(...given);
    } catch (error) {
      throw error instanceof HiddenFromAxios ? error.reason : error;
    }
  };
  made.request = request as never;
  const names = Object.getOwnPropertyNames(Axios.prototype).filter((name) => name !== 'constructor');
  const methods = names.map((name) => [name, (made[name as 'request'] as SendMethod).bind(made)]);
  const create = (config?: CreateAxiosDefaults): AxiosInstance =>
    axios.create({ ...(defaults as CreateAxiosDefaults), ...config });
  return Object.assign(request, Object.fromEntries(methods), { defaults, interceptors, create }) as never;
}
