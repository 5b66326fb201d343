import axios, {
  AxiosError,
  AxiosHeaders,
  type AxiosAdapter,
  type AxiosRequestConfig,
  type InternalAxiosRequestConfig,
  type AxiosResponse,
  Axios,
  type AxiosInstance,
  type CreateAxiosDefaults,
  mergeConfig,
} from 'axios';
import { type ServiceApiError } from '../errors/index.js';
import { authHeadersInterceptor, takeCall } from './auth-headers.interceptor.js';
import { type CallAuthenticator, type ClientContext, sentCorrelationId } from './call.js';
import { carryBody, encodeBody, notEncoded, takeBody } from './call-content.js';
import { toResponseError } from './call-error.js';
import { type CallConfig, CallFactory } from './call-factory.js';
import { CallObserver } from './call-observer.js';
import { acceptsStatus } from './call-options.js';
import { CallResponse } from './call-response.js';
import { CallRunner } from './call-runner.js';
import { HiddenError, HostCall, hostCallOf } from './host-call.js';
import { type ResponseParser, runParser } from './parse-option.js';
import { RetryBudget } from './repeatability.js';

/**
 * What the adapter resolves with if a call has failed. Axios would add fields to the `response` of an error with which an
 * adapter rejects. The module's own response interceptor, which runs first, throws the error.
 */
class FailedCall {
  constructor(readonly error: unknown) {}
}

function throwFailure<T>(response: T): T {
  if (response instanceof FailedCall) throw response.error;
  return response;
}

/**
 * The axios adapter: takes a config with the Call that authHeadersInterceptor() has attached, and resolves with an axios response
 * or a {@link FailedCall}. The layers below import no functions of axios, only types.
 */
