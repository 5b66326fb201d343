import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import {
  ServiceApiError,
  ServiceCertificateError,
  ServiceConnectionError,
  ServiceError,
  ServiceRequestError,
  ServiceTokenError,
} from '../errors/index.js';

/** What Express's response and Fastify's reply have in common. */
interface HttpReply {
  headersSent?: boolean;
  sent?: boolean;
  status(code: number): HttpReply;
  header(name: string, value: string): unknown;
  send(body: unknown): unknown;
  end?(): unknown;
  /** Fastify's own response of node:http. */
  raw?: { end(): unknown };
}

interface Answer {
  status: number;
  message: string;
  retryAfter?: number;
}

/** The service's failures that are the caller's own fault and make sense to them. */
const PASSED_ON = new Set([400, 404, 409, 422]);
const DAY_S = 86_400;
const UNAVAILABLE = 'The service cannot be reached at the moment.';

/**
 * Maps the module's errors to answers of the host, on Express and Fastify: the service's 400, 404, 409 and 422 as they
 * are; 401, 403 (our credentials) and 5xx to 502; 429 to 503 with Retry-After; time-outs to 504; other connection,
 * token and certificate errors to 503. Never more than a status, a message and a code. Answers from 500 on are logged.
 */
@Catch(ServiceError)
export class ServiceExceptionFilter implements ExceptionFilter<ServiceError> {
  private readonly logger = new Logger(ServiceExceptionFilter.name);

  catch(error: ServiceError, host: ArgumentsHost): void {
    // Other transports have filters and error forms of their own.
    if (host.getType() !== 'http') throw error;
    const { status, message, retryAfter } = toAnswer(error);
    if (status >= 500) this.logger.error(`${status}: ${describe(error)}`);
    const reply = host.switchToHttp().getResponse<HttpReply>();
    if (reply.headersSent || reply.sent) return void (reply.raw ?? reply).end?.();
    if (retryAfter !== undefined) reply.header('Retry-After', String(Math.min(Math.ceil(retryAfter), DAY_S)));
    reply.status(status).send({ statusCode: status, message, code: error.code });
  }
}

/** What an operator needs: which call it was, and how the service's support finds it. */
function describe(error: ServiceError): string {
  if (error instanceof ServiceConnectionError && error.outcomeUnknown) {
    return `${error.code}: ${error.message}; it may have been carried out`;
  }
  if (!(error instanceof ServiceApiError)) return `${error.code}: ${error.message}`;
  const { code, method, path, status, correlationId, body, hint } = error;
  const extras = [body?.message, correlationId && `correlation id ${correlationId}`, hint].filter(Boolean);
  return [`${code}: ${method} ${path} answered ${status}`, ...extras].join('; ');
}

function toAnswer(error: ServiceError): Answer {
  if (error instanceof ServiceRequestError) return { status: 400, message: error.message };
  if (error instanceof ServiceApiError) return fromApi(error);
  if (error instanceof ServiceConnectionError) return fromConnection(error);
  if (error instanceof ServiceTokenError)
    return { status: 503, message: UNAVAILABLE, retryAfter: error.retryAfter };
  if (error instanceof ServiceCertificateError) return { status: 503, message: UNAVAILABLE };
  return { status: 500, message: 'Internal server error' };
}

function fromApi({ code, status, message, retryAfter }: ServiceApiError): Answer {
  if (code === 'api_error' && PASSED_ON.has(status)) return { status, message };
  if (status === 429) return { status: 503, message: UNAVAILABLE, retryAfter };
  return { status: 502, message: 'The service failed to answer this call.' };
}

function fromConnection({ kind, outcomeUnknown, retryAfter }: ServiceConnectionError): Answer {
  const doubt = outcomeUnknown ? ' The request may have been carried out all the same.' : '';
  return kind === 'timeout'
    ? { status: 504, message: `The service did not answer in time.${doubt}`, retryAfter }
    : { status: 503, message: UNAVAILABLE + doubt, retryAfter };
}
