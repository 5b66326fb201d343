import { Axios, AxiosHeaders, type AxiosAdapter, type InternalAxiosRequestConfig } from 'axios';
import { randomUUID } from 'node:crypto';
import { checkSignal, checkTimeout, MAX_RESPONSE_BYTES } from '../config/http.options.js';
import { ServiceRequestError } from '../errors/index.js';
import { ignoreErrors } from '../telemetry/telemetry.js';
import { Call, type CallDetails, type ClientContext } from './call.js';
import { notEncoded, prepareBody, takeBody } from './call-content.js';
import {
  checkIdempotencyKey,
  checkRepeatable,
  checkResponseType,
  checkWhole,
  type HttpCallOptions,
  refuseAxiosOptions,
} from './call-options.js';
import { AllowedUrls, type CallUrl, fillPath } from './call-url.js';
import { type HostCall, hostCallOf } from './host-call.js';

/** An axios config with the options of this module, which axios passes on untouched. */
export type CallConfig = InternalAxiosRequestConfig &
  Pick<HttpCallOptions, 'pathParams' | 'readOnly' | 'repeatable' | 'idempotencyKey'> &
  Pick<HttpCallOptions, 'retries' | 'attemptTimeout' | 'maxResponseBytes'> & {
    /** The route of the call, for the host application's interceptors to read. */
    route?: string;
    /** Set by http.response(): the caller can see a 304, so a GET may have conditions. */
    takesNotModified?: boolean;
  };

// RFC 9110, 9.1: a method is a token.
const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;

type Place = Pick<CallDetails, 'template' | 'filled'> & { url: CallUrl };

const OTHER_ADAPTER =
  "must not be replaced, because only the module's own adapter sends the certificate and the credentials: in tests use stubService, or nock";

/** Makes the {@link Call} of an axios config: checks its address and its options. */
export class CallFactory {
  readonly #urls: AllowedUrls;

  constructor(
    private readonly client: ClientContext,
    private readonly adapter: AxiosAdapter,
  ) {
    this.#urls = new AllowedUrls(client.options.addresses);
  }

  /**
   * Makes the Call of a request that is about to be sent.
   * @throws ServiceRequestError for a request that leads outside the service's own addresses, or that cannot be sent
   */
  prepare(config: CallConfig): Call {
    const { calls, identity } = this.client;
    const hostCall = hostCallOf(config.adapter);
    if (!hostCall) {
      calls.throwIfDraining();
      // An adapter of the host application, such as a mock or a cache. It would be used in place of ours.
      if (config.adapter !== this.adapter) throw ServiceRequestError.ofMisuse('adapter', OTHER_ADAPTER);
    }
    refuseAxiosOptions(config, identity.httpsAgent);
    config.headers = AxiosHeaders.from(config.headers);
    takeBody(config, hostCall !== undefined || config.transformRequest !== undefined);
    prepareBody(config);
    checkResponseType(config.responseType);
    const call = this.#makeCall(config, this.#locate(config, hostCall), hostCall);
    if (call.details.template !== undefined || hostCall) config.route = call.route;
    // Axios would end the call with an error of its own.
    config.signal = config.cancelToken = undefined;
    return call;
  }

  /**
   * Makes the Call that lasts from before the host application's interceptors until after them. Fills in the path and sets
   * `config.route`, so that the interceptors see both. Ignores faults in the options: an interceptor may still correct them,
   * and {@link prepare} checks them afterwards.
   */
  begin(config: CallConfig): Call {
    const located = ignoreErrors(() => this.#locate(config));
    const place = located ?? { url: this.#urls.base };
    const made = ignoreErrors(() => this.#makeCall(config, place));
    const call = made ?? new Call('GET', place.url, this.client.options.http.timeout);
    if (located) config.route = call.route;
    // All requests of this call get the same generated key.
    if (config.idempotencyKey === true) config.idempotencyKey = call.details.idempotencyKey ?? true;
    return call;
  }

  /** Checks the options of a call, except for its body and those that axios uses. */
  #makeCall(config: CallConfig, { url, template, filled }: Place, hostCall?: HostCall): Call {
    const { attemptTimeout, cancelToken, idempotencyKey, maxResponseBytes, retries, signal } = config;
    const method = toMethod(config.method);
    const readOnly = config.readOnly === true;
    const key = checkIdempotencyKey(idempotencyKey, method, readOnly);
    const ofHost = hostCall?.call.details;
    const details = {
      template,
      filled,
      basePath: this.#urls.basePath,
      readOnly,
      repeatable: checkRepeatable(config.repeatable, readOnly),
      idempotencyKey: key === true ? randomUUID() : key,
      // An interceptor may have sent the request again, with the key that was generated for the first one.
      hasCallerKey: key === ofHost?.idempotencyKey ? ofHost?.hasCallerKey : typeof key === 'string',
      maxRetries: checkWhole('retries', retries, 0, 10),
      attemptTimeoutMs: checkTimeout(attemptTimeout, 'attemptTimeout'),
      maxResponseBytes: checkWhole('maxResponseBytes', maxResponseBytes, 1, MAX_RESPONSE_BYTES),
      // The caller's own signal and token end the whole call. An interceptor may have set others.
      signal: signal === ofHost?.signal ? undefined : checkSignal(signal),
      cancelToken: cancelToken === ofHost?.cancelToken ? undefined : cancelToken,
      hostCall,
    };
    const ownMs = checkTimeout(config.timeout) ?? this.client.options.http.timeout;
    const { timeoutMs, endsAt } = hostCall?.addRequest(ownMs) ?? { timeoutMs: ownMs };
    return new Call(method, url, timeoutMs, details, endsAt);
  }

  /** Fills in the path, and checks where it leads. */
  #locate(config: CallConfig, hostCall?: HostCall): Place {
    const { pathParams } = config;
    const path = config.url as string;
    const isPlain = pathParams === undefined && typeof path === 'string' && !path.includes('{');
    const filled = isPlain ? path : fillPath(path, pathParams);
    const url = this.#urls.resolve(addressOf(config, filled));
    const template = pathParams ? path : hostCall?.templateOf(filled);
    if (pathParams) {
      config.url = filled;
      config.pathParams = undefined;
    }
    return { url, template, filled };
  }
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
    // A new instance has no defaults. That of the client would add its `baseURL` and `params` again, even if an interceptor of the
    // host application has removed them from this call.
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
