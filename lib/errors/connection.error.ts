import { ServiceError } from './service.error.js';

/**
 * Why there is no answer. `closed`: this module was shut down, or the call's cancelToken was cancelled. `proxy`: the
 * proxy of `http.proxy` cannot be reached, or refuses. `network`: none of the others.
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

/** What they mean is said at the members of {@link ServiceConnectionError}. */
export interface ConnectionErrorDetails {
  kind: ConnectionErrorKind;
  message: string;
  method?: string;
  path?: string;
  reason?: string;
  /** Default false. */
  outcomeUnknown?: boolean;
  location?: string;
}

/** There is no whole answer. Code: `connection_` and the kind, for example `connection_timeout`. */
export class ServiceConnectionError extends ServiceError {
  readonly code: `connection_${ConnectionErrorKind}`;
  /** Why there is no answer. */
  readonly kind: ConnectionErrorKind;
  readonly method?: string;
  /** Path without query. */
  readonly path?: string;
  /** The operating system's, Node's or OpenSSL's code (`ECONNRESET`, `CERT_HAS_EXPIRED`), or a redirect's status. */
  readonly reason?: string;
  /**
   * True for a call that may have been carried out all the same, of any method but GET, HEAD and OPTIONS: POST, PUT,
   * PATCH, DELETE. Find out what happened before you send it again. False: nothing was done, or it changes nothing.
   */
  readonly outcomeUnknown: boolean;
  /** The origin that a redirect names. */
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