function serviceAdapter(client: ClientContext, runner: CallRunner, observer: CallObserver): AxiosAdapter {
  const { options, calls } = client;
  return async (config) => {
    const call = takeCall(config);
    const counter = call.details.hostCall ?? calls;
    counter.enter(call);
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

const SEND = Symbol('send');
type Send = (config: AxiosRequestConfig, parse?: ResponseParser) => Promise<ServiceResponse>;

/** Sends a call through the instance, and runs `parse` on the body that the interceptors of the host application have left. */
export const sendCall = (axios: AxiosInstance, ...given: Parameters<Send>): Promise<ServiceResponse> =>
  (axios as AxiosInstance & { [SEND]: Send })[SEND](...given);

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
function toAxiosResponse(response: CallResponse, config: CallConfig): ServiceResponse {
  const { call } = response;
  const { status, statusText, headers } = response.received;
  const isNotModified = status === 304 && config.takesNotModified === true && call.isConditionalRead;
  if (!isNotModified && !acceptsStatus(config, status)) throw toResponseError(response);
  const requestId = call.correlationId && sentCorrelationId(call);
  return {
    data: isNotModified ? undefined : response.readBody(config.responseType),
    status,
    statusText,
    headers: Object.assign(new AxiosHeaders(), headers),
    config,
    correlationId: response.correlationId ?? requestId,
    requestId,
    toParseError: (body, where) => response.toParseError(body, where),
  };
}

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
  made.interceptors.request.use(authHeadersInterceptor(authenticator, factory), rethrow, {
    synchronous: true,
  });
  made.interceptors.response.use(throwFailure);
  return asInstance(made, new HostCalls(made, adapter, factory, client, observer));
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

/** Sends the calls of the host application through axios. Here each of them settles. */
class HostCalls {
  /** Whether the host application has interceptors of its own. */
  areIntercepted = false;
  readonly #send: (config: CallConfig) => Promise<unknown>;

  constructor(
    private readonly made: Axios,
    private readonly adapter: AxiosAdapter,
    private readonly factory: CallFactory,
    private readonly client: ClientContext,
    private readonly observer: CallObserver,
  ) {
    this.#send = made.request.bind(made) as never;
  }

  /** Sends a call as axios does. Runs `parse` on the body that the interceptors have left. */
  async send(target: unknown, options?: unknown, parse?: ResponseParser): Promise<ServiceResponse> {
    let hostCall: HostCall | undefined;
    let response: ServiceResponse;
    try {
      const given = typeof target === 'string' ? { ...(options as object), url: target } : (target ?? {});
      const config = carryBody((this.areIntercepted ? { ...given } : given) as CallConfig);
      if (this.areIntercepted) hostCall = this.#begin(config);
      const work = () => this.#send(config);
      response = throwFailure((await (hostCall ? hostCall.run(work) : work())) as ServiceResponse);
    } catch (error) {
      if (error instanceof HiddenError) throw error.reason;
      const thrown = isCircularParams(error) ? notEncoded('params', error) : error;
      throw hostCall ? hostCall.toCallerError(thrown) : thrown;
    }
    const { data } = response as { data: unknown };
    if (!parse || (response.status === 304 && data === undefined)) return response;
    const toError = (where: string) =>
      hostCall ? hostCall.toParseError(response, where) : response.toParseError(data, where);
    return { ...response, data: await runParser(data, parse, toError) };
  }

  /** Begins a call of a host application with interceptors. Undefined if an interceptor sends a request of a call in progress. */
  #begin(config: CallConfig): HostCall | undefined {
    const { adapter, made } = this;
    const ongoing = hostCallOf(config.adapter);
    if (ongoing && !ongoing.isDone) return undefined;
    // With this order our interceptor runs last. The host application may have changed axios's global default.
    const ordering = { legacyInterceptorReqResOrdering: true, ...made.defaults.transitional };
    config.transitional = { ...ordering, ...config.transitional };
    const merged = mergeConfig(made.defaults as object, { ...config, params: undefined }) as CallConfig;
    const hostCall = new HostCall(this.factory.begin(merged), adapter, this.client, this.observer);
    const { url, route, pathParams, idempotencyKey } = merged;
    Object.assign(config, { url, route, pathParams, idempotencyKey });
    if (ongoing || merged.adapter === adapter) config.adapter = hostCall.adapter;
    return hostCall;
  }
}

/** Axios refuses such params before any code of this module runs, with the code of any wrong option. */
function isCircularParams(error: unknown): boolean {
  const isOfOption = error instanceof AxiosError && error.code === AxiosError.ERR_BAD_OPTION_VALUE;
  return isOfOption && /circular/i.test(error.message);
}

/** Lets a function of the host application see the body of a call. */
function withBody<T>(run: (config: InternalAxiosRequestConfig) => T) {
  return (config: InternalAxiosRequestConfig): T => {
    takeBody(config, true);
    return run(config);
  };
}

/** Makes what axios.create() returns: a function that also has the methods. */
function asInstance(made: Axios, calls: HostCalls): AxiosInstance {
  const { defaults, interceptors } = made;
  for (const manager of Object.values(interceptors) as (typeof interceptors.request)[]) {
    const use = manager.use.bind(manager);
    manager.use = (fulfilled, rejected, options) => {
      calls.areIntercepted = true;
      if (manager !== interceptors.request) return use(fulfilled, rejected, options);
      const runWhen = options?.runWhen && withBody(options.runWhen);
      return use(fulfilled && withBody(fulfilled), rejected, options && { ...options, runWhen });
    };
  }
  // axios's methods, such as get(), call this function too.
  const request = (target: unknown, options?: unknown) => calls.send(target, options);
  const send: Send = (config, parse) => calls.send(config, undefined, parse);
  made.request = request as never;
  const names = Object.getOwnPropertyNames(Axios.prototype).filter((name) => name !== 'constructor');
  const methods = names.map((name) => [name, (made[name as 'request'] as () => unknown).bind(made)]);
  // Axios's own methods would copy the body. Its method query() is newer than the oldest axios that is supported.
  const withBodies = names
    .filter((method) => ['post', 'put', 'patch', 'query'].includes(method))
    .map((method) => [
      method,
      (url: string, data: unknown, config?: object) => request({ ...config, method, url, data }),
    ]);
  const create = (config?: CreateAxiosDefaults): AxiosInstance =>
    axios.create({ ...(defaults as CreateAxiosDefaults), ...config });
  return Object.assign(request, Object.fromEntries([...methods, ...withBodies]), {
    delete: (url: string, config?: object) => request({ ...config, method: 'delete', url }),
    defaults,
    interceptors,
    create,
    [SEND]: send,
  }) as never;
}
