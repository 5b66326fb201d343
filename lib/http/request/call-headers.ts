import { type AxiosHeaderValue, type AxiosRequestHeaders } from 'axios';
import { ServiceRequestError } from '../../errors/index.js';
import { ACCEPTED_ENCODINGS } from '../../exchange/decode.js';
import { EXCHANGE_HEADERS } from '../../exchange/exchange.types.js';

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

/**
 * Copies the headers that the host application has set, with names in lower case and without credentials. The application may
 * pass on its own caller's headers, so `accept-encoding` is replaced by the encodings that we can decode, and `range` is
 * dropped if the response is JSON.
 * @throws ServiceRequestError for a name or a value that cannot be sent
 */
export function takeHeaders(
  headers: Record<string, string>,
  given: AxiosRequestHeaders,
  readsJson: boolean,
  appTokenHeader: string,
): void {
  headers.accept = readsJson ? 'application/json' : '*/*';
  headers['accept-encoding'] = ACCEPTED_ENCODINGS;
  for (const name of Object.keys(given)) {
    const key = name.toLowerCase();
    const value = given[name] as AxiosHeaderValue | undefined;
    if (value === null || value === undefined || value === false || EXCHANGE_HEADERS.has(key)) continue;
    if (key === 'authorization' || key === appTokenHeader) continue;
    if (key === 'accept-encoding' || (key === 'range' && readsJson)) continue;
    const text = Array.isArray(value) ? value.join(', ') : String(value);
    if (!HEADER_NAME.test(key))
      throw ServiceRequestError.of('a header', 'has a name that no header can have');
    if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) {
      throw ServiceRequestError.of(`header ${key}`, 'holds a character no header can hold');
    }
    headers[key] = text;
  }
  // A part of a compressed body cannot be decoded (RFC 9110, section 14.2).
  if (headers.range !== undefined) headers['accept-encoding'] = 'identity';
}
