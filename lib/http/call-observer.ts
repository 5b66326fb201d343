import { type Attributes } from '@opentelemetry/api';
import { withoutSlashes } from '../config/address.js';
import { ServiceApiError } from '../errors/index.js';
import { certificateRefusal } from '../exchange/certificate-refusal.js';
import { type Outcome } from '../exchange/exchange.types.js';
import { codeOf, tellCall, type OnCall } from '../telemetry/call-event.js';
import { CallSpan } from '../telemetry/call-span.js';
import { answeredId } from './answer.js';
import { sentId, type Call } from './call.js';
import { type ClientContext } from './client-context.js';

/**
 * Makes calls visible: a span and a duration for each (OpenTelemetry's HTTP client conventions), log lines, and an event
 * for `http.onCall`.
 */
export class CallObserver {
  readonly #client: ClientContext;
  /** The path of the service's address, without a slash at its end. */
  readonly #basePath: string;

  constructor(client: ClientContext) {
    this.#client = client;
    this.#basePath = withoutSlashes(new URL(client.options.addresses.baseUrl).pathname);
  }

  /** The span of a call that begins; undefined if no spans are recorded. */
  begin(call: Call): CallSpan | undefined {
    const { tracer } = this.#client.telemetry;
    const { method } = call;
    return tracer && new CallSpan(tracer, `${method} ${this.#templateOf(call)}`, this.#attributesOf(call));
  }

  succeeded(call: Call, span: CallSpan | undefined, status: number): void {
    this.#end(call, span, { 'http.response.status_code': status });
    if (this.#client.options.http.logCalls) this.#log(call, String(status));
  }

  failed(call: Call, span: CallSpan | undefined, error: unknown): void {
    const code = codeOf(error, call.signal);
    const isAnswer = error instanceof ServiceApiError && error.code === 'api_error';
    const type = isAnswer ? String(error.status) : code;
    const status = isAnswer && { 'http.response.status_code': error.status };
    this.#end(call, span, { ...status, 'error.type': type }, code);
    this.#log(call, type);
  }

  /** Another attempt follows this one. */
  again(call: Call, outcome: Outcome): void {
    const { telemetry, io } = this.#client;
    const reason = outcome.fault?.kind ?? String(outcome.response?.status);
    telemetry.retries.add(1, { ...this.#attributesOf(call), 'error.type': reason });
    const id = (outcome.response && answeredId(outcome.response, call, this.#client)) ?? sentId(call);
    const why = [reason, REFUSALS[certificateRefusal(outcome) ?? ''], id && `correlation id ${id}`];
    io.log.warn(`${this.#nameOf(call)}: ${why.filter(Boolean).join(', ')}; another attempt follows`);
  }

  #end(call: Call, span: CallSpan | undefined, result: Attributes, error?: string): void {
    const { telemetry, options } = this.#client;
    const { callDuration } = telemetry;
    const { onCall } = options.http;
    const durationMs = performance.now() - call.startedAt;
    if (span || callDuration) {
      const attributes = { ...this.#attributesOf(call), ...result };
      callDuration?.record(durationMs / 1000, attributes);
      span?.end(this.#spanAttributes(attributes, call));
    }
    if (onCall) this.#tell(onCall, call, durationMs, error);
  }

  #tell(onCall: OnCall, call: Call, durationMs: number, error?: string): void {
    const { method, attempts, response } = call;
    const correlationId = response && answeredId(response, call, this.#client);
    const about = { kind: 'api', method, path: this.#shown(call), attempts, durationMs } as const;
    const status = response?.status;
    tellCall(onCall, { ...about, status, correlationId, requestId: sentId(call), error });
  }

  #log(call: Call, what: string): void {
    const { io, options } = this.#client;
    const durationMs = Math.round(performance.now() - call.startedAt);
    const details = options.http.logCalls ? this.#detailsOf(call) : '';
    io.log.debug(`${this.#nameOf(call)}: ${what} after ${durationMs} ms${details}`);
  }

  #detailsOf(call: Call): string {
    const { attempts, response } = call;
    const id = (response && answeredId(response, call, this.#client)) ?? sentId(call);
    const tried = `${attempts} attempt${attempts === 1 ? '' : 's'}`;
    return [`, ${tried}, ${describeCredentials(call)}`, id ?? []].flat().join(', correlation id ');
  }

  #nameOf(call: Call): string {
    return `${call.method} ${this.#shown(call)}`;
  }

  #shown(call: Call): string {
    return this.#client.options.http.fullPaths ? call.url.pathname : this.#templateOf(call);
  }

  #attributesOf(call: Call): Attributes {
    const attributes = this.#client.telemetry.attributesOf(call.url);
    attributes['http.request.method'] = call.method;
    attributes['url.template'] = this.#templateOf(call);
    return attributes;
  }

  #spanAttributes(attributes: Attributes, { url, attempts }: Call): Attributes {
    const { origin, pathname } = url;
    const below = this.#client.options.http.fullPaths ? pathname.length : this.#endOfShown(pathname);
    const slash = below === pathname.length - 1 && pathname.endsWith('/') ? '/' : '';
    return {
      ...attributes,
      'url.full': origin + pathname.slice(0, below) + slash,
      ...(attempts > 1 && { 'http.request.resend_count': attempts - 1 }),
    };
  }

  /** The path below the base path, which is the same in all environments. */
  #templateOf({ route, url: { pathname } }: Call): string {
    return route ?? (pathname.slice(this.#endOfBase(pathname), this.#endOfShown(pathname)) || '/');
  }

  /** Shows the resource and its version, below the base path: the rest may hold the id of a customer. */
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

/** Their kinds, and no character of them. */
function describeCredentials({ credentials, certificate, url }: Call): string {
  const kinds: string[] = Object.keys(credentials).map((name) =>
    name === 'Authorization' ? 'bearer' : 'app token',
  );
  if (certificate && url.protocol === 'https:') kinds.push('client certificate');
  return kinds.length === 0 ? 'without credentials' : `with ${kinds.join(', ')}`;
}

const REFUSALS: Record<string, string> = {
  refused: 'the client certificate was refused',
  perhaps: 'the client certificate was perhaps refused',
};
