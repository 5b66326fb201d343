import { Axios, AxiosHeaders, type AxiosHeaderValue, type InternalAxiosRequestConfig } from 'axios';
import { type Authenticator, type Credentials } from '../auth/authenticator.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { ServiceRequestError } from '../errors/index.js';
import { checkTimeout } from '../exchange/call-limits.js';
import { AllowedUrls, type CallUrl } from './allowed-urls.js';
import { notEncoded, transformBody } from './body.js';
import { toCallSignal, type CallLimits } from './call.js';
import { type CallObserver } from './call-observer.js';
import { type CallsInFlight } from './calls-in-flight.js';
import { type RequestIds } from './request-ids.js';

/** A call that was judged: what is not in its config, where axios's own errors and a host's code would find it. */
export interface AttachedCall extends CallLimits {
  url: CallUrl;
  credentials: Credentials;
  /** As its caller named it. */
  route?: string;
  /** To be called at the end of the call. */
  release: () => void;
}

type Authentication = Pick<Authenticator, 'use' | 'get'>;

/** They are part of the address or the body by now, or of the {@link AttachedCall}. */
const USED_OPTIONS = ['baseURL', 'params', 'signal', 'cancelToken', 'transformRequest', 'env'] as const;

/** Where a config has its {@link AttachedCall}, from the interceptor to the adapter. */
const ATTACHED = Symbol('attached call');

const ROUTE = /^\/[^\s?#\p{Cc}]{0,255}$/u;

const NOT_ATTACHED =
  "came without this module's interceptor: use axiosRef itself, not axiosRef.create(), the config of an earlier answer, interceptors.request.clear() or eject()";

/**
 * Judges each call, and attaches what authenticates it (docs/service.md#authentication). Axios runs the interceptor
 * that was registered first as the last: it sees what those of a host did, and they see no credentials.
 */
export class AuthHeadersInterceptor {
  readonly #urls: AllowedUrls;
  readonly #auth: Authentication;
  readonly #calls: CallsInFlight;
  readonly #observer: CallObserver;
  readonly #requestIds: RequestIds | undefined;
  readonly #appTokenHeader: string;
  readonly #timeoutMs: number;

  constructor(
    { addresses, appTokenHeader, http }: Pick<ResolvedOptions, 'addresses' | 'appTokenHeader' | 'http'>,
    auth: Authentication,
    calls: CallsInFlight,
    observer: CallObserver,
    requestIds?: RequestIds,
  ) {
    this.#urls = new AllowedUrls(addresses);
    this.#appTokenHeader = appTokenHeader.toLowerCase();
    this.#timeoutMs = http.timeout;
    this.#auth = auth;
    this.#calls = calls;
    this.#observer = observer;
    this.#requestIds = requestIds;
  }

  /**
   * The interceptor: puts the app token and the bearer into `config.headers`, in place of any that the caller set. Waits
   * for a token where there is none. Throws ServiceRequestError for a call that leads elsewhere, or cannot be sent.
   */
  readonly attach = (
    config: InternalAxiosRequestConfig,
  ): InternalAxiosRequestConfig | Promise<InternalAxiosRequestConfig> => {
    this.#calls.admit();
    config.headers = AxiosHeaders.from(config.headers);
    refuseOptions(config);
    transformBody(config);
    // Not before: a host's transform may set them too.
    const headers = this.#withoutCredentials(config.headers);
    config.headers = headers;
    const url = this.#urls.resolve(addressOf(config));
    const timeoutMs = checkTimeout(config.timeout) ?? this.#timeoutMs;
    const route = routeOf(config);
    const startedAt = performance.now();
    const endsAt = startedAt + timeoutMs;
    const { signal, release } = toCallSignal(config);
    config.url = url.href;
    for (const key of USED_OPTIONS) delete config[key];
    const attach = (credentials: Credentials): InternalAxiosRequestConfig => {
      this.#requestIds?.addTo(headers);
      for (const name of Object.keys(credentials)) headers[name] = credentials[name];
      const attached: AttachedCall = { url, credentials, startedAt, endsAt, route, signal, release };
      return Object.assign(config, { [ATTACHED]: attached });
    };
    const credentials = this.#auth.use(url.origin);
    if (credentials) return attach(credentials);
    return this.#calls
      .run(() => this.#auth.get(url.origin, { signal, timeoutMs }))
      .then(attach)
      .catch((error: Error) => {
        release();
        const unsent = { method: String(config.method ?? 'get').toUpperCase(), url, headers: {} };
        const reject = () => Promise.reject<never>(error);
        return this.#observer.observe(unsent, { startedAt, route, signal }, reject);
      });
  };

  /**
   * Takes the credentials out of a config, which goes back to the host with the answer. Throws ServiceRequestError for a
   * config that was not attached to.
   */
  detach(config: InternalAxiosRequestConfig & { [ATTACHED]?: AttachedCall }): AttachedCall {
    const attached = config[ATTACHED];
    if (!attached || !this.#urls.isOwn(attached.url)) throw ServiceRequestError.of('call', NOT_ATTACHED);
    delete config[ATTACHED];
    for (const name of Object.keys(attached.credentials)) delete config.headers[name];
    return attached;
  }

  /** A copy without the authenticating headers, however they are spelt. */
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

function refuseOptions({ transitional, responseType }: InternalAxiosRequestConfig): void {
  if (transitional?.legacyInterceptorReqResOrdering !== true) {
    throw ServiceRequestError.of(
      'transitional',
      "must not make a host's interceptors run after this module's",
    );
  }
  if (responseType === 'stream') {
    throw ServiceRequestError.of(
      'responseType',
      "cannot be 'stream': use 'arraybuffer', or a client of your own with auth.httpsAgent",
    );
  }
}

/** Of the options of a call: axios passes on what it does not know. */
function routeOf({ route }: InternalAxiosRequestConfig & { route?: unknown }): string | undefined {
  if (route === undefined || route === null) return undefined;
  if (typeof route === 'string' && ROUTE.test(route)) return route;
  throw ServiceRequestError.of('route', 'must be the template of a path, such as /orders/v1/{id}');
}

/** The address that axios would call. */
function addressOf({ url, baseURL, params, paramsSerializer }: InternalAxiosRequestConfig): unknown {
  if (!baseURL && !params) return url;
  try {
    // Not of the call's own instance: that would add again what an interceptor took out of the defaults.
    return new Axios({}).getUri({ url, baseURL, params: params as unknown, paramsSerializer });
  } catch (error) {
    // What a host's own serializer throws is the host's.
    throw paramsSerializer ? error : notEncoded('params', error);
  }
}
