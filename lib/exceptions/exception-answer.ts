import { HttpException } from '@nestjs/common';
import {
  serviceErrorCode,
  pickFields,
  ServiceApiError,
  ServiceCertificateError,
  ServiceConnectionError,
  ServiceError,
  ServiceRequestError,
  ServiceTokenError,
  type ServiceErrorCode,
} from '../errors/index.js';

/** What a caller of the application may know of an error. */
export interface ExceptionAnswer {
  /** The HTTP status. */
  status: number;
  message: string;
  code: ServiceErrorCode;
  /** With the service's own message, also its name of the case, if it has one: `CUSTOMER_ALREADY_EXISTS`. */
  serviceStatus?: string;
  /** With the service's own message, also the fields of its body that the option `fields` names. */
  fields?: Readonly<Record<string, string | number>>;
  /** Seconds, if the call can be sent again then. */
  retryAfter?: number;
}

/** Of {@link answerOf}, {@link toHttpException} and `ServiceExceptionFilter`. */
export interface ExceptionAnswerOptions {
  /** The status for input that was refused before anything was sent (`invalid_request`). Default: 400. */
  invalidRequestStatus?: number | undefined;
  /**
   * The service's names of cases that callers are to see although the status is 403 or 429: `['CONSENT_EXPIRED']`. These
   * answers are passed on with status and message, unless the outcome is in doubt. Default: none.
   */
  passOn?: readonly string[] | undefined;
  /**
   * The names of fields of the service's body that callers are to get under `fields`, wherever its message is passed on:
   * `['granular_status_code', 'status_detail']`. Only numbers, and texts, which are cut to 200 characters. Default: none.
   */
  fields?: readonly string[] | undefined;
}

/** The service's failures that are the caller's own fault and make sense to them. */
const PASSED_ON = new Set([400, 404, 409, 422]);
const DOUBT = ' The request may have been carried out all the same.';
const FAILED = 'The service failed to answer this call.';
const LATE = 'The service did not answer in time.';
const UNAVAILABLE = 'The service cannot be reached at the moment.';

/**
 * What `ServiceExceptionFilter` answers to an error, for a filter of your own: safe to be shown to callers. Undefined for
 * an error that is not one of this module.
 */
export function answerOf(error: ServiceError, options?: ExceptionAnswerOptions): ExceptionAnswer;
export function answerOf(error: unknown, options?: ExceptionAnswerOptions): ExceptionAnswer | undefined;
export function answerOf(error: unknown, options?: ExceptionAnswerOptions): ExceptionAnswer | undefined {
  if (!(error instanceof ServiceError)) return undefined;
  return { ...toAnswer(error, options), code: error.code };
}

/**
 * The same as an HttpException of Nest, with the body `{ statusCode, message, code, serviceStatus?, fields? }`. Its `cause` is the
 * error, whose hint is not for callers: it is not enumerable, so that what writes the exception does not write it.
 */
export function toHttpException(error: ServiceError, options?: ExceptionAnswerOptions): HttpException;
export function toHttpException(error: unknown, options?: ExceptionAnswerOptions): HttpException | undefined;
export function toHttpException(error: unknown, options?: ExceptionAnswerOptions): HttpException | undefined {
  const answer = answerOf(error, options);
  if (!answer) return undefined;
  const { status, message } = answer;
  const exception = new HttpException(bodyOf(answer), status);
  // A server in development mode may show it to callers. What failed is in the stack of the cause.
  exception.stack = `${exception.name}: ${message}`;
  const hidden = { enumerable: false, configurable: true, writable: true };
  return Object.defineProperty(exception, 'cause', { value: error, ...hidden });
}

/** The body of an answer to a caller. */
export function bodyOf({ status, message, code, serviceStatus, fields }: ExceptionAnswer) {
  const named = serviceStatus === undefined ? {} : { serviceStatus };
  return { statusCode: status, message, code, ...named, ...(fields && { fields }) };
}

type Mapped = Omit<ExceptionAnswer, 'code'>;

function toAnswer(error: ServiceError, options: ExceptionAnswerOptions = {}): Mapped {
  const { invalidRequestStatus = 400 } = options;
  if (error instanceof ServiceRequestError && error.hint === undefined) {
    const message = error.faults.map((fault) => `${fault.property} ${fault.message}`).join('; ');
    return { status: invalidRequestStatus, message };
  }
  if (error instanceof ServiceApiError || error instanceof ServiceConnectionError)
    return fromCall(error, options);
  if (error instanceof ServiceTokenError)
    return { status: 503, message: UNAVAILABLE, retryAfter: error.retryAfter };
  if (error instanceof ServiceCertificateError) return { status: 503, message: UNAVAILABLE };
  return { status: 500, message: 'Internal server error' };
}

function fromCall(error: ServiceApiError | ServiceConnectionError, options: ExceptionAnswerOptions): Mapped {
  const doubt = error.outcomeUnknown ? DOUBT : '';
  if (error.code === 'connection_timeout') return { status: 504, message: LATE + doubt };
  // Before all that would have the caller send it again: a 409 or 429 answers the last attempt, not one that was lost.
  if (doubt) return { status: 502, message: FAILED + doubt };
  return error instanceof ServiceApiError ? fromApi(error, options) : { status: 503, message: UNAVAILABLE };
}

function fromApi(
  error: ServiceApiError,
  { passOn = [], fields: names = [] }: ExceptionAnswerOptions,
): Mapped {
  const { code, status, body, credentialFault, hint, retryAfter } = error;
  const name = serviceErrorCode(body);
  // A path that is nowhere, or a page: the address is wrong, and no caller can correct that.
  const isOurs = credentialFault || (status === 404 && hint !== undefined);
  const isNamed = (status === 403 || status === 429) && name !== undefined && passOn.includes(name);
  if (code === 'api_error' && (isNamed || (PASSED_ON.has(status) && !isOurs))) {
    // Not the error's own message, which may say what to check.
    const message = body?.message || `The service answered ${status}.`;
    const fields = pickFields(error, names);
    return { status, message, serviceStatus: name, fields, ...(status === 429 && { retryAfter }) };
  }
  if (status === 429) return { status: 503, message: 'The service is busy at the moment.', retryAfter };
  return { status: 502, message: FAILED };
}
