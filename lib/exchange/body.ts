import { type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { codedError } from '../errors/service.error.js';
import { classify, type OccurredFault } from './fault.js';
import { isSuccess, parseJson } from './response.js';

/** The body of a response without success may have this size, even if `maxResponseBytes` is smaller: it explains the failure. */
const MIN_ERROR_BYTES = 65_536;

/** Reads the whole body of a response, and decodes it. */
export function readBody(
  incoming: IncomingMessage,
  maxResponseBytes: number,
  onBody: (body: Buffer) => void,
  onFault: (fault: OccurredFault) => void,
): void {
  const { headers, statusCode = 0 } = incoming;
  const maxBytes = isSuccess(statusCode) ? maxResponseBytes : Math.max(maxResponseBytes, MIN_ERROR_BYTES);
  const encoding = headers['content-encoding'] ?? '';
  const isCompressed = encoding !== '' && codingsIn(encoding).length > 0;
  const tooLarge = { kind: 'too_large', limitBytes: maxResponseBytes } as const;
  const buffer = new BodyBuffer();
  incoming.on('data', (chunk: Buffer) => {
    if (buffer.length + chunk.length > maxBytes)
      onFault({
        ...tooLarge,
        bodyBytes: isCompressed ? undefined : Number(headers['content-length']) || undefined,
      });
    else buffer.add(chunk);
  });
  incoming.on('error', (error) => onFault(classify(error)));
  incoming.on('end', () => {
    if (!incoming.complete) return onFault({ kind: 'reset' });
    const body = buffer.toBuffer();
    if (!encoding || body.length === 0) return onBody(body);
    decode(body, encoding, maxBytes).then(onBody, (error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_BUFFER_TOO_LARGE') return onFault({ ...tooLarge, reason: error.code });
      // Keep a response without success: its status says what happened. A proxy may have replaced the body by a page of its
      // own and kept the Content-Encoding header.
      if (!isSuccess(statusCode)) return onBody(body);
      onFault({ kind: 'protocol', reason: error.code });
    });
  });
}

/**
 * Whether only the end of the connection ends the body, so that a cut body looks like a whole one
 * (https://www.rfc-editor.org/rfc/rfc9112#section-6.3).
 */
export function isUntilClose({ headers }: IncomingMessage): boolean {
  // Chunks end the body only if `chunked` is the last transfer coding. Node does not decode other codings.
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return headers['content-length'] === undefined;
  return !/(^|,)\s*chunked$/i.test(coding);
}

/**
 * Collects the bytes of a body in one buffer, which doubles when it is full. A list of chunks would cost 200 bytes for each
 * chunk, and a server may send chunks of one byte.
 */
class BodyBuffer {
  length = 0;
  #held: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    const length = this.length + chunk.length;
    // Most bodies are a single chunk, so use that chunk without a copy. A second chunk never fits into it and copies both.
    if (this.length === 0) this.#held = chunk;
    else {
      if (length > this.#held.length) this.#grow(length);
      chunk.copy(this.#held, this.length);
    }
    this.length = length;
  }

  toBuffer(): Buffer {
    return this.#held.subarray(0, this.length);
  }

  #grow(length: number): void {
    const grown = Buffer.allocUnsafe(2 * length);
    this.#held.copy(grown, 0, 0, this.length);
    this.#held = grown;
  }
}

/** The content codings that a call asks for, for the Accept-Encoding header. */
export const ACCEPTED_ENCODINGS = 'gzip, deflate, br';

/** A server that lists more codings than this is refused: each one costs memory and time. */
const MAX_CODINGS = 5;
/**
 * HTTP limits the window of zstd to 8 MiB, which is 2^23 bytes (https://www.rfc-editor.org/rfc/rfc9659). A frame may ask for more memory,
 * however small its content is.
 */
const ZSTD_WINDOW_LOG = 23;

/** The content codings that IANA registers (https://www.iana.org/assignments/http-parameters), without `identity`. */
const REGISTERED = new Set(
  'aes128gcm br compress dcb dcz deflate exi gzip pack200-gzip x-compress x-gzip zstd'.split(' '),
);

type Decoder = (body: Buffer, options: object) => Promise<Buffer>;
/** What zlib has since Node 22.15. */
type WithZstd = Partial<Record<'zstdDecompress', typeof zlib.gunzip>> & {
  constants: Partial<Record<'ZSTD_d_windowLogMax' | 'ZSTD_e_flush', number>>;
};
const { zstdDecompress, constants: zstd } = zlib as unknown as WithZstd;

/** How a body is decoded. `flush` is the option with which a decoder returns what it has when the body ends too early. */
interface Coding {
  decode: Decoder;
  options?: object;
  flush: number | undefined;
  /** Whether the decoder returns a part of a body that ends too early as if it were the whole body. */
  missesEarlyEnd?: boolean;
}

const GZIP: Coding = { decode: promisify(zlib.gunzip), flush: zlib.constants.Z_SYNC_FLUSH };
const CODINGS = new Map<string, Coding>([
  ['gzip', GZIP],
  ['x-gzip', GZIP],
  ['deflate', { decode: decodeDeflate, flush: zlib.constants.Z_SYNC_FLUSH }],
  ['br', { decode: promisify(zlib.brotliDecompress), flush: zlib.constants.BROTLI_OPERATION_FLUSH }],
]);
if (zstdDecompress)
  CODINGS.set('zstd', {
    decode: promisify(zstdDecompress),
    options: { params: { [zstd.ZSTD_d_windowLogMax ?? 0]: ZSTD_WINDOW_LOG } },
    flush: zstd.ZSTD_e_flush,
    // Node 22 does not report that a body has ended too early. Node 24 does.
    missesEarlyEnd: parseInt(process.versions.node, 10) < 24,
  });

/**
 * Decompresses a body. `encoding` is a Content-Encoding header (https://www.rfc-editor.org/rfc/rfc9110#section-8.4). A word in it that
 * is no registered coding is skipped, because gateways write `utf-8`, `none` or `aws-chunked` there.
 *
 * Some gateways send gzip without its trailer, or do not finish it. If a body ends too early, but what was decoded of it is whole
 * JSON, then that is the body. A bare number does not count: `12345`, cut to `123`, is JSON too.
 * @throws an error with the code `ERR_BUFFER_TOO_LARGE` as soon as the result of a step exceeds `maxOutputLength` bytes;
 * `ERR_HTTP_CONTENT_CODING` for a registered coding that cannot be decoded here, or for too many codings; an error of zlib
 */
export async function decode(body: Buffer, encoding: string, maxOutputLength: number): Promise<Buffer> {
  const codings = codingsIn(encoding);
  if (encoding.split(',', MAX_CODINGS + 1).length > MAX_CODINGS || codings.some((name) => !CODINGS.has(name)))
    throw codedError('unknown content coding', 'ERR_HTTP_CONTENT_CODING');
  let decoded = body;
  let endedEarly: Error | undefined;
  for (const name of codings.reverse()) {
    const { decode: run, flush, options = {}, missesEarlyEnd } = CODINGS.get(name) as Coding;
    if (missesEarlyEnd) endedEarly ??= codedError('perhaps not whole', 'Z_BUF_ERROR');
    const given = { ...options, maxOutputLength };
    decoded = await run(decoded, given).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'Z_BUF_ERROR' || flush === undefined) throw error;
      endedEarly ??= error;
      return run(decoded, { ...given, finishFlush: flush });
    });
  }
  if (endedEarly && !isWholeJson(decoded)) throw endedEarly;
  return decoded;
}

