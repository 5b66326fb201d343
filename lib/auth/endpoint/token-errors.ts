import { type Secret } from '../../config/secret.js';
import {
  type AddressOption,
  cleanText,
  type DescribeOption,
  explain,
  explanationWords,
  hideCustomerId,
  ServiceConnectionError,
  ServiceError,
  ServiceTokenError,
  type TokenErrorCode,
} from '../../errors/index.js';
import {
  asksLateForCertificate,
  bodyKind,
  isFromSidecar,
  isJsonObject,
  parseBody,
} from '../../exchange/response.js';
import { type ExchangeResponse } from '../../exchange/io.js';
import { type ExplainedFault, explainFault, type FaultPlace } from '../../exchange/fault.js';
import { API_SCOPE } from '../access-token.js';

/** The token endpoint. */
export interface TokenPlace extends Omit<FaultPlace, 'server'> {
  /** {auth_url}/oauth2/token */
  url: URL;
  /** The option with the address of the API. The hint names it, because the two addresses may be swapped. */
  apiOption: string;
}

/** Makes the error if the token endpoint gave no complete response. It names the host and what to check. */
export function tokenConnectionError(place: TokenPlace, fault: ExplainedFault): ServiceConnectionError {
  const { kind, reason } = fault;
  const { host, pathname } = place.url;
  return new ServiceConnectionError({
    ...explainFault(`No token from the token endpoint at ${host}`, fault, { ...place, server: 'token' }),
    kind,
    method: 'POST',
    path: pathname,
    reason,
  });
}

/** Makes the error for a redirect. The query of its location is left out, because it may contain a session. */
export function tokenRedirect(
  place: TokenPlace,
  status: number,
  location: string | undefined,
  secrets: readonly Secret[],
): ServiceConnectionError {
  const { href } = place.url;
  const to = location !== undefined && URL.canParse(location, href) ? new URL(location, href) : undefined;
  const target = to && cleanEndpointText(to.origin + to.pathname, secrets);
  return tokenConnectionError(place, {
    kind: 'redirect',
    phase: 'reading',
    reason: `HTTP_${status}`,
    target,
  });
}

/** Cleans a text of the endpoint for an error: removes secrets and ids of customers. */
export function cleanEndpointText(text: string, secrets: readonly Secret[], scope = ''): string {
  const hidden = hideCustomerId(text);
  const [, id] = /^customer\.(.*)/.exec(scope) ?? [];
  const forms = id === undefined ? [] : [id, encodeURIComponent(id)];
  const shown = forms.reduce((rest, form) => rest.replaceAll(wholeWord(form), '{}'), hidden);
  return cleanText(
    shown,
    secrets.map((secret) => secret.reveal()),
    MAX_TEXT_LENGTH,
  );
}

/** Matches an id as a whole word. It may be a short number, which is also a part of other words. */
function wholeWord(text: string): RegExp {
  return new RegExp(`(?<![a-z\\d])${text.replace(/[.+]/g, '\\$&')}(?![a-z\\d])`, 'gi');
}

/** What matters of a token request for the error about its response. */
interface RefusedRequest {
  scope: string;
  /** The secret that was sent, and others. The error must show none of them, even if the endpoint echoes one. */
  secrets: readonly Secret[];
  place: Pick<TokenPlace, 'url' | 'option' | 'apiOption' | 'describeOption'>;
  /** Seconds of the response's Retry-After. */
  retryAfter?: number;
}

const MAX_TEXT_LENGTH = 200;

/** Makes the error for a response that grants no token (https://www.rfc-editor.org/rfc/rfc6749#section-5.2). */
export function tokenRefusal(response: ExchangeResponse, request: RefusedRequest): ServiceTokenError {
  const { scope, secrets, place, retryAfter } = request;
  const { status } = response;
  const json = parseBody(response);
  const { error: given, error_description: text } = isJsonObject(json) ? json : {};
  const error = readErrorCode(given, secrets, scope);
  const error_description = typeof text === 'string' ? cleanEndpointText(text, secrets, scope) : undefined;
  const body = bodyKind(response);
  const said = [body === 'page' && 'HTML', `HTTP ${status}`, error, error_description].filter(Boolean);
  // These two come from a proxy or a sidecar, and say nothing about the token request.
  const cause =
    (asksLateForCertificate(response) && 'asks-late') ||
    (place.url.protocol === 'http:' && isFromSidecar(response) && 'from-sidecar');
  const code = cause ? 'token_unavailable' : classifyRefusal(status, body === 'page', error);
  // An error that is not of OAuth is a text from outside, which must not choose the row.
  const known = [OAUTH_ERRORS.has(error) && error, scope !== API_SCOPE && 'customer', cause];
  const words = ['token response', String(status), body, code, ...known];
  const explanation = explain(words, { said: said.join(', '), retryAfter }, place);
  return new ServiceTokenError({ ...explanation, code, error, error_description, status, scope, retryAfter });
}

