// The module's exchange (lib/exchange/exchange.types.ts) on undici, with the same bounds: tried, measured, dropped.
import { Pool } from 'undici';

export function undiciExchange({ origin, pems }) {
  const pool = new Pool(origin, { connect: pems, connections: 50, headersTimeout: 0, bodyTimeout: 0 });
  return (request) => exchange(pool, request);
}

async function exchange(pool, { url, method, headers, body, timeoutMs, maxResponseBytes, signal }) {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener('abort', abort);
  const timer = setTimeout(abort, timeoutMs);
  try {
    const path = url.pathname + url.search;
    const answer = await pool.request({ path, method, headers, body, signal: controller.signal });
    const chunks = [];
    let length = 0;
    for await (const chunk of answer.body) {
      length += chunk.length;
      if (length > maxResponseBytes) throw new Error('too large');
      chunks.push(chunk);
    }
    const whole = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, length);
    return { status: answer.statusCode, statusText: '', headers: answer.headers, body: whole };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
