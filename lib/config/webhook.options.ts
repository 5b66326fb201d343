import { IsHeaderName, IsSourceOrFunction } from './rules.js';
import { type SecretSource } from './secret.js';

/** Webhooks that the service sends to the application (docs/webhooks.md). */
export class ServiceWebhookOptions {
  /**
   * The secret that signs the webhooks, its file, or a function that returns it within 8 s (vault, KMS). During a
   * rotation, give both secrets, each on its own line. After a wrong signature the file is read again, or the function
   * is called again, at most once in 10 s. SERVICE_WEBHOOK_SECRET, SERVICE_WEBHOOK_SECRET_FILE
   */
  @IsSourceOrFunction('WEBHOOK_SECRET')
  secret?: SecretSource | undefined;

  /** The header that carries the signature. Default `service-signature`. SERVICE_WEBHOOK_HEADER */
  @IsHeaderName('WEBHOOK_HEADER')
  header?: string | undefined;
}
