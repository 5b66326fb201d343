import { withoutSlashes } from '../config/address.js';
import { cleanText, ServiceApiError, ServiceConnectionError, type ApiErrorBody } from '../errors/index.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { parseJson } from '../exchange/decode.js';
import { parseRetryAfter } from '../exchange/retry-after.js';
import { sentId, type Call } from './call.js';
import { explainAnswer, isCredentialFault, type CredentialsInUse } from './explain-answer.js';
import { doubtOf } from './retry-policy.js';

const MAX_MESSAGE = 500;
const REDIRECTS = new Set([300, 301, 302, 303, 305, 306, 307, 308]);

export interface AnswerContext {
  call: Call;
  correlationIdHeader: string;
  /** What an answer might echo and no error may hold. */
  secrets: () => readonly string[];
  credentials: CredentialsInUse;
}

/** `status` and `message` of the body reach the caller; the HTTP status is the truth. */
export function answerToError(
  response: ExchangeResponse,
  context: AnswerContext,
): ServiceApiError | ServiceConnectionError {
  if (REDIRECTS.has(response.status)) return redirectError(response, context);
  const { call, credentials, secrets } = context;
  const { message: what, hint, options } = explainAnswer(response, call.url, credentials);
  const body = readErrorBody(parseJson(response.body.toString('utf8')), secrets());
  const meaning = body?.message && what ? `${sentence(what)} ` : '';
  return new ServiceApiError({
    ...answerFacts(response, context),
    body,
    credentialFault: isCredentialFault(response),
    message: body?.message || `${statusOf(response, call)}${what}.`,
    hint: hint && meaning + hint,
    options,
  });
}

/** What an answer means, where the service's own text is the message. */
function sentence(what: string): string {
  const words = what.replace(/^\W+/, '');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

/** `GET /banks/v1: HTTP 503`: how the message about an answer begins. */
export function statusOf({ status }: Pick<ExchangeResponse, 'status'>, { method, url }: Call): string {
  return `${method} ${url.pathname}: HTTP ${status}`;
}

/** What each error of an answer tells. */
export type CallFacts = Pick<
  ServiceApiError,
  'status' | 'method' | 'path' | 'correlationId' | 'retryAfter' | 'outcomeUnknown' | 'idempotencyKey'
>;

export function answerFacts(response: ExchangeResponse, context: AnswerContext): CallFacts {
  const { call } = context;
  return {
    status: response.status,
    method: call.method,
    path: call.url.pathname,
    correlationId: answeredId(response, context) ?? sentId(call),
    retryAfter: parseRetryAfter(response.headers['retry-after'], Date.now()),
    ...doubtOf(call, { response }),
  };
}

/** The service's own id of a call. */
export function answeredId(
  { headers }: Pick<ExchangeResponse, 'headers'>,
  { correlationIdHeader, secrets }: AnswerContext,
): string | undefined {
  const answered = headers[correlationIdHeader] ?? headers['x-request-id'];
  return answered === undefined ? undefined : cleanText(String(answered), secrets(), 128);
}

function readErrorBody(json: unknown, secrets: readonly string[]): ApiErrorBody | undefined {
  if (typeof json !== 'object' || json === null) return undefined;
  const { status, message } = json as Record<string, unknown>;
  const body: ApiErrorBody = {};
  if (typeof status === 'string') body.status = cleanText(status, secrets, MAX_MESSAGE);
  if (typeof status === 'number') body.status = status;
  if (typeof message === 'string') body.message = cleanText(message, secrets, MAX_MESSAGE);
  return body.status === undefined && body.message === undefined ? undefined : body;
}

function redirectError(
  response: ExchangeResponse,
  { call, secrets, credentials: { baseOption } }: AnswerContext,
): ServiceConnectionError {
  const target = redirectTarget(response.headers, call.url);
  const origin = target && cleanText(target.origin, secrets(), MAX_MESSAGE);
  return new ServiceConnectionError({
    kind: 'redirect',
    message: `${statusOf(response, call)}, a redirect${origin ? ` to ${origin}` : ''}. Redirects are never followed.`,
    ...(target?.isOnlySlash
      ? {
          hint: 'It only adds or removes a slash at the end: change http.trailingSlash.',
          options: ['http.trailingSlash'],
        }
      : { hint: `Put the address where the API is into ${baseOption}.`, options: [baseOption] }),
    method: call.method,
    path: call.url.pathname,
    reason: String(response.status),
    // A redirect proves nothing: 303 often follows a request that succeeded (RFC 9110, 15.4.4).
    ...doubtOf(call, { response }),
    correlationId: sentId(call),
    location: origin,
  });
}

/** Where a redirect leads, and whether only by a slash at the end; undefined where it does not say it. */
function redirectTarget(
  { location }: ExchangeResponse['headers'],
  { href, origin, pathname }: Pick<URL, 'href' | 'origin' | 'pathname'>,
): { origin: string; isOnlySlash: boolean } | undefined {
  if (location === undefined || !URL.canParse(location, href)) return undefined;
  const target = new URL(location, href);
  const isSamePath = withoutSlashes(target.pathname) === withoutSlashes(pathname);
  return { origin: target.origin, isOnlySlash: target.origin === origin && isSamePath };
}
