import { AxiosHeaders, type AxiosAdapter, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { type ServiceApiError } from '../errors/index.js';
import { isSuccess } from '../exchange/exchange.types.js';
import { Answer } from './response/call-response.js';
import { answerError } from './response/response-error.js';
import { preparedCall } from './auth-headers.interceptor.js';
import { encodeBody } from './request/body.js';
import { sentId } from './request/call.js';
import { type CallObserver } from './attempts/call-observer.js';
import { type CallRunner } from './attempts/call-runner.js';
import { type ClientContext } from './request/client-context.js';

/**
 * Axios's adapter for calls that auth-headers.interceptor.ts has made: takes a config, and returns an answer or throws one
 * of our errors. No layer below knows axios.
 */
export function serviceAdapter(
  client: ClientContext,
  runner: CallRunner,
  observer: CallObserver,
): AxiosAdapter {
  const { options, calls } = client;
  return async (config) => {
    const call = preparedCall(config);
    const counter = call.intercepted ?? calls;
    counter.enter();
    try {
      call.follow();
      const body = encodeBody(config);
      call.complete(config, body instanceof Promise ? await body : body, options);
      try {
        const response = await runner.run(call);
        const answer = toAxiosResponse(new Answer(response, call, client), config);
        observer.succeeded(call, answer.status);
        return answer;
      } catch (error) {
        observer.failed(call, error);
        throw error;
      }
    } catch (error) {
      call.failure = calls.ending(error);
      throw call.ending(call.failure);
    } finally {
      call.release();
      counter.leave(call);
    }
  };
}

/** An answer of this module: with the service's correlation id, or the one that was sent. */
export interface ServiceResponse extends AxiosResponse {
  correlationId?: string;
  /** The id that was sent. */
  requestId?: string;
  /** Makes the error for a body that `parse` refused. */
  refused: (body: unknown, where: string) => ServiceApiError;
}

/** All own properties: a host's interceptor may copy it. */
function toAxiosResponse(answer: Answer, config: InternalAxiosRequestConfig): ServiceResponse {
  const { call } = answer;
  const { status, statusText, headers } = answer.response;
  const { validateStatus } = config;
  // As in axios, null accepts every status.
  const accepted = validateStatus ? validateStatus(status) : isSuccess(status) || validateStatus === null;
  if (!accepted) throw answerError(answer);
  const requestId = call.correlationId && sentId(call);
  return {
    data: answer.read(config.responseType),
    status,
    statusText,
    headers: Object.assign(new AxiosHeaders(), headers),
    config,
    correlationId: answer.correlationId ?? requestId,
    requestId,
    refused: (body, where) => answer.refused(body, where),
  };
}
