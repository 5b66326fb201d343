import { type ExchangeResponse } from './exchange.types.js';

const LONGEST_PAGE = 4_096;

/**
 * What an answer says of our client certificate where a proxy before the service looks at it. The service itself
 * answers in JSON; a page (HTML) is a proxy's own.
 * - `refused`: nginx's 495 and 496, and a page of 400, 401 or 403 that speaks of certificates.
 * - `perhaps`: any other page of 401 or 403: HAProxy and Apache do not say why they deny.
 */
export function certificateVerdict({
  status,
  headers,
  body,
}: ExchangeResponse): 'refused' | 'perhaps' | undefined {
  if (status === 495 || status === 496) return 'refused';
  if (status !== 400 && status !== 401 && status !== 403) return undefined;
  const text = body.subarray(0, LONGEST_PAGE).toString('latin1');
  if (!/html/i.test(headers['content-type'] ?? '') && !/^\s*</.test(text)) return undefined;
  if (/certificate/i.test(text)) return 'refused';
  return status === 400 ? undefined : 'perhaps';
}
