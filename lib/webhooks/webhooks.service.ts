import { createHmac, timingSafeEqual } from 'node:crypto';
import { isAnyArrayBuffer } from 'node:util/types';
import { Injectable } from '@nestjs/common';
import { readInTime, UNAVAILABLE, type Secret } from '../config/secret.js';
import { type ResolvedOptions } from '../config/resolve-options.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { type Clock } from '../time/time.js';
import { REREAD_MS, Rotating } from '../config/rotating.js';

/** How the signature is made. The defaults are those of the service. */
export interface WebhookSignatureOptions {
  /** The hash function of the HMAC, by its name in `node:crypto`. Default `sha512`. */
  algorithm?: string | undefined;
  /** The text before the hexadecimal digits. It may be empty. Default `<algorithm>=`, for example `sha512=`. */
  prefix?: string | undefined;
}

/** The body of a request as it arrived, before any parser. */
export type RawBody = string | ArrayBuffer | NodeJS.ArrayBufferView;

const NOT_RAW =
  'The raw body of a webhook must be a string or bytes. The service signs the bytes that it sends: a body that was parsed ' +
  'and serialised again has different bytes and never matches.';
const NO_SECRET =
  'The webhook secret is missing or empty. With an empty secret, anybody could sign a webhook.';

/**
 * Returns whether the service signed this webhook. The signature is an HMAC over the raw body in hexadecimal digits. It is
 * compared in constant time.
 * @param signature the value of the signature header. If the request has none, the result is false
 * @param secret the webhook secret, or several during a rotation
 * @throws TypeError if a secret is missing or empty, or if `rawBody` is a parsed body and there is a signature
 * @example verifyWebhook(request.rawBody, request.headers['service-signature'], secret)
 */
export function verifyWebhook(
  rawBody: RawBody,
  signature: string | readonly string[] | null | undefined,
  secret: string | readonly string[],
  { algorithm = 'sha512', prefix = `${algorithm}=` }: WebhookSignatureOptions = {},
): boolean {
  const secrets = [secret].flat();
  if (secrets.length === 0 || secrets.some((each) => typeof each !== 'string' || each === '')) {
    throw new TypeError(NO_SECRET);
  }
  // Checked before the body: a request without a signature is not a webhook, so a parsed body is no mistake of the
  // application.
  if (typeof signature !== 'string') return false;
  const bytes = isAnyArrayBuffer(rawBody) ? new Uint8Array(rawBody) : rawBody;
  if (typeof bytes !== 'string' && !ArrayBuffer.isView(bytes)) throw new TypeError(NOT_RAW);
  const given = Buffer.from(signature.toLowerCase());
  const matches = secrets.map((each) => {
    const digest = createHmac(algorithm, each).update(bytes).digest('hex');
    const expected = Buffer.from(prefix.toLowerCase() + digest);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
  return matches.includes(true);
}

/** Verifies webhooks of the service with `webhook.secret` (docs/webhooks.md). */
@Injectable()
export class WebhooksService {
  /** The name of the header that carries the signature (`webhook.header`), in lower case. */
  readonly header: string;
  readonly #options: Pick<ResolvedOptions, 'webhook' | 'locate'>;
  readonly #secret: Rotating<Secret>;

  /** @internal */
  constructor(options: Pick<ResolvedOptions, 'webhook' | 'locate'>, clock: Clock) {
    this.header = options.webhook.header;
    this.#options = options;
    this.#secret = new Rotating({
      read: () => this.#read(clock),
      isSame: (one, other) => one.equals(other),
      clock,
      rereadMs: REREAD_MS.function,
    });
  }

  /** @internal The error to throw if no secret is configured; undefined if one is. */
  get missingSecret(): ServiceConfigurationError | undefined {
    return this.#options.webhook.secret
      ? undefined
      : this.#error('is missing. Webhooks are verified with this secret.');
  }

  /**
   * Returns whether the service signed this webhook.
   *
   * After a wrong signature, the secret may have been rotated: its file is read again, or its function is called again, at
   * most once in 10 s. If that fails, the last secret stays in use.
   * @param rawBody the body as it arrived, before any parser
   * @param signature the value of the header {@link header}. If the request has none, the result is false
   * @throws ServiceConfigurationError if no secret is configured, or if the secret cannot be read for the first time;
   * TypeError if `rawBody` is a parsed body
   * @example await webhooks.verify(request.body, request.get(webhooks.header))
   */
  async verify(rawBody: RawBody, signature: Parameters<typeof verifyWebhook>[1]): Promise<boolean> {
    if (this.missingSecret) throw this.missingSecret;
    if (typeof signature !== 'string') return false;
    const { webhook } = this.#options;
    const matches = (secret: Secret) => verifyWebhook(rawBody, signature, secretsIn(secret), webhook);
    const secret = this.#secret.last ?? (await this.#secret.read());
    if (matches(secret)) return true;
    // Not a sure refusal, because anybody can send a wrong signature.
    const other = await this.#secret.findOther(secret, { isSure: false });
    return other !== undefined && matches(other);
  }

  async #read(clock: Clock): Promise<Secret> {
    try {
      const secret = await readInTime(this.#options.webhook.secret!, clock);
      if (secretsIn(secret).length === 0) throw new Error(UNAVAILABLE);
      return secret;
    } catch (error) {
      throw this.#error((error as Error).message);
    }
  }

  #error(message: string): ServiceConfigurationError {
    return new ServiceConfigurationError([{ ...this.#options.locate('webhook.secret'), message }]);
  }
}

/** During a rotation there are two secrets, each on its own line. */
function secretsIn(secret: Secret): string[] {
  return secret
    .reveal()
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '');
}
