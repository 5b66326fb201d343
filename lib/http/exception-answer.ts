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
const DOUBT = ' The request may have been carried out all the same.';
const UNAVAILABLE = 'The service cannot be reached at the moment.';

/** The mapping that ServiceExceptionFilter documents. */
export function toAnswer(error: ServiceError): Answer {
  if (error instanceof ServiceRequestError) {
    return {
      status: 400,
      message: error.faults.map((fault) => `${fault.property} ${fault.message}`).join('; '),
    };
  }
  if (error instanceof ServiceApiError) return fromApi(error);
  if (error instanceof ServiceConnectionError) return fromConnection(error);
  if (error instanceof ServiceTokenError)
    return { status: 503, message: UNAVAILABLE, retryAfter: error.retryAfter };
  if (error instanceof ServiceCertificateError) return { status: 503, message: UNAVAILABLE };
  return { status: 500, message: 'Internal server error' };
}

function fromApi(error: ServiceApiError): Answer {
  const { code, status, body, credentialFault, hint, retryAfter, outcomeUnknown } = error;
  // A path that is nowhere, or a page: the address is wrong, and no caller can correct that.
  const isOurs = credentialFault || (status === 404 && hint !== undefined);
  if (code === 'api_error' && PASSED_ON.has(status) && !isOurs) {
    // Not the error's own message, which may say what to check.
    return { status, message: body?.message || `The service answered ${status}.` };
  }
  if (status === 429) return { status: 503, message: 'The service is busy at the moment.', retryAfter };
  return { status: 502, message: `The service failed to answer this call.${outcomeUnknown ? DOUBT : ''}` };
}

function fromConnection({ kind, outcomeUnknown }: ServiceConnectionError): Answer {
  const doubt = outcomeUnknown ? DOUBT : '';
  return kind === 'timeout'
    ? { status: 504, message: `The service did not answer in time.${doubt}` }
    : { status: 503, message: UNAVAILABLE + doubt };
}
