import { type DescribeOption } from '../../config/resolved-options.js';
import { type Secret } from '../../config/secret.js';
import { cleanText, ServiceConnectionError, ServiceTokenError } from '../../errors/index.js';
import { CONNECT_TIMEOUT, type ExchangeFaultDetails } from '../../exchange/exchange.types.js';
import { isJsonObject } from '../../exchange/decode.js';
import { explainServerCertificate, HANDSHAKE_FAILURE, isUntrusted } from '../../exchange/tls-explanation.js';

type Fault = Pick<ExchangeFaultDetails, 'kind' | 'reason' | 'certificateRefused'>;

/** The error where the token endpoint gave no whole answer: names its host and what to check. */
export function tokenConnectionError(
  url: URL,
  fault: Fault,
  describeOption: DescribeOption,
): ServiceConnectionError {
  const { kind, reason } = fault;
  const why = reason ? `${kind}, ${reason}` : kind;
  const hint = connectionHint(fault, url, describeOption);
  return new ServiceConnectionError({
    kind,
    message: `No token: the token endpoint at ${url.host} gave no usable answer (${why})${hint ? `; ${hint}` : ''}`,
    method: 'POST',
    path: url.pathname,
    reason,
  });
}

function connectionHint(
  { kind, reason = '', certificateRefused }: Fault,
  { protocol }: URL,
  describeOption: DescribeOption,
): string | undefined {
  if (reason.startsWith('ERR_PROXY_')) return `check ${describeOption('http.proxy')}`;
  const setMtls = `set ${describeOption('oauth.mtls')}`;
  if (protocol === 'http:' && (kind === 'reset' || kind === 'protocol'))
    return `the address begins with http:, and a server that speaks TLS ends such a connection: check ${addresses(describeOption)}`;
  if (certificateRefused) return `where it asks for the client certificate, ${setMtls}`;
  if (reason === HANDSHAKE_FAILURE)
    return `it may ask for a client certificate, of a kind it takes: ${setMtls}, and check ${describeOption('tls.certificate')}`;
  const cause = explainServerCertificate(reason);
  if (cause) return cause;
  if (isUntrusted(reason))
    return `it is verified against Node's public roots and ${describeOption('tls.chain')}, the service's public chain from the developer portal`;
  if (kind === 'redirect') return `redirects are not followed, check ${addresses(describeOption)}`;
  const isUnreachable = kind === 'dns' || kind === 'refused' || reason === CONNECT_TIMEOUT;
  return isUnreachable ? `check ${addresses(describeOption)}` : undefined;
}

function addresses(describeOption: DescribeOption): string {
  return `${describeOption('urls.authUrl')} or ${describeOption('urls.sandboxAuthUrl')}`;
}

export interface RefusedAnswer {
  status: number;
  /** The parsed body; undefined where it was no JSON. */
  json: unknown;
  scope: string;
  /** Whether it is the answer of a proxy before the endpoint that refuses our client certificate. */
  proxy?: 'refused' | 'perhaps';
  /** Seconds of its Retry-After. */
  retryAfter?: number;
  /** Must not be in the error, even where the endpoint echoes them. */
  secrets: readonly Secret[];
  describeOption: DescribeOption;
}

const MAX_TEXT_LENGTH = 200;

/** The error for an answer that grants no token (RFC 6749, 5.2). */
export function tokenRefusal(answer: RefusedAnswer): ServiceTokenError {
  const { status, json, scope, retryAfter } = answer;
  const secrets = answer.secrets.map((secret) => secret.reveal());
  const body = isJsonObject(json) ? json : {};
  const error = readErrorCode(body.error, secrets);
  const description = body.error_description;
  const said = `HTTP ${status}${error ? `, ${error}` : ''}`;
  return new ServiceTokenError({
    ...codeAndMessage(answer, said, error),
    error,
    error_description:
      typeof description === 'string' ? cleanText(description, secrets, MAX_TEXT_LENGTH) : undefined,
    status,
    scope,
    retryAfter,
  });
}

function codeAndMessage(
  answer: RefusedAnswer,
  said: string,
  error: string | undefined,
): Pick<ServiceTokenError, 'code' | 'message'> {
  if (answer.status === 429) {
    return { code: 'token_rate_limited', message: `The token endpoint is asked too often (${said})` };
  }
  if (answer.status >= 500) {
    return { code: 'token_unavailable', message: `The token endpoint is not available (${said})` };
  }
  const hint = refusalHint(answer, error);
  const message = `The token endpoint refused a token for this scope (${said})${hint ? `. ${hint}` : ''}`;
  return { code: 'token_refused', message };
}

function refusalHint({ status, proxy, describeOption }: RefusedAnswer, error?: string): string | undefined {
  const credentials =
    `Check ${describeOption('oauth.clientId')} and ${describeOption('oauth.clientSecret')}, that both belong to the application ` +
    'of this environment, and that OAuth is enabled for it. A secret can be retrieved from the developer portal once: ' +
    'retrieving or generating another one invalidates the one before.';
  const mtls = describeOption('oauth.mtls');
  if (proxy === 'refused') return `A proxy before it asks for the client certificate: set ${mtls}.`;
  if (proxy === 'perhaps') {
    return (
      'The answer is a page, not of the endpoint itself: a firewall before it may refuse the request (ask who runs it), ' +
      `or a proxy may ask for the client certificate (${mtls}) or reject it (${describeOption('tls.certificate')}). If it is not that: ${credentials}`
    );
  }
  if (isCredentialRefusal({ status, error })) return credentials;
  return status === 404 || status === 405
    ? `Check the address: ${addresses(describeOption)}, which is without /oauth2/token.`
    : undefined;
}

/** Whether another secret may help. */
export function isCredentialRefusal({ status, error }: Pick<ServiceTokenError, 'status' | 'error'>): boolean {
  return error === 'invalid_client' || status === 401 || status === 403;
}

/** The characters of RFC 6749's own codes; anything else may be an echo. */
function readErrorCode(value: unknown, secrets: readonly string[]): string | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9_.-]{1,64}$/.test(value)) return undefined;
  return cleanText(value, secrets, MAX_TEXT_LENGTH) === value ? value : undefined;
}
