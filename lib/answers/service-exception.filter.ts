import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';
import { describeError, type ServiceApiError, ServiceError } from '../errors/index.js';
import { hintIfString } from '../config/http.options.js';
import { SafeLogger } from '../telemetry/telemetry.js';
import {
  answerOf,
  toAnswerBody,
  toHttpException,
  type ExceptionAnswer,
  type ExceptionAnswerOptions,
} from './answer.js';

/** What Express's response and Fastify's reply have in common. */
interface HttpReply {
  headersSent?: boolean;
  sent?: boolean;
  status(code: number): HttpReply;
  header(name: string, value: string): unknown;
  send(body: unknown): unknown;
  end?(): unknown;
  /** In Fastify: the response object of node:http. */
  raw?: { end(): unknown };
}

/** The request of Express, or that of Fastify, which has the request of node:http in `raw`. */
interface HttpRequest {
  httpVersionMajor?: number;
  raw?: { httpVersionMajor?: number };
}

/** A socket of socket.io, or a WebSocket. The `emit` of a WebSocket is that of an EventEmitter and sends nothing. */
interface GatewayClient {
  readyState?: number;
  send?(text: string): unknown;
  emit?(event: string, data: unknown): unknown;
}

/** The values of ArgumentsHost.getType() for which this filter makes the answer. */
const HANDLED_KINDS = new Set(['http', 'rpc', 'ws', 'graphql']);
const OPEN = 1;
/**
 * The gRPC codes of statuses. A status below 500 that is not listed becomes INVALID_ARGUMENT, and any other UNKNOWN. Clients repeat
 * UNAVAILABLE (14) by themselves: a change that may have been executed never gets it, because its status is 502 or 504.
 */
const GRPC_CODES = new Map([
  [403, 7],
  [404, 5],
  [409, 6],
  [429, 8],
  [500, 13],
  [503, 14],
  [504, 4],
]);
const INVALID_ARGUMENT = 3;
const UNKNOWN = 2;
const DAY_S = 86_400;

/**
 * Answers the host application's callers when a call of the service fails:
 *
 * - 400: the input was refused before anything was sent. If the host application's own code is at fault, such as an option of
 *   the call, 500.
 * - 400, 404, 409, 422 of the service: the same status and message, with the service's error code as `serviceStatus`. Also 403
 *   and 429, if the code is in `passOn`.
 * - 401, 403 and 5xx of the service, and a proxy's page about the client certificate: 502
 * - 429: 503 with Retry-After
 * - a time-out: 504
 * - other connection, token and certificate errors: 503
 * - a change that may have been executed (`outcomeUnknown`): 502, or 504 for a time-out, whatever the last response was. The
 *   message says so.
 *
 * The answer never contains more than a status, a message, a code, the service's code, and the `fields` that you name. An
 * answer from 500 on is logged, with what to check.
 *
 * Works over HTTP on Express and Fastify. In a microservice the reply is the error `{ status: 'error', message, code,
 * statusCode, serviceStatus?, fields? }`, or over gRPC `{ code, message }` with the gRPC code of the status (docs/exception-filter.md#over-grpc), and a WebSocket gateway emits the same as the event `exception`, as Nest's own filters
 * do. In GraphQL the filter throws an HttpException, whose `extensions` has everything but the message. In other kinds of
 * applications the error itself is thrown.
 */
export class ServiceExceptionFilter implements ExceptionFilter<ServiceError> {
  readonly #logger = new SafeLogger(ServiceExceptionFilter.name);
  readonly #options: ExceptionAnswerOptions;

  // The parameter has a default, because Nest warns of parameters that Function.length counts and that have no metadata.
  constructor(options: ExceptionAnswerOptions = {}) {
    const { invalidRequestStatus: status = 400 } = options;
    if (!Number.isInteger(status) || status < 400 || status > 499) {
      throw new RangeError(`invalidRequestStatus must be a status from 400 to 499${hintIfString(status)}`);
    }
    this.#options = options;
  }

  /** Nest calls this. In a microservice, the returned Observable is the reply. */
  catch(error: ServiceError, host: ArgumentsHost): Observable<never> | void {
    const kind = host.getType<string>();
    if (!HANDLED_KINDS.has(kind)) throw error;
    const answer = answerOf(error, this.#options);
    const { status, code } = answer;
    const body = toAnswerBody(answer);
    // The module logs once for all calls that the shutdown ended them, so the filter does not log it again.
    const isShutdown = code === 'connection_closed' && status === 503;
    if (status >= 500 && !isShutdown) {
      const { correlationId } = error as Partial<ServiceApiError>;
      const fields = { code, status, correlationId };
      this.#logger.errorWith(`${status}: ${describeError(error)}`, fields);
    }
    if (kind === 'http') return replyHttp(answer, body, host);
    if (kind === 'graphql') {
      // GraphQL makes its error from the message and `extensions`.
      const { message: _, ...extensions } = body;
      throw Object.assign(toHttpException(error, this.#options), { extensions });
    }
    const payload = { status: 'error', ...body };
    if (kind === 'rpc') return throwError(() => (isGrpc(host) ? grpcError(answer) : payload));
    const gateway = host.switchToWs();
    emit(gateway.getClient<GatewayClient | undefined>(), {
      ...payload,
      cause: { pattern: gateway.getPattern() },
    });
  }
}

// Not as a decorator: TypeScript would then emit metadata of the constructor's parameter, and Nest would inject it. In a test with
// useMocker(), that would be a mock.
Catch(ServiceError)(ServiceExceptionFilter);

function replyHttp({ status, code, retryAfter }: ExceptionAnswer, body: object, host: ArgumentsHost): void {
  const http = host.switchToHttp();
  const reply = http.getResponse<HttpReply>();
  if (reply.headersSent || reply.sent) return void (reply.raw ?? reply).end?.();
  if (retryAfter !== undefined) reply.header('Retry-After', String(Math.min(Math.ceil(retryAfter), DAY_S)));
  // A server that is closing would wait for this connection to time out while it is idle (keepAliveTimeout of node:http).
  if (code === 'connection_closed' && isHttp1(http.getRequest<HttpRequest>())) {
    reply.header('Connection', 'close');
  }
  reply.status(status).send(body);
}

/** HTTP/2 has no Connection header (RFC 9113, section 8.2.2). */
function isHttp1({ raw, httpVersionMajor = raw?.httpVersionMajor }: HttpRequest): boolean {
  return httpVersionMajor === 1;
}

/** getType() is `rpc` for every transport, but only handlers of gRPC get the call, which sends metadata. */
function isGrpc(host: ArgumentsHost): boolean {
  const isCall = (each: unknown) =>
    typeof (each as { sendMetadata?: unknown } | undefined)?.sendMetadata === 'function';
  return host.getArgs<unknown[]>().some(isCall);
}

function grpcError({ status, message }: ExceptionAnswer): { code: number; message: string } {
  return { code: GRPC_CODES.get(status) ?? (status < 500 ? INVALID_ARGUMENT : UNKNOWN), message };
}

function emit(client: GatewayClient | undefined, data: object): void {
  if (typeof client?.readyState === 'number' && client.send) {
    if (client.readyState === OPEN) client.send(JSON.stringify({ event: 'exception', data }));
  } else {
    client?.emit?.('exception', data);
  }
}
