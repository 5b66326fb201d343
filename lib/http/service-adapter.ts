import { AxiosHeaders, type AxiosAdapter, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { type ServiceApiError } from '../errors/index.js';
import { isSuccess } from '../exchange/exchange.types.js';
import { CallResponse } from './response/call-response.js';
import { toResponseError } from './response/response-error.js';
import { takeCall } from './auth-headers.interceptor.js';
import { encodeBody } from './request/body.js';
import { sentCorrelationId } from './request/call.js';
import { type CallObserver } from './attempts/call-observer.js';
import { type CallRunner } from './attempts/call-runner.js';
import { type ClientContext } from './request/client-context.js';

/**
 * The axios adapter: takes a config with the Call that AuthHeadersInterceptor has made, and returns an axios response or throws
 * one of our errors. The layers below import no functions of axios, only types.
 */
export function serviceAdapter(
  client: ClientContext,
  runner: CallRunner,
  observer: CallObserver,
): AxiosAdapter {
  const { options, calls } = client;
  return async (config) => {
    const call = takeCall(config);
    const counter = call.counter ?? calls;
    counter.enter();
    try {
      call.followSignals();
      const body = encodeBody(config);
      call.prepare(config, body instanceof Promise ? await body : body, options);
      try {
        const response = await runner.run(call);
        const axiosResponse = toAxiosResponse(new CallResponse(response, call, client), config);
        observer.succeeded(call, axiosResponse.status);
        return axiosResponse;
      } catch (error) {
        observer.failed(call, error);
        throw error;
      }
    } catch (error) {
      call.failure = calls.toCallerError(error);
      throw call.hideFromAxios(call.failure);
    } finally {
      call.release();
      counter.leave(call);
    }
  };
}

/** The axios response of this module. */
export interface ServiceResponse extends AxiosResponse {
  /** The service's correlation id; if it sent none, the one that we sent. */
  correlationId?: string;
  /** The correlation id that we sent. */
  requestId?: string;
  /** Makes the error for a body that `parse` refused. */
  toParseError: (body: unknown, where: string) => ServiceApiError;
}

/** A plain object, because an interceptor of the host application may copy it. */
function toAxiosResponse(response: CallResponse, config: InternalAxiosRequestConfig): ServiceResponse {
  const { call } = response;
  const { status, statusText, headers } = response.received;
  const { validateStatus } = config;
  // As in axios, `validateStatus: null` accepts every status.
  const accepted = validateStatus ? validateStatus(status) : isSuccess(status) || validateStatus === null;
  if (!accepted) throw toResponseError(response);
  const requestId = call.correlationId && sentCorrelationId(call);
  return {
    data: response.readBody(config.responseType),
    status,
    statusText,
    headers: Object.assign(new AxiosHeaders(), headers),
    config,
    correlationId: response.correlationId ?? requestId,
    requestId,
    toParseError: (body, where) => response.toParseError(body, where),
  };
}
