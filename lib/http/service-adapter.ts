import { AxiosHeaders, type AxiosAdapter, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { ServiceApiError } from '../errors/index.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { answeredId, answerError, readBody, refusedAnswer, refusePart } from './answer.js';
import { type AuthHeadersInterceptor } from './auth-headers.interceptor.js';
import { encodeBody } from './body.js';
import { sentId, type Call } from './call.js';
import { type CallObserver } from './call-observer.js';
import { type CallRunner } from './call-runner.js';
import { type ClientContext } from './client-context.js';
import { RequestIds } from './request-ids.js';

/**
 * Axios's adapter for calls that the interceptor has prepared: takes a config, and returns an answer or throws one of our
 * errors. The config that goes back with the answer has no credentials. No layer below knows axios.
 */
export function serviceAdapter(
  client: ClientContext,
  authHeaders: AuthHeadersInterceptor,
  runner: CallRunner,
  observer: CallObserver,
): AxiosAdapter {
  const { options, io, calls } = client;
  const { requestId, correlationIdHeader } = options.http;
  const requestIds = requestId && new RequestIds(requestId, correlationIdHeader, io.log, io.clock);
  return async (config) => {
    const call = authHeaders.detach(config);
    calls.enter();
    try {
      call.follow();
      const body = encodeBody(config);
      call.complete(config, body instanceof Promise ? await body : body, options, requestIds);
      try {
        const response = await runner.run(call);
        const answer = toAxiosResponse(response, config, call, client);
        observer.succeeded(call, answer.status);
        return answer;
      } catch (error) {
        observer.failed(call, error);
        throw error;
      }
    } catch (error) {
      const ended = call.ending(calls.ending(error));
      throw ended instanceof ServiceApiError ? new FailedAnswer(ended) : ended;
    } finally {
      call.release();
      calls.leave();
    }
  };
}

/**
 * An error with a response, on its way past axios, which would run the host's `transformResponse` on it and change it. The
 * host's interceptors get the error itself.
 */
export class FailedAnswer {
  constructor(readonly reason: ServiceApiError) {}
}

/** An answer of this module: with the service's correlation id, or the one that was sent. */
export interface ServiceResponse extends AxiosResponse {
  correlationId?: string;
  /** The id that was sent. */
  requestId?: string;
  /** Makes the error for a body that `parse` refused. */
  refused?: (body: unknown, where: string) => ServiceApiError;
}

/** All own properties: a host's interceptor may copy it. */
function toAxiosResponse(
  response: ExchangeResponse,
  config: InternalAxiosRequestConfig,
  call: Call,
  client: ClientContext,
): ServiceResponse {
  const { status, statusText, body } = response;
  const { validateStatus, responseType } = config;
  const isSuccess = status >= 200 && status < 300;
  const accepted = validateStatus ? validateStatus(status) : isSuccess;
  if (!accepted) throw answerError(response, call, client);
  if (isSuccess) refusePart(response, call, client);
  const isJson = isSuccess && call.readsJson;
  const data = isJson ? readBody(response, call, client) : rawBody(body, responseType);
  const requestId = sentId(call);
  return {
    data,
    status,
    statusText,
    headers: toAxiosHeaders(response.headers),
    config,
    correlationId: answeredId(response, call, client) ?? requestId,
    requestId,
    refused: (refusedBody, where) => refusedAnswer(response, call, client, refusedBody, where),
  };
}

function rawBody(body: Buffer, responseType: string | undefined): Uint8Array | string {
  if (responseType === 'arraybuffer') return body;
  // A copy: a small Buffer shares its memory with others, which `bytes.buffer` would show.
  if (responseType === 'bytes') return new Uint8Array(body);
  // Without a byte order mark, as fetch and axios read text: it would be a part of the first column's name of a CSV.
  return body.toString('utf8').replace(/^\ufeff/, '');
}

/** Leaves out headers with the name of a method of AxiosHeaders, such as `normalize`: axios would call them. */
function toAxiosHeaders(given: ExchangeResponse['headers']): AxiosHeaders {
  const headers = new AxiosHeaders();
  for (const name of Object.keys(given)) if (!(name in AxiosHeaders.prototype)) headers[name] = given[name];
  return headers;
}
