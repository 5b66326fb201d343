import { AxiosHeaders, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { type Secret } from '../config/secret.js';
import { ServiceRequestError } from '../errors/index.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { answerToError, readBody, type AnswerContext } from './api-answer.js';
import { dropCredentials, refusingAdapter, type CallToSend } from './auth-headers.interceptor.js';
import { encodeBody } from './body.js';
import { setCredentials, toCall, toHeaders, type Call, type Credentials } from './call.js';
import { type CallObserver } from './call-observer.js';
import { type CallRunner } from './call-runner.js';
import { type CredentialsInUse } from './credential-hint.js';

export interface ServiceAdapterParts {
  runner: Pick<CallRunner, 'run'>;
  observer: CallObserver;
  appTokenHeader: string;
  correlationIdHeader: string;
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
    dropCredentials(config.headers, parts.appTokenHeader);
    if (config.url !== checked.url.href) throw new ServiceRequestError([CHANGED]);
    const call = toCall(config, checked.url, toHeaders(config.headers), await encodeBody(config.data));
    setCredentials(call, credentials);
    const leftMs = checked.timeoutMs - (performance.now() - checked.startedAt);
    return parts.observer.observe(call, async (observation) => {
      const response = await parts.runner.run(call, checked.signal, Math.max(1, leftMs), observation);
      return toAxiosResponse(response, config, contextOf(call, parts));
    });
  };
}

const CHANGED = { property: 'url', message: 'was changed after it had been checked' };

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
  // Axios would make two of them.
  const headers = Object.assign(new AxiosHeaders(), response.headers);
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
