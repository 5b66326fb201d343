import { type HttpService } from '@nestjs/axios';
import { Injectable } from '@nestjs/common';
import { RESOURCES, type ResourceName } from '../config/resources.js';
import { type HttpSettings } from '../config/resolved-options.js';
import { type AxiosInstance } from 'axios';
import { parseAnswer, type AnswerParser } from './answer-parser.js';
import { checkCallOptions, type HttpCallOptions, type HttpRequestOptions } from './call-options.js';
import { checkReading, type ReadAnswer, type ReadOption, type ResponseType } from './response-type.js';
import { type ServiceResponse } from './service-adapter.js';
import { type AnswerFacts } from './answer.js';

/** A success, with its status, headers and ids. */
export interface HttpResponse<T = unknown> {
  /** The JSON body, text or bytes (`responseType`), or what `parse` returned. */
  readonly data: T;
  /** The HTTP status. */
  readonly status: number;
  /** The names are in lower case. Several headers of one name are joined by a comma. */
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
  readonly #http: HttpService;
  readonly #trailingSlash: HttpSettings['trailingSlash'];

  /** @internal */
  constructor(http: HttpService, trailingSlash: HttpSettings['trailingSlash'] = false) {
    this.#http = http;
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
   * The @nestjs/axios HttpService behind it, for Observables: the same guards, the same errors. Unsubscribing ends the
   * call.
   */
  get httpService(): HttpService {
    return this.#http;
  }

  /** The axios instance behind it, for a host's own interceptors: the same guards, the same errors. */
  get axiosRef(): AxiosInstance {
    return this.#http.axiosRef;
  }

  /** A call with the method and body of `options`, to a path or to `options.url`. */
  request<Parser extends AnswerParser, Type extends ResponseType>(
    path: string,
    options: HttpRequestOptions & ReadOption<Parser, Type>,
  ): Promise<ReadAnswer<Parser, Type>>;
  request<Parser extends AnswerParser, Type extends ResponseType>(
    options: HttpRequestOptions & ReadOption<Parser, Type> & { url: string },
  ): Promise<ReadAnswer<Parser, Type>>;
  request<T = unknown>(path: string, options?: HttpRequestOptions): Promise<T>;
  request<T = unknown>(options: HttpRequestOptions & { url: string }): Promise<T>;
  async request(target: string | RequestConfig, options?: HttpRequestOptions): Promise<unknown> {
    return this.#send(configOf(target, options));
  }

  /**
   * Like {@link request}, but resolves with status, headers and ids of the answer too. Also for resources, by their paths
   * (`response('/banks/v1')`).
   */
  response<Parser extends AnswerParser, Type extends ResponseType>(
    path: string,
    options: HttpRequestOptions & ReadOption<Parser, Type>,
  ): Promise<HttpResponse<ReadAnswer<Parser, Type>>>;
  response<Parser extends AnswerParser, Type extends ResponseType>(
    options: HttpRequestOptions & ReadOption<Parser, Type> & { url: string },
  ): Promise<HttpResponse<ReadAnswer<Parser, Type>>>;
  response<T = unknown>(path: string, options?: HttpRequestOptions): Promise<HttpResponse<T>>;
  response<T = unknown>(options: HttpRequestOptions & { url: string }): Promise<HttpResponse<T>>;
  async response(target: string | RequestConfig, options?: HttpRequestOptions): Promise<HttpResponse> {
    return this.#send(configOf(target, options), toResponse);
  }

  /** GET. Sent again, at most `retries` times (`http.retries`), after a failure that may pass. */
  get<Parser extends AnswerParser, Type extends ResponseType>(
    path: string,
    options: HttpCallOptions & ReadOption<Parser, Type>,
  ): Promise<ReadAnswer<Parser, Type>>;
  get<T = unknown>(path: string, options?: HttpCallOptions): Promise<T>;
  get(path: string, options?: HttpCallOptions): Promise<unknown> {
    return this.#call('GET', path, options);
  }

  /** DELETE, with `options.data` as its body, if set. */
  delete<Parser extends AnswerParser, Type extends ResponseType>(
    path: string,
    options: HttpRequestOptions & ReadOption<Parser, Type>,
  ): Promise<ReadAnswer<Parser, Type>>;
  delete<T = unknown>(path: string, options?: HttpRequestOptions): Promise<T>;
  delete(path: string, options?: HttpRequestOptions): Promise<unknown> {
    return this.#call('DELETE', path, options);
  }

  /** POST with `data` as the body. */
  post<Parser extends AnswerParser, Type extends ResponseType>(
    path: string,
    data: unknown,
    options: HttpCallOptions & ReadOption<Parser, Type>,
  ): Promise<ReadAnswer<Parser, Type>>;
  post<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions): Promise<T>;
  post(path: string, data?: unknown, options?: HttpCallOptions): Promise<unknown> {
    return this.#call('POST', path, options, data);
  }

