import { type TokenErrorCode } from './error-codes.js';
import { type Explanation, ServiceError } from './service.error.js';

/** The fields of a {@link ServiceTokenError}. */
export interface TokenErrorDetails
  extends
    Explanation,
    Pick<ServiceTokenError, 'code'>,
    Partial<Omit<ServiceTokenError, keyof ServiceError>> {}

/** A later token request may succeed. */
const TRANSIENT: ReadonlySet<TokenErrorCode> = new Set([
  'token_unavailable',
  'token_rate_limited',
  'client_secret_unavailable',
]);

/** `customer.<id>`, plain or form-encoded. */
const CUSTOMER_SCOPE = /\bcustomer\.[\w.~:@+=%-]+/gi;

/** Replaces the customer id in a scope or a text by `{}`, because the id is personal data. */
export function hideCustomerId(text: string): string {
  return text.replace(CUSTOMER_SCOPE, 'customer.{}');
}

/** No token could be obtained. Codes: {@link TokenErrorCode}. */
export class ServiceTokenError extends ServiceError {
  readonly code: TokenErrorCode;
  /** `error` of RFC 6749, 5.2, for example `invalid_client`. */
  readonly error?: string;
  /** `error_description` of RFC 6749, 5.2, shortened. Replaced by a note if the endpoint repeats the client secret in it. */
  readonly error_description?: string;
  /** The HTTP status of the response. */
  readonly status?: number;
  /** The requested scope. The scope of a customer is shown as `customer.{}`. */
  readonly scope?: string;
  /** Seconds to wait before the next token request. */
  readonly retryAfter?: number;

  constructor(details: TokenErrorDetails) {
    super(details.message, { ...details, retryable: TRANSIENT.has(details.code) });
    this.code = details.code;
    this.error = details.error;
    this.error_description = details.error_description;
    this.status = details.status;
    this.scope = details.scope && hideCustomerId(details.scope);
    this.retryAfter = details.retryAfter;
  }
}
