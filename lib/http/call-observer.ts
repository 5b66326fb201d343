import { type Attributes } from '@opentelemetry/api';
import { withoutSlashes } from '../config/address.js';
import { type HttpSettings } from '../config/resolved-options.js';
import { ServiceApiError } from '../errors/index.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { codeOf, tellCall } from '../telemetry/call-event.js';
import { CallSpan } from '../telemetry/call-span.js';
import { type Log } from '../telemetry/log.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { answeredId, type AnswerContext } from './answer-to-error.js';
import { sentId, type Call } from './call.js';

/** Takes notes of one call while it runs. */
export interface CallObservation {
  /** How many have begun. */
  attempts: number;
  /** The one that decides. */
  answer?: { response: ExchangeResponse; context: AnswerContext };
  /** Another attempt follows, for this reason: a status, a kind of fault. */
  again(reason: string): void;
}

/** What is told of a call. */
type ObservedCall = Pick<Call, 'method' | 'url' | 'headers'> & Partial<Call>;

/** What its interceptor knows of it. */
interface Begun {
  /** On the monotonic clock. */
  startedAt: number;
  route?: string;
}

interface Ended extends Begun {
  /** Its `route`, or the part of its path that has no ids. */
  template: string;
  attributes: Attributes;
  observation: CallObservation;
  error?: string;
}

/**
 * Makes calls visible: a span and a duration for each (OpenTelemetry's HTTP client conventions), log lines, and an event
 * for `http.onCall`.
 */
export class CallObserver {
  readonly #telemetry: Telemetry;
  readonly #log: Pick<Log, 'debug' | 'warn'>;
  readonly #basePath: string;
  readonly #http: Pick<HttpSettings, 'onCall' | 'fullPaths'>;

  /** @param basePath of the service's address, without a slash at its end */
  constructor(
    telemetry: Telemetry,
    log: Pick<Log, 'debug' | 'warn'>,
    basePath = '',
    http: Pick<HttpSettings, 'onCall' | 'fullPaths'> = { fullPaths: false },
  ) {
    this.#telemetry = telemetry;
    this.#log = log;
    this.#basePath = basePath;
    this.#http = http;
  }

  async observe<T extends { status: number }>(
    call: ObservedCall,
    begun: Begun,
    run: (observation: CallObservation) => Promise<T>,
  ): Promise<T> {
    const template = begun.route ?? this.#templateOf(call.url.pathname);
    const attributes = this.#telemetry.attributesOf(call.url);
    attributes['http.request.method'] = call.method;
    attributes['url.template'] = template;
    const span = new CallSpan(this.#telemetry.tracer, `${call.method} ${template}`, attributes);
    const again = (reason: string): void => {
      this.#telemetry.retries.add(1, { ...attributes, 'error.type': reason });
      this.#log.warn(`${call.method} ${call.url.pathname}: ${reason}, another attempt follows`);
    };
    const observation: CallObservation = { attempts: 0, again };
    const ended = { ...begun, template, attributes, observation };
    try {
      const result = await span.run(call.headers, () => run(observation));
      attributes['http.response.status_code'] = result.status;
      this.#end(span, call, ended);
      return result;
    } catch (error) {
      Object.assign(attributes, failureOf(error));
      this.#end(span, call, { ...ended, error: codeOf(error) });
      throw error;
    }
  }

  #end(span: CallSpan, call: ObservedCall, ended: Ended): void {
    const { startedAt, attributes, observation, template, error } = ended;
    const { onCall, fullPaths } = this.#http;
    const { method, url } = call;
    const { attempts, answer } = observation;
    const durationMs = performance.now() - startedAt;
    this.#telemetry.callDuration?.record(durationMs / 1000, attributes);
    span.end(() => ({
      ...attributes,
      'url.full': url.origin + (fullPaths ? url.pathname : this.#withoutIds(url.pathname)),
      ...(attempts > 1 && { 'http.request.resend_count': attempts - 1 }),
    }));
    if (onCall) {
      const path = fullPaths ? url.pathname : template;
      const correlationId = answer && answeredId(answer.response, answer.context);
      const ids = { correlationId, requestId: sentId(call) };
      tellCall(onCall, { kind: 'api', method, path, attempts, durationMs, ...ids, error }, answer?.response);
    }
    // Success is not logged: hosts log at all levels by default, and spans have it.
    if (error === undefined) return;
    this.#log.debug(
      `${method} ${url.pathname}: ${String(attributes['error.type'])} after ${Math.round(durationMs)} ms`,
    );
  }

  /** Below the base path, so that it is the same in all environments. */
  #templateOf(pathname: string): string {
    return withoutSlashes(this.#withoutIds(pathname).slice(this.#lengthOfBase(pathname))) || '/';
  }

  /** Below the base path the resource and its version: what follows may be the id of a customer. */
  #withoutIds(pathname: string): string {
    const below = this.#lengthOfBase(pathname);
    const [shown = ''] = /^\/[^/]*(\/v\d+(?=\/|$))?(\/$)?/.exec(pathname.slice(below)) ?? [];
    return pathname.slice(0, below) + shown;
  }

  #lengthOfBase(pathname: string): number {
    const base = this.#basePath;
    return pathname === base || pathname.startsWith(`${base}/`) ? base.length : 0;
  }
}

function failureOf(error: unknown): Attributes {
  if (error instanceof ServiceApiError && error.code === 'api_error') {
    return { 'http.response.status_code': error.status, 'error.type': String(error.status) };
  }
  return { 'error.type': codeOf(error) };
}
