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
import { type ServiceApiError } from '../errors/index.js';
import { isSuccess } from '../exchange/response.js';
import { AuthHeadersInterceptor, takeCall } from './auth-headers.interceptor.js';
import { type CallAuthenticator, type ClientContext, sentCorrelationId } from './call.js';
import { encodeBody } from './call-content.js';
import { toResponseError } from './call-error.js';
import { type CallConfig, CallFactory } from './call-factory.js';
import { CallObserver } from './call-observer.js';
import { CallResponse } from './call-response.js';
import { CallRunner } from './call-runner.js';
import { HiddenError, HostCall, hostCallOf } from './host-call.js';
import { RetryBudget } from './repeatability.js';

/**
 * What the adapter resolves with if a call has failed. Axios would add fields to the `response` of an error with which an
 * adapter rejects. The module's own response interceptor, which runs first, throws the error.
 */
class FailedCall {
  constructor(readonly error: unknown) {}
}

function throwFailure(response: unknown): unknown {
  if (response instanceof FailedCall) throw response.error;
  return response;
}

/**
 * The axios adapter: takes a config with the Call that AuthHeadersInterceptor has attached, and resolves with an axios response
 * or a {@link FailedCall}. The layers below import no functions of axios, only types.
 */
function serviceAdapter(client: ClientContext, runner: CallRunner, observer: CallObserver): AxiosAdapter {
  const { options, calls } = client;
  return async (config) => {
    const call = takeCall(config);
    const counter = call.details.hostCall ?? calls;
    counter.enter();
    let stopFollowing: (() => void) | undefined;
    let failure: unknown;
    try {
      stopFollowing = call.followSignals();
      const body = encodeBody(config);
      call.fill(config, body instanceof Promise ? await body : body, options);
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
      failure = calls.toCallerError(error);
      const isAbort = call.signal?.aborted && error === call.signal.reason;
      return new FailedCall(isAbort ? new HiddenError(failure) : failure) as never;
    } finally {
      stopFollowing?.();
      counter.leave(call, failure);
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
  const factory = new CallFactory(client, adapter);
  const made = newAxios(new Defaults(adapter));
  // A synchronous interceptor saves 3 us of a call. Axios 1.13 needs the second function if an interceptor throws.
  const { intercept } = new AuthHeadersInterceptor(authenticator, factory);
  made.interceptors.request.use(intercept, rethrow, { synchronous: true });
  made.interceptors.response.use(throwFailure as never);
  const send = made.request.bind(made) as SendMethod;
  const sendIntercepted: SendMethod = async (target, options) => {
    const url = typeof target === 'string' ? { url: target } : undefined;
    const config = { ...(url ? (options as CallConfig) : (target as CallConfig)), ...url };
    const ongoing = hostCallOf(config.adapter);
    // An interceptor repeats a request of a call that is still in progress.
    if (ongoing && !ongoing.isDone) return send(config);
    // With this order our interceptor runs last. The host application may have changed axios's global default.
    const ordering = { legacyInterceptorReqResOrdering: true, ...made.defaults.transitional };
    config.transitional = { ...ordering, ...config.transitional };
    const merged = mergeConfig(made.defaults as object, { ...config, params: undefined }) as CallConfig;
    const hostCall = new HostCall(factory.begin(merged), adapter, client, observer);
    const { route, pathParams, idempotencyKey } = merged;
    Object.assign(config, { url: merged.url, route, pathParams, idempotencyKey });
    if (ongoing || merged.adapter === adapter) config.adapter = hostCall.adapter;
    return hostCall.run(() => send(config));
  };
  return asInstance(made, send, sendIntercepted);
}

/** The defaults of the instance. Axios copies all own properties at each call, so there are few of them. */
class Defaults {
  constructor(readonly adapter: AxiosAdapter) {}

  /** Axios keeps default headers by method. The host application may set some: they are made when it asks for them. */
  get headers(): Record<string, never> {
    const methods = ['common', 'delete', 'get', 'head', 'post', 'put', 'patch'];
    return (this.headers = Object.fromEntries(methods.map((name) => [name, {} as never])));
  }

  set headers(value: Record<string, never>) {
    Object.defineProperty(this, 'headers', { value, writable: true, enumerable: true, configurable: true });
  }
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
      // The host application may have removed the interceptor that throws the error.
      return throwFailure(await run(...given));
    } catch (error) {
      throw error instanceof HiddenError ? error.reason : error;
    }
  };
  made.request = request as never;
  const names = Object.getOwnPropertyNames(Axios.prototype).filter((name) => name !== 'constructor');
  const methods = names.map((name) => [name, (made[name as 'request'] as SendMethod).bind(made)]);
  const create = (config?: CreateAxiosDefaults): AxiosInstance =>
    axios.create({ ...(defaults as CreateAxiosDefaults), ...config });
  return Object.assign(request, Object.fromEntries(methods), { defaults, interceptors, create }) as never;
}
