import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, type InputType, type ZlibOptions } from 'node:zlib';
import { codedError } from '../errors/error-codes.js';

/** For `Accept-Encoding`: the codings that {@link decode} understands. */
export const ACCEPTED_ENCODINGS = 'gzip, deflate, br';

const DECODERS = new Map([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', inflate],
  ['br', brotliDecompress],
]);

/** Undoes the content coding of a body. Rejects with `ERR_BUFFER_TOO_LARGE` as soon as it exceeds the cap. */
export async function decode(body: Buffer, encoding: string, maxOutputLength: number): Promise<Buffer> {
  const decoder = DECODERS.get(encoding.trim().toLowerCase());
  if (!decoder) throw codedError('unknown content coding', 'ERR_HTTP_CONTENT_CODING');
  return promisify<InputType, ZlibOptions, Buffer>(decoder)(body, { maxOutputLength });
}

/** The value of a JSON text; undefined for any other text. A byte order mark is ignored (RFC 8259, 8.1). */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text) as unknown;
  } catch {
    return undefined;
  }
}

export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