  /** PUT with `data` as the body. */
  put<Parser extends AnswerParser, Type extends ResponseType>(
    path: string,
    data: unknown,
    options: HttpCallOptions & ReadOption<Parser, Type>,
  ): Promise<ReadAnswer<Parser, Type>>;
  put<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions): Promise<T>;
  put(path: string, data?: unknown, options?: HttpCallOptions): Promise<unknown> {
    return this.#call('PUT', path, options, data);
  }

  /** PATCH with `data` as the body. */
  patch<Parser extends AnswerParser, Type extends ResponseType>(
    path: string,
    data: unknown,
    options: HttpCallOptions & ReadOption<Parser, Type>,
  ): Promise<ReadAnswer<Parser, Type>>;
  patch<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions): Promise<T>;
  patch(path: string, data?: unknown, options?: HttpCallOptions): Promise<unknown> {
    return this.#call('PATCH', path, options, data);
  }

  #call(method: string, url: string, options?: HttpRequestOptions, data = options?.data): Promise<unknown> {
    // Not by a spread: V8 would make each object a hidden class of its own.
    return this.#send(Object.assign({ url, method, data }, options, { url, method, data }));
  }

  async #send<T = unknown>(
    options: RequestConfig & { parse?: AnswerParser },
    resultOf: (answer: ServiceResponse, data: unknown) => T = dataAlone,
  ): Promise<T> {
    checkCallOptions(options);
    // Own: a `parse` in Object.prototype would read all answers.
    if (!Object.hasOwn(options, 'parse') || options.parse === undefined || options.parse === null) {
      const answer: ServiceResponse = await this.axiosRef.request<unknown>(options);
      return resultOf(answer, answer.data);
    }
    const { parse, ...request } = options;
    checkReading(parse, request);
    const answer: ServiceResponse = await this.axiosRef.request<unknown>(request);
    // After the host's interceptors, which may change the body: the caller gets what parse returns.
    const data = await parseAnswer(answer.data, parse, () => factsOf(answer, options), options.signal);
    return resultOf(answer, data);
  }
}

type RequestConfig = HttpRequestOptions & { url: string };

function configOf(target: string | RequestConfig, options?: HttpRequestOptions): RequestConfig {
  const isConfig = typeof target === 'object' && target !== null && options === undefined;
  // Anything else counts as a path, and is refused as one.
  return isConfig ? target : { ...options, url: target as string };
}

function dataAlone<T>(_: ServiceResponse, data: unknown): T {
  return data as T;
}

function toResponse(answer: ServiceResponse, data: unknown): HttpResponse {
  const { status, correlationId, requestId } = answer;
  const headers = Object.entries({ ...answer.headers }).map(([name, value]): [string, string] => [
    name.toLowerCase(),
    [value].flat().join(', '),
  ]);
  return { data, status, headers: Object.fromEntries(headers), correlationId, requestId };
}

/** Of an answer that an interceptor of the host may have replaced. */
function factsOf(answer: Partial<ServiceResponse>, { method = 'GET', url }: RequestConfig): AnswerFacts {
  const { status = 200, facts, config } = answer;
  const [path] = (config?.url && URL.canParse(config.url) ? new URL(config.url).pathname : url).split(
    /[?#]/,
    1,
  );
  return { outcomeUnknown: false, ...facts, status, method: method.toUpperCase(), path };
}
