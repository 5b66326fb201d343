import { IsHeaderName, IsSourceOrFunction } from './rules.js';
import { type SecretSource } from './secret.js';

/** Webhooks that the service sends to the application (docs/webhooks.md). */
export class ServiceWebhookOptions {
  /**
   * The secret of their signatures, its file, or a function that returns it within 8 s (vault, KMS). While it is rotated:
   * both secrets, each on a line of its own. A file is read again, and a function called again, after a wrong signature, at
   * most once in 10 s. SERVICE_WEBHOOK_SECRET, SERVICE_WEBHOOK_SECRET_FILE
   */
  @IsSourceOrFunction('WEBHOOK_SECRET')
  secret?: SecretSource | undefined;

  /** The header of the signature. Default `service-signature`. SERVICE_WEBHOOK_HEADER */
  @IsHeaderName('WEBHOOK_HEADER')
  header?: string | undefined;
}
