import { Axios, AxiosHeaders, type AxiosAdapter, type InternalAxiosRequestConfig } from 'axios';
import { withoutSlashes } from '../config/address.js';
import { ServiceRequestError } from '../errors/index.js';
import { checkTimeout, MAX_RESPONSE_BYTES } from '../exchange/call-limits.js';
import { refuseAxiosOptions } from './request/axios-options.js';
import { harmless } from '../telemetry/harmless.js';
import { AllowedUrls, type CallUrl } from './request/allowed-urls.js';
import { notEncoded, prepareBody } from './request/body.js';
import { Call, type GivenCall } from './request/call.js';
import { checkKey, checkResponseType, checkWhole, type HttpCallOptions } from './request/call-options.js';
import { type CallAuthenticator, type ClientContext } from './request/client-context.js';
import { type InterceptedCall, interceptedCallOf } from './intercepted-call.js';
import { fillPath } from './request/path-template.js';

/** The property of a config that has its call, from the interceptor to the adapter. */
const CALL = Symbol('call');

/** Axios passes on what it does not know. */
export type CallConfig = InternalAxiosRequestConfig &
  Pick<HttpCallOptions, 'pathParams' | 'readOnly' | 'idempotencyKey'> &
  Pick<HttpCallOptions, 'retries' | 'attemptTimeout' | 'maxResponseBytes'> & {
    /** The route of the call, for interceptors of the application. */
    route?: string;
    [CALL]?: Call;
  };

// RFC 9110, 9.1: a method is a token.
const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;

const OTHER_ADAPTER =
  "is not the module's, which alone has the certificate and the credentials: in tests use stubService, or nock";
const NOT_PREPARED =
  "came without this module's interceptor: use axiosRef itself, not axiosRef.create(), interceptors.request.clear() or eject()";

/**
 * Makes the {@link Call} of an axios config, and attaches the app token, the bearer or both to it. They are not set in
 * `config.headers`, where code of the application could read them.
 */
export class AuthHeadersInterceptor {
  readonly #client: ClientContext;
  readonly #authenticator: CallAuthenticator;
  readonly #adapter: AxiosAdapter;
  readonly #urls: AllowedUrls;
  readonly #basePath: string;

  constructor(client: ClientContext, authenticator: CallAuthenticator, adapter: AxiosAdapter) {
    const { addresses } = client.options;
    this.#client = client;
    this.#authenticator = authenticator;
    this.#adapter = adapter;
    this.#urls = new AllowedUrls(addresses);
    this.#basePath = withoutSlashes(new URL(addresses.baseUrl).pathname);
  }

