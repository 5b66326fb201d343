import { type Attributes } from '@opentelemetry/api';
import { ServiceApiError, ServiceError } from '../errors/index.js';
import { CallSpan } from '../telemetry/call-span.js';
import { type Log } from '../telemetry/log.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type Call } from './call.js';

/** Takes notes of one call while it runs. */
export interface CallObservation {
  /** Another attempt follows, for this reason: a status, a kind of fault. */
  again(reason: string): void;
}

/** Makes calls visible: a span and a duration for each (OpenTelemetry's HTTP client conventions), and log lines. */
export class CallObserver {
  readonly #telemetry: Telemetry;
  readonly #log: Pick<Log, 'debug' | 'warn'>;
  readonly #basePath: string;

  /** @param basePath of the service's address, without a slash at its end */
  constructor(telemetry: Telemetry, log: Pick<Log, 'debug' | 'warn'>, basePath = '') {
    this.#telemetry = telemetry;
    this.#log = log;
    this.#basePath = basePath;
  }

  async observe<T extends { status: number }>(
    call: Call,
    run: (observation: CallObservation) => Promise<T>,
  ): Promise<T> {
    const startedAt = performance.now();
    const attributes = this.#attributesOf(call);
    const span = new CallSpan(this.#telemetry.tracer, call.method, attributes);
    let retries = 0;
    const again = (reason: string): void => {
      retries += 1;
      this.#telemetry.retries.add(1, { ...attributes, 'error.type': reason });
      this.#log.warn(`${call.method} ${call.url.pathname}: ${reason}, another attempt follows`);
    };
    try {
      const result = await span.run(call.headers, () => run({ again }));
      attributes['http.response.status_code'] = result.status;
      this.#end(span, call, attributes, startedAt, retries);
      return result;
    } catch (error) {
      this.#end(span, call, Object.assign(attributes, failureOf(error)), startedAt, retries);
      throw error;
    }
  }

  #end(span: CallSpan, call: Call, attributes: Attributes, startedAt: number, retries: number): void {
    const durationMs = performance.now() - startedAt;
    this.#telemetry.callDuration.record(durationMs / 1000, attributes);
    span.end(() => ({
      ...attributes,
      'url.full': call.url.origin + this.#withoutIds(call.url.pathname),
      ...(retries > 0 && { 'http.request.resend_count': retries }),
    }));
    // Success is not logged: hosts log at all levels by default, and spans have it.
    if (attributes['error.type'] === undefined) return;
    this.#log.debug(
      `${call.method} ${call.url.pathname}: ${String(attributes['error.type'])} after ${Math.round(durationMs)} ms`,
    );
  }

  /** Below the base path the resource and its version: what follows may be the id of a customer. */
  #withoutIds(pathname: string): string {
    const base = this.#basePath;
    const below = pathname === base || pathname.startsWith(`${base}/`) ? base.length : 0;
    const [shown = ''] = /^\/[^/]*(\/v\d+(?=\/|$))?(\/$)?/.exec(pathname.slice(below)) ?? [];
    return pathname.slice(0, below) + shown;
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

function failureOf(error: unknown): Attributes {
  if (error instanceof ServiceApiError && error.code === 'api_error') {
    return { 'http.response.status_code': error.status, 'error.type': String(error.status) };
  }
  return { 'error.type': error instanceof ServiceError ? error.code : 'aborted' };
}
