import { type Explanation, ServiceError } from './service.error.js';

/**
 * - `token_refused`: the endpoint answered with an OAuth error (RFC 6749, 5.2) or another 4xx.
 * - `token_unavailable`: the endpoint answered 5xx.
 * - `token_rate_limited`: the endpoint answered 429, and its Retry-After has not passed yet.
 * - `invalid_token_response`: the answer does not follow RFC 6749, 5.1 or docs/service.md#tokens.
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

/** What a {@link ServiceTokenError} is made of. */
export interface TokenErrorDetails
  extends
    Explanation,
    Pick<ServiceTokenError, 'code'>,
    Partial<Omit<ServiceTokenError, keyof ServiceError>> {}

/** No token could be obtained. Codes: {@link TokenErrorCode}. */
export class ServiceTokenError extends ServiceError {
  readonly code: TokenErrorCode;
  /** `error` of RFC 6749, 5.2, for example `invalid_client`. */
  readonly error?: string;
  /** `error_description` of RFC 6749, 5.2. Shortened, and not shown if the endpoint repeats our secret. */
  readonly error_description?: string;
  /** The HTTP status of the answer. */
  readonly status?: number;
  /** The requested scope. */
  readonly scope?: string;
  /** Seconds to wait before another request. */
  readonly retryAfter?: number;

  constructor(details: TokenErrorDetails) {
    super(details.message, details);
    this.code = details.code;
    this.error = details.error;
    this.error_description = details.error_description;
    this.status = details.status;
    this.scope = details.scope;
    this.retryAfter = details.retryAfter;
  }
}
