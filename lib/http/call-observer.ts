import {
  context,
  isSpanContextValid,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Span,
} from '@opentelemetry/api';
import { ServiceApiError, ServiceError } from '../errors/index.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { addTraceHeaders } from '../telemetry/trace-headers.js';
import { type Call } from './call.js';

/** Where log lines go: Nest's Logger fits. */
export interface CallLog {
  debug(message: string): void;
  warn(message: string): void;
}

/** Takes notes of one call while it runs. */
export interface CallObservation {
  /** Another attempt follows, for this reason: a status, a kind of fault. */
  again(reason: string): void;
}

/** Makes calls visible: a span and a duration for each (OpenTelemetry's HTTP client conventions), and log lines. */
export class CallObserver {
  readonly #telemetry: Telemetry;
  readonly #log: CallLog;

  constructor(telemetry: Telemetry, log: CallLog) {
    this.#telemetry = telemetry;
    this.#log = log;
  }

  async observe<T extends { status: number }>(
    call: Call,
    run: (observation: CallObservation) => Promise<T>,
  ): Promise<T> {
    const startedAt = performance.now();
    const attributes = this.#attributesOf(call);
    const span = this.#telemetry.tracer.startSpan(call.method, { kind: SpanKind.CLIENT, attributes });
    let retries = 0;
    const again = (reason: string): void => {
      retries += 1;
      this.#telemetry.retries.add(1, { ...attributes, 'error.type': reason });
      this.#log.warn(`${call.method} ${call.url.pathname}: ${reason}, another attempt follows`);
    };
    try {
      // Without an SDK there is no span to be under. One that is not sampled counts: the service is to know of that.
      const result = await (isSpanContextValid(span.spanContext())
        ? within(span, call, () => run({ again }))
        : run({ again }));
      attributes['http.response.status_code'] = result.status;
      this.#end(span, call, attributes, startedAt, retries);
      return result;
    } catch (error) {
      this.#end(span, call, Object.assign(attributes, failureOf(error)), startedAt, retries);
      throw error;
    }
  }

  #end(span: Span, call: Call, attributes: Attributes, startedAt: number, retries: number): void {
    const durationMs = performance.now() - startedAt;
    this.#telemetry.callDuration.record(durationMs / 1000, attributes);
    if (span.isRecording()) {
      span.setAttributes({ ...attributes, 'url.full': call.url.origin + call.url.pathname });
      if (retries > 0) span.setAttribute('http.request.resend_count', retries);
      if (attributes['error.type'] !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
    // Success is not logged: hosts log at all levels by default, and spans have it.
    if (attributes['error.type'] === undefined) return;
    this.#log.debug(
      `${call.method} ${call.url.pathname}: ${String(attributes['error.type'])} after ${Math.round(durationMs)} ms`,
    );
  }

  #attributesOf({ method, url }: Call): Attributes {
    return {
      ...this.#telemetry.attributes,
      'http.request.method': method,
      'server.address': url.hostname,
      'server.port': Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
    };
  }
}

/** Runs a call under its span, of which the service is told. */
function within<T>(span: Span, { headers }: Call, run: () => Promise<T>): Promise<T> {
  const traced = trace.setSpan(context.active(), span);
  addTraceHeaders(headers, traced);
  return context.with(traced, run);
}

function failureOf(error: unknown): Attributes {
  if (error instanceof ServiceApiError && error.code === 'api_error') {
    return { 'http.response.status_code': error.status, 'error.type': String(error.status) };
  }
  return { 'error.type': error instanceof ServiceError ? error.code : 'aborted' };
}
