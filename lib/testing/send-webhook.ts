import { createHmac } from 'node:crypto';
import { isUint8Array } from 'node:util/types';

/** How long the service waits for the response to a webhook. */
const TIMEOUT_MS = 10_000;

interface Signing {
  webhookSecret: string;
  webhookHeader: string;
  headers: Record<string, string>;
}

/** Signs with node:crypto and not with the code of verifyWebhook(), so that tests find a mistake in that code. */
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
      // A keep-alive connection would delay app.close() at the end of a test.
      connection: 'close',
      [signing.webhookHeader]: `sha512=${digest}`,
      ...signing.headers,
    },
  });
}
