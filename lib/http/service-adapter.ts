import { type AxiosAdapter, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { Readable } from 'node:stream';
import { type Secret } from '../config/secret.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { answerToError, readBody, type AnswerContext } from './api-answer.js';
import { toCall, type Call } from './call.js';
import { type CallObserver } from './call-observer.js';
import { type CallRunner } from './call-runner.js';
import { type CallsInFlight } from './calls-in-flight.js';

export interface ServiceAdapterParts {
  runner: CallRunner;
  inFlight: CallsInFlight;
  observer: CallObserver;
  timeoutMs: number;
  correlationIdHeader: string;
  /** Taken out of what an answer echoes, also where it was not sent. */
  appToken?: Secret;
}

/** Axios's adapter for calls of the service: a config in, an answer or one of our errors out. */
export function serviceAdapter(parts: ServiceAdapterParts): AxiosAdapter {
  return async (config) => {
    const call = await toCall(config);
    const cancelled = cancellation(config);
    const flight = parts.inFlight.begin(config.signal as AbortSignal | undefined, cancelled?.signal);
    try {
      return await parts.observer.observe(call, async (observation) => {
        const timeoutMs = config.timeout || parts.timeoutMs;
        const response = await parts.runner.run(call, flight.signal, timeoutMs, observation);
        return toAxiosResponse(response, config, contextOf(call, parts));
      });
    } finally {
      flight.end();
      cancelled?.stop();
    }
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
  const { status, statusText, headers } = response;
  const data = bodyFor(response, config, context, isSuccess);
  return { status, statusText, headers: headers, config, data };
}

function bodyFor(
  response: ExchangeResponse,
  { responseType }: InternalAxiosRequestConfig,
  context: AnswerContext,
  isSuccess: boolean,
): unknown {
  if (responseType === 'arraybuffer') return response.body;
  if (responseType === 'stream') return Readable.from([response.body]);
  if (responseType === 'text') return response.body.toString('utf8');
  return isSuccess ? readBody(response, context) : response.body.toString('utf8');
}

function contextOf(call: Call, { correlationIdHeader, appToken }: ServiceAdapterParts): AnswerContext {
  const bearer = (call.headers.authorization ?? '').replace(/^Bearer /i, '');
  return { call, correlationIdHeader, secrets: [bearer, appToken?.reveal() ?? ''], now: Date.now() };
}

/** Axios's own cancel tokens, older than AbortSignal: HttpService's Observables still use them. */
function cancellation({
  cancelToken,
}: InternalAxiosRequestConfig): { signal: AbortSignal; stop(): void } | undefined {
  const token = cancelToken;
  if (!token?.subscribe) return undefined;
  const controller = new AbortController();
  const abort = (reason: unknown): void => controller.abort(reason);
  token.subscribe(abort);
  return { signal: controller.signal, stop: () => token.unsubscribe?.(abort) };
}