type ErrorCodes = ReadonlySet<string | undefined>;
/**
 * The OAuth errors that refuse the client secret (https://www.rfc-editor.org/rfc/rfc6749#section-5.2). Another secret may help.
 */
const SECRET_REFUSALS: ErrorCodes = new Set(['invalid_client', 'unauthorized_client']);
const OTHER_REFUSALS: ErrorCodes = new Set([
  'invalid_request',
  'invalid_grant',
  'unsupported_grant_type',
  'invalid_scope',
  // The server Glewlwyd sends this one.
  'scope_invalid',
]);
/** Errors after which the endpoint may grant a token later. */
const TEMPORARY: ErrorCodes = new Set(['temporarily_unavailable', 'server_error']);
const OAUTH_ERRORS: ErrorCodes = new Set([...SECRET_REFUSALS, ...OTHER_REFUSALS, ...TEMPORARY]);

/** Whether the endpoint refused the client secret. An HTML page or an error of a gateway is not such a refusal. */
export function isSecretRefusal(error: unknown): error is ServiceTokenError {
  return error instanceof ServiceTokenError && SECRET_REFUSALS.has(error.error);
}

function classifyRefusal(status: number, isPage: boolean, error: string | undefined): TokenErrorCode {
  if (SECRET_REFUSALS.has(error)) return 'token_refused';
  if (status === 429) return 'token_rate_limited';
  if (isPage && status < 300) return 'invalid_token_response';
  // Without an error of OAuth, a 401 or 403 comes from a proxy or firewall in front of the endpoint, or from a wrong address.
  const isDenied = (status === 401 || status === 403) && !OTHER_REFUSALS.has(error);
  const isTransientStatus = status >= 500 || status === 408 || status === 425 || TEMPORARY.has(error);
  return isPage || isDenied || isTransientStatus ? 'token_unavailable' : 'token_refused';
}

/** Accepts only the characters of RFC 6749's own error codes. Anything else may be an echo of the request. */
function readErrorCode(value: unknown, secrets: readonly Secret[], scope: string): string | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9_.-]{1,64}$/.test(value)) return undefined;
  return cleanEndpointText(value, secrets, scope) === value ? value : undefined;
}

/** Makes the error for a successful response that is no token. */
export function unusableResponse(
  why: string,
  status: number,
  scope: string,
  place: AddressOption,
): ServiceTokenError {
  const code = 'invalid_token_response';
  const explanation = explain(['token response', String(status), code], { status, why }, place);
  return new ServiceTokenError({ ...explanation, code, status, scope });
}

/** Whether another token request may succeed later. */
export function isRetryableTokenError(error: unknown): boolean {
  return error instanceof ServiceError && error.retryable && error.code !== 'connection_closed';
}

/** Makes the error for a token that had expired when it arrived. */
export function expiredOnArrival(scope: string): ServiceTokenError {
  const explanation = explain(['token expired-on-arrival'], {});
  return new ServiceTokenError({ ...explanation, code: 'token_unavailable', scope });
}

/** Makes the error for an endpoint that did not respond within the time of a request. */
export function noResponseInTime(timeoutMs: number): ServiceConnectionError {
  const explanation = explain(['token no-response'], { limit: Math.round(timeoutMs) });
  return new ServiceConnectionError({ ...explanation, kind: 'timeout' });
}

/** Makes the error for a caller whose time limit is over. */
export function noTokenInTime(timeoutMs: number, describeOption: DescribeOption): ServiceConnectionError {
  const limit = Math.max(0, Math.round(timeoutMs));
  const explanation = explain(['token no-token-in-time'], { limit }, { describeOption });
  return new ServiceConnectionError({ ...explanation, kind: 'timeout' });
}

/** Makes the error while the circuit breaker is open: the last error, with the time until the endpoint is asked again. */
export function stillFailing(error: ServiceError, scope: string, leftMs: number): ServiceError {
  const retryAfter = Math.ceil(leftMs / 1000);
  const before = [explanationWords(error) ?? 'token', 'not-asked-again'];
  const { words, message } = explain(before, { earlier: error.message, retryAfter });
  if (error instanceof ServiceConnectionError)
    return new ServiceConnectionError({ ...error, words, message });
  return error instanceof ServiceTokenError
    ? new ServiceTokenError({ ...error, words, message, scope, retryAfter })
    : error;
}
