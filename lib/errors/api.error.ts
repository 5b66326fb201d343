import { ServiceError } from './service.error.js';

/** A failing call's body as the service sends it (specification 7.2). */
export interface ApiErrorBody {
  status?: string | number;
  message?: string;
}

export interface ApiErrorDetails {
  /** `api_error` (default): the service answered with a failure. `invalid_response`: a 2xx whose body is not JSON. */
  code?: 'api_error' | 'invalid_response';
  message: string;
  /** HTTP status: the truth, whatever `body.status` says. */
  status: number;
  body?: ApiErrorBody;
  method: string;
  /** Path without query. */
  path: string;
  /** The answer's correlation id, for a talk with the service's support. */
  correlationId?: string;
  /** Seconds, where the answer had a Retry-After. */
  retryAfter?: number;
  /** What to check, where we know better than the answer says. */
  hint?: string;
  /** The service refused our credentials or client certificate. Default false. */
  credentialFault?: boolean;
}

/** The service answered, and the answer is a failure or not understandable (specification 7). */
export class ServiceApiError extends ServiceError {
  readonly code: 'api_error' | 'invalid_response';
  readonly status: number;
  readonly body?: ApiErrorBody;
  readonly method: string;
  readonly path: string;
  readonly correlationId?: string;
  readonly retryAfter?: number;
  /** For whoever runs the application, not for its callers. */
  readonly hint?: string;
  /**
   * True for 401, 403 and a proxy's page about the client certificate, which may be a 400: nothing that the host's own
   * caller can correct.
   */
  readonly credentialFault: boolean;

  constructor(details: ApiErrorDetails) {
    super(details.message);
    this.code = details.code ?? 'api_error';
    this.status = details.status;
    this.body = details.body;
    this.method = details.method;
    this.path = details.path;
    this.correlationId = details.correlationId;
    this.retryAfter = details.retryAfter;
    this.hint = details.hint;
    this.credentialFault = details.credentialFault ?? false;
  }
}
