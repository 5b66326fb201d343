import {
  ACCESS_DENIED,
  type Remedy,
  ServiceError,
  type ConnectionErrorKind,
  type ErrorDetails,
  type Explanation,
  hideFields,
  keepHidden,
  type TokenErrorCode,
} from './service.error.js';

const CORRECT_THE_CODE = "Correct the application's code: its users cannot.";

/** One fault in the input of a call. */
export interface RequestFault {
  property: string;
  /** What is wrong. Never quotes the value. */
  message: string;
}

/**
 * The input of a call is not valid, so nothing was sent. Code: `invalid_request`. If the error has a `hint`, the mistake is
 * in the application's own code, for example in an option of the call, and not in what its users sent.
 */
export class ServiceRequestError extends ServiceError {
  /** @internal A bundler may rename the class. */
  static override readonly name: string = 'ServiceRequestError';
  readonly code = 'invalid_request';
  readonly faults: readonly RequestFault[];

  /** @param advice for the developer: ends the message, but is not in `faults`, which the callers of the application get */
  constructor(faults: readonly RequestFault[], remedy?: Remedy, advice?: string) {
    const texts = faults.map(({ property, message }) => `${property} ${message}`);
    super(`Nothing was sent: ${[...texts, advice ?? []].flat().join('; ')}`, remedy);
    this.faults = faults;
  }

  /** @internal Invalid input, which may come from a user of the application. */
  static of(property: string, message: string): ServiceRequestError {
    return new ServiceRequestError([{ property, message }]);
  }

  /** @internal A mistake in the application's own code. */
  static ofMisuse(property: string, message: string, advice?: string): ServiceRequestError {
    const hint = [advice, CORRECT_THE_CODE].filter(Boolean).join(' ');
    return new ServiceRequestError([{ property, message }], { hint });
  }
}

/** The fields of a {@link ServiceConnectionError}. */
export interface ConnectionErrorDetails
  extends
    Explanation,
    // Default of `retryable`: false if the outcome is unknown, otherwise according to the kind.
    ErrorDetails,
    Pick<ServiceConnectionError, 'kind'>,
    Partial<Omit<ServiceConnectionError, 'kind' | keyof ServiceError>> {}

/** Begins with a small letter, because explanations.ts puts it into longer sentences. */
export const CLIENT_CLOSED = 'the client is closed, or its application is shutting down';

/** Another attempt would fail in the same way. */
const PERMANENT: ReadonlySet<ConnectionErrorKind> = new Set(['tls', 'protocol', 'redirect', 'too_large']);
/**
 * Reasons of a `proxy` fault that another attempt may overcome:
 * - The proxy cannot be reached.
 * - The proxy responds with 404 or 5xx: it could not look up the host name or connect. Without a proxy, these faults are retried
 *   too. 501 and 505 come from a server that is no proxy.
 *
 * Any other 4xx would come again, and repeating a wrong password may lock the account.
 */
const TRANSIENT_PROXY_REASON =
  /_(404|5(?!01|05)\d\d|TIMEOUT|ECONN\w+|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_\w+|E\w+UNREACH)$/;

/** Whether another attempt may succeed. */
export function isTransient({ kind, reason = '' }: Pick<ServiceConnectionError, 'kind' | 'reason'>): boolean {
  if (reason === ACCESS_DENIED) return false;
  return kind === 'proxy' ? TRANSIENT_PROXY_REASON.test(reason) : !PERMANENT.has(kind);
}

/** The call has no complete response. Code: `connection_` and the kind, for example `connection_timeout`. */
export class ServiceConnectionError extends ServiceError {
  /** @internal A bundler may rename the class. */
  static override readonly name: string = 'ServiceConnectionError';
  static {
    hideFields(this.prototype, ['path']);
  }

  readonly code: `connection_${ConnectionErrorKind}`;
  readonly kind: ConnectionErrorKind;
  readonly method?: string;
  /**
   * The path without ids: with `pathParams` its template, such as `/data/v2/accounts/{account_id}/balances`. Without them,
   * each segment that may be an id is `{}`: `/data/v2/accounts/{}/balances`.
   */
  readonly route?: string;
  /** The path without its query. It may contain a customer's id, so logs, JSON and printed forms of the error omit it. */
  declare readonly path?: string;
  /**
   * One of:
   * - a code of the operating system, Node or OpenSSL, such as `ECONNRESET` or `CERT_HAS_EXPIRED`,
   * - `ERR_CONNECT_TIMEOUT`: `http.connectTimeout` has passed,
   * - `ERR_INTERCEPTOR_TIMEOUT`: an interceptor of the application did not settle in time,
   * - the status of a redirect.
   *
   * A slash in Node's code is replaced by an underscore. Since Node 22.20, TLS alert 40 is
   * `ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE` or `ERR_SSL_SSL_TLS_ALERT_HANDSHAKE_FAILURE`, depending on where Node noticed
   * it. In older versions it is `ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE`.
   */
  readonly reason?: string;
  /** The correlation id that was sent with the call (`http.requestId`). */
  readonly correlationId?: string;
  /** The origin that a redirect leads to. */
  readonly location?: string;

  constructor(details: ConnectionErrorDetails) {
    super(details.message, {
      ...details,
      retryable: details.retryable ?? (!details.outcomeUnknown && isTransient(details)),
    });
    this.code = `connection_${details.kind}`;
    this.kind = details.kind;
    this.method = details.method;
    this.route = details.route ?? details.path;
    // The function must not hold `details`, because an error may be kept for long.
    const { path } = details;
    keepHidden(this, { path: () => path });
    this.reason = details.reason;
    this.correlationId = details.correlationId;
    this.location = details.location;
  }

  /** @internal */
  static closed(): ServiceConnectionError {
    return new ServiceConnectionError({ kind: 'closed', message: `T${CLIENT_CLOSED.slice(1)}.` });
  }
}

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
  /** @internal A bundler may rename the class. */
  static override readonly name: string = 'ServiceTokenError';
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
