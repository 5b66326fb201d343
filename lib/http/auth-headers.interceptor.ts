import { Axios, AxiosHeaders, type AxiosHeaderValue, type InternalAxiosRequestConfig } from 'axios';
import { ServiceRequestError } from '../errors/index.js';
import { checkTimeout, MAX_RESPONSE_BYTES } from '../exchange/call-limits.js';
import { AllowedUrls } from './allowed-urls.js';
import { notEncoded, prepareBody } from './body.js';
import { Call, toMethod } from './call.js';
import { checkResponseType, checkWhole, type HttpCallOptions } from './call-options.js';
import { type CallObserver } from './call-observer.js';
import { type CallAuthenticator, type ClientContext } from './client-context.js';
import { type Credentials } from '../auth/authenticator.js';

/** The property of a config that has its call, from the interceptor to the adapter. */
const CALL = Symbol('call');

/** Axios passes on what it does not know. */
type Config = InternalAxiosRequestConfig &
  Pick<HttpCallOptions, 'route' | 'retries' | 'attemptTimeout' | 'maxResponseBytes'> & { [CALL]?: Call };

/** Options that are part of the Call by then. */
const USED_OPTIONS = ['baseURL', 'params', 'signal', 'cancelToken'] as const;

const ROUTE = /^\/[^\s?#\p{Cc}]{0,255}$/u;

const NOT_ATTACHED =
  "came without this module's interceptor: use axiosRef itself, not axiosRef.create(), the config of an earlier answer, interceptors.request.clear() or eject()";
const CHANGED =
  "was changed after this module's interceptor, which has judged it: leave `transitional` as it is, so that yours come before";

/**
 * Checks each call, makes its {@link Call}, and attaches the credentials (docs/service.md#authentication). The Call's are
 * sent. No code of a host sees credentials: axios runs the interceptor that was registered first as the last, and if it
 * does not, the headers stay as they are.
 */
export class AuthHeadersInterceptor {
  readonly #client: ClientContext;
  readonly #authenticator: CallAuthenticator;
  readonly #observer: CallObserver;
  readonly #urls: AllowedUrls;
  readonly #appTokenHeader: string;

  constructor(client: ClientContext, authenticator: CallAuthenticator, observer: CallObserver) {
    const { addresses, appTokenHeader } = client.options;
    this.#client = client;
    this.#authenticator = authenticator;
    this.#observer = observer;
    this.#urls = new AllowedUrls(addresses);
    this.#appTokenHeader = appTokenHeader.toLowerCase();
  }

  /**
   * The interceptor: puts the app token and the bearer into `config.headers`, in place of any that the caller set. Waits
   * for a token if necessary. Throws ServiceRequestError for a call that leads elsewhere or cannot be sent.
   */
  readonly attach = (config: Config): Config | Promise<Config> => {
    const { calls, options } = this.#client;
    calls.admit();
    checkResponseType(config.responseType);
    config.headers = AxiosHeaders.from(config.headers);
    prepareBody(config);
    const url = this.#urls.resolve(addressOf(config));
    const timeoutMs = checkTimeout(config.timeout) ?? options.http.timeout;
    const { signal, cancelToken } = config;
    const call = new Call(toMethod(config.method), url, timeoutMs, routeOf(config), { signal, cancelToken });
    call.maxRetries = checkWhole('retries', config.retries, 0, 10);
    call.maxResponseBytes = checkWhole('maxResponseBytes', config.maxResponseBytes, 1, MAX_RESPONSE_BYTES);
    call.attemptTimeoutMs = checkTimeout(config.attemptTimeout, 'attemptTimeout');
    config.url = url.href;
    for (const key of USED_OPTIONS) delete config[key];
    config[CALL] = call;
    const credentials = this.#authenticator.use();
    return credentials ? this.#attach(config, call, credentials) : this.#attachLater(config, call);
  };

  #attach(config: Config, call: Call, credentials: Credentials): Config {
    call.authenticate(credentials);
    if (!isLast(config)) return config;
    const headers = this.#withoutCredentials(config.headers);
    for (const name of Object.keys(credentials)) headers[name] = credentials[name];
    config.headers = headers;
    return config;
  }

  /** Follows the caller's signal for this wait alone: an error between here and the adapter would never release it. */
  async #attachLater(config: Config, call: Call): Promise<Config> {
    const { calls } = this.#client;
    call.follow();
    try {
      const wait = { signal: call.signal, timeoutMs: call.timeoutMs };
      return this.#attach(config, call, await calls.run(() => this.#authenticator.get(wait)));
    } catch (error) {
      this.#observer.failed(call, error);
      throw call.ending(error);
    } finally {
      call.release();
    }
  }

  /**
   * Takes the call and the credentials out of a config, which goes back to the host with the answer. Throws
   * ServiceRequestError for a config that was not attached to.
   */
  detach(config: Config): Call {
    const call = config[CALL];
    if (!call || !this.#urls.isOwn(call.url)) throw ServiceRequestError.ofCode('call', NOT_ATTACHED);
    delete config[CALL];
    if (config.url !== call.url.href || config.baseURL || config.params)
      throw ServiceRequestError.ofCode('url', CHANGED);
    if (isLast(config)) config.headers = this.#withoutCredentials(config.headers);
    return call;
  }

  /** A copy without the authenticating headers, however they are spelt: the host may have kept its own. */
  #withoutCredentials(given: AxiosHeaders): AxiosHeaders {
    const headers = new AxiosHeaders();
    for (const name of Object.keys(given)) {
      const key = name.toLowerCase();
      if (key !== 'authorization' && key !== this.#appTokenHeader)
        headers[name] = given[name] as AxiosHeaderValue;
    }
    return headers;
  }
}

/** Whether no interceptor and no transform of the host runs between our interceptor and the adapter. */
function isLast({ transitional, transformRequest }: Config): boolean {
  return transitional?.legacyInterceptorReqResOrdering === true && !transformRequest;
}

function routeOf({ route }: { route?: unknown }): string | undefined {
  if (route === undefined || route === null) return undefined;
  if (typeof route === 'string' && ROUTE.test(route)) return route;
  throw ServiceRequestError.ofCode('route', 'must be the template of a path, such as /orders/v1/{id}');
}

/** The address that axios would call. */
function addressOf({ url, baseURL, params, paramsSerializer }: Config): unknown {
  if (!baseURL && !params) return url;
  try {
    // Not by the call's own instance: it would add defaults again that an interceptor has removed.
    return new Axios({}).getUri({ url, baseURL, params: params as unknown, paramsSerializer });
  } catch (error) {
    // An error of a host's own serializer is the host's.
    throw paramsSerializer ? error : notEncoded('params', error);
  }
}
