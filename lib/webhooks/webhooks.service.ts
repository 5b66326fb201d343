import { Injectable } from '@nestjs/common';
import { UnreadableFile } from '../config/read-file.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Secret, SOURCE_MS } from '../config/secret.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { type Clock } from '../time/clock.js';
import { within } from '../time/timers.js';
import { type RawBody, verifyWebhook } from './verify-webhook.js';

/** Wrong signatures cause one reading of the secret in this time at most, in milliseconds. */
const REREAD_MS = 10_000;
const UNAVAILABLE = `its function threw, returned no text, or took longer than ${SOURCE_MS / 1000} s. Its own error is left out because it may quote the secret.`;

/** Verifies the webhooks that the service sends, with `webhook.secret` (docs/webhooks.md). */
@Injectable()
export class WebhooksService {
  /** The name of the signature's header (`webhook.header`), in lower case. */
  readonly header: string;
  readonly #options: Pick<ResolvedOptions, 'webhook' | 'locate'>;
  readonly #clock: Clock;
  #last: Secret | undefined;
  #reading: Promise<Secret> | undefined;
  /** Monotonic milliseconds at which the last reading began. */
  #readAt = -Infinity;

  /** @internal */
  constructor(options: Pick<ResolvedOptions, 'webhook' | 'locate'>, clock: Clock) {
    this.header = options.webhook.header;
    this.#options = options;
    this.#clock = clock;
  }

  /** @internal The error for a part of the application that cannot work without a secret; undefined if there is one. */
  get missingSecret(): ServiceConfigurationError | undefined {
    return this.#options.webhook.secret
      ? undefined
      : this.#error('is missing: webhooks are verified with it.');
  }

  /**
   * Whether the service signed this webhook. If the signature is wrong, the secret may have been rotated: its file is read
   * again, or its function is called again, at most once in 10 s. If that fails, the last secret goes on to serve.
   * @param rawBody the body as it came, before any parser
   * @param signature the value of the header {@link header}; without one, the answer is false
   * @throws ServiceConfigurationError if there is no secret, or if it cannot be read the first time; TypeError if a body
   * with a signature was parsed
   * @example await webhooks.verify(request.body, request.get(webhooks.header))
   */
  async verify(rawBody: RawBody, signature: Parameters<typeof verifyWebhook>[1]): Promise<boolean> {
    if (this.missingSecret) throw this.missingSecret;
    if (typeof signature !== 'string') return false;
    const matches = (secret: Secret) => verifyWebhook(rawBody, signature, linesOf(secret));
    const secret = this.#last ?? (await this.#read());
    if (matches(secret)) return true;
    const isRecent = this.#clock.monotonic() - this.#readAt < REREAD_MS;
    const latest = isRecent ? ((await this.#reading) ?? this.#last) : await this.#read();
    return latest !== undefined && latest !== secret && matches(latest);
  }

  /** Reads the secret; the last one, if that fails. Several callers share one reading. */
  #read(): Promise<Secret> {
    return (this.#reading ??= this.#ask().finally(() => (this.#reading = undefined)));
  }

  async #ask(): Promise<Secret> {
    this.#readAt = this.#clock.monotonic();
    const limit = { clock: this.#clock, timeoutMs: SOURCE_MS, expired: () => new Error() };
    try {
      const secret = await within(limit, async () => this.#options.webhook.secret!());
      if (linesOf(secret).length === 0) throw new Error();
      return (this.#last = secret);
    } catch (error) {
      if (this.#last) return this.#last;
      throw this.#error(error instanceof UnreadableFile ? error.message : UNAVAILABLE);
    }
  }

  #error(message: string): ServiceConfigurationError {
    return new ServiceConfigurationError([{ ...this.#options.locate('webhook.secret'), message }]);
  }
}

/** During a rotation there are two secrets, each on a line. */
function linesOf(secret: Secret): string[] {
  return secret
    .reveal()
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '');
}
