import { oddityOf, type Secret } from '../../config/secret.js';
import {
  cleanText,
  type ConnectionErrorKind,
  explain,
  type Remedy,
  ServiceConnectionError,
  ServiceTokenError,
  type TokenErrorCode,
} from '../../errors/index.js';
import { isProxyRefusal } from '../../exchange/classify.js';
import { type ExplainedFault, explainFault, type FaultPlace } from '../../exchange/explain-fault.js';
import { isJsonObject } from '../../exchange/decode.js';

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

export interface RefusedAnswer {
  status: number;
  /** The parsed body; undefined if it was not JSON. */
  json: unknown;
  /** The body was a page (HTML). */
  isPage?: boolean;
  scope: string;
  /** Whether it is the answer of a proxy before the endpoint that refuses our client certificate. */
  proxy?: 'refused' | 'perhaps';
  /** Seconds, from the Retry-After. */
  retryAfter?: number;
  /** The secret that was sent, then others. None may be in the error, even if the endpoint echoes it. */
  secrets: readonly Secret[];
  place: Pick<TokenPlace, 'option' | 'apiOption' | 'describeOption'>;
}

const MAX_TEXT_LENGTH = 200;

/** The error for an answer that grants no token (RFC 6749, 5.2). */
export function tokenRefusal(answer: RefusedAnswer): ServiceTokenError {
  const { status, json, scope, retryAfter } = answer;
  const secrets = answer.secrets.map((secret) => secret.reveal());
  const body = isJsonObject(json) ? json : {};
  const error = readErrorCode(body.error, secrets);
  const { error_description: text } = body;
  const error_description = typeof text === 'string' ? cleanText(text, secrets, MAX_TEXT_LENGTH) : undefined;
  const said = [`HTTP ${status}`, error, error_description].filter(Boolean).join(', ');
  const row = ROWS.find(({ when }) => when(answer, error)) ?? OTHER;
  const oddity = oddityOf(secrets[0] ?? '');
  const odd = oddity && ` The secret that was sent ${oddity}: check whether that belongs to it.`;
  const later = retryAfter === undefined ? 'later' : `in ${retryAfter} s`;
  return new ServiceTokenError({
    ...explain(row.message, row, { said, later, odd }, answer.place),
    code: codeOf(answer),
    error,
    error_description,
    status,
    scope,
    retryAfter,
  });
}

function codeOf({ status, isPage }: RefusedAnswer): TokenErrorCode {
  if (isPage && status < 300) return 'invalid_token_response';
  if (status === 429) return 'token_rate_limited';
  return status >= 500 ? 'token_unavailable' : 'token_refused';
}

interface Row extends Remedy {
  when: (answer: RefusedAnswer, error: string | undefined) => boolean;
  message: string;
}

const CREDENTIALS =
  'Check {oauth.clientId} and {oauth.clientSecret}: both of the application of this environment (developer portal, Integration tab). Getting or generating a secret again makes the one before invalid. OAuth has to be enabled for the application.';
/** RFC 6749, 5.2 */
const OAUTH_ERRORS: ReadonlySet<unknown> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
]);
const SWAPPED = 'Check {address} and {api}: are the two addresses swapped?';
const PAGE = {
  message:
    'The token endpoint answered with a page (HTML, {said}), not with JSON: it is not the token endpoint that answers, but for example a proxy, a login page or a website.',
  hint: `Check {address}: it is the address without /oauth2/token. If it is right, a proxy or firewall between answers in its place.`,
};
const OTHER = {
  message: 'The token endpoint refuses a token ({said}).',
  hint: `Check {address}, {oauth.clientId} and {oauth.clientSecret}.`,
};

