import { cleanText, ServiceApiError, type ApiErrorResponse } from '../../errors/index.js';
import { isPage } from '../../exchange/certificate-refusal.js';
import { parseJson } from '../../exchange/decode.js';
import { type ExchangeResponse, isSuccess } from '../../exchange/exchange.types.js';
import { parseRetryAfter } from '../../exchange/retry-after.js';
import { sentId, type Call } from '../request/call.js';
import { type ErrorClient } from '../request/client-context.js';
import { errorResponse } from './error-response.js';
import { isSafe, outcomeFields } from '../request/repeatability.js';

/** What an error says about the body of a success. */
interface Explained {
  what: string;
  hint: string;
  options?: readonly string[];
}

/** An answer to a call: what its caller gets of it, and what an error about it needs. */
export class Answer {
  constructor(
    readonly response: ExchangeResponse,
    readonly call: Call,
    readonly client: ErrorClient,
  ) {}

  /** The beginning of a message about it: `GET /banks/v1: HTTP 503`. */
  get name(): string {
    return `${this.call.name}: HTTP ${this.response.status}`;
  }

  /** The service's own id of the call. */
  get correlationId(): string | undefined {
    const { headers } = this.response;
    const answered = headers[this.client.options.http.correlationIdHeader] ?? headers['x-request-id'];
    return answered === undefined ? undefined : cleanText(String(answered), this.secrets, 128);
  }

  /** Secrets that it might echo: also the app token, even if the call was sent without it. */
  get secrets(): readonly string[] {
    const secrets = this.call.getSecrets();
    const appToken = this.client.options.appToken?.reveal();
    return appToken === undefined || secrets.includes(appToken) ? secrets : [...secrets, appToken];
  }

  /** The fields that all errors about it have. */
  get facts() {
    const { response, call } = this;
    return {
      status: response.status,
      method: call.method,
      path: call.url.pathname,
      route: call.route,
      correlationId: this.correlationId ?? sentId(call),
      retryAfter: parseRetryAfter(response.headers, Date.now()),
      ...outcomeFields(call, { response }),
    };
  }

  /** For `response` of an error. The app token is no secret there: it is the application's id, which an answer may name. */
  kept(json: unknown): () => ApiErrorResponse {
    const { appToken, appTokenHeader } = this.client.options;
    const bearers = this.call.getSecrets().filter((secret) => secret !== appToken?.reveal());
    return errorResponse(this.response, json, bearers, appTokenHeader);
  }

  /**
   * What a caller gets of an answer that counts as a success. Throws ServiceApiError `invalid_response`.
   * @param type axios's: `arraybuffer` is its name of a Buffer
   */
  read(type: string | undefined): unknown {
    const { status, body } = this.response;
    if (type === 'arraybuffer') return body;
    // A copy: a small Buffer shares its memory with others, which `bytes.buffer` would show.
    if (type === 'bytes') return new Uint8Array(body);
    if (type === 'text') return this.#text();
    if (isSuccess(status)) return this.#json();
    const text = body.toString('utf8');
    return parseJson(text) ?? text;
  }

  /** The error for the body of a success that `parse` refused, which it keeps. */
  refused(body: unknown, where: string): ServiceApiError {
    const data = body instanceof Uint8Array ? undefined : body;
    return new ServiceApiError({
      ...this.facts,
      response: this.kept(data),
      code: 'invalid_response',
      retryable: false,
      message: `${this.name}, but parse refused the ${body === undefined ? 'missing ' : ''}body${where}.${this.#carriedOut}`,
    });
  }

  /** In the charset of the content type, without a byte order mark, which would be a part of a CSV's first name. */
  #text(): string {
    const { body, headers } = this.response;
    const [, charset = 'utf-8'] = /;\s*charset="?([^\s;"]+)/i.exec(headers['content-type'] ?? '') ?? [];
    try {
      return new TextDecoder(charset).decode(body);
    } catch {
      throw this.#invalid({
        what: 'text in a charset that is not known',
        hint: "Set responseType 'bytes', and decode them yourself.",
      });
    }
  }

  /**
   * Undefined for 204, 205 and HEAD, and if a method that changes something is answered without a body (the service does
   * not document one).
   */
  #json(): unknown {
    const { status, body, untilClose } = this.response;
    if (status === 204 || status === 205 || this.call.method === 'HEAD') return undefined;
    const text = body.toString('utf8');
    const json = parseJson(text);
    // A number that ends with its connection may be the beginning of a longer one: Node does not tell whether the server
    // announced the end (close_notify; RFC 9112, 9.8).
    if (json !== undefined && !(untilClose && typeof json === 'number')) return json;
    const isEmpty = text.trim() === '';
    if (isEmpty && !isSafe({ method: this.call.method })) return undefined;
    const { describeOption, addresses } = this.client.options;
    const { baseOption } = addresses;
    const address = `${describeOption(baseOption)}, with its path if it has one.`;
    throw this.#invalid({ ...explainBody(this.response, isEmpty, address), options: [baseOption] });
  }

  #invalid({ what, hint, options = [] }: Explained): ServiceApiError {
    return new ServiceApiError({
      ...this.facts,
      response: this.kept(undefined),
      code: 'invalid_response',
      message: `${this.name}, with ${what}.${this.#carriedOut}`,
      hint,
      options,
    });
  }

  get #carriedOut(): string {
    const wasDone = !isSafe(this.call) && isSuccess(this.response.status);
    return wasDone ? ' By its status the call was carried out.' : '';
  }
}

function explainBody(response: ExchangeResponse, isEmpty: boolean, address: string): Explained {
  const hint = `Check ${address}`;
  if (isPage(response)) {
    const others =
      "it is not the service's API that answers, but for example a website, a login page or a proxy";
    return { what: `a page (HTML): ${others}`, hint };
  }
  if (isEmpty) return { what: 'an empty body', hint };
  const reading = "If it is not meant to be JSON, set responseType 'text' or 'bytes' in ServiceHttpService.";
  return { what: 'a body that is not JSON', hint: `${reading} If it is, check ${address}` };
}
