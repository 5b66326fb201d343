import { createHmac, timingSafeEqual } from 'node:crypto';
import { isAnyArrayBuffer } from 'node:util/types';

/** How the service signs. The defaults are those of the service. */
export interface WebhookSignatureOptions {
  /** The hash function of the HMAC, as `node:crypto` names it. Default `sha512`. */
  algorithm?: string | undefined;
  /** What stands before the hexadecimal digits. Default `sha512=`. */
  prefix?: string | undefined;
}

/** The body of a request as it came, before any parser: text or bytes. */
export type RawBody = string | ArrayBuffer | NodeJS.ArrayBufferView;

const NOT_RAW =
  'The raw body of a webhook is a string or bytes. The signature is made over the body as it came: a body that was parsed and ' +
  'serialised again has other bytes, and never matches.';
const NO_SECRET =
  'A secret of webhooks is missing or empty. With an empty secret, anybody could sign a webhook.';

/**
 * Whether the service signed this webhook: an HMAC over the raw body, in hexadecimal digits, compared in constant time.
 * @param signature the value of the signature's header; without one, the answer is false
 * @param secret one, or several while the secret is rotated
 * @throws TypeError if a secret is missing or empty, or if a body with a signature was parsed
 * @example verifyWebhook(request.rawBody, request.headers['service-signature'], secret)
 */
export function verifyWebhook(
  rawBody: RawBody,
  signature: string | readonly string[] | null | undefined,
  secret: string | readonly string[],
  { algorithm = 'sha512', prefix = 'sha512=' }: WebhookSignatureOptions = {},
): boolean {
  const secrets = [secret].flat();
  if (secrets.length === 0 || secrets.some((each) => typeof each !== 'string' || each === '')) {
    throw new TypeError(NO_SECRET);
  }
  // Before the body is looked at: a request without a signature is no webhook, and says nothing about the application.
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
