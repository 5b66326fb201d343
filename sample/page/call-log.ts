import { trace } from '@opentelemetry/api';
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Injectable } from '@nestjs/common';
import { Subject } from 'rxjs';

const MAX_CALLS = 20;

/** One call of the service, its retries included. */
export interface LoggedCall {
  method: string;
  path: string;
  /** The HTTP status, or the code of the error. */
  status: string;
  attempts: number;
  durationMs: number;
  failed: boolean;
}

/** The last calls of the service, by the module's OpenTelemetry spans: what a host would see in its tracing. */
@Injectable()
export class CallLog implements SpanProcessor {
  readonly last: LoggedCall[] = [];
  readonly calls = new Subject<LoggedCall>();

  constructor() {
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [this] }));
  }

  onStart(): void {}

  onEnd({ instrumentationScope, attributes, duration }: ReadableSpan): void {
    if (instrumentationScope.name !== 'nestjs-service') return;
    const error = attributes['error.type'];
    const call = {
      method: String(attributes['http.request.method']),
      path: new URL(String(attributes['url.full'])).pathname,
      status: String(attributes['http.response.status_code'] ?? error),
      attempts: 1 + Number(attributes['http.request.resend_count'] ?? 0),
      durationMs: Math.round(duration[0] * 1000 + duration[1] / 1e6),
      failed: error !== undefined,
    };
    this.last.push(call);
    if (this.last.length > MAX_CALLS) this.last.shift();
    this.calls.next(call);
  }

  forceFlush(): Promise<void> {
    return Promise.resolve();
  }

  shutdown(): Promise<void> {
    this.calls.complete();
    return Promise.resolve();
  }
}
