import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, type InputType, type ZlibOptions } from 'node:zlib';
import { codedError } from '../errors/service.error.js';

/** The content codings that {@link decode} supports, for the Accept-Encoding header. */
export const ACCEPTED_ENCODINGS = 'gzip, deflate, br';

const DECODERS = new Map([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', inflate],
  ['br', brotliDecompress],
]);

/** Decompresses a body. Rejects with `ERR_BUFFER_TOO_LARGE` as soon as the result exceeds `maxOutputLength` bytes. */
export async function decode(body: Buffer, encoding: string, maxOutputLength: number): Promise<Buffer> {
  const decoder = DECODERS.get(encoding.trim().toLowerCase());
  if (!decoder) throw codedError('unknown content coding', 'ERR_HTTP_CONTENT_CODING');
  return promisify<InputType, ZlibOptions, Buffer>(decoder)(body, { maxOutputLength });
}