  /**
   * The interceptor, which axios runs last, after those of the application. It is synchronous, and never waits for a token:
   * if none is at hand, the runner waits, which counts calls, renewals and retries. Throws ServiceRequestError for a call
   * that leads elsewhere or cannot be sent.
   */
  readonly intercept = (config: CallConfig): CallConfig => {
    const { calls, options, identity } = this.#client;
    const intercepted = config.adapter === this.#adapter ? undefined : interceptedCallOf(config.adapter);
    if (!intercepted) {
      calls.admit();
      // A mock or a cache of the application, which would never hear of a call.
      if (config.adapter !== this.#adapter) throw ServiceRequestError.ofMisuse('adapter', OTHER_ADAPTER);
    }
    refuseAxiosOptions(config, identity.httpsAgent);
    config.headers = AxiosHeaders.from(config.headers);
    prepareBody(config);
    const { idempotencyKey, responseType, timeout, attemptTimeout, retries, maxResponseBytes } = config;
    const { url, given } = this.#locate(config, intercepted);
    const ownMs = timeout === undefined ? undefined : checkTimeout(timeout);
    const call = new Call(toMethod(config.method), url, ownMs ?? options.http.timeout, given);
    call.readOnly = config.readOnly === true;
    // Most calls have none of these.
    if (responseType) checkResponseType(responseType);
    if (idempotencyKey !== undefined) call.setKey(checkKey(idempotencyKey, call.method, call.readOnly));
    if (retries !== undefined) call.maxRetries = checkWhole('retries', retries, 0, 10);
    if (maxResponseBytes !== undefined)
      call.maxResponseBytes = checkWhole('maxResponseBytes', maxResponseBytes, 1, MAX_RESPONSE_BYTES);
    if (attemptTimeout) call.attemptTimeoutMs = checkTimeout(attemptTimeout, 'attemptTimeout');
    if (given.isTemplate || intercepted) config.route = call.route;
    intercepted?.add(call);
    // Axios would end the call with an error of its own.
    config.signal = config.cancelToken = undefined;
    config[CALL] = call;
    // Last: a token that is due for renewal is renewed only for a call that will be sent.
    const credentials = this.#authenticator.use();
    if (credentials) call.authenticate(credentials);
    return config;
  };

  /**
   * A call as its caller asks for it, before the interceptors of the application: fills in the path, and sets the route.
   * What is wrong with it is left to {@link intercept}, as an interceptor may correct it.
   */
  ask(config: CallConfig): Call {
    const { http, addresses } = this.#client.options;
    const { method, timeout, readOnly, idempotencyKey, signal, cancelToken } = config;
    const located = harmless(() => this.#locate(config));
    const call = new Call(
      harmless(() => toMethod(method)) ?? 'GET',
      located?.url ?? new URL(addresses.baseUrl),
      harmless(() => checkTimeout(timeout)) ?? http.timeout,
      located?.given ?? { signal, cancelToken },
    );
    call.readOnly = readOnly === true;
    harmless(() => call.setKey(checkKey(idempotencyKey, call.method, call.readOnly)));
    harmless(() => call.follow());
    if (located) config.route = call.route;
    // All requests that are sent for it have the same one.
    if (idempotencyKey === true) config.idempotencyKey = call.idempotencyKey;
    return call;
  }

  /** Fills the path in, and finds out where it leads. */
  #locate(config: CallConfig, intercepted?: InterceptedCall): { url: CallUrl; given: GivenCall } {
    const { pathParams, signal, cancelToken } = config;
    const path = config.url as string;
    const isPlain = pathParams === undefined && typeof path === 'string' && !path.includes('{');
    const filled = isPlain ? path : fillPath(path, pathParams);
    const url = this.#urls.resolve(addressOf(config, filled));
    const template = pathParams ? path : intercepted?.templateOf(filled);
    if (pathParams) {
      config.url = filled;
      config.pathParams = undefined;
    }
    const isTemplate = template !== undefined;
    const basePath = this.#basePath;
    return { url, given: { path: template ?? path, filled, isTemplate, basePath, signal, cancelToken } };
  }
}

/** Takes the call out of a config, which goes back to the host. Throws ServiceRequestError if there is none. */
export function preparedCall(config: CallConfig): Call {
  const call = config[CALL];
  if (!call) throw ServiceRequestError.ofMisuse('call', NOT_PREPARED);
  config[CALL] = undefined;
  return call;
}

/** In capitals. Throws ServiceRequestError. */
function toMethod(given: unknown = 'get'): string {
  const method = typeof given === 'string' ? given.toUpperCase() : '';
  if (METHOD.test(method) && method !== 'CONNECT' && method !== 'TRACE') return method;
  throw ServiceRequestError.of('method', 'cannot be sent');
}

/** The address that axios would call. */
function addressOf(
  { baseURL, allowAbsoluteUrls, params, paramsSerializer }: CallConfig,
  url: string,
): string {
  if (!baseURL && !params) return url;
  try {
    // Not by the call's own instance: it would add defaults again that an interceptor has removed.
    return new Axios({}).getUri({
      url,
      baseURL,
      allowAbsoluteUrls,
      params: params as unknown,
      paramsSerializer,
    });
  } catch (error) {
    // An error of a host's own serializer is the host's.
    throw paramsSerializer ? error : notEncoded('params', error);
  }
}
