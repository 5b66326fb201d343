import { type Attributes } from '@opentelemetry/api';
import { type HttpSettings } from '../config/resolved-options.js';
import { ServiceApiError } from '../errors/index.js';
import { certificateRefusal } from '../exchange/certificate-refusal.js';
import { type ExchangeResponse, type Outcome } from '../exchange/exchange.types.js';
import { codeOf, tellCall } from '../telemetry/call-event.js';
import { CallSpan } from '../telemetry/call-span.js';
import { type Log } from '../exchange/io.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { answeredId, type AnswerContext } from './answer-to-error.js';
import { type CallUrl } from './allowed-urls.js';
import { sentId, type Call } from './call.js';

/** Takes notes of one call while it runs. */
export interface CallObservation {
  /** How many have begun. */
  attempts: number;
  /** The one that decides. */
  response?: ExchangeResponse;
  /** Another attempt follows this one. */
  again(outcome: Outcome): void;
}

/** What is told of a call. */
type ObservedCall = Pick<Call, 'method' | 'url' | 'headers'> & Partial<Call>;

/** What its interceptor knows of it. */
interface Begun {
  /** On the monotonic clock. */
  startedAt: number;
  route?: string;
  /** Of its caller. */
  signal?: AbortSignal;
  /** Absent where nothing is sent. */
  context?: AnswerContext;
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
    basePath: string,
    http: Pick<HttpSettings, 'onCall' | 'fullPaths'>,
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
    const shown = this.#http.fullPaths ? call.url.pathname : template;
    const attributes: Attributes = {
      ...this.#telemetry.attributesOf(call.url),
      'http.request.method': call.method,
      'url.template': template,
    };
    const span = new CallSpan(this.#telemetry.tracer, `${call.method} ${template}`, attributes);
    const answered = ({ response }: Partial<Outcome>): string | undefined =>
      response && begun.context && answeredId(response, begun.context);
    const again = (outcome: Outcome): void => {
      const reason = outcome.fault?.kind ?? String(outcome.response?.status);
      this.#telemetry.retries.add(1, { ...attributes, 'error.type': reason });
      const id = answered(outcome) ?? sentId(call);
      const why = [reason, REFUSALS[certificateRefusal(outcome) ?? ''], id && `correlation id ${id}`];
      this.#log.warn(`${call.method} ${shown}: ${why.filter(Boolean).join(', ')}; another attempt follows`);
    };
    const observation: CallObservation = { attempts: 0, again };
    const end = (error?: string): void => {
      const durationMs = performance.now() - begun.startedAt;
      this.#telemetry.callDuration?.record(durationMs / 1000, attributes);
      span.end(() => this.#spanAttributes(attributes, call.url, observation));
      if (this.#http.onCall) {
        const { attempts, response } = observation;
        const about = { kind: 'api', method: call.method, path: shown, attempts, durationMs } as const;
        const ids = { correlationId: answered(observation), requestId: sentId(call) };
        tellCall(this.#http.onCall, { ...about, ...ids, error }, response);
      }
      // Success is not logged: hosts log at all levels by default, and spans have it.
      if (error === undefined) return;
      const what = `${String(attributes['error.type'])} after ${Math.round(durationMs)} ms`;
      this.#log.debug(`${call.method} ${shown}: ${what}`);
    };
    try {
      const result = await span.run(call.headers, () => run(observation));
      attributes['http.response.status_code'] = result.status;
      end();
      return result;
    } catch (error) {
      const code = codeOf(error, begun.signal);
      Object.assign(attributes, failureOf(error, code));
      end(code);
      throw error;
    }
  }

  #spanAttributes(
    attributes: Attributes,
    { origin, pathname }: CallUrl,
    { attempts }: CallObservation,
  ): Attributes {
    const below = this.#http.fullPaths ? pathname.length : this.#endOfShown(pathname);
    const slash = below === pathname.length - 1 && pathname.endsWith('/') ? '/' : '';
    return {
      ...attributes,
      'url.full': origin + pathname.slice(0, below) + slash,
      ...(attempts > 1 && { 'http.request.resend_count': attempts - 1 }),
    };
  }

  /** Below the base path, so that it is the same in all environments. */
  #templateOf(pathname: string): string {
    return pathname.slice(this.#endOfBase(pathname), this.#endOfShown(pathname)) || '/';
  }

  /** Below the base path the resource and its version are shown: what follows may be the id of a customer. */
  #endOfShown(pathname: string): number {
    const base = this.#endOfBase(pathname);
    const [shown = ''] = /^\/[\w.-]+(\/v\d+(?=\/|$))?/.exec(pathname.slice(base)) ?? [];
    return base + shown.length;
  }

  #endOfBase(pathname: string): number {
    const base = this.#basePath;
    const isBelow =
      pathname.startsWith(base) && (pathname.length === base.length || pathname[base.length] === '/');
    return isBelow ? base.length : 0;
  }
}

const REFUSALS: Record<string, string> = {
  refused: 'the client certificate was refused',
  perhaps: 'the client certificate was perhaps refused',
};

function failureOf(error: unknown, code: string): Attributes {
  if (error instanceof ServiceApiError && error.code === 'api_error') {
    return { 'http.response.status_code': error.status, 'error.type': String(error.status) };
  }
  return { 'error.type': code };
}
