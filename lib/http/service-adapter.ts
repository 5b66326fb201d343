import { AxiosHeaders, type AxiosAdapter, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { readBody } from './answer-body.js';
import { answerFacts, answerToError, type AnswerContext, type CallFacts } from './answer-to-error.js';
import { type AuthHeadersInterceptor } from './auth-headers.interceptor.js';
import { sentId, toCall } from './call.js';
import { type CallObserver } from './call-observer.js';
import { type CallRunner } from './call-runner.js';
import { type CallsInFlight } from './calls-in-flight.js';
import { type CredentialsInUse } from './explain-answer.js';

/**
 * Axios's adapter for calls that the interceptor has attached to: a config in, an answer or one of our errors out. The
 * config that goes back with the answer has no credentials.
 */
export function serviceAdapter(
  options: ResolvedOptions,
  authHeaders: AuthHeadersInterceptor,
  runner: Pick<CallRunner, 'run'>,
  observer: CallObserver,
  calls: CallsInFlight,
  inUse: CredentialsInUse,
): AxiosAdapter {
  const { correlationIdHeader } = options.http;
  return async (config) => {
    const attached = authHeaders.detach(config);
    const { url, credentials, release } = attached;
    try {
      return await calls.run(async () => {
        const call = await toCall(config, url, credentials, options.http);
        // Also the app token of a call that was sent without it.
        const secrets = () => [...call.secrets, options.appToken?.reveal() ?? ''];
        const context = { call, correlationIdHeader, secrets, credentials: inUse };
        return observer.observe(call, { ...attached, context }, async (observation) => {
          const response = await runner.run(call, attached, observation);
          observation.response = response;
          return toAxiosResponse(response, config, context);
        });
      });
    } finally {
      release();
    }
  };
}

/** An answer of this module: with the service's correlation id, or the one that was sent. */
export interface ServiceResponse extends AxiosResponse {
  readonly correlationId?: string;
  /** The id that was sent. */
  readonly requestId?: string;
  /** What an error about it tells. */
  readonly facts?: CallFacts;
}

function toAxiosResponse(
  response: ExchangeResponse,
  config: InternalAxiosRequestConfig,
  context: AnswerContext,
): ServiceResponse {
  const { validateStatus } = config;
  const isSuccess = response.status >= 200 && response.status < 300;
  const accepted = validateStatus ? validateStatus(response.status) : isSuccess;
  if (!accepted) throw answerToError(response, context);
  return new Answer(response, config, bodyFor(response, config, isSuccess, context), context);
}

class Answer implements ServiceResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: AxiosHeaders;
  readonly #response: ExchangeResponse;
  readonly #context: AnswerContext;

  constructor(
    response: ExchangeResponse,
    readonly config: InternalAxiosRequestConfig,
    readonly data: unknown,
    context: AnswerContext,
  ) {
    this.status = response.status;
    this.statusText = response.statusText;
    this.headers = Object.assign(new AnswerHeaders(), response.headers);
    this.#response = response;
    this.#context = context;
  }

  /** Cleaned when it is asked for: few callers do. */
  get correlationId(): string | undefined {
    return this.facts.correlationId;
  }

  get requestId(): string | undefined {
    return sentId(this.#context.call);
  }

  get facts(): CallFacts {
    return answerFacts(this.#response, this.#context);
  }
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

/** Node gives each name once and in lower case: nothing is left to normalize, and axios would compare each with each. */
class AnswerHeaders extends AxiosHeaders {
  override normalize(format = false): this {
    return format ? (super.normalize(format) as this) : this;
  }
}
