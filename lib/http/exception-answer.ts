import {
  ServiceApiError,
  ServiceCertificateError,
  ServiceConnectionError,
  ServiceRequestError,
  ServiceTokenError,
  type ServiceError,
} from '../errors/index.js';

/** What a host's own caller gets to know of an error. */
export interface HostAnswer {
  /** Of HTTP. */
  status: number;
  message: string;
  /** Seconds. */
  retryAfter?: number;
}

/** The service's failures that are the caller's own fault and make sense to them. */
const PASSED_ON = new Set([400, 404, 409, 422]);
const DOUBT = ' The request may have been carried out all the same.';
const FAILED = 'The service failed to answer this call.';
const LATE = 'The service did not answer in time.';
const UNAVAILABLE = 'The service cannot be reached at the moment.';

/** The mapping that ServiceExceptionFilter documents. */
export function toAnswer(error: ServiceError): HostAnswer {
  if (error instanceof ServiceRequestError) {
    return {
      status: 400,
      message: error.faults.map((fault) => `${fault.property} ${fault.message}`).join('; '),
    };
  }
  if (error instanceof ServiceApiError || error instanceof ServiceConnectionError) return fromCall(error);
  if (error instanceof ServiceTokenError)
    return { status: 503, message: UNAVAILABLE, retryAfter: error.retryAfter };
  if (error instanceof ServiceCertificateError) return { status: 503, message: UNAVAILABLE };
  return { status: 500, message: 'Internal server error' };
}

function fromCall(error: ServiceApiError | ServiceConnectionError): HostAnswer {
  const doubt = error.outcomeUnknown ? DOUBT : '';
  if (error.code === 'connection_timeout') return { status: 504, message: LATE + doubt };
  // Before all that would have the caller send it again: a 409 or 429 answers the last attempt, not one that was lost.
  if (doubt) return { status: 502, message: FAILED + doubt };
  return error instanceof ServiceApiError ? fromApi(error) : { status: 503, message: UNAVAILABLE };
}

function fromApi({ code, status, body, credentialFault, hint, retryAfter }: ServiceApiError): HostAnswer {
  // A path that is nowhere, or a page: the address is wrong, and no caller can correct that.
  const isOurs = credentialFault || (status === 404 && hint !== undefined);
  if (code === 'api_error' && PASSED_ON.has(status) && !isOurs) {
    // Not the error's own message, which may say what to check.
    return { status, message: body?.message || `The service answered ${status}.` };
  }
  if (status === 429) return { status: 503, message: 'The service is busy at the moment.', retryAfter };
  return { status: 502, message: FAILED };
}
