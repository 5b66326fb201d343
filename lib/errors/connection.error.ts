import { type ConnectionErrorKind } from './error-codes.js';
import { type Explanation, hideFields, keepHidden, ServiceError } from './service.error.js';

/** What a {@link ServiceConnectionError} is made of. */
export interface ConnectionErrorDetails
  extends
    Explanation,
    Pick<ServiceConnectionError, 'kind'>,
    Partial<Omit<ServiceConnectionError, 'kind' | keyof ServiceError>> {
  /** Default: by its kind, unless the outcome is unknown. */
  retryable?: boolean;
}

export const CLIENT_CLOSED = 'the client is closed, or its application is shutting down';

/** These stay as they are: another attempt would fail in the same way. */
const LASTING: ReadonlySet<ConnectionErrorKind> = new Set(['tls', 'protocol', 'redirect', 'too_large']);
/**
 * A proxy that cannot be reached may recover. With 404 and 5xx, proxies say that they cannot look the name up or connect, which
 * is tried again without a proxy too. Their other 4xx would come back, a wrong password may lock the account, and a certificate
 * stays the same.
 */
const PASSING_PROXY = /_(404|5\d\d|TIMEOUT|ECONN\w+|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_\w+|E\w+UNREACH)$/;

/** Whether a fault may be over later. */
export function mayPass({ kind, reason = '' }: Pick<ServiceConnectionError, 'kind' | 'reason'>): boolean {
  return kind === 'proxy' ? PASSING_PROXY.test(reason) : !LASTING.has(kind);
}

/** There is no complete answer. Code: `connection_` and the kind, for example `connection_timeout`. */
export class ServiceConnectionError extends ServiceError {
  static {
    hideFields(this.prototype, ['path']);
  }

  readonly code: `connection_${ConnectionErrorKind}`;
  readonly kind: ConnectionErrorKind;
  readonly method?: string;
  /** The path without ids: with `pathParams` the template, without them what is known of the API: `/data/v2/accounts/{}/balances`. */
  readonly route?: string;
  /** The path without query, which may hold a customer's id: no log, JSON or printed form of the error shows it. */
  declare readonly path?: string;
  /**
   * A code of the operating system, Node or OpenSSL (`ECONNRESET`, `CERT_HAS_EXPIRED`), `ERR_CONNECT_TIMEOUT` (see
   * `http.connectTimeout`), `ERR_INTERCEPTOR_TIMEOUT` (an interceptor of the application had not settled), or the status of
   * a redirect. A slash in Node's code is an underscore here: from Node 22.20 on, TLS
   * alert 40 is `ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE` or `ERR_SSL_SSL_TLS_ALERT_HANDSHAKE_FAILURE`, depending on where
   * Node noticed it. Before, it is `ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE`.
   */
  readonly reason?: string;
  /**
   * True if the service may have carried out the call (POST, PUT, PATCH or DELETE). Find out what happened before you send
   * it again. False if the service did nothing, and for calls that change nothing (GET, HEAD, OPTIONS, and with `readOnly`).
   */
  readonly outcomeUnknown: boolean;
  /**
   * The key of the call (`http.idempotencyHeader`) if the outcome is unknown: the same call can be sent again with it.
   * For programs: do not show it to callers.
   */
  readonly idempotencyKey?: string;
  /** The correlation id that was sent with the call, if any (`http.requestId`). */
  readonly correlationId?: string;
  /** The origin that a redirect leads to. */
  readonly location?: string;

  constructor(details: ConnectionErrorDetails) {
    super(details.message, {
      ...details,
      retryable: details.retryable ?? (!details.outcomeUnknown && mayPass(details)),
    });
    this.code = `connection_${details.kind}`;
    this.kind = details.kind;
    this.method = details.method;
    this.route = details.route ?? details.path;
    keepHidden(this, { path: () => details.path });
    this.reason = details.reason;
    this.outcomeUnknown = details.outcomeUnknown ?? false;
    this.idempotencyKey = details.idempotencyKey;
    this.correlationId = details.correlationId;
    this.location = details.location;
  }

  /** @internal */
  static closed(): ServiceConnectionError {
    return new ServiceConnectionError({ kind: 'closed', message: `T${CLIENT_CLOSED.slice(1)}.` });
  }
}