/** The codings that a Content-Encoding header names. */
function codingsIn(encoding: string): string[] {
  return wordsIn(encoding).filter((name) => REGISTERED.has(name));
}

function wordsIn(encoding: string): string[] {
  const names = encoding.toLowerCase().split(',', MAX_CODINGS + 1);
  return names.map((name) => name.trim());
}

/** The words of the Content-Encoding header that are no codings, and were skipped. Undefined if there is none. */
export function skippedCodings({
  'content-encoding': encoding = '',
}: IncomingHttpHeaders): string | undefined {
  const skipped = wordsIn(encoding).filter(
    (name) => !REGISTERED.has(name) && !['', 'identity'].includes(name),
  );
  return skipped.join(', ') || undefined;
}

/** Some servers send deflate without the header of zlib (https://www.rfc-editor.org/rfc/rfc9110#section-8.4.1.2). */
function decodeDeflate(body: Buffer, options: object): Promise<Buffer> {
  const [first = 0, second = 0] = body;
  // https://www.rfc-editor.org/rfc/rfc1950#section-2.2
  const hasHeader = (first & 0x0f) === 8 && (first * 256 + second) % 31 === 0;
  return (promisify(hasHeader ? zlib.inflate : zlib.inflateRaw) as Decoder)(body, options);
}

function isWholeJson(body: Buffer): boolean {
  const json = parseJson(body.toString('utf8'));
  return json !== undefined && typeof json !== 'number';
}
