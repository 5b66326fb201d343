import { HttpService } from '@nestjs/axios';
import { Injectable } from '@nestjs/common';
import { RESOURCES, type ResourceName } from '../config/resources.js';
import { type HttpSettings } from '../config/resolved-options.js';
import { type AxiosInstance, type AxiosRequestConfig } from 'axios';
import { checkParser, parseAnswer } from './request/parse-option.js';
import { type HttpCallOptions, type HttpRequestOptions, type ParseOption } from './request/call-options.js';
import { type ServiceResponse } from './service-adapter.js';

/** Options of {@link ServiceHttpService.request} with the path among them. */
export type HttpRequestConfig<T = unknown> = HttpRequestOptions & ParseOption<T> & { url: string };

/** A success, with its status, headers and ids. */
export interface HttpResponse<T = unknown> {
  /** The JSON body, text or bytes (`responseType`), or what `parse` returned. */
  readonly data: T;
  /** The HTTP status. */
  readonly status: number;
  /** The names are in lower case. Several headers of one name are joined by a comma; without set-cookie. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The answer's correlation id, for questions to the service's support; else the one that was sent. */
  readonly correlationId?: string;
  /** The correlation id that was sent with the call, if any (`http.requestId`). */
  readonly requestId?: string;
}

/**
 * The authenticated client for every path of the service. Each method takes a path below the base address, or an
 * absolute URL within the service's own origins, and resolves with the JSON body; with `undefined` for 204, and if a POST,
 * PUT, PATCH or DELETE is answered 2xx without a body. With `parse`, it resolves with what that returns; with
 * `responseType`, with text or bytes. Streams are refused.
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
   * The path of a resource's collection, spelt as `http.trailingSlash` says: `/banks/v1`, or `/banks/v1/`.
   * @internal
   */
  pathOf(name: ResourceName): string {
    const path = RESOURCES[name];
    const slash = this.#trailingSlash;
    return slash === true || (slash !== false && slash.includes(name)) ? `${path}/` : path;
  }

  /**
   * An HttpService of @nestjs/axios over the same axios instance, for Observables: the same guards, the same errors.
   * Unsubscribing ends the call.
   */
  get httpService(): HttpService {
    return (this.#http ??= new HttpService(this.#axios));
  }

  /** The axios instance behind it, for a host's own interceptors: the same guards, the same errors. */
  get axiosRef(): AxiosInstance {
    return this.#axios;
  }

  /** A call with the method and body of `options`, to a path or to `options.url`. */
  request<T = unknown>(path: string, options?: HttpRequestOptions & ParseOption<T>): Promise<T>;
  request<T = unknown>(options: HttpRequestConfig<T>): Promise<T>;
  async request<T>(
    target: string | HttpRequestConfig<T>,
    options?: HttpRequestOptions & ParseOption<T>,
  ): Promise<T> {
    return this.#send(configOf(target, options));
  }

  /**
   * Like {@link request}, but resolves with status, headers and ids of the answer too. Also for resources, by their paths
   * (`response('/banks/v1')`).
   */
  response<T = unknown>(
    path: string,
    options?: HttpRequestOptions & ParseOption<T>,
  ): Promise<HttpResponse<T>>;
  response<T = unknown>(options: HttpRequestConfig<T>): Promise<HttpResponse<T>>;
  async response<T>(
    target: string | HttpRequestConfig<T>,
    options?: HttpRequestOptions & ParseOption<T>,
  ): Promise<HttpResponse<T>> {
    return this.#send(configOf(target, options), toResponse) as Promise<HttpResponse<T>>;
  }

  /** GET. Sent again, at most `retries` times (`http.retries`), after a failure that may pass. */
  get<T = unknown>(path: string, options?: HttpCallOptions & ParseOption<T>): Promise<T> {
    return this.#call('GET', path, options);
  }

  /** DELETE, with `options.data` as its body, if set. */
  delete<T = unknown>(path: string, options?: HttpRequestOptions & ParseOption<T>): Promise<T> {
    return this.#call('DELETE', path, options);
  }

  /** POST with `data` as the body. */
  post<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions & ParseOption<T>): Promise<T> {
    return this.#call('POST', path, options, data);
  }

  /** PUT with `data` as the body. */
  put<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions & ParseOption<T>): Promise<T> {
    return this.#call('PUT', path, options, data);
  }

  /** PATCH with `data` as the body. */
  patch<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions & ParseOption<T>): Promise<T> {
    return this.#call('PATCH', path, options, data);
  }

  #call<T>(
    method: string,
    url: string,
    options?: HttpRequestOptions & ParseOption<T>,
    data = options?.data,
  ): Promise<T> {
    // Not by a spread: V8 would make each object a hidden class of its own.
    return this.#send(Object.assign({ url, method, data }, options, { url, method, data }));
  }

  async #send<T>(
    options: HttpRequestConfig,
    resultOf?: (answer: ServiceResponse, data: unknown) => T,
  ): Promise<T> {
    const parse = checkParser(options.parse);
    // Axios would copy a schema.
    const request = (parse ? { ...options, parse: undefined } : options) as AxiosRequestConfig;
    const answer: ServiceResponse = await this.#axios.request(request);
    const { data } = answer as { data: unknown };
    // After the host's interceptors, which may change the body: the caller gets what parse returns.
    const parsed = parse ? await parseAnswer(data, parse, (where) => answer.toParseError(data, where)) : data;
    return resultOf ? resultOf(answer, parsed) : (parsed as T);
  }
}

function configOf<T>(
  target: string | HttpRequestConfig<T>,
  options?: HttpRequestOptions & ParseOption<T>,
): HttpRequestConfig<T> {
  // Anything else counts as a path, and is refused as one.
  return typeof target === 'object' && (target as unknown) !== null
    ? target
    : { ...options, url: target as string };
}

function toResponse(answer: ServiceResponse, data: unknown): HttpResponse {
  const { status, correlationId, requestId } = answer;
  const headers = Object.entries({ ...answer.headers })
    .map(([name, value]): [string, string] => [name.toLowerCase(), [value].flat().join(', ')])
    // RFC 9110, 5.3: it cannot be joined.
    .filter(([name]) => name !== 'set-cookie');
  return { data, status, headers: Object.fromEntries(headers), correlationId, requestId };
}
