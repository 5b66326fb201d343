import { ServiceError } from './service.error.js';

/**
 * - `token_refused`: the endpoint answered with an OAuth error (RFC 6749, 5.2) or another 4xx.
 * - `token_unavailable`: the endpoint answered 5xx.
 * - `token_rate_limited`: the endpoint answered 429, or still holds us back for that.
 * - `invalid_token_response`: its answer breaks RFC 6749, 5.1 or specification 2.2.
 * - `oauth_not_configured`: a token was asked for, but there are no OAuth credentials (specification 5.1.3).
 * - `client_secret_unavailable`: the source of the client secret failed.
 */
export type TokenErrorCode =
  | 'token_refused'
  | 'token_unavailable'
  | 'token_rate_limited'
  | 'invalid_token_response'
  | 'oauth_not_configured'
  | 'client_secret_unavailable';

export interface TokenErrorDetails {
  code: TokenErrorCode;
  message: string;
  /** `error` of RFC 6749, 5.2, for example `invalid_client`. */
  error?: string;
  /** `error_description` of RFC 6749, 5.2; bounded, and without our secret should the endpoint echo it. */
  error_description?: string;
  /** HTTP status of the endpoint's answer. */
  status?: number;
  /** The scope that was asked for. */
  scope?: string;
  /** Seconds until another request makes sense. */
  retryAfter?: number;
}

/** No token could be had. See {@link TokenErrorCode} for the codes. */
export class ServiceTokenError extends ServiceError {
  readonly code: TokenErrorCode;
  readonly error?: string;
  readonly error_description?: string;
  readonly status?: number;
  readonly scope?: string;
  readonly retryAfter?: number;

  constructor(details: TokenErrorDetails) {
    super(details.message);
    this.code = details.code;
    this.error = details.error;
    this.error_description = details.error_description;
    this.status = details.status;
    this.scope = details.scope;
    this.retryAfter = details.retryAfter;
  }
}
