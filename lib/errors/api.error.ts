import { recognizeCopies, type Explanation, ServiceError } from './service.error.js';

/** The body of an error answer, as the service sends it (docs/service.md#errors). */
export interface ApiErrorBody {
  status?: string | number;
  message?: string;
}

/** What a {@link ServiceApiError} is made of. Default `code`: `api_error`. */
export interface ApiErrorDetails
  extends
    Explanation,
    Pick<ServiceApiError, 'status' | 'method' | 'path'>,
    Partial<
      Pick<
        ServiceApiError,
        | 'code'
        | 'body'
        | 'correlationId'
        | 'retryAfter'
        | 'credentialFault'
        | 'outcomeUnknown'
        | 'idempotencyKey'
      >
    > {}

/** The service answered with an error status, or with a body that cannot be used (docs/service.md#errors). */
export class ServiceApiError extends ServiceError {
  static {
    recognizeCopies(this, 'ServiceApiError');
  }

  /** `api_error`: an error status. `invalid_response`: a body that is not JSON, or that `parse` refused. */
  readonly code: 'api_error' | 'invalid_response';
  /** The HTTP status, which may differ from `body.status`. */
  readonly status: number;
  readonly body?: ApiErrorBody;
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  /** The answer's correlation id, for questions to the service's support; else the one that was sent. */
  readonly correlationId?: string;
  /** Seconds, from the Retry-After of the answer. */
  readonly retryAfter?: number;
  /**
   * True where the service refused our credentials or client certificate: 401, 403, and a proxy's page about the client
   * certificate (400). A caller of the host cannot correct that.
   */
  readonly credentialFault: boolean;
  /**
   * True where a POST, PUT, PATCH or DELETE may have been carried out all the same: a status of 500 or more, a body that
   * cannot be used, or an earlier attempt without an answer.
   */
  readonly outcomeUnknown: boolean;
  /**
   * The key of the call (`http.idempotencyHeader`), where `outcomeUnknown` is true. The same call can be sent again with
   * it. For programs: do not show it to callers.
   */
  readonly idempotencyKey?: string;

  constructor(details: ApiErrorDetails) {
    super(details.message, details);
    this.code = details.code ?? 'api_error';
    this.status = details.status;
    this.body = details.body;
    this.method = details.method;
    this.path = details.path;
    this.correlationId = details.correlationId;
    this.retryAfter = details.retryAfter;
    this.credentialFault = details.credentialFault ?? false;
    this.outcomeUnknown = details.outcomeUnknown ?? false;
    this.idempotencyKey = details.idempotencyKey;
  }
}
