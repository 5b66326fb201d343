import { type TokenErrorCode } from './error-codes.js';
import { type Explanation, ServiceError } from './service.error.js';

/** What a {@link ServiceTokenError} is made of. */
export interface TokenErrorDetails
  extends
    Explanation,
    Pick<ServiceTokenError, 'code'>,
    Partial<Omit<ServiceTokenError, keyof ServiceError>> {}

const PASSING: ReadonlySet<TokenErrorCode> = new Set([
  'token_unavailable',
  'token_rate_limited',
  'client_secret_unavailable',
]);

/** `customer.<id>`, also as a form encodes it. */
const CUSTOMER_SCOPE = /\bcustomer\.[\w.~:@+=%-]+/gi;

/** Hides the customer's id in a scope or in a text: it is personal data. */
export function hideCustomer(text: string): string {
  return text.replace(CUSTOMER_SCOPE, 'customer.{}');
}

/** No token could be obtained. Codes: {@link TokenErrorCode}. */
export class ServiceTokenError extends ServiceError {
  readonly code: TokenErrorCode;
  /** `error` of RFC 6749, 5.2, for example `invalid_client`. */
  readonly error?: string;
  /** `error_description` of RFC 6749, 5.2. Shortened, and not shown if the endpoint repeats our secret. */
  readonly error_description?: string;
  /** The HTTP status of the answer. */
  readonly status?: number;
  /** The requested scope; that of a customer is `customer.{}`. */
  readonly scope?: string;
  /** Seconds to wait before another request. */
  readonly retryAfter?: number;

  constructor(details: TokenErrorDetails) {
    super(details.message, { ...details, retryable: PASSING.has(details.code) });
    this.code = details.code;
    this.error = details.error;
    this.error_description = details.error_description;
    this.status = details.status;
    this.scope = details.scope && hideCustomer(details.scope);
    this.retryAfter = details.retryAfter;
  }
}
