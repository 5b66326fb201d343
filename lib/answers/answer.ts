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

/** What the host application may tell its own callers about an error. */
export interface ExceptionAnswer {
  /** The HTTP status. */
  status: number;
  message: string;
  code: ServiceErrorCode;
  /**
   * The service's error code, for example `CUSTOMER_ALREADY_EXISTS`. Only if `message` is the service's own message, and the
   * service sent a code.
   */
  serviceStatus?: string;
  /** The fields of the service's body that the option `fields` names. Only if `message` is the service's own message. */
  fields?: Readonly<Record<string, string | number>>;
  /** Seconds after which the caller can repeat the request, if it can be repeated. */
  retryAfter?: number;
}

/** Options of {@link answerOf}, {@link toHttpException} and `ServiceExceptionFilter`. */
export interface ExceptionAnswerOptions {
  /** The status for input that was refused before anything was sent (`invalid_request`). Default: 400. */
  invalidRequestStatus?: number | undefined;
  /**
   * The service's error codes that callers are to see although the status is 403 or 429, such as `['CONSENT_EXPIRED']`. These
   * errors are passed on with the service's status and message, unless the outcome is unknown. Default: none.
   */
  passOn?: readonly string[] | undefined;
  /**
   * The names of fields of the service's body that callers are to get under `fields`, such as
   * `['granular_status_code', 'status_detail']`. They are passed on where the service's message is passed on. Only numbers and
   * texts; a text is cut to 200 characters. Default: none.
   */
  fields?: readonly string[] | undefined;
}

/** The service's statuses that say what the caller did wrong, so the caller gets them. */
const PASSED_ON = new Set([400, 404, 409, 422]);
const DOUBT = ' The request may have been executed all the same.';
const FAILED = 'The service failed to answer this call.';
const LATE = 'The service did not answer in time.';
const UNAVAILABLE = 'The service cannot be reached at the moment.';

/**
 * The answer of `ServiceExceptionFilter` to an error, for a filter of your own. It is safe to be shown to callers. Undefined for
 * an error that is not from this module.
 */
export function answerOf(error: ServiceError, options?: ExceptionAnswerOptions): ExceptionAnswer;
export function answerOf(error: unknown, options?: ExceptionAnswerOptions): ExceptionAnswer | undefined;
export function answerOf(error: unknown, options?: ExceptionAnswerOptions): ExceptionAnswer | undefined {
  if (!(error instanceof ServiceError)) return undefined;
  return { ...toAnswer(error, options), code: error.code };
}

/**
 * The same answer as an HttpException of Nest, with the body `{ statusCode, message, code, serviceStatus?, fields? }`. The error is
 * its `cause`. The error's hint is not for callers, so `cause` is not enumerable: a logger or serializer that writes the
 * exception does not write the error.
 */
export function toHttpException(error: ServiceError, options?: ExceptionAnswerOptions): HttpException;
export function toHttpException(error: unknown, options?: ExceptionAnswerOptions): HttpException | undefined;
export function toHttpException(error: unknown, options?: ExceptionAnswerOptions): HttpException | undefined {
  const answer = answerOf(error, options);
  if (!answer) return undefined;
  const { status, message } = answer;
  const exception = new HttpException(toAnswerBody(answer), status);
  // A server in development mode may show the stack to callers. The stack of the cause says where the call failed.
  exception.stack = `${exception.name}: ${message}`;
  const hidden = { enumerable: false, configurable: true, writable: true };
  return Object.defineProperty(exception, 'cause', { value: error, ...hidden });
}

/** The body that the host application answers with. */
export function toAnswerBody({ status, message, code, serviceStatus, fields }: ExceptionAnswer) {
  const named = serviceStatus === undefined ? {} : { serviceStatus };
  return { statusCode: status, message, code, ...named, ...(fields && { fields }) };
}

type AnswerWithoutCode = Omit<ExceptionAnswer, 'code'>;

function toAnswer(error: ServiceError, options: ExceptionAnswerOptions = {}): AnswerWithoutCode {
  const { invalidRequestStatus = 400 } = options;
  const doubt = error.outcomeUnknown ? DOUBT : '';
  if (error.code === 'connection_timeout') return { status: 504, message: LATE + doubt };
  // This comes before every status that invites the caller to try again. For example, a 409 or 429 may be the response to the
  // last attempt, while an earlier attempt was executed.
  if (doubt) return { status: 502, message: FAILED + doubt };
  if (error instanceof ServiceRequestError && error.hint === undefined) {
    const message = error.faults.map((fault) => `${fault.property} ${fault.message}`).join('; ');
    return { status: invalidRequestStatus, message };
  }
  if (error instanceof ServiceApiError) return answerToApiError(error, options);
  if (error instanceof ServiceTokenError)
    return { status: 503, message: UNAVAILABLE, retryAfter: error.retryAfter };
  if (error instanceof ServiceConnectionError || error instanceof ServiceCertificateError)
    return { status: 503, message: UNAVAILABLE };
  return { status: 500, message: 'Internal server error' };
}

function answerToApiError(
  error: ServiceApiError,
  { passOn = [], fields: names = [] }: ExceptionAnswerOptions,
): AnswerWithoutCode {
  const { code, status, body, credentialFault, hint, retryAfter } = error;
  const name = serviceErrorCode(body);
  // A 404 with a hint, or an HTML page, means that the address is wrong. No caller can correct that.
  const isOurFault = credentialFault || (status === 404 && hint !== undefined);
  const isPassedOn = (status === 403 || status === 429) && name !== undefined && passOn.includes(name);
  if (code === 'api_error' && (isPassedOn || (PASSED_ON.has(status) && !isOurFault))) {
    // The service's message, not that of the error, which may say what to check in the configuration.
    const message = body?.message || `The service answered ${status}.`;
    const fields = pickFields(error, names);
    return { status, message, serviceStatus: name, fields, ...(status === 429 && { retryAfter }) };
  }
  if (status === 429) return { status: 503, message: 'The service is busy at the moment.', retryAfter };
  return { status: 502, message: FAILED };
}
