import { createHmac } from 'node:crypto';
import { isUint8Array } from 'node:util/types';

/** The service waits so long for the answer, in milliseconds. */
const TIMEOUT_MS = 10_000;

interface Signing {
  webhookSecret: string;
  webhookHeader: string;
  headers: Record<string, string>;
}

/** Signs with node:crypto rather than with verifyWebhook(), so that a mistake there shows in a test. */
export async function sendWebhook(url: string, body: unknown, signing: Signing): Promise<Response> {
  const content = typeof body === 'string' || isUint8Array(body) ? body : JSON.stringify(body);
  const digest = createHmac('sha512', signing.webhookSecret).update(content).digest('hex');
  return fetch(url, {
    method: 'POST',
    body: content as string | Uint8Array<ArrayBuffer>,
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: {
      'content-type': 'application/json',
      // An idle connection would hold up an application that is closed at the end of a test.
      connection: 'close',
      [signing.webhookHeader]: `sha512=${digest}`,
      ...signing.headers,
    },
  });
}
