import { ServiceError } from './service.error.js';

/**
 * Why there is no answer. `closed`: this module was shut down. `proxy`: the proxy of `http.proxy` cannot be reached, or
 * refuses. `network`: none of the others.
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

export interface ConnectionErrorDetails {
  kind: ConnectionErrorKind;
  message: string;
  method?: string;
  /** Path without query. */
  path?: string;
  /** The operating system's, Node's or OpenSSL's code: `ECONNRESET`, `CERT_HAS_EXPIRED`. */
  reason?: string;
  /** True for a call that is not idempotent (POST, PATCH) and may have been carried out all the same. */
  outcomeUnknown?: boolean;
  /** The origin that a redirect names. */
  location?: string;
}

/** There is no whole answer. Code: `connection_` and the kind, for example `connection_timeout`. */
export class ServiceConnectionError extends ServiceError {
  readonly code: `connection_${ConnectionErrorKind}`;
  readonly kind: ConnectionErrorKind;
  readonly method?: string;
  readonly path?: string;
  readonly reason?: string;
  readonly outcomeUnknown: boolean;
  readonly location?: string;

  constructor(details: ConnectionErrorDetails) {
    super(details.message);
    this.code = `connection_${details.kind}`;
    this.kind = details.kind;
    this.method = details.method;
    this.path = details.path;
    this.reason = details.reason;
    this.outcomeUnknown = details.outcomeUnknown ?? false;
    this.location = details.location;
  }
}
