import {
  context,
  isSpanContextValid,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import { harmless } from './harmless.js';
import { addTraceHeaders } from './trace-headers.js';

/** The span of one call. Whatever the host's OpenTelemetry does, the call runs once, and nothing is thrown. */
export class CallSpan {
  readonly #span?: Span;

  constructor(tracer: Tracer | undefined, name: string, attributes: Attributes) {
    this.#span = harmless(() => tracer?.startSpan(name, { kind: SpanKind.CLIENT, attributes }));
  }

  /** Runs the call under this span, of which the service is told. */
  run<T>(headers: Record<string, string>, call: () => Promise<T>): Promise<T> {
    let running: Promise<T> | undefined;
    const once = (): Promise<T> => (running ??= call());
    void harmless(() => {
      // Without an SDK there is no span to be under. One that is not sampled counts: the service is to know of that.
      if (!this.#span || !isSpanContextValid(this.#span.spanContext())) return;
      const traced = trace.setSpan(context.active(), this.#span);
      harmless(() => addTraceHeaders(headers, traced));
      return context.with(traced, once);
    });
    return once();
  }

  end(attributes: Attributes): void {
    harmless(() => {
      this.#span?.setAttributes(attributes);
      if (attributes['error.type'] !== undefined) this.#span?.setStatus({ code: SpanStatusCode.ERROR });
    });
    harmless(() => this.#span?.end());
  }
}
