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

/** Milliseconds in which at most one refusal is logged, so that outsiders cannot fill the log. */
const REFUSAL_LINE_MS = 60_000;

/** The properties that requests of Express and Fastify share. */
interface WebhookRequest {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  rawBody?: Uint8Array;
  body?: unknown;
}

/**
 * Admits only webhooks that the service signed (docs/webhooks.md). It uses `webhook.secret` and `webhook.header` of the
 * ServiceModule without a name.
 *
 * - A missing or wrong signature: status 401, and a warning in the log, at most once a minute.
 * - The application does not keep the raw body: status 500, and the log has the reason. Create the application with
 *   `NestFactory.create(AppModule, { rawBody: true })`.
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
  /** Monotonic milliseconds of the last line about a refusal. */
  #loggedAt = -Infinity;

  /** @throws ServiceConfigurationError if `webhook.secret` is not set */
  constructor(webhooks: WebhooksService) {
    if (webhooks.missingSecret) throw webhooks.missingSecret;
    this.#webhooks = webhooks;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<WebhookRequest>();
    const signature = request.headers[this.#webhooks.header];
    const rawBody = rawBodyOf(request);
    // Only for requests with a signature, so that outsiders cannot fill the log with requests that are no webhooks.
    if (rawBody === undefined && signature !== undefined) {
      this.#logger.error(`A webhook cannot be verified: ${explainNoRawBody(request)}`);
      throw new InternalServerErrorException();
    }
    if (rawBody !== undefined && (await this.#webhooks.verify(rawBody, signature))) return true;
    this.#logRefusal(signature === undefined ? 'is missing' : 'does not fit the body and webhook.secret');
    throw new UnauthorizedException();
  }

  /** With a wrong secret or header name, every webhook is refused, and nothing else says why. */
  #logRefusal(why: string): void {
    const now = systemClock.monotonic();
    if (now - this.#loggedAt < REFUSAL_LINE_MS) return;
    this.#loggedAt = now;
    this.#logger.warn(
      `A webhook was refused with 401: its signature (header ${this.#webhooks.header}) ${why}.`,
    );
  }
}

/** Undefined if the request has a body, but the application did not keep its bytes. */
function rawBodyOf({ rawBody, body, headers }: WebhookRequest): RawBody | undefined {
  if (rawBody) return rawBody;
  // express.raw() puts the bytes into `body`.
  if (isUint8Array(body)) return body;
  const isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  return isEmpty ? '' : undefined;
}

function explainNoRawBody({ body, headers }: WebhookRequest): string {
  if ((body ?? undefined) !== undefined) {
    return (
      'the application does not keep raw bodies. Create it with NestFactory.create(AppModule, { rawBody: true }). If you did, and ' +
      'the application runs on Fastify with NestJS 11, app.useBodyParser() has replaced the parser that keeps raw bodies.'
    );
  }
  const type = cleanText(String(headers['content-type'] ?? 'none'), [], 64);
  return `no body parser accepts its content type (${type}). Add one with app.useBodyParser(), and create the application with rawBody: true.`;
}
