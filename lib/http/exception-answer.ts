import {
  ServiceApiError,
  ServiceCertificateError,
  ServiceConnectionError,
  ServiceRequestError,
  ServiceTokenError,
  type ServiceError,
} from '../errors/index.js';

/** What a host's own caller gets to know of an error. */
export interface Answer {
  /** Of HTTP. */
  status: number;
  message: string;
  /** Seconds. */
  retryAfter?: number;
}

/** The service's failures that are the caller's own fault and make sense to them. */
const PASSED_ON = new Set([400, 404, 409, 422]);
const UNAVAILABLE = 'The service cannot be reached at the moment.';

/** The mapping that ServiceExceptionFilter documents. */
export function toAnswer(error: ServiceError): Answer {
  if (error instanceof ServiceRequestError) return { status: 400, message: error.message };
  if (error instanceof ServiceApiError) return fromApi(error);
  if (error instanceof ServiceConnectionError) return fromConnection(error);
  if (error instanceof ServiceTokenError)
    return { status: 503, message: UNAVAILABLE, retryAfter: error.retryAfter };
  if (error instanceof ServiceCertificateError) return { status: 503, message: UNAVAILABLE };
  return { status: 500, message: 'Internal server error' };
}

function fromApi({ code, status, body, credentialFault, retryAfter }: ServiceApiError): Answer {
  if (code === 'api_error' && PASSED_ON.has(status) && !credentialFault) {
    // Not the error's own message, which may say what to check.
    return { status, message: body?.message || `The service answered ${status}.` };
  }
  if (status === 429) return { status: 503, message: UNAVAILABLE, retryAfter };
  return { status: 502, message: 'The service failed to answer this call.' };
}

function fromConnection({ kind, outcomeUnknown }: ServiceConnectionError): Answer {
  const doubt = outcomeUnknown ? ' The request may have been carried out all the same.' : '';
  return kind === 'timeout'
    ? { status: 504, message: `The service did not answer in time.${doubt}` }
    : { status: 503, message: UNAVAILABLE + doubt };
}
