/** An error with a `code`, like those of Node. */
export function codedError(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}

/**
 * Why a call has no complete response. Kinds that need an explanation:
 * - `closed`: the client was closed, or the call's cancelToken was cancelled.
 * - `proxy`: the proxy of `http.proxy` cannot be reached, or it refused the connection.
 * - `network`: any network fault that is none of the other kinds.
 */
export type ConnectionErrorKind =
  | 'timeout'
  | 'reset'
  | 'refused'
  | 'dns'
  | 'tls'
  | 'redirect'
  | 'too_large'
  | 'protocol'
  | 'proxy'
  | 'closed'
  | 'network';

/**
 * - `token_refused`: the endpoint responded with an OAuth error (RFC 6749, 5.2) or another 4xx.
 * - `token_unavailable`: the endpoint decided nothing, so a later request may succeed: 5xx, 408, 425, an HTML page, or a 401
 *   or 403 without an OAuth error.
 * - `token_rate_limited`: the endpoint responded with 429, and its Retry-After has not passed yet.
 * - `invalid_token_response`: the response does not follow RFC 6749, 5.1 or docs/service.md#tokens.
 * - `oauth_not_configured`: a token was requested, but there are no OAuth credentials (docs/service.md#oauth).
 * - `client_secret_unavailable`: the client secret could not be read.
 */
export type TokenErrorCode =
  | 'token_refused'
  | 'token_unavailable'
  | 'token_rate_limited'
  | 'invalid_token_response'
  | 'oauth_not_configured'
  | 'client_secret_unavailable';

/** Every value of `ServiceError.code`. */
export type ServiceErrorCode =
  | 'invalid_configuration'
  | 'invalid_certificate'
  | 'certificate_refused'
  | 'startup_check_failed'
  | 'invalid_request'
  | 'api_error'
  | 'invalid_response'
  | `connection_${ConnectionErrorKind}`
  | TokenErrorCode;
