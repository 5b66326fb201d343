import { type ExchangeRequest } from './exchange.types.js';

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * The headers that say where a request's body ends (RFC 9112, 6). Node sets them by itself for some methods only; a
 * body without them, on DELETE or GET, would be read as the next request on the connection.
 */
export function framing(body: NonNullable<ExchangeRequest['body']>): Record<string, string> {
  return { 'content-length': String(Buffer.byteLength(body)) };
}

/** A delay that setTimeout keeps: a longer one would fire at once. */
export function timerDelay(ms: number): number {
  return Math.min(Math.max(ms, 0), LONGEST_TIMER_MS);
}
