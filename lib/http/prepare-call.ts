import { Axios, AxiosHeaders, type AxiosAdapter, type InternalAxiosRequestConfig } from 'axios';
import { withoutSlashes } from '../config/address.js';
import { ServiceRequestError } from '../errors/index.js';
import { checkTimeout, MAX_RESPONSE_BYTES } from '../exchange/call-limits.js';
import { refuseAxiosOptions } from './axios-options.js';
import { AllowedUrls } from './allowed-urls.js';
import { notEncoded, prepareBody } from './body.js';
import { Call } from './call.js';
import { checkKey, checkResponseType, checkWhole, type HttpCallOptions } from './call-options.js';
import { type ClientContext } from './client-context.js';
import { fillPath } from './path-template.js';

/** The property of a config that has its call, from the interceptor to the adapter. */
const CALL = Symbol('call');

/** Axios passes on what it does not know. */
type Config = InternalAxiosRequestConfig &
  Pick<HttpCallOptions, 'pathParams' | 'readOnly' | 'idempotencyKey'> &
  Pick<HttpCallOptions, 'retries' | 'attemptTimeout' | 'maxResponseBytes'> & { [CALL]?: Call };

// RFC 9110, 9.1: a method is a token.
const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;

const OTHER_ADAPTER =
  "is not the module's, which alone has the certificate and the credentials: in tests use stubService, or nock";
const NOT_PREPARED =
  "came without this module's interceptor: use axiosRef itself, not axiosRef.create(), interceptors.request.clear() or eject()";

/**
 * Axios's interceptor: checks a call and makes its {@link Call}. Axios runs the interceptor that was registered first as
 * the last, after those of the host. Throws ServiceRequestError for a call that leads elsewhere or cannot be sent.
 */
export function callPreparer(
  { calls, options, identity }: ClientContext,
  adapter: AxiosAdapter,
): (config: Config) => Config {
  const urls = new AllowedUrls(options.addresses);
  const basePath = withoutSlashes(new URL(options.addresses.baseUrl).pathname);
  return (config) => {
    calls.admit();
    // A mock or a cache of the host, which would never hear of a call.
    if (config.adapter !== adapter) throw ServiceRequestError.ofCode('adapter', OTHER_ADAPTER);
    refuseAxiosOptions(config, identity.httpsAgent);
    config.headers = AxiosHeaders.from(config.headers);
    prepareBody(config);
    const { signal, cancelToken, pathParams, idempotencyKey, responseType } = config;
    const { timeout, attemptTimeout, retries, maxResponseBytes } = config;
    const path = config.url as string;
    const isPlain = pathParams === undefined && typeof path === 'string' && !path.includes('{');
    const url = urls.resolve(addressOf(config, isPlain ? path : fillPath(path, pathParams)));
    const ownMs = timeout === undefined ? undefined : checkTimeout(timeout);
    const given = { path, isTemplate: Boolean(pathParams), basePath, signal, cancelToken };
    const call = new Call(toMethod(config.method), url, ownMs ?? options.http.timeout, given);
    call.readOnly = config.readOnly === true;
    // Most calls have none of these.
    if (responseType) checkResponseType(responseType);
    if (idempotencyKey !== undefined) call.setKey(checkKey(idempotencyKey, call.method, call.readOnly));
    if (retries !== undefined) call.maxRetries = checkWhole('retries', retries, 0, 10);
    if (maxResponseBytes !== undefined)
      call.maxResponseBytes = checkWhole('maxResponseBytes', maxResponseBytes, 1, MAX_RESPONSE_BYTES);
    if (attemptTimeout) call.attemptTimeoutMs = checkTimeout(attemptTimeout, 'attemptTimeout');
    // Axios would end the call with an error of its own.
    config.signal = config.cancelToken = undefined;
    config[CALL] = call;
    return config;
  };
}

/** Takes the call out of a config, which goes back to the host. Throws ServiceRequestError if there is none. */
export function preparedCall(config: Config): Call {
  const call = config[CALL];
  if (!call) throw ServiceRequestError.ofCode('call', NOT_PREPARED);
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
function addressOf({ baseURL, allowAbsoluteUrls, params, paramsSerializer }: Config, url: string): string {
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
