import { cleanText, ServiceApiError, type ApiErrorResponse } from '../errors/index.js';
import { isPage } from '../exchange/certificate-refusal.js';
import { parseJson } from '../exchange/decode.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { parseRetryAfter } from '../exchange/retry-after.js';
import { sentId, type Call } from './call.js';
import { type ErrorClient } from './client-context.js';
import { errorResponse } from './error-response.js';
import { carriedOut, doubtOf, isSafe } from './retry-policy.js';

/**
 * What a caller gets of an answer that counts as a success. Throws ServiceApiError `invalid_response`.
 * @param type axios's: `arraybuffer` is its name of a Buffer
 */
export function readAnswer(
  response: ExchangeResponse,
  call: Call,
  client: ErrorClient,
  type: string | undefined,
): unknown {
  const { status, body } = response;
  const isSuccess = status >= 200 && status < 300;
  if (status === 206) refusePart(response, call, client);
  if (type === 'arraybuffer') return body;
  // A copy: a small Buffer shares its memory with others, which `bytes.buffer` would show.
  if (type === 'bytes') return new Uint8Array(body);
  if (type === 'text') return readText(response, call, client);
  if (isSuccess) return readBody(response, call, client);
  const text = body.toString('utf8');
  return parseJson(text) ?? text;
}

/** In the charset of the content type, without a byte order mark, which would be a part of a CSV's first name. */
function readText(response: ExchangeResponse, call: Call, client: ErrorClient): string {
  const { body, headers } = response;
  const [, charset = 'utf-8'] = /;\s*charset="?([^\s;"]+)/i.exec(headers['content-type'] ?? '') ?? [];
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    throw invalidResponse(response, call, client, {
      what: 'text in a charset that is not known',
      hint: "Set responseType 'bytes', and decode them yourself.",
      options: [],
    });
  }
}

/**
 * The JSON body of a success; undefined for 204, 205 and HEAD, and if a method that changes something is answered without a
 * body (the service does not document one). Throws ServiceApiError `invalid_response`.
 */
export function readBody(response: ExchangeResponse, call: Call, client: ErrorClient): unknown {
  if (hasNoBody(response, call)) return undefined;
  const text = response.body.toString('utf8');
  const json = parseJson(text);
  // A number that ends with its connection may be the beginning of a longer one: Node does not tell whether the server
  // announced the end (close_notify; RFC 9112, 9.8).
  if (json !== undefined && !(response.untilClose && typeof json === 'number')) return json;
  const isEmpty = text.trim() === '';
  if (isEmpty && !isSafe({ method: call.method })) return undefined;
  const { describeOption, addresses } = client.options;
  const { baseOption } = addresses;
  const address = `${describeOption(baseOption)}, with its path if it has one.`;
  throw invalidResponse(response, call, client, {
    ...explainBody(response, isEmpty, address),
    options: [baseOption],
  });
}

/** Throws ServiceApiError `invalid_response` for a part of a body that the call did not ask for. */
function refusePart(response: ExchangeResponse, call: Call, client: ErrorClient): void {
  if (call.headers.range !== undefined || hasNoBody(response, call)) return;
  throw invalidResponse(response, call, client, {
    what: 'a part of a body, which was not asked for',
    hint: 'Ask who runs a cache or proxy before the service, which may answer from a part that it keeps.',
    options: [],
  });
}

/** The error for the body of a success that `parse` refused, which it keeps. */
export function refusedAnswer(
  response: ExchangeResponse,
  call: Call,
  client: ErrorClient,
  body: unknown,
  where: string,
): ServiceApiError {
  const facts = answerFacts(response, call, client);
  const data = body instanceof Uint8Array ? undefined : body;
  const answered = `The service answered ${facts.status} ${body === undefined ? 'without' : 'with'} a body`;
  return new ServiceApiError({
    ...facts,
    response: keptAnswer(response, data, call, client),
    code: 'invalid_response',
    retryable: false,
    message: `${answered} that parse refused${where}.${carriedOut(call, response)}`,
  });
}

function explainBody(
  response: ExchangeResponse,
  isEmpty: boolean,
  address: string,
): Pick<Explained, 'what' | 'hint'> {
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

interface Explained {
  what: string;
  hint: string;
  options: readonly string[];
}

function invalidResponse(
  response: ExchangeResponse,
  call: Call,
  client: ErrorClient,
  { what, hint, options }: Explained,
): ServiceApiError {
  const facts = answerFacts(response, call, client);
  return new ServiceApiError({
    ...facts,
    response: keptAnswer(response, undefined, call, client),
    code: 'invalid_response',
    message: `${statusOf(response, call)}, with ${what}.${carriedOut(call, response)}`,
    hint,
    options,
  });
}

function hasNoBody({ status }: ExchangeResponse, { method }: Call): boolean {
  return status === 204 || status === 205 || method === 'HEAD';
}

/** The beginning of a message about an answer: `GET /banks/v1: HTTP 503`. */
export function statusOf({ status }: ExchangeResponse, { method, route }: Call): string {
  return `${method} ${route}: HTTP ${status}`;
}

/** The fields that all errors about an answer have. */
type AnswerFacts = Pick<
  ServiceApiError,
  | 'status'
  | 'method'
  | 'path'
  | 'route'
  | 'correlationId'
  | 'retryAfter'
  | 'outcomeUnknown'
  | 'idempotencyKey'
  | 'retryable'
>;

export function answerFacts(response: ExchangeResponse, call: Call, client: ErrorClient): AnswerFacts {
  return {
    status: response.status,
    method: call.method,
    path: call.url.pathname,
    route: call.route,
    correlationId: answeredId(response, call, client) ?? sentId(call),
    retryAfter: parseRetryAfter(response.headers['retry-after'], Date.now()),
    ...doubtOf(call, { response }),
  };
}

/** The service's own id of a call. */
export function answeredId(
  { headers }: ExchangeResponse,
  call: Call,
  client: ErrorClient,
): string | undefined {
  const answered = headers[client.options.http.correlationIdHeader] ?? headers['x-request-id'];
  return answered === undefined ? undefined : cleanText(String(answered), secretsOf(call, client), 128);
}

/** Secrets that an answer might echo: also the app token, even if the call was sent without it. */
export function secretsOf({ secrets }: Call, { options }: ErrorClient): readonly string[] {
  const appToken = options.appToken?.reveal();
  return appToken === undefined || secrets.includes(appToken) ? secrets : [...secrets, appToken];
}

/** For `response` of an error. The app token is no secret there: it is the application's id, which an answer may name. */
export function keptAnswer(
  response: ExchangeResponse,
  json: unknown,
  { secrets }: Call,
  { options }: ErrorClient,
): () => ApiErrorResponse {
  const appToken = options.appToken?.reveal();
  const bearers = secrets.filter((secret) => secret !== appToken);
  return errorResponse(response, json, bearers, options.appTokenHeader);
}
