import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';
import { describeError, type ServiceApiError, ServiceError } from '../errors/index.js';
import { ifText } from '../exchange/call-limits.js';
import { SafeLogger } from '../telemetry/log.js';
import {
  answerOf,
  bodyOf,
  toHttpException,
  type ExceptionAnswer,
  type ExceptionAnswerOptions,
} from './exception-answer.js';

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

/** Express's request, or Fastify's with the one of node:http in `raw`. */
interface HttpRequest {
  httpVersionMajor?: number;
  raw?: { httpVersionMajor?: number };
}

/** A socket of socket.io, or a WebSocket, whose `emit` never leaves the process. */
interface GatewayClient {
  readyState?: number;
  send?(text: string): unknown;
  emit?(event: string, data: unknown): unknown;
}

/** What ArgumentsHost.getType() says of the applications whose callers are outsiders. */
const KINDS = new Set(['http', 'rpc', 'ws', 'graphql']);
const OPEN = 1;
const DAY_S = 86_400;

/**
 * Maps the module's errors to answers of the host: input that was refused before it was sent to 400, or, if the application's
 * own code is at fault, such as an option of the call, to 500; the service's 400, 404, 409 and 422 as they are, with its name
 * of the case as `serviceStatus`, and its 403 and 429 of the cases in `passOn`; other refused credentials and certificates
 * (401, 403, a proxy's page about the certificate) and 5xx to 502; other 429 to 503 with Retry-After; time-outs to 504; other
 * connection, token and certificate errors to 503. If a change may have been carried out (`outcomeUnknown`), 502 or 504 says
 * so, whatever the last answer was. Never more than a status, a message, a code, that name, and the `fields` that you name.
 * Answers from 500 on are logged, with what to check.
 *
 * Over HTTP on Express and Fastify. In a microservice and on a WebSocket gateway the same goes the way of Nest's own filters:
 * `{ status: 'error', message, code, statusCode, serviceStatus?, fields? }` as the error of the reply, or as the event `exception`. In
 * GraphQL an HttpException is thrown, whose `extensions` has all but the message. Other kinds of applications get the error
 * itself.
 */
export class ServiceExceptionFilter implements ExceptionFilter<ServiceError> {
  readonly #logger = new SafeLogger(ServiceExceptionFilter.name);
  readonly #options: ExceptionAnswerOptions;

  // With a default, as Nest warns of parameters that it counts (Function.length) and finds no metadata for.
  constructor(options: ExceptionAnswerOptions = {}) {
    const { invalidRequestStatus: status = 400 } = options;
    if (!Number.isInteger(status) || status < 400 || status > 499) {
      throw new RangeError(`invalidRequestStatus must be a status from 400 to 499${ifText(status)}`);
    }
    this.#options = options;
  }

  /** Nest's: the answer of a microservice is the Observable that this returns. */
  catch(error: ServiceError, host: ArgumentsHost): Observable<never> | void {
    const kind = host.getType<string>();
    if (!KINDS.has(kind)) throw error;
    const answer = answerOf(error, this.#options);
    const { status, code } = answer;
    const body = bodyOf(answer);
    if (status >= 500 && !isOrderlyEnd(answer)) {
      const { correlationId } = error as Partial<ServiceApiError>;
      const fields = { code, status, correlationId };
      this.#logger.errorWith(`${status}: ${describeError(error)}`, fields);
    }
    if (kind === 'http') return replyHttp(answer, body, host);
    if (kind === 'graphql') {
      // Graphql makes its error of the message and of `extensions`.
      const { message: _, ...extensions } = body;
      throw Object.assign(toHttpException(error, this.#options), { extensions });
    }
    const payload = { status: 'error', ...body };
    if (kind === 'rpc') return throwError(() => payload);
    const gateway = host.switchToWs();
    emit(gateway.getClient<GatewayClient | undefined>(), {
      ...payload,
      cause: { pattern: gateway.getPattern() },
    });
  }
}

// Not a decorator: TypeScript would then declare the constructor's parameter to Nest, which injects undefined into an optional
// one, but a mock of any kind in a test with useMocker().
Catch(ServiceError)(ServiceExceptionFilter);

/** Cut at shutdown: said once for all of them, by the module. */
function isOrderlyEnd({ code, status }: ExceptionAnswer): boolean {
  return code === 'connection_closed' && status === 503;
}

function replyHttp({ status, code, retryAfter }: ExceptionAnswer, body: object, host: ArgumentsHost): void {
  const http = host.switchToHttp();
  const reply = http.getResponse<HttpReply>();
  if (reply.headersSent || reply.sent) return void (reply.raw ?? reply).end?.();
  if (retryAfter !== undefined) reply.header('Retry-After', String(Math.min(Math.ceil(retryAfter), DAY_S)));
  // An idle connection would hold up a server that is closing (Node waits for its keepAliveTimeout).
  if (code === 'connection_closed' && isHttp1(http.getRequest<HttpRequest>())) {
    reply.header('Connection', 'close');
  }
  reply.status(status).send(body);
}

/** HTTP/2 knows no Connection header (RFC 9113, 8.2.2). */
function isHttp1({ raw, httpVersionMajor = raw?.httpVersionMajor }: HttpRequest): boolean {
  return httpVersionMajor === 1;
}

function emit(client: GatewayClient | undefined, data: object): void {
  if (typeof client?.readyState === 'number' && client.send) {
    if (client.readyState === OPEN) client.send(JSON.stringify({ event: 'exception', data }));
  } else {
    client?.emit?.('exception', data);
  }
}
