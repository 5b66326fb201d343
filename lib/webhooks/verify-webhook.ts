import { createHmac, timingSafeEqual } from 'node:crypto';
import { isAnyArrayBuffer } from 'node:util/types';

/** How the signature is made. The defaults are those of the service. */
export interface WebhookSignatureOptions {
  /** The hash function of the HMAC, by its name in `node:crypto`. Default `sha512`. */
  algorithm?: string | undefined;
  /** The text before the hexadecimal digits. Default `sha512=`. */
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
  { algorithm = 'sha512', prefix = 'sha512=' }: WebhookSignatureOptions = {},
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
