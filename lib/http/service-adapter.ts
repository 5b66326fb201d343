import { type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { type Secret } from '../config/secret.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { readBody } from './answer-body.js';
import { AnswerHeaders } from './answer-headers.js';
import { answerToError, type AnswerContext } from './answer-to-error.js';
import { refusingAdapter, type CallToSend } from './auth-headers.interceptor.js';
import { encodeBody } from './body.js';
import { readsJson, setCredentials, toCall, toHeaders, type Call, type Credentials } from './call.js';
import { type CallObserver } from './call-observer.js';
import { type CallRunner } from './call-runner.js';
import { type CredentialsInUse } from './explain-answer.js';
import { type RequestIds } from './request-ids.js';

export interface ServiceAdapterParts {
  runner: Pick<CallRunner, 'run'>;
  observer: CallObserver;
  appTokenHeader: string;
  /** In lower case. */
  correlationIdHeader: string;
  requestIds?: RequestIds;
  /** For what to check where they are refused. */
  credentials: CredentialsInUse;
  /** Taken out of what an answer echoes, also where it was not sent. */
  appToken?: Secret;
}

/** Axios's adapter for calls that the interceptor checked: a config in, an answer or one of our errors out. */
export function serviceAdapter(parts: ServiceAdapterParts) {
  return async (
    config: InternalAxiosRequestConfig,
    checked: CallToSend,
    credentials: Credentials,
  ): Promise<AxiosResponse> => {
    // Whoever gets this config with the answer cannot send by it.
    config.adapter = refusingAdapter;
    const encoded = encodeBody(config.data);
    const body = encoded instanceof Promise ? await encoded : encoded;
    const headers = toHeaders(
      config.headers,
      parts.appTokenHeader,
      readsJson(config) ? 'application/json' : '*/*',
    );
    parts.requestIds?.addTo(headers);
    const call = toCall(config, checked.url, headers, body);
    call.correlationId = headers[parts.correlationIdHeader];
    setCredentials(call, credentials);
    return parts.observer.observe(call, async (observation) => {
      const response = await parts.runner.run(call, checked, observation);
      return toAxiosResponse(response, config, contextOf(call, parts));
    });
  };
}

function toAxiosResponse(
  response: ExchangeResponse,
  config: InternalAxiosRequestConfig,
  context: AnswerContext,
): AxiosResponse {
  const { validateStatus } = config;
  const isSuccess = response.status >= 200 && response.status < 300;
  const accepted = validateStatus ? validateStatus(response.status) : isSuccess;
  if (!accepted) throw answerToError(response, context);
  const { status, statusText } = response;
  const headers = AnswerHeaders.of(response.headers, context);
  const data = bodyFor(response, config, isSuccess, context);
  return { status, statusText, headers, config, data };
}

function bodyFor(
  response: ExchangeResponse,
  { responseType }: InternalAxiosRequestConfig,
  isSuccess: boolean,
  context: AnswerContext,
): unknown {
  if (responseType === 'arraybuffer') return response.body;
  if (responseType === 'text') return response.body.toString('utf8');
  return isSuccess ? readBody(response, context) : response.body.toString('utf8');
}

function contextOf(
  call: Call,
  { correlationIdHeader, credentials, appToken }: ServiceAdapterParts,
): AnswerContext {
  const secrets = (): string[] => [...call.secrets, appToken?.reveal() ?? ''];
  return { call, correlationIdHeader, secrets, credentials };
}
