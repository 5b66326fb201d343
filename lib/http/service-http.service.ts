import { type HttpService } from '@nestjs/axios';
import { Injectable } from '@nestjs/common';
import { type HttpSettings } from '../config/resolved-options.js';
import { namesIn } from '../config/rules.js';
import { type AxiosInstance } from 'axios';
import {
  checkParser,
  parseAnswer,
  type AnswerParser,
  type ParsedAnswer,
  type ParseOption,
} from './answer-parser.js';
import { type ServiceResponse } from './service-adapter.js';
import { type CallFacts } from './answer-to-error.js';

/** What a call may bring with it. */
export interface CallOptions {
  /** Aborts this call alone; it then rejects with `signal.reason`. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for the whole call, retries and body included. Default: `http.timeout`. */
  timeout?: number | undefined;
}

export interface HeaderOptions extends CallOptions {
  /** Further headers, such as an idempotency key or a correlation id; the authenticating ones are the module's. */
  headers?: Record<string, string> | undefined;
}

export interface HttpCallOptions extends HeaderOptions {
  /** Query parameters. */
  params?: Record<string, unknown> | URLSearchParams | undefined;
  /** The path with names for its ids, `/orders/v1/{id}`: for traces, metrics and `http.onCall`. Default: its first part. */
  route?: string | undefined;
}

export interface HttpRequestOptions extends HttpCallOptions {
  /** Default GET. */
  method?: string | undefined;
  /** An object is sent as JSON; a string, Buffer, typed array, URLSearchParams, FormData or Blob as it is. */
  data?: unknown;
}

/**
 * The authenticated client for every path of the service. Each method takes a path below the base address, or an
 * absolute URL within the service's own origins, and resolves with the JSON body; `undefined` for 204, and where a
 * POST, PUT, PATCH or DELETE is answered 2xx without a body. With `parse`, it resolves with what that returns. Streams
 * are refused, as body and as `responseType`.
 *
 * Rejects with ServiceApiError (specification 7), ServiceConnectionError, ServiceTokenError, ServiceCertificateError,
 * ServiceRequestError (nothing was sent), or the reason of the caller's own abort.
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
   * The path of a resource, spelt as `http.trailingSlash` says: `/banks/v1`, or `/banks/v1/`. Both are in the
   * specification (4).
   * @internal
   */
  pathOf(path: string): string {
    const [, resource = ''] = path.split('/', 2);
    const slash = this.#trailingSlash;
    return slash === true || (slash !== false && namesIn(slash).includes(resource)) ? `${path}/` : path;
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
  request<Parser extends AnswerParser>(
    path: string,
    options: HttpRequestOptions & ParseOption<Parser>,
  ): Promise<ParsedAnswer<Parser>>;
  request<Parser extends AnswerParser>(
    options: HttpRequestOptions & ParseOption<Parser> & { url: string },
  ): Promise<ParsedAnswer<Parser>>;
  request<T = unknown>(path: string, options?: HttpRequestOptions): Promise<T>;
  request<T = unknown>(options: HttpRequestOptions & { url: string }): Promise<T>;
  async request(
    target: string | (HttpRequestOptions & { url: string }),
    options?: HttpRequestOptions,
  ): Promise<unknown> {
    const isConfig = typeof target === 'object' && target !== null && options === undefined;
    // Anything else is taken for a path, and refused as one.
    return this.#send(isConfig ? target : { ...options, url: target as string });
  }

  /** GET. Sent again, at most `http.retries` times, after a failure that may pass. */
  get<Parser extends AnswerParser>(
    path: string,
    options: HttpCallOptions & ParseOption<Parser>,
  ): Promise<ParsedAnswer<Parser>>;
  get<T = unknown>(path: string, options?: HttpCallOptions): Promise<T>;
  get(path: string, options?: HttpCallOptions): Promise<unknown> {
    return this.#send({ ...options, url: path, method: 'GET' });
  }

  /** DELETE, with `options.data` as its body where that is set. */
  delete<Parser extends AnswerParser>(
    path: string,
    options: HttpRequestOptions & ParseOption<Parser>,
  ): Promise<ParsedAnswer<Parser>>;
  delete<T = unknown>(path: string, options?: HttpRequestOptions): Promise<T>;
  delete(path: string, options?: HttpRequestOptions): Promise<unknown> {
    return this.#send({ ...options, url: path, method: 'DELETE' });
  }

  /** POST with `data` as the body. */
  post<Parser extends AnswerParser>(
    path: string,
    data: unknown,
    options: HttpCallOptions & ParseOption<Parser>,
  ): Promise<ParsedAnswer<Parser>>;
  post<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions): Promise<T>;
  post(path: string, data?: unknown, options?: HttpCallOptions): Promise<unknown> {
    return this.#send({ ...options, url: path, method: 'POST', data });
  }

  /** PUT with `data` as the body. */
  put<Parser extends AnswerParser>(
    path: string,
    data: unknown,
    options: HttpCallOptions & ParseOption<Parser>,
  ): Promise<ParsedAnswer<Parser>>;
  put<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions): Promise<T>;
  put(path: string, data?: unknown, options?: HttpCallOptions): Promise<unknown> {
    return this.#send({ ...options, url: path, method: 'PUT', data });
  }

  /** PATCH with `data` as the body. */
  patch<Parser extends AnswerParser>(
    path: string,
    data: unknown,
    options: HttpCallOptions & ParseOption<Parser>,
  ): Promise<ParsedAnswer<Parser>>;
  patch<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions): Promise<T>;
  patch(path: string, data?: unknown, options?: HttpCallOptions): Promise<unknown> {
    return this.#send({ ...options, url: path, method: 'PATCH', data });
  }

  async #send(options: HttpRequestOptions & { url: string; parse?: AnswerParser }): Promise<unknown> {
    // Own: one that somebody put into Object.prototype would read all answers.
    if (!Object.hasOwn(options, 'parse') || options.parse === undefined || options.parse === null) {
      return (await this.axiosRef.request<unknown>(options)).data;
    }
    const { parse, ...request } = options;
    checkParser(parse);
    const answer = await this.axiosRef.request<unknown>(request);
    // After the host's interceptors, which may change the body: what it returns is what the caller gets.
    return parseAnswer(answer.data, parse, () => factsOf(answer, options), options.signal);
  }
}

/** An interceptor of the host may have put something else in the place of the answer. */
function factsOf(
  answer: Partial<ServiceResponse>,
  { method = 'GET', url }: HttpRequestOptions & { url: string },
): CallFacts {
  const { status = 200, correlationId, config } = answer;
  const [path] = (config?.url && URL.canParse(config.url) ? new URL(config.url).pathname : url).split(
    /[?#]/,
    1,
  );
  return { status, method: method.toUpperCase(), path, correlationId };
}
