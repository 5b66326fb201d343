import {
  context,
  isSpanContextValid,
  propagation,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import { harmless } from './telemetry.js';

/** The span of one call. Whatever the host's OpenTelemetry does, the call runs once, and nothing is thrown. */
export class CallSpan {
  readonly #span?: Span;

  constructor(tracer: Tracer, name: string, attributes: Attributes) {
    this.#span = harmless(() => tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }));
  }

  /** Runs the call under this span, of which the service is told. */
  run<T>(headers: Record<string, string>, call: () => Promise<T>): Promise<T> {
    let running: Promise<T> | undefined;
    const once = (): Promise<T> => (running ??= call());
    void harmless(() => {
      // Without an SDK, there is no span. One that is not sampled counts: the service is told so.
      if (!this.#span || !isSpanContextValid(this.#span.spanContext())) return;
      const traced = trace.setSpan(context.active(), this.#span);
      harmless(() => addTraceHeaders(headers, traced));
      return context.with(traced, once);
    });
    return once();
  }

  end(attributes: Attributes): void {
    harmless(() => {
      if (!this.#span?.isRecording()) return;
      this.#span.setAttributes(attributes);
      if (attributes['error.type'] !== undefined) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    });
    harmless(() => this.#span?.end());
  }
}

/** W3C Trace Context. Baggage is left out: a host may keep data of its users in it, which is not for the service. */
const SENT = ['traceparent', 'tracestate'];

/**
 * Adds the trace headers by the host's propagator, unless the caller set a `traceparent`. HTTP instrumentation puts those
 * of its own spans, one for each attempt, in their place.
 * @param headers with names in lower case
 */
function addTraceHeaders(headers: Record<string, string>, traced: Context): void {
  if (headers.traceparent !== undefined) return;
  propagation.inject(traced, headers, {
    set: (_, name, value) => {
      const key = name.toLowerCase();
      const isSendable = /^[\x20-\x7e]+$/.test(value);
      if (SENT.includes(key) && headers[key] === undefined && isSendable) headers[key] = value;
    },
  });
}
