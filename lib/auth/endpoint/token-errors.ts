import { type Secret } from '../../config/secret.js';
import {
  cleanText,
  type DescribeOption,
  fillExplanation,
  hideCustomerId,
  type Remedy,
  ServiceConnectionError,
  ServiceError,
  ServiceTokenError,
  type TokenErrorCode,
} from '../../errors/index.js';
import {
  CHECK_SIDECAR_CERTIFICATE,
  LATE_CERTIFICATE_REQUEST,
  REQUEST_CERTIFICATE_EARLIER,
  SIDECAR_FAILED,
  isJsonObject,
} from '../../exchange/response.js';
import { type ExplainedFault, explainFault, type FaultPlace } from '../../exchange/explain-fault.js';
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
  const shown = to && ` to ${cleanEndpointText(to.origin + to.pathname, secrets)}`;
  return tokenConnectionError(place, {
    kind: 'redirect',
    phase: 'reading',
    reason: `HTTP_${status}`,
    detail: shown,
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

interface RefusingResponse {
  status: number;
  /** The parsed body; undefined if it is not JSON. */
  json: unknown;
  /** Whether the body is an HTML page. */
  isPage?: boolean;
  /** Whether it is the page of an Apache that asks for the client certificate only after the request. */
  requestsCertificateLate?: boolean;
  /** Whether the response comes from a sidecar on this machine, and not from the endpoint. */
  isFromSidecar?: boolean;
  scope: string;
  /** Seconds of Retry-After. */
  retryAfter?: number;
  /** The secret that was sent, and others. The error must show none of them, even if the endpoint echoes one. */
  secrets: readonly Secret[];
  place: Pick<TokenPlace, 'option' | 'apiOption' | 'describeOption'>;
}

const MAX_TEXT_LENGTH = 200;

/** Makes the error for a response that grants no token (https://www.rfc-editor.org/rfc/rfc6749#section-5.2). */
export function tokenRefusal(response: RefusingResponse): ServiceTokenError {
  const { status, json, isPage, scope, retryAfter, secrets } = response;
  const { error: given, error_description: text } = isJsonObject(json) ? json : {};
  const error = readErrorCode(given, secrets, scope);
  const error_description = typeof text === 'string' ? cleanEndpointText(text, secrets, scope) : undefined;
  const said = [isPage && 'HTML', `HTTP ${status}`, error, error_description].filter(Boolean).join(', ');
  const later = retryAfter === undefined ? 'later' : `in ${retryAfter} s`;
  const [code, failure] = classifyRefusal(response, error);
  const words = fillExplanation(failure.message, failure, { said, later }, response.place);
  return new ServiceTokenError({ ...words, code, error, error_description, status, scope, retryAfter });
}

type ErrorCodes = ReadonlySet<string | undefined>;
/**
 * The OAuth errors that refuse the client secret (https://www.rfc-editor.org/rfc/rfc6749#section-5.2). Another secret may help.
 */
const SECRET_REFUSALS: ErrorCodes = new Set(['invalid_client', 'unauthorized_client']);
/** `scope_invalid` is sent by the server Glewlwyd. */
const SCOPE_ERRORS: ErrorCodes = new Set(['invalid_scope', 'scope_invalid']);
const OTHER_ERRORS: ErrorCodes = new Set([
  'invalid_request',
  'invalid_grant',
  'unsupported_grant_type',
  ...SCOPE_ERRORS,
]);
/** Errors after which the endpoint may grant a token later. */
const TEMPORARY: ErrorCodes = new Set(['temporarily_unavailable', 'server_error']);

/** Whether the endpoint refused the client secret. An HTML page or an error of a gateway is not such a refusal. */
export function isSecretRefusal(error: unknown): error is ServiceTokenError {
  return error instanceof ServiceTokenError && SECRET_REFUSALS.has(error.error);
}

function classifyRefusal(
  { status, isPage, requestsCertificateLate, isFromSidecar, scope }: RefusingResponse,
  error: string | undefined,
): [TokenErrorCode, TokenFailure] {
  if (requestsCertificateLate) return ['token_unavailable', TOO_LATE];
  if (isFromSidecar) return ['token_unavailable', FROM_SIDECAR];
  if (SECRET_REFUSALS.has(error)) return ['token_refused', CREDENTIALS];
  if (status === 429) return ['token_rate_limited', RATE_LIMITED];
  if (isPage && status < 300) return ['invalid_token_response', NOT_OAUTH];
  // Without an error of OAuth, a 401 or 403 comes from a proxy or firewall in front of the endpoint, or from a wrong address.
  const isDenied = (status === 401 || status === 403) && !OTHER_ERRORS.has(error);
  if (isPage || isDenied) return ['token_unavailable', NOT_OAUTH];
  const isTransientStatus = status >= 500 || status === 408 || status === 425 || TEMPORARY.has(error);
  if (isTransientStatus) return ['token_unavailable', OUT_OF_ORDER];
  return ['token_refused', SCOPE_ERRORS.has(error) && scope !== API_SCOPE ? NO_CUSTOMER : OTHER];
}

interface TokenFailure extends Remedy {
  message: string;
}

const NOT_OAUTH: TokenFailure = {
  message:
    'The response does not come from the token endpoint, but from a proxy in front of it or from another server ({said}).',
  hint: 'Check {address} and {api}: they may be swapped. {address} is written without /oauth2/token. If both are right, a proxy, firewall or login page answers in place of the endpoint: ask who runs it. If it wants a client certificate, set {oauth.mtls}. If that is not the cause, check {oauth.clientId} and {oauth.clientSecret}.',
};
const TOO_LATE: TokenFailure = {
  message: `The server in front of the token endpoint ${LATE_CERTIFICATE_REQUEST} ({said}).`,
  hint: REQUEST_CERTIFICATE_EARLIER,
};
const FROM_SIDECAR: TokenFailure = {
  message: `No response from the token endpoint: ${SIDECAR_FAILED} ({said}).`,
  hint: CHECK_SIDECAR_CERTIFICATE,
};
const RATE_LIMITED: TokenFailure = {
  message: 'The token endpoint got too many requests ({said}).',
  hint: 'Try again {later}. If this goes on, something requests tokens all the time, for example a process that restarts again and again.',
};
const OUT_OF_ORDER: TokenFailure = {
  message: 'The token endpoint is out of order ({said}).',
  hint: "There is nothing to correct in this application. Try again later. If this goes on, check {address} and tell the service's operator.",
};
const CREDENTIALS: TokenFailure = {
  message: 'The token endpoint refuses the credentials ({said}).',
  hint: 'Check {oauth.clientId} and {oauth.clientSecret}: both must belong to the application of this environment (developer portal, Integration tab), with OAuth enabled. If somebody has generated a new secret, the previous one is invalid. In .env, a value with # needs quotes, and with expandVariables of ConfigModule a $ needs a backslash before it; docker run --env-file keeps quotes as a part of the value.',
  options: ['oauth.clientSecret', 'oauth.clientId'],
};
const NO_CUSTOMER: TokenFailure = {
  message: 'The token endpoint refuses a token of this customer ({said}).',
  hint: 'The endpoint does not know this customer in this environment. Most often it is a customer of the sandbox used in production, or the reverse. Create the customer with the credentials of this environment, and check {environment}.',
};
const OTHER: TokenFailure = {
  message: 'The token endpoint refuses a token ({said}).',
  hint: 'Check {address}, which is written without /oauth2/token, and that OAuth is enabled for the application of {oauth.clientId}.',
};

/** Accepts only the characters of RFC 6749's own error codes. Anything else may be an echo of the request. */
function readErrorCode(value: unknown, secrets: readonly Secret[], scope: string): string | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9_.-]{1,64}$/.test(value)) return undefined;
  return cleanEndpointText(value, secrets, scope) === value ? value : undefined;
}

