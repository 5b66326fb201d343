import { explanationWords, ServiceApiError } from '../errors/index.js';
import { certificateVerdict } from '../exchange/response.js';
import { type ExchangeResponse } from '../exchange/io.js';
import { type Outcome } from '../exchange/fault.js';
import { type AttemptTrace, eventErrorCode, reportCall } from '../telemetry/telemetry.js';
import { CallResponse } from './call-response.js';
import { sentCorrelationId, type Call, type ClientContext } from './call.js';

/** Reports calls: writes log lines, and an event for `http.onCall`. */
export class CallObserver {
  readonly #client: ClientContext;

  constructor(client: ClientContext) {
    this.#client = client;
  }

  succeeded(call: Call, status: number): void {
    this.#reportEvent(call);
    if (this.#client.options.http.logCalls) this.#log(call, String(status));
  }

  failed(call: Call, error: unknown): void {
    const code = eventErrorCode(error, call.signal);
    const isErrorResponse = error instanceof ServiceApiError && error.code === 'api_error';
    this.#reportEvent(call, code);
    const words = explanationWords(error);
    this.#log(call, isErrorResponse ? String(error.status) : code, words && ` [${words}]`);
  }

  /** Warns that an attempt failed and that another one follows. */
  retrying(call: Call, outcome: Outcome): void {
    const { response, fault } = outcome;
    const reason = fault?.kind ?? String(response?.status);
    const verdict = certificateVerdict(outcome);
    const why = verdict ? `${reason}, the client certificate was ${verdict.replace('-', ' ')}` : reason;
    this.#client.io.log.warn(
      `${call.name}: ${why}${this.#describeId(call, response)}; another attempt follows`,
    );
  }

  #reportEvent(call: Call, error?: string): void {
    const { onCall } = this.#client.options.http;
    if (!onCall) return;
    const { method, traces = [], response } = call;
    reportCall(onCall, traces, {
      kind: 'api',
      method,
      route: call.route,
      durationMs: performance.now() - call.startedAt,
      status: response?.status,
      correlationId: response && new CallResponse(response, call, this.#client).correlationId,
      requestId: sentCorrelationId(call),
      error,
    });
  }

  #log(call: Call, what: string, words = ''): void {
    const { io, options } = this.#client;
    const durationMs = Math.round(performance.now() - call.startedAt);
    const details = options.http.logCalls ? `${describeAttempts(call)}, ${describeCredentials(call)}` : '';
    const id = this.#describeId(call, call.response);
    io.log.debug(`${call.name}: ${what} after ${durationMs} ms${details}${id}${words}`);
  }

  #describeId(call: Call, response: ExchangeResponse | undefined): string {
    const id =
      (response && new CallResponse(response, call, this.#client).correlationId) ?? sentCorrelationId(call);
    return id ? `, correlation id ${id}` : '';
  }
}

function describeAttempts({ traces = [] }: Call): string {
  const each = traces.length === 0 ? '' : ` (${traces.map(describeAttempt).join('; ')})`;
  return `, ${traces.length} attempt${traces.length === 1 ? '' : 's'}${each}`;
}

/** One attempt in few words: `200 after 41 ms, new connection, token 0, connected 12, first byte 39`. */
function describeAttempt({ attempt }: AttemptTrace): string {
  const { status, fault, connection = 'no', tokenMs, connectedMs, firstByteMs, durationMs } = attempt;
  const at = (what: string, ms?: number) => (ms === undefined ? '' : `, ${what} ${Math.round(ms)}`);
  const moments = at('token', tokenMs) + at('connected', connectedMs) + at('first byte', firstByteMs);
  return `${status ?? fault} after ${Math.round(durationMs)} ms, ${connection} connection${moments}`;
}

/** Names the kinds of the credentials only, because many people may read a log. */
function describeCredentials(call: Call): string {
  const { certificate, url } = call;
  const kinds: string[] = Object.keys(call.getCredentials()).map((name) =>
    name === 'Authorization' ? 'bearer' : 'app token',
  );
  if (certificate && url.protocol === 'https:') kinds.push('client certificate');
  return kinds.length === 0 ? 'without credentials' : `with ${kinds.join(', ')}`;
}
