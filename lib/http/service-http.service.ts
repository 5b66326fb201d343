import { HttpService } from '@nestjs/axios';
import { Injectable } from '@nestjs/common';
import { RESOURCES, type ResourceName } from '../config/names.js';
import { type HttpSettings } from '../config/resolve-options.js';
import { type AxiosInstance, type AxiosRequestConfig } from 'axios';
import { ServiceApiError, serviceErrorCode, ServiceRequestError } from '../errors/index.js';
import { type PaginateOptions, readPages } from './paginate.js';
import { checkParser } from './parse-option.js';
import {
  type HttpCallOptions,
  type HttpRequestOptions,
  type ReadOption,
  type ParseOption,
} from './call-options.js';
import { sendCall, type ServiceResponse } from './service-axios.js';

/** Options of {@link ServiceHttpService.request} with the path among them. */
export type HttpRequestConfig<T = unknown> = HttpRequestOptions & ParseOption<T> & { url: string };

type RequestConfig<T = unknown> = HttpRequestOptions & ReadOption<T> & { url: string };

/** A successful response, with its status, headers and ids. */
export interface HttpResponse<T = unknown> {
  /** The JSON body, text or bytes (`responseType`), or what `parse` returned. */
  readonly data: T;
  /** The HTTP status. */
  readonly status: number;
  /** Header names are in lower case. Several headers of one name are joined by a comma. `set-cookie` is left out. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The correlation id of the response, for questions to the service's support. If it has none: the one that was sent. */
  readonly correlationId?: string;
  /** The correlation id that was sent with the call, if any (`http.requestId`). */
  readonly requestId?: string;
}

/**
 * The authenticated client for every path of the service. Each method takes a path below the base address, or an absolute URL
 * within the service's own origins. Each method resolves with
 * - the JSON body by default,
 * - what `parse` returns, if it is set,
 * - text or bytes, if `responseType` is set,
 * - `undefined` for a 204, and for a POST, PUT, PATCH or DELETE whose successful response has no body.
 *
 * Streams are refused, as bodies and as responses.
 *
 * Rejects with ServiceApiError (docs/service.md#errors), ServiceConnectionError, ServiceTokenError,
 * ServiceCertificateError, ServiceRequestError (nothing was sent), or the reason of the caller's own abort.
 */
@Injectable()
export class ServiceHttpService {
  readonly #axios: AxiosInstance;
  readonly #trailingSlash: HttpSettings['trailingSlash'];
  #http?: HttpService;

  /** @internal */
  constructor(axios: AxiosInstance, trailingSlash: HttpSettings['trailingSlash'] = false) {
    this.#axios = axios;
    this.#trailingSlash = trailingSlash;
  }

  /**
   * The path of a resource's collection: `/banks/v1`, or `/banks/v1/` if `http.trailingSlash` says so.
   * @internal
   */
  collectionPath(name: ResourceName): string {
    const path = RESOURCES[name];
    const slash = this.#trailingSlash;
    return slash === true || (slash !== false && slash.includes(name)) ? `${path}/` : path;
  }

  /**
   * An HttpService of @nestjs/axios for Observables. It uses the same axios instance, so calls are authenticated and checked in
   * the same way and give the same errors. Unsubscribing ends the call.
   */
  get httpService(): HttpService {
    return (this.#http ??= new HttpService(this.#axios));
  }

  /** The axios instance behind this service, for interceptors of your own. Its calls are checked in the same way. */
  get axiosRef(): AxiosInstance {
    return this.#axios;
  }

  /** Sends a call with the method and body of `options`, to `path` or to `options.url`. */
  request<T = unknown>(path: string, options?: HttpRequestOptions & ReadOption<T>): Promise<T>;
  request<T = unknown>(options: HttpRequestOptions & ReadOption<T> & { url: string }): Promise<T>;
  async request<T>(
    target: string | RequestConfig<T>,
    options?: HttpRequestOptions & ReadOption<T>,
  ): Promise<T> {
    return this.#send(configOf(target, options));
  }

  /**
   * Like {@link request}, but resolves with the status, headers and ids of the response too. Resources can be called by their
   * paths: `response('/banks/v1')`. A GET or HEAD with the header `if-none-match` or `if-modified-since` resolves with the status 304
   * and without `data` if nothing has changed. `parse` is then not called.
   */
  response<T = unknown>(path: string, options?: HttpRequestOptions & ReadOption<T>): Promise<HttpResponse<T>>;
  response<T = unknown>(
    options: HttpRequestOptions & ReadOption<T> & { url: string },
  ): Promise<HttpResponse<T>>;
  async response<T>(
    target: string | RequestConfig<T>,
    options?: HttpRequestOptions & ReadOption<T>,
  ): Promise<HttpResponse<T>> {
    const config = { ...configOf(target, options), takesNotModified: true };
    return this.#send(config, toResponse) as Promise<HttpResponse<T>>;
  }

  /** Sends a GET. Retries it at most `retries` times (default: `http.retries`) after a failure that may pass. */
  get<T = unknown>(path: string, options?: HttpCallOptions & ReadOption<T>): Promise<T> {
    return this.#call('GET', path, options);
  }

  /** Sends a DELETE, with `options.data` as the body if it is set. */
  delete<T = unknown>(path: string, options?: HttpRequestOptions & ReadOption<T>): Promise<T> {
    return this.#call('DELETE', path, options);
  }

  /** Sends a POST with `data` as the body. */
  post<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions & ReadOption<T>): Promise<T> {
    return this.#call('POST', path, options, data);
  }

