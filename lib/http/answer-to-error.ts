import { withoutSlashes } from '../config/address.js';
import { cleanText, ServiceApiError, ServiceConnectionError, type ApiErrorBody } from '../errors/index.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { parseJson } from '../exchange/decode.js';
import { parseRetryAfter } from '../exchange/timing.js';
import { sentId, type Call } from './call.js';
import { credentialHint, isCredentialFault, type CredentialsInUse } from './credential-hint.js';
import { isSafe } from './retry-policy.js';

const MAX_MESSAGE = 500;
const REDIRECTS = new Set([300, 301, 302, 303, 305, 306, 307, 308]);

export interface AnswerContext {
  call: Call;
  correlationIdHeader: string;
  /** What an answer might echo and no error may hold. */
  secrets: () => readonly string[];
  credentials: CredentialsInUse;
}

/** Specification 7.2: `status` and `message` of the body reach the caller; the HTTP status is the truth. */
export function answerToError(
  response: ExchangeResponse,
  context: AnswerContext,
): ServiceApiError | ServiceConnectionError {
  if (REDIRECTS.has(response.status)) return redirectError(response, context);
  const hint = hintFor(response, context);
  const body = readErrorBody(parseJson(response.body.toString('utf8')), context.secrets());
  const fallback = `The service answered ${response.status} to ${context.call.method} ${context.call.url.pathname}.`;
  return new ServiceApiError({
    ...answerFacts(response, context),
    body,
    hint,
    credentialFault: isCredentialFault(response),
    message: body?.message || (hint ? `${fallback} ${hint}` : fallback),
  });
}

/** What each error of an answer tells. */
export type CallFacts = Pick<ServiceApiError, 'status' | 'method' | 'path' | 'correlationId' | 'retryAfter'>;

export function answerFacts(
  response: Pick<ExchangeResponse, 'status' | 'headers'>,
  { call, correlationIdHeader, secrets }: AnswerContext,
): CallFacts {
  const answered = response.headers[correlationIdHeader] ?? response.headers['x-request-id'];
  return {
    status: response.status,
    method: call.method,
    path: call.url.pathname,
    correlationId: answered === undefined ? sentId(call) : cleanText(String(answered), secrets(), 128),
    retryAfter: parseRetryAfter(response.headers['retry-after'], Date.now()),
  };
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
  { status, headers }: ExchangeResponse,
  { call, secrets }: AnswerContext,
): ServiceConnectionError {
  const target = redirectTarget(headers, call.url);
  const slash = target?.isOnlySlash
    ? ' It only adds or removes the slash at the end: set http.trailingSlash accordingly.'
    : '';
  const origin = target && cleanText(target.origin, secrets(), MAX_MESSAGE);
  return new ServiceConnectionError({
    kind: 'redirect',
    message: `${call.method} ${call.url.pathname}: answered ${status} with a redirect${origin ? ` to ${origin}` : ''}, which is never followed; check the address.${slash}`,
    method: call.method,
    path: call.url.pathname,
    reason: String(status),
    // A redirect proves nothing: 303 often follows a request that succeeded (RFC 9110, 15.4.4).
    outcomeUnknown: !isSafe(call.method),
    correlationId: sentId(call),
    location: origin,
  });
}

/** Where a redirect leads, and whether only by a slash at the end; undefined where it does not say it. */
export function redirectTarget(
  { location }: ExchangeResponse['headers'],
  { href, origin, pathname }: Pick<URL, 'href' | 'origin' | 'pathname'>,
): { origin: string; isOnlySlash: boolean } | undefined {
  if (location === undefined || !URL.canParse(location, href)) return undefined;
  const target = new URL(location, href);
  const isSamePath = withoutSlashes(target.pathname) === withoutSlashes(pathname);
  return { origin: target.origin, isOnlySlash: target.origin === origin && isSamePath };
}

const BOTH =
  'If the service complains about both the app token and a bearer token, leave sendAppTokenWithBearer off.';

function hintFor(response: ExchangeResponse, { credentials }: AnswerContext): string | undefined {
  const isAboutBoth =
    response.status === 400 && /both|multiple|more than one/i.test(response.body.toString('latin1'));
  return credentialHint(response, credentials) ?? (isAboutBoth ? BOTH : undefined);
}
