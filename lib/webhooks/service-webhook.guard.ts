import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  InternalServerErrorException,
  UnauthorizedException,
} from '@nestjs/common';
import { isUint8Array } from 'node:util/types';
import { cleanText } from '../errors/index.js';
import { SafeLogger } from '../telemetry/telemetry.js';
import { systemClock } from '../time/time.js';
import { type RawBody, WebhooksService } from './webhooks.service.js';

/** Milliseconds in which at most one line of each level is logged, so that outsiders cannot fill the log. */
const REFUSAL_LINE_MS = 60_000;

/** What requests of Express and Fastify share. Those of Fastify have the request of node:http in `raw`. */
interface WebhookRequest {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  httpVersion?: string;
  rawBody?: unknown;
  body?: unknown;
  raw?: Pick<WebhookRequest, 'httpVersion' | 'rawBody'>;
}

/**
 * Admits only webhooks that the service signed (docs/webhooks.md). It uses `webhook.secret` and `webhook.header` of the
 * ServiceModule without a name.
 *
 * - A missing or wrong signature: status 401, and a warning in the log, at most once a minute.
 * - The application does not keep the raw body: status 500, and the log says what to change, at most once a minute. Create the
 *   application with `NestFactory.create(AppModule, { rawBody: true })`.
 * - `webhook.secret` is not set: the application does not start.
 * @example
 * @Post('webhook')
 * @HttpCode(200)
 * @UseGuards(ServiceWebhookGuard)
 */
@Injectable()
export class ServiceWebhookGuard implements CanActivate {
  readonly #webhooks: WebhooksService;
  readonly #logger = new SafeLogger(ServiceWebhookGuard.name);
  /** Monotonic milliseconds of the last line of each level. */
  readonly #loggedAt = { warn: -Infinity, error: -Infinity };

  /** @throws ServiceConfigurationError if `webhook.secret` is not set */
  constructor(webhooks: WebhooksService) {
    if (webhooks.missingSecret) throw webhooks.missingSecret;
    this.#webhooks = webhooks;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType<string>() !== 'http') {
      const handler = `${context.getClass().name}.${context.getHandler().name}()`;
      throw new Error(`ServiceWebhookGuard is for HTTP controllers, and ${handler} is none.`);
    }
    const request = context.switchToHttp().getRequest<WebhookRequest>();
    const { header } = this.#webhooks;
    const signature = request.headers[header];
    const body = findBody(request);
    if (body !== undefined && (await this.#webhooks.verify(body, signature))) return true;
    // Only for requests with a signature: others are no webhooks.
    if (signature !== undefined && !isUint8Array(body) && !isKnownEmpty(request)) {
      this.#log('error', `A webhook cannot be verified: ${explainNoBytes(request)}`);
      throw new InternalServerErrorException();
    }
    // With a wrong secret or header name, every webhook is refused, and nothing else says why.
    const why = signature === undefined ? 'is missing' : 'does not fit the body and webhook.secret';
    this.#log('warn', `A webhook was refused with 401: its signature (header ${header}) ${why}.`);
    throw new UnauthorizedException();
  }

  #log(level: 'warn' | 'error', text: string): void {
    const now = systemClock.monotonic();
    if (now - this.#loggedAt[level] < REFUSAL_LINE_MS) return;
    this.#loggedAt[level] = now;
    this.#logger[level](text);
  }
}

/**
 * The bytes of the body, or the text that a parser has decoded from them: if the signature fits the text, these were the bytes.
 * Undefined if the request may have a body of which the application has kept neither.
 */
function findBody(request: WebhookRequest): RawBody | undefined {
  // Google's functions-framework puts `rawBody` on the request of node:http. express.raw() puts the bytes into `body`.
  const kept = [request.rawBody, request.raw?.rawBody, request.body].find(
    (each): each is Uint8Array | string => isUint8Array(each) || typeof each === 'string',
  );
  return kept ?? (isKnownEmpty(request) ? '' : undefined);
}

/**
 * Only the headers of HTTP/1 tell whether a request has a body (RFC 9112, 6.3): over HTTP/2, a body needs no Content-Length. The
 * parsers of Express 4 leave `{}` if they have read no body.
 */
function isKnownEmpty({ headers, body, raw, httpVersion = raw?.httpVersion }: WebhookRequest): boolean {
  return (
    httpVersion?.startsWith('1') === true &&
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) === 0 &&
    Object.keys(Object(body) as object).length === 0
  );
}

/** What has happened to the body, and what to change. Undefined and `{}`: no parser has read it. */
function explainNoBytes({ body, headers }: WebhookRequest): string {
  if (typeof body === 'string')
    return (
      'its body is a text that a parser or a serverless adapter has decoded, and the signature does not fit this text. Either the ' +
      'signature is wrong, or the text differs from the bytes that arrived. Create the application with rawBody: true. On Fastify, ' +
      "also add a parser of this content type with parseAs: 'buffer'."
    );
  if (Object.keys(Object(body) as object).length > 0)
    return (
      'the application has turned its body into an object and has not kept the bytes. Create it with ' +
      'NestFactory.create(AppModule, { rawBody: true }). If you did, another parser has read the body first, such as ' +
      'app.use(express.json()) or that of a serverless adapter: remove it, or let its option verify set request.rawBody. On Fastify ' +
      'with NestJS 11, app.useBodyParser() has replaced the parser that keeps raw bodies.'
    );
  const type = cleanText(String(headers['content-type'] ?? 'none'), [], 64);
  return (
    `no body parser accepts its content type (${type}). Add one with app.useBodyParser() on Express, or addContentTypeParser() of the ` +
    'Fastify instance, and create the application with rawBody: true and without bodyParser: false.'
  );
}