/** The first that fits counts. */
const ROWS: readonly Row[] = [
  {
    when: ({ proxy }) => proxy === 'refused',
    message:
      'The token endpoint answered with a page (HTML, {said}): a proxy before it asks for the client certificate.',
    hint: `${SWAPPED} If they are right, set {oauth.mtls} to true. {address} is without /oauth2/token.`,
  },
  {
    when: ({ proxy }) => proxy === 'perhaps',
    message: PAGE.message,
    hint: `${SWAPPED} ${PAGE.hint} A firewall may refuse the request: ask who runs it. A proxy that asks for the client certificate gets it with {oauth.mtls}, and may reject it: check {tls.certificate}. If it is not that: ${CREDENTIALS}`,
  },
  {
    when: ({ isPage, status }) => isPage === true && (status === 400 || status > 494),
    ...PAGE,
    hint: `${SWAPPED} ${PAGE.hint} One that asks for the client certificate gets it with {oauth.mtls}.`,
  },
  { when: ({ isPage }) => isPage === true, ...PAGE },
  {
    when: ({ status }) => status === 429,
    message: 'The token endpoint was asked too often ({said}).',
    hint: 'Try again {later}. If it stays so, something asks for tokens all the time, for example a process that restarts.',
  },
  {
    when: ({ status }) => status >= 500,
    message: 'The token endpoint is out of order ({said}).',
    hint: `Nothing here to correct. Try again later; if it stays so, check {address} and tell the service's operator.`,
  },
  {
    when: (_, error) => error === 'unauthorized_client' || error === 'invalid_scope',
    message: 'The token endpoint knows the credentials, and refuses this token ({said}).',
    hint: 'Have OAuth enabled for the application of {oauth.clientId}: ask your account manager.',
  },
  {
    when: ({ status }, error) => (status === 401 || status === 403) && !OAUTH_ERRORS.has(error),
    message:
      'What answers at the address of the token endpoint refuses ({said}), but not with an error of OAuth.',
    hint: `${SWAPPED} Then check {oauth.clientId} and {oauth.clientSecret}: both of the application of this environment, with OAuth enabled (developer portal, Integration tab). Last of all have a new secret generated, as a new secret makes the one before invalid.`,
  },
  {
    when: ({ status }, error) => isCredentialRefusal({ status, error }),
    message: 'The token endpoint refuses the credentials ({said}).',
    hint: `${CREDENTIALS}{odd}`,
    options: ['oauth.clientSecret', 'oauth.clientId'],
  },
  {
    when: ({ status }) => status === 404 || status === 405,
    message: 'There is no token endpoint at this address ({said}).',
    hint: `Check {address}: it is the address without /oauth2/token, which is appended.`,
  },
];

/** Whether another secret may help. */
export function isCredentialRefusal({ status, error }: Pick<ServiceTokenError, 'status' | 'error'>): boolean {
  return error === 'invalid_client' || status === 401 || status === 403;
}

/** Allows the characters of RFC 6749's own codes; anything else may be an echo. */
function readErrorCode(value: unknown, secrets: readonly string[]): string | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9_.-]{1,64}$/.test(value)) return undefined;
  return cleanText(value, secrets, MAX_TEXT_LENGTH) === value ? value : undefined;
}

/** Another attempt would fail in the same way. */
const LASTING: ReadonlySet<ConnectionErrorKind> = new Set(['tls', 'redirect', 'too_large', 'closed']);
export const NO_SECRET = 'client_secret_unavailable';
const TRANSIENT: readonly TokenErrorCode[] = ['token_unavailable', 'token_rate_limited', NO_SECRET];

/** Whether another attempt may bring a token. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ServiceConnectionError) return !LASTING.has(error.kind) && !isProxyRefusal(error);
  return error instanceof ServiceTokenError && TRANSIENT.includes(error.code);
}

/** The error if there is no answer within the time of a request. */
export function unanswered(timeoutMs: number): ServiceConnectionError {
  const message = `There was no answer of the token endpoint within ${Math.round(timeoutMs)} ms.`;
  return new ServiceConnectionError({ kind: 'timeout', message });
}

export function tooMany(scope: string): ServiceTokenError {
  const message = 'Too many token requests are under way; this one was not begun.';
  return new ServiceTokenError({ code: 'token_unavailable', message, scope });
}