  /** Sends a PUT with `data` as the body. */
  put<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions & ReadOption<T>): Promise<T> {
    return this.#call('PUT', path, options, data);
  }

  /** Sends a PATCH with `data` as the body. */
  patch<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions & ReadOption<T>): Promise<T> {
    return this.#call('PATCH', path, options, data);
  }

  /**
   * Yields the entries of a list, page by page, for `for await`. A page is read when the entries of the one before have been
   * taken, and no page is read after the caller has stopped. Pages are counted from 0, in the form of docs/calls.md#lists; for
   * other lists pass `next`.
   * @throws ServiceApiError `invalid_response` for a page without a list (also one with the status PENDING), for an empty page before
   * the end, and for a page that was read before; everything that {@link get} throws
   * @example
   * for await (const account of http.paginate<Account>('/data/v2/accounts', { params: { entity_id } })) ...
   */
  paginate<Entry = unknown, Page = unknown>(
    path: string,
    options: PaginateOptions<Entry, Page> = {},
  ): AsyncGenerator<Entry, void, undefined> {
    return readPages((...given) => this.get(...given), path, options);
  }

  /**
   * Reads one thing by its id. Resolves with undefined if the service says that there is none: a 404 with the service's own error body.
   * Any other 404 rejects, because it may come from a wrong address.
   * @param options `pathParams` is required
   * @throws everything that {@link get} throws
   */
  async find<T = unknown>(
    path: string,
    options: HttpCallOptions & ReadOption<T> & Required<Pick<HttpCallOptions, 'pathParams'>>,
  ): Promise<T | undefined> {
    if (Object.keys(options?.pathParams ?? {}).length === 0) {
      throw ServiceRequestError.ofMisuse('pathParams', 'must have the id of what find() looks for');
    }
    try {
      return await this.get<T>(path, options);
    } catch (error) {
      if (error instanceof ServiceApiError && saysNotFound(error)) return undefined;
      throw error;
    }
  }

  #call<T>(
    method: string,
    url: string,
    options?: HttpRequestOptions & ReadOption<T>,
    data = options?.data,
  ): Promise<T> {
    // Object.assign() rather than a spread: with a spread, V8 gives each of these objects a hidden class of its own.
    return this.#send(Object.assign({ url, method, data }, options, { url, method, data }));
  }

  async #send<T>(options: RequestConfig, resultOf?: (response: ServiceResponse) => T): Promise<T> {
    const parse = checkParser(options.parse);
    // Axios would make a deep copy of a schema.
    const request = (parse ? { ...options, parse: undefined } : options) as AxiosRequestConfig;
    const response = await sendCall(this.#axios, request, parse);
    return resultOf ? resultOf(response) : (response.data as T);
  }
}

/** Whether the service itself says that a thing does not exist. With a hint, the address is most likely wrong. */
function saysNotFound({ status, body, hint }: ServiceApiError): boolean {
  return status === 404 && serviceErrorCode(body) !== undefined && hint === undefined;
}

function configOf<T>(
  target: string | RequestConfig<T>,
  options?: HttpRequestOptions & ReadOption<T>,
): RequestConfig<T> {
  // A value of any other type is taken for a path, and refused with the message about paths.
  return typeof target === 'object' && (target as unknown) !== null
    ? target
    : { ...options, url: target as string };
}

function toResponse(response: ServiceResponse): HttpResponse {
  const { status, correlationId, requestId } = response;
  const headers = Object.entries({ ...response.headers })
    .map(([name, value]): [string, string] => [name.toLowerCase(), [value].flat().join(', ')])
    // Several set-cookie headers cannot be joined (RFC 9110, section 5.3).
    .filter(([name]) => name !== 'set-cookie');
  return {
    data: response.data as unknown,
    status,
    headers: Object.fromEntries(headers),
    correlationId,
    requestId,
  };
}
