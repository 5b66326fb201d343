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
  ASK_EARLIER,
  ASKS_TOO_LATE,
  CHECK_SIDECAR_CERTIFICATE,
  SIDECAR_FAILED,
} from '../../exchange/certificate-refusal.js';
import { type ExplainedFault, explainFault, type FaultPlace } from '../../exchange/explain-fault.js';
import { isJsonObject } from '../../exchange/decode.js';
import { API_SCOPE } from '../scope.js';

/** The token endpoint. */
export interface TokenPlace extends Omit<FaultPlace, 'server'> {
  /** {auth_url}/oauth2/token */
  url: URL;
  /** The option with the API's address: the two may be swapped. */
  apiOption: string;
}

/** The error if the token endpoint gave no whole answer: names its host and what to check. */
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

/** Where a redirect leads. Its query may hold a session. */
export function tokenRedirect(
  place: TokenPlace,
  status: number,
  location: string | undefined,
  secrets: readonly Secret[],
): ServiceConnectionError {
  const { href } = place.url;
  const to = location !== undefined && URL.canParse(location, href) ? new URL(location, href) : undefined;
  const shown = to && ` to ${toShown(to.origin + to.pathname, secrets)}`;
  return tokenConnectionError(place, { kind: 'redirect', reason: `HTTP_${status}`, detail: shown });
}

/** A text of the endpoint for an error: no part of a secret, and no customer's id. */
export function toShown(text: string, secrets: readonly Secret[], scope = ''): string {
  const hidden = hideCustomerId(text);
  const [, id] = /^customer\.(.*)/.exec(scope) ?? [];
  const forms = id === undefined ? [] : [id, encodeURIComponent(id)];
  const shown = forms.reduce((rest, form) => rest.replaceAll(wordOf(form), '{}'), hidden);
  return cleanText(
    shown,
    secrets.map((secret) => secret.reveal()),
    MAX_TEXT_LENGTH,
  );
}

/** An id may be a short number, which is also a part of other words. */
function wordOf(text: string): RegExp {
  return new RegExp(`(?<![a-z\\d])${text.replace(/[.+]/g, '\\$&')}(?![a-z\\d])`, 'gi');
}

interface RefusedAnswer {
  status: number;
  /** The parsed body; undefined if it was not JSON. */
  json: unknown;
  /** The body was a page (HTML). */
  isPage?: boolean;
  /** The page is Apache's, which asks for the client certificate after the request. */
  asksTooLate?: boolean;
  /** A sidecar on this machine answered in the place of the endpoint. */
  isOfSidecar?: boolean;
  scope: string;
  /** Seconds, from the Retry-After. */
  retryAfter?: number;
  /** The secret that was sent, then others. None may be in the error, even if the endpoint echoes it. */
  secrets: readonly Secret[];
  place: Pick<TokenPlace, 'option' | 'apiOption' | 'describeOption'>;
}

const MAX_TEXT_LENGTH = 200;

/** The error for an answer that grants no token (RFC 6749, 5.2). */
export function tokenRefusal(answer: RefusedAnswer): ServiceTokenError {
  const { status, json, isPage, scope, retryAfter, secrets } = answer;
  const { error: given, error_description: text } = isJsonObject(json) ? json : {};
  const error = readErrorCode(given, secrets, scope);
  const error_description = typeof text === 'string' ? toShown(text, secrets, scope) : undefined;
  const said = [isPage && 'HTML', `HTTP ${status}`, error, error_description].filter(Boolean).join(', ');
  const later = retryAfter === undefined ? 'later' : `in ${retryAfter} s`;
  const [code, row] = judge(answer, error);
  const words = fillExplanation(row.message, row, { said, later }, answer.place);
  return new ServiceTokenError({ ...words, code, error, error_description, status, scope, retryAfter });
}

type ErrorCodes = ReadonlySet<string | undefined>;
/** RFC 6749, 5.2: verdicts on the client secret. Another one may help. */
const VERDICTS: ErrorCodes = new Set(['invalid_client', 'unauthorized_client']);
/** The second is Glewlwyd's. */
const SCOPE_ERRORS: ErrorCodes = new Set(['invalid_scope', 'scope_invalid']);
const OTHER_ERRORS: ErrorCodes = new Set([
  'invalid_request',
  'invalid_grant',
  'unsupported_grant_type',
  ...SCOPE_ERRORS,
]);
const PASSING: ErrorCodes = new Set(['temporarily_unavailable', 'server_error']);

/** Whether the endpoint refuses the client secret. Pages and the errors of a gateway say nothing of it. */
export function isVerdict(error: unknown): error is ServiceTokenError {
  return error instanceof ServiceTokenError && VERDICTS.has(error.error);
}

