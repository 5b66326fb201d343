import { Axios, AxiosHeaders, type AxiosAdapter, type InternalAxiosRequestConfig } from 'axios';
import { withoutSlashes } from '../config/address.js';
import { ServiceRequestError } from '../errors/index.js';
import { checkTimeout, MAX_RESPONSE_BYTES } from '../config/http.options.js';
import { refuseAxiosOptions } from './axios-options.js';
import { ignoreErrors } from '../telemetry/log.js';
import { AllowedUrls, type CallUrl, fillPath } from './call-url.js';
import { notEncoded, prepareBody } from './call-content.js';
import { Call, type CallerInput, type CallAuthenticator, type ClientContext } from './call.js';
import { checkIdempotencyKey, checkResponseType, checkWhole, type HttpCallOptions } from './call-options.js';
import { type InterceptedCall, interceptedCallOf } from './intercepted-call.js';

/** The property of an axios config that carries the call from the interceptor to the adapter. */
const CALL = Symbol('call');

/** An axios config with the options of this module, which axios passes on untouched. */
export type CallConfig = InternalAxiosRequestConfig &
  Pick<HttpCallOptions, 'pathParams' | 'readOnly' | 'idempotencyKey'> &
  Pick<HttpCallOptions, 'retries' | 'attemptTimeout' | 'maxResponseBytes'> & {
    /** The route of the call, for the host application's interceptors to read. */
    route?: string;
    [CALL]?: Call;
  };

// RFC 9110, 9.1: a method is a token.
const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;

const OTHER_ADAPTER =
  "must not be replaced, because only the module's own adapter sends the certificate and the credentials: in tests use stubService, or nock";
const NOT_PREPARED =
  "came without this module's interceptor: use axiosRef itself, not axiosRef.create(), interceptors.request.clear() or eject()";

/**
 * Makes the {@link Call} of an axios config, and attaches the app-token header, the bearer header or both to it. They are not
 * set in `config.headers`, where code of the host application could read them or write them to a log.
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
   * The interceptor function. Axios runs it last, after the host application's interceptors. It is synchronous and never waits
   * for a token. If none is at hand, the runner waits for one, within the time limit of the call. Throws
   * ServiceRequestError for a call that leads outside the service's own addresses, or that cannot be sent.
   */
  readonly intercept = (config: CallConfig): CallConfig => {
    const { calls, options, identity } = this.#client;
    const intercepted = config.adapter === this.#adapter ? undefined : interceptedCallOf(config.adapter);
    if (!intercepted) {
      calls.throwIfDraining();
      // An adapter of the host application, such as a mock or a cache. It would be used in place of ours.
      if (config.adapter !== this.#adapter) throw ServiceRequestError.ofMisuse('adapter', OTHER_ADAPTER);
    }
    refuseAxiosOptions(config, identity.httpsAgent);
    config.headers = AxiosHeaders.from(config.headers);
    prepareBody(config);
    const { idempotencyKey, responseType, timeout, attemptTimeout, retries, maxResponseBytes } = config;
    const { url, given } = this.#resolveUrl(config, intercepted);
    const ownMs = timeout === undefined ? undefined : checkTimeout(timeout);
    const call = new Call(toMethod(config.method), url, ownMs ?? options.http.timeout, given);
    call.readOnly = config.readOnly === true;
    // Most calls set none of these options.
    if (responseType) checkResponseType(responseType);
    if (idempotencyKey !== undefined)
      call.setKey(checkIdempotencyKey(idempotencyKey, call.method, call.readOnly));
    if (retries !== undefined) call.maxRetries = checkWhole('retries', retries, 0, 10);
    if (maxResponseBytes !== undefined)
      call.maxResponseBytes = checkWhole('maxResponseBytes', maxResponseBytes, 1, MAX_RESPONSE_BYTES);
    if (attemptTimeout) call.attemptTimeoutMs = checkTimeout(attemptTimeout, 'attemptTimeout');
    if (given.isTemplate || intercepted) config.route = call.route;
    intercepted?.add(call);
    // The Call listens to the abort signals. Axios would end the call with an error of its own.
    config.signal = config.cancelToken = undefined;
    config[CALL] = call;
    // This comes last, because it may start a renewal of the token: only a call that will be sent is to do that.
    const credentials = this.#authenticator.getCached();
    if (credentials) call.setCredentials(credentials);
    return config;
  };

  /**
   * Makes the Call that lasts from before the host application's interceptors until after them. Fills in the path and sets
   * `config.route`, so that the interceptors see both. Ignores faults in the options: an interceptor may still correct them,
   * and {@link intercept} checks them afterwards.
   */
  beginCall(config: CallConfig): Call {
    const { http, addresses } = this.#client.options;
    const { method, timeout, readOnly, idempotencyKey, signal, cancelToken } = config;
    const located = ignoreErrors(() => this.#resolveUrl(config));
    const call = new Call(
      ignoreErrors(() => toMethod(method)) ?? 'GET',
      located?.url ?? new URL(addresses.baseUrl),
      ignoreErrors(() => checkTimeout(timeout)) ?? http.timeout,
      located?.given ?? { signal, cancelToken },
    );
    call.readOnly = readOnly === true;
    ignoreErrors(() => call.setKey(checkIdempotencyKey(idempotencyKey, call.method, call.readOnly)));
    ignoreErrors(() => call.followSignals());
    if (located) config.route = call.route;
    // All requests of this call get the same generated key.
    if (idempotencyKey === true) config.idempotencyKey = call.idempotencyKey;
    return call;
  }

  /** Fills in the path, and checks where it leads. */
  #resolveUrl(config: CallConfig, intercepted?: InterceptedCall): { url: CallUrl; given: CallerInput } {
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

/** Removes the Call from the config, because the host application gets the config back. Throws ServiceRequestError if there is none. */
export function takeCall(config: CallConfig): Call {
  const call = config[CALL];
  if (!call) throw ServiceRequestError.ofMisuse('call', NOT_PREPARED);
  config[CALL] = undefined;
  return call;
}

/** The method in capitals. Throws ServiceRequestError for a method that cannot be sent. */
function toMethod(given: unknown = 'get'): string {
  const method = typeof given === 'string' ? given.toUpperCase() : '';
  if (METHOD.test(method) && method !== 'CONNECT' && method !== 'TRACE') return method;
  throw ServiceRequestError.of('method', 'cannot be sent');
}

/** The URL that axios would request: with `baseURL` and `params`. */
function addressOf(
  { baseURL, allowAbsoluteUrls, params, paramsSerializer }: CallConfig,
  url: string,
): string {
  if (!baseURL && !params) return url;
  try {
    // A fresh instance: the call's own would add defaults again that an interceptor has removed.
    return new Axios({}).getUri({
      url,
      baseURL,
      allowAbsoluteUrls,
      params: params as unknown,
      paramsSerializer,
    });
  } catch (error) {
    // The host application gets the error of its own serializer.
    throw paramsSerializer ? error : notEncoded('params', error);
  }
}
