import {
  type ApiErrorDetails,
  type ApiErrorResponse,
  cleanText,
  containsSecret,
  ServiceApiError,
  type Words,
} from '../errors/index.js';
import { skippedCodings } from '../exchange/body.js';
import { charsetOf, decodeText, parseBody, isSuccess, parseRetryAfter } from '../exchange/response.js';
import { type ExchangeResponse } from '../exchange/io.js';
import { sentCorrelationId, type Call, type ErrorClient } from './call.js';
import { explainByWords } from './call-error.js';
import { isSafe, outcomeFields } from './repeatability.js';

const MAX_ERROR_BYTES = 65_536;

/** The response to a call: reads the body for the caller, and makes the fields of errors about the response. */
export class CallResponse {
  constructor(
    readonly received: ExchangeResponse,
    readonly call: Call,
    readonly client: ErrorClient,
  ) {}

  /** The beginning of a message about this response: `GET /banks/v1: HTTP 503`. */
  get name(): string {
    return `${this.call.name}: HTTP ${this.received.status}`;
  }

  /** The correlation id that the service sent. */
  get correlationId(): string | undefined {
    const { headers } = this.received;
    const answered = headers[this.client.options.http.correlationIdHeader] ?? headers['x-request-id'];
    return answered === undefined ? undefined : cleanText(String(answered), this.secrets, 128);
  }

  /** Secrets that the response might echo. The app token is among them even if the call was sent without it. */
  get secrets(): readonly string[] {
    const secrets = this.call.getSecrets();
    const appToken = this.client.options.appToken?.reveal();
    return appToken === undefined || secrets.includes(appToken) ? secrets : [...secrets, appToken];
  }

  /** The fields that all errors about this response have. */
  get errorFields() {
    const { received: response, call } = this;
    return {
      status: response.status,
      method: call.method,
      path: call.url.pathname,
      route: call.route,
      correlationId: this.correlationId ?? sentCorrelationId(call),
      retryAfter: parseRetryAfter(response.headers, Date.now()),
      ...outcomeFields(call, { response }),
    };
  }

  /**
   * Makes the property `response` of an error. The app token is not a secret there: it is the application's id, which the
   * service may name.
   */
  toErrorResponse(json: unknown): () => ApiErrorResponse {
    const { appToken, appTokenHeader } = this.client.options;
    const bearers = this.call.getSecrets().filter((secret) => secret !== appToken?.reveal());
    return keepErrorResponse(this.received, json, bearers, appTokenHeader);
  }

  /**
   * Reads the body of a response that counts as a success. Throws ServiceApiError `invalid_response`.
   * @param type the responseType of axios, in which `arraybuffer` means a Buffer
   */
  readBody(type: string | undefined): unknown {
    const { status, body } = this.received;
    if (type === 'arraybuffer') return body;
    // A copy, because Node's small Buffers share one piece of memory, and `bytes.buffer` would show the data of others.
    if (type === 'bytes') return new Uint8Array(body);
    if (type === 'text') return this.#text();
    if (isSuccess(status)) return this.#json();
    return parseBody(this.received) ?? body.toString('utf8');
  }

  /** Makes the error for a body that `parse` refused. The error keeps the body. */
  toParseError(body: unknown, where: string): ServiceApiError {
    const data = body instanceof Uint8Array ? undefined : body;
    const details = { response: this.toErrorResponse(data), retryable: false };
    return this.#unusable(['parse', body === undefined && 'missing'], details, where);
  }

  /**
   * Decodes the body in the charset of the content type. Removes a byte order mark, which would otherwise become a part of the
   * first column's name in a CSV.
   */
  #text(): string {
    const { body, headers } = this.received;
    const text = decodeText(body, charsetOf(headers) ?? 'utf-8');
    if (text !== undefined) return text;
    throw this.#unusable(['charset']);
  }

  /**
   * Parses the body. Returns undefined for 204, 205 and HEAD. The service does not document a body for methods that change
   * something, so an empty one is undefined there too.
   */
  #json(): unknown {
    const { status, body, untilClose } = this.received;
    if (status === 204 || status === 205 || this.call.method === 'HEAD') return undefined;
    const json = parseBody(this.received);
    // If the body ends only because the connection was closed, a number may be the beginning of a longer number. Node does not
    // show whether the server announced the end of the connection (close_notify; RFC 9112, section 9.8).
    if (json !== undefined && !(untilClose && typeof json === 'number')) return json;
    const isEmpty = body.toString('utf8').trim() === '';
    if (isEmpty && !isSafe({ method: this.call.method, details: {} })) return undefined;
    throw this.#unusable([]);
  }

  /** @param why where `parse` found a fault */
  #unusable(words: Words, details?: Partial<ApiErrorDetails>, why?: string): ServiceApiError {
    const { received, client } = this;
    const wasExecuted = !isSafe(this.call) && isSuccess(received.status);
    const known = ['unusable', ...words, wasExecuted && 'executed'];
    const skipped = skippedCodings(received.headers);
    const coding = skipped && cleanText(skipped, this.secrets, 64);
    const explanation = explainByWords(received, client, known, { why, coding });
    return new ServiceApiError({
      ...this.errorFields,
      response: this.toErrorResponse(undefined),
      ...details,
      ...explanation,
      code: 'invalid_response',
      message: this.name + explanation.message,
      saysOutcome: wasExecuted,
    });
  }
}

/**
 * Makes the property `response` of an error, without credentials. An error may be kept for long, for example by a queue, so it
 * keeps nothing else, and the body as text: parsed, it can be ten times as large.
 * @param json the parsed body; undefined if it is not JSON
 */
export function keepErrorResponse(
  { status, headers, body }: ExchangeResponse,
  json: unknown,
  secrets: readonly string[],
  appTokenHeader: string,
): () => ApiErrorResponse {
  const hidden = ['set-cookie', 'authorization', appTokenHeader.toLowerCase()];
  const texts = Object.entries(headers).map(([name, value = '']) => [name, String(value)]);
  const shown = texts.filter(
    (header) => !hidden.includes(header[0]) && !header.some((text) => containsSecret(text, secrets)),
  );
  const text = body.length <= MAX_ERROR_BYTES ? toCleanText(json, secrets) : undefined;
  return parseLater({ status, headers: Object.fromEntries(shown) as Record<string, string> }, text);
}

function parseLater(response: Omit<ApiErrorResponse, 'data'>, text?: string): () => ApiErrorResponse {
  let parsed: ApiErrorResponse | undefined;
  const parse = (): unknown => text && JSON.parse(Buffer.from(text, 'latin1').toString());
  return () => (parsed ??= { ...response, data: parse() });
}

/** The text of a body, one byte for each byte of UTF-8. Undefined if it contains a credential. */
function toCleanText(json: unknown, secrets: readonly string[]): string | undefined {
  try {
    if (json === undefined) return undefined;
    const text = JSON.stringify(json);
    return containsSecret(text, secrets) ? undefined : Buffer.from(text).toString('latin1');
  } catch {
    // The body is nested too deep for JSON.stringify().
    return undefined;
  }
}