function judge(
  { status, isPage, asksTooLate, isOfSidecar, scope }: RefusedAnswer,
  error: string | undefined,
): [TokenErrorCode, Row] {
  if (asksTooLate) return ['token_unavailable', TOO_LATE];
  if (isOfSidecar) return ['token_unavailable', OF_SIDECAR];
  if (VERDICTS.has(error)) return ['token_refused', CREDENTIALS];
  if (status === 429) return ['token_rate_limited', RATE_LIMITED];
  if (isPage && status < 300) return ['invalid_token_response', NOT_OAUTH];
  // Not by OAuth: by what stands before the token endpoint, or at a wrong address.
  const isDenied = (status === 401 || status === 403) && !OTHER_ERRORS.has(error);
  if (isPage || isDenied) return ['token_unavailable', NOT_OAUTH];
  const isTransient = status >= 500 || status === 408 || status === 425 || PASSING.has(error);
  if (isTransient) return ['token_unavailable', OUT_OF_ORDER];
  return ['token_refused', SCOPE_ERRORS.has(error) && scope !== API_SCOPE ? NO_CUSTOMER : OTHER];
}

interface Row extends Remedy {
  message: string;
}

const NOT_OAUTH: Row = {
  message: 'What answers is not the token endpoint, or stands before it ({said}).',
  hint: 'Check {address} and {api}: are they swapped? {address} is without /oauth2/token. If they are right, a proxy, firewall or login page answers: ask who runs it. One that asks for the client certificate gets it with {oauth.mtls}. If it is not that, check {oauth.clientId} and {oauth.clientSecret}.',
};
const TOO_LATE: Row = {
  message: `What stands before the token endpoint ${ASKS_TOO_LATE} ({said}).`,
  hint: ASK_EARLIER,
};
const OF_SIDECAR: Row = {
  message: `No answer of the token endpoint: ${SIDECAR_FAILED} ({said}).`,
  hint: CHECK_SIDECAR_CERTIFICATE,
};
const RATE_LIMITED: Row = {
  message: 'The token endpoint was asked too often ({said}).',
  hint: 'Try again {later}. If it stays so, something asks for tokens all the time, for example a process that restarts.',
};
const OUT_OF_ORDER: Row = {
  message: 'The token endpoint is out of order ({said}).',
  hint: "Nothing here to correct. Try again later; if it stays so, check {address} and tell the service's operator.",
};
const CREDENTIALS: Row = {
  message: 'The token endpoint refuses the credentials ({said}).',
  hint: 'Check {oauth.clientId} and {oauth.clientSecret}: both of the application of this environment (developer portal, Integration tab), with OAuth enabled. Getting or generating a secret again makes the one before invalid. In .env, a value with # needs quotes, and with expandVariables of ConfigModule a $ needs a backslash before it; docker run --env-file keeps quotes as a part of the value.',
  options: ['oauth.clientSecret', 'oauth.clientId'],
};
const NO_CUSTOMER: Row = {
  message: 'The token endpoint refuses a token of this customer ({said}).',
  hint: 'It does not know this customer in this environment: mostly one of the sandbox in production, or the reverse. Create the customer with the credentials of this environment, and check {environment}.',
};
const OTHER: Row = {
  message: 'The token endpoint refuses a token ({said}).',
  hint: 'Check {address}, which is without /oauth2/token, and that OAuth is enabled for the application of {oauth.clientId}.',
};

/** Allows the characters of RFC 6749's own codes; anything else may be an echo. */
function readErrorCode(value: unknown, secrets: readonly Secret[], scope: string): string | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9_.-]{1,64}$/.test(value)) return undefined;
  return toShown(value, secrets, scope) === value ? value : undefined;
}

export const NO_SECRET = 'client_secret_unavailable';

/** Whether another attempt may bring a token. */
export function isTransient(error: unknown): boolean {
  return error instanceof ServiceError && error.retryable && error.code !== 'connection_closed';
}

/** The error if a token ended before it could be used. */
export function expiredOnArrival(scope: string): ServiceTokenError {
  return new ServiceTokenError({
    code: 'token_unavailable',
    message: 'The token had expired when it arrived.',
    hint: 'This process or its machine was suspended meanwhile, or its clock was set, or the token endpoint takes longer to answer than its tokens live.',
    scope,
  });
}

/** The error if there is no answer within the time of a request. */
export function unanswered(timeoutMs: number): ServiceConnectionError {
  const message = `There was no answer of the token endpoint within ${Math.round(timeoutMs)} ms.`;
  return new ServiceConnectionError({ kind: 'timeout', message });
}

/** The error at a caller's deadline. */
export function tooLate(timeoutMs: number, describeOption: DescribeOption): ServiceConnectionError {
  return new ServiceConnectionError({
    kind: 'timeout',
    message: `There was no token within ${Math.max(0, Math.round(timeoutMs))} ms.`,
    hint: `That time is ${describeOption('http.timeout')}, or the call's own. npx nestjs-service doctor asks the token endpoint.`,
    options: ['http.timeout'],
  });
}

/** The error while the endpoint is left alone: that of its last answer, with the time until it is asked again. */
export function notAsked(error: ServiceError, scope: string, leftMs: number): ServiceError {
  const retryAfter = Math.ceil(leftMs / 1000);
  const message = `${error.message} The endpoint is not asked again for ${retryAfter} s.`;
  if (error instanceof ServiceConnectionError) return new ServiceConnectionError({ ...error, message });
  return error instanceof ServiceTokenError
    ? new ServiceTokenError({ ...error, message, scope, retryAfter })
    : error;
}
