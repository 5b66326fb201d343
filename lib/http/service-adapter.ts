import { type AxiosAdapter, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { Readable } from 'node:stream';
import { type Secret } from '../config/secret.js';
import { allowListeners } from '../exchange/allow-listeners.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { answerToError, readBody, type AnswerContext } from './api-answer.js';
import { attachHeaders, type HeaderSource } from './attach-headers.js';
import { discardBody } from './body-stream.js';
import { toCall, type Call } from './call.js';
import { type CallObserver } from './call-observer.js';
import { type CallRunner } from './call-runner.js';
import { type CallsInFlight } from './calls-in-flight.js';
import { type CredentialsInUse } from './credential-hint.js';
import { type Targets } from './targets.js';

export interface ServiceAdapterParts {
  runner: CallRunner;
  inFlight: CallsInFlight;
  observer: CallObserver;
  targets: Targets;
  source: HeaderSource;
  timeoutMs: number;
  correlationIdHeader: string;
  /** For what to check where they are refused. */
  credentials: CredentialsInUse;
  /** Taken out of what an answer echoes, also where it was not sent. */
  appToken?: Secret;
}

/** Axios's adapter for calls of the service: a config in, an answer or one of our errors out. */
export function serviceAdapter(parts: ServiceAdapterParts): AxiosAdapter {
  const { runner, inFlight, observer, targets, source } = parts;
  return async (config) => {
    const cancelled = cancellation(config);
    inFlight.begin();
    try {
      const call = await toCall(config, targets);
      const given = config.signal as AbortSignal | undefined;
      allowListeners(given);
      const signal = eitherOf(given, cancelled?.signal);
      const timeoutMs = config.timeout || parts.timeoutMs;
      const startedAt = performance.now();
      const waiting = attachHeaders(call, source, { signal, timeoutMs });
      if (waiting) await waiting;
      const leftMs = waiting ? Math.max(1, timeoutMs - (performance.now() - startedAt)) : timeoutMs;
      return await observer.observe(call, async (observation) => {
        const response = await runner.run(call, signal, leftMs, observation);
        return toAxiosResponse(response, config, contextOf(call, parts));
      });
    } catch (error) {
      discardBody(config.data);
      throw error;
    } finally {
      inFlight.end();
      cancelled?.stop();
    }
  };
}

function eitherOf(first: AbortSignal | undefined, second: AbortSignal | undefined): AbortSignal | undefined {
  return first && second ? AbortSignal.any([first, second]) : (first ?? second);
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

function contextOf(
  call: Call,
  { correlationIdHeader, credentials, appToken }: ServiceAdapterParts,
): AnswerContext {
  const bearer = (call.headers.authorization ?? '').replace(/^Bearer /i, '');
  const secrets = [bearer, appToken?.reveal() ?? ''];
  return { call, correlationIdHeader, secrets, credentials, now: Date.now() };
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