export const SECRET_UNAVAILABLE = 'client_secret_unavailable';

/** Whether another token request may succeed later. */
export function isRetryableTokenError(error: unknown): boolean {
  return error instanceof ServiceError && error.retryable && error.code !== 'connection_closed';
}

/** Makes the error for a token that had expired when it arrived. */
export function expiredOnArrival(scope: string): ServiceTokenError {
  return new ServiceTokenError({
    code: 'token_unavailable',
    message: 'The token had expired when it arrived.',
    hint: 'The process or its machine was suspended, its clock was changed, or the token endpoint takes longer to respond than its tokens live.',
    scope,
  });
}

/** Makes the error for an endpoint that did not respond within the time of a request. */
export function noResponseInTime(timeoutMs: number): ServiceConnectionError {
  const message = `The token endpoint did not respond within ${Math.round(timeoutMs)} ms.`;
  return new ServiceConnectionError({ kind: 'timeout', message });
}

/** Makes the error for a caller whose time limit is over. */
export function noTokenInTime(timeoutMs: number, describeOption: DescribeOption): ServiceConnectionError {
  return new ServiceConnectionError({
    kind: 'timeout',
    message: `There was no token within ${Math.max(0, Math.round(timeoutMs))} ms.`,
    hint: `This time limit is ${describeOption('http.timeout')}, or the timeout of the call. To test the token endpoint, run npx nestjs-service doctor. If ${describeOption('oauth.clientSecret')} is a function, it may be what takes so long.`,
    options: ['http.timeout', 'oauth.clientSecret'],
  });
}

/** Makes the error while the circuit breaker is open: the last error, with the time until the endpoint is asked again. */
export function stillFailing(error: ServiceError, scope: string, leftMs: number): ServiceError {
  const retryAfter = Math.ceil(leftMs / 1000);
  const message = `${error.message} The endpoint is not asked again for ${retryAfter} s.`;
  if (error instanceof ServiceConnectionError) return new ServiceConnectionError({ ...error, message });
  return error instanceof ServiceTokenError
    ? new ServiceTokenError({ ...error, message, scope, retryAfter })
    : error;
}
