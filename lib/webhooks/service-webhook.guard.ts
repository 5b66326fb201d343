import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  InternalServerErrorException,
  UnauthorizedException,
} from '@nestjs/common';
import { isUint8Array } from 'node:util/types';
import { cleanText } from '../errors/index.js';
import { SafeLogger } from '../telemetry/log.js';
import { type RawBody } from './verify-webhook.js';
import { WebhooksService } from './webhooks.service.js';

/** What Express's and Fastify's requests have in common. */
interface WebhookRequest {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  rawBody?: Uint8Array;
  body?: unknown;
}

/**
 * Lets only webhooks pass that the service signed (docs/webhooks.md), with `webhook.secret` and `webhook.header` of the
 * module without a name. A wrong signature is answered with 401. The application has to keep the raw body
 * (`NestFactory.create(AppModule, { rawBody: true })`): without one, the answer is 500, and the log has the reason.
 *
 * The application does not start if it uses this guard and `webhook.secret` is not set.
 * @example
 * @Post('webhook')
 * @HttpCode(200)
 * @UseGuards(ServiceWebhookGuard)
 */
@Injectable()
export class ServiceWebhookGuard implements CanActivate {
  readonly #webhooks: WebhooksService;
  readonly #logger = new SafeLogger(ServiceWebhookGuard.name);

  /** @throws ServiceConfigurationError if `webhook.secret` is not set */
  constructor(webhooks: WebhooksService) {
    if (webhooks.missingSecret) throw webhooks.missingSecret;
    this.#webhooks = webhooks;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<WebhookRequest>();
    const signature = request.headers[this.#webhooks.header];
    const rawBody = rawBodyOf(request);
    // Only for requests with a signature: others are no webhooks, and an outsider should not fill the log.
    if (rawBody === undefined && signature !== undefined) {
      this.#logger.error(`A webhook cannot be verified: ${whyNoRawBody(request)}`);
      throw new InternalServerErrorException();
    }
    if (rawBody !== undefined && (await this.#webhooks.verify(rawBody, signature))) return true;
    throw new UnauthorizedException();
  }
}

/** Undefined if there is a body that the application did not keep. */
function rawBodyOf({ rawBody, body, headers }: WebhookRequest): RawBody | undefined {
  if (rawBody) return rawBody;
  // The raw parser of Express, without the option of Nest.
  if (isUint8Array(body)) return body;
  const isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  return isEmpty ? '' : undefined;
}

function whyNoRawBody({ body, headers }: WebhookRequest): string {
  if ((body ?? undefined) !== undefined) {
    return (
      'the application keeps no raw body. Create it with NestFactory.create(AppModule, { rawBody: true }). If it has that, and ' +
      'runs on Fastify with NestJS 11, app.useBodyParser() has replaced the parsers that keep it.'
    );
  }
  const type = cleanText(String(headers['content-type'] ?? 'none'), [], 64);
  return `no body parser took its content type (${type}). Add one with app.useBodyParser(), and create the application with rawBody: true.`;
}
