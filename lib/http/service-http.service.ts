import { type HttpService } from '@nestjs/axios';
import { Injectable } from '@nestjs/common';
import { type AxiosInstance } from 'axios';
import { refuseStream } from './body.js';

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
 * POST, PUT, PATCH or DELETE is answered 2xx without a body. Streams are refused, as body and as `responseType`.
 *
 * Rejects with ServiceApiError (specification 7), ServiceConnectionError, ServiceTokenError, ServiceCertificateError,
 * ServiceRequestError (nothing was sent), or the reason of the caller's own abort.
 */
@Injectable()
export class ServiceHttpService {
  readonly #http: HttpService;

  /** @internal */
  constructor(http: HttpService) {
    this.#http = http;
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
  request<T = unknown>(path: string, options?: HttpRequestOptions): Promise<T>;
  request<T = unknown>(options: HttpRequestOptions & { url: string }): Promise<T>;
  async request<T>(
    target: string | (HttpRequestOptions & { url: string }),
    options?: HttpRequestOptions,
  ): Promise<T> {
    const isConfig = typeof target === 'object' && target !== null && options === undefined;
    // Anything else is taken for a path, and refused as one.
    return this.#send<T>(isConfig ? target : { ...options, url: target as string });
  }

  /** GET. Sent again, at most `http.retries` times, after a failure that may pass. */
  get<T = unknown>(path: string, options?: HttpCallOptions): Promise<T> {
    return this.#send<T>({ ...options, url: path, method: 'GET' });
  }

  /** DELETE, with `options.data` as its body where that is set. */
  delete<T = unknown>(path: string, options?: HttpRequestOptions): Promise<T> {
    return this.#send<T>({ ...options, url: path, method: 'DELETE' });
  }

  /** POST with `data` as the body. */
  post<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions): Promise<T> {
    return this.#send<T>({ ...options, url: path, method: 'POST', data });
  }

  /** PUT with `data` as the body. */
  put<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions): Promise<T> {
    return this.#send<T>({ ...options, url: path, method: 'PUT', data });
  }

  /** PATCH with `data` as the body. */
  patch<T = unknown>(path: string, data?: unknown, options?: HttpCallOptions): Promise<T> {
    return this.#send<T>({ ...options, url: path, method: 'PATCH', data });
  }

  async #send<T>(config: HttpRequestOptions & { url: string }): Promise<T> {
    // Axios copies plain objects, and would lose what makes one of them a stream.
    refuseStream(config.data);
    const { data } = await this.axiosRef.request<T>(config);
    return data;
  }
}
