import { describe, expect, it } from '@jest/globals';
import * as zlib from 'node:zlib';
import { decode } from '../../../lib/exchange/body.js';

const { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } = zlib;
/** Node has zstd since 22.15. */
const { zstdCompressSync } = zlib as {
  zstdCompressSync?: (data: Buffer | string, options?: object) => Buffer;
};
const { ZSTD_c_windowLog, ZSTD_c_enableLongDistanceMatching } = zlib.constants as Record<string, number>;

const JSON_TEXT = '{"status":"PENDING","items":[1,2,3]}';
const MAX = 100_000;
const GZIP_TRAILER = 8;

const decoded = async (body: Buffer, encoding: string, max = MAX) =>
  (await decode(body, encoding, max)).toString();
const codeOf = (body: Buffer, encoding: string, max = MAX) =>
  decode(body, encoding, max).then(
    (result) => `decoded: ${result.toString('latin1').slice(0, 40)}`,
    ({ code }: NodeJS.ErrnoException) => code,
  );

/** What a compressor has written after a flush, without an end. */
function flushed(stream: zlib.Gzip | zlib.BrotliCompress, text: string, kind: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.write(text);
  return new Promise((resolve) =>
    stream.flush(kind, () => setImmediate(() => resolve(Buffer.concat(chunks)))),
  );
}

describe('Content-Encoding', () => {
  it.each(['utf-8', 'UTF-8', 'none', 'binary', 'aws-chunked', 'identity', '', ', ,', 'iso-8859-1, none'])(
    'ignores words that name no coding: "%s"',
    async (encoding) => {
      expect(await decoded(Buffer.from(JSON_TEXT), encoding)).toBe(JSON_TEXT);
    },
  );

  it.each<[string, Buffer]>([
    ['gzip', gzipSync(JSON_TEXT)],
    ['X-GZip', gzipSync(JSON_TEXT)],
    ['aws-chunked, gzip', gzipSync(JSON_TEXT)],
    ['gzip,utf-8', gzipSync(JSON_TEXT)],
    ['gzip, gzip', gzipSync(gzipSync(JSON_TEXT))],
    ['gzip, br', brotliCompressSync(gzipSync(JSON_TEXT))],
    ['br', brotliCompressSync(JSON_TEXT)],
    ['deflate', deflateSync(JSON_TEXT)],
    ['deflate', deflateSync(JSON_TEXT, { level: 0, windowBits: 9 })],
    [
      'gzip, gzip, gzip, gzip, gzip',
      [1, 2, 3, 4, 5].reduce((body) => gzipSync(body), Buffer.from(JSON_TEXT)),
    ],
  ])('decodes %s', async (encoding, body) => {
    expect(await decoded(body, encoding)).toBe(JSON_TEXT);
  });

  it('decodes deflate without the header of zlib, as some gateways send it', async () => {
    expect(await decoded(deflateRawSync(JSON_TEXT), 'deflate')).toBe(JSON_TEXT);
    expect(await decoded(deflateRawSync('plain text', { level: 0 }), 'deflate')).toBe('plain text');
    expect(await codeOf(deflateRawSync(Buffer.alloc(MAX + 1)), 'deflate')).toBe('ERR_BUFFER_TOO_LARGE');
  });

  it.each(['compress', 'x-compress', 'dcb', 'dcz', 'exi', 'pack200-gzip', 'aes128gcm', 'gzip, compress'])(
    'refuses %s, which this package cannot decode',
    async (encoding) => {
      expect(await codeOf(Buffer.from(JSON_TEXT), encoding)).toBe('ERR_HTTP_CONTENT_CODING');
    },
  );

  it('refuses more than five codings', async () => {
    const body = [1, 2, 3, 4, 5, 6].reduce((inner) => gzipSync(inner), Buffer.from(JSON_TEXT));
    expect(await codeOf(body, Array(6).fill('gzip').join())).toBe('ERR_HTTP_CONTENT_CODING');
  });

  it('applies the limit of the size to each step of a list', async () => {
    const bomb = gzipSync(gzipSync(Buffer.alloc(50 * MAX)));
    expect(bomb.length).toBeLessThan(MAX);
    expect(await codeOf(bomb, 'gzip, gzip')).toBe('ERR_BUFFER_TOO_LARGE');
  });
});

describe('A compressed body that ends too early', () => {
  it('is read if what was decoded is whole JSON: gzip without its trailer, or flushed but not finished', async () => {
    const { BROTLI_OPERATION_FLUSH, Z_SYNC_FLUSH } = zlib.constants;
    const gzip = gzipSync(JSON_TEXT);
    for (const left of [1, GZIP_TRAILER / 2, GZIP_TRAILER])
      expect(await decoded(gzip.subarray(0, -left), 'gzip')).toBe(JSON_TEXT);
    expect(await decoded(deflateSync(JSON_TEXT).subarray(0, -4), 'deflate')).toBe(JSON_TEXT);
    expect(await decoded(await flushed(zlib.createGzip(), JSON_TEXT, Z_SYNC_FLUSH), 'gzip')).toBe(JSON_TEXT);
    const brotli = await flushed(zlib.createBrotliCompress(), JSON_TEXT, BROTLI_OPERATION_FLUSH);
    expect(await decoded(brotli, 'br')).toBe(JSON_TEXT);
  });

  it.each<[string, Buffer]>([
    ['a bare number, of which digits may be missing', gzipSync('12345').subarray(0, -GZIP_TRAILER)],
    ['text that is not JSON', gzipSync('name;amount').subarray(0, -GZIP_TRAILER)],
    ['JSON that is cut in half', gzipSync(JSON_TEXT.slice(0, 20)).subarray(0, -GZIP_TRAILER)],
    ['half of the compressed bytes', gzipSync(JSON_TEXT).subarray(0, 25)],
    ['the header of gzip alone', gzipSync(JSON_TEXT).subarray(0, 10)],
  ])('is refused with %s', async (_, body) => {
    expect(await codeOf(body, 'gzip')).toBe('Z_BUF_ERROR');
  });

  it('is refused if its checksum is wrong, although the JSON in it is whole', async () => {
    const wrong = gzipSync(JSON_TEXT);
    wrong[wrong.length - GZIP_TRAILER] ^= 1;
    expect(await codeOf(wrong, 'gzip')).toBe('Z_DATA_ERROR');
  });

  it('keeps to the limit of the size', async () => {
    const large = JSON.stringify('x'.repeat(2 * MAX));
    expect(await codeOf(gzipSync(large).subarray(0, -GZIP_TRAILER), 'gzip')).toBe('ERR_BUFFER_TOO_LARGE');
  });
});

describe('zstd', () => {
  const test = zstdCompressSync ? it : it.skip;

  test('is read although nobody asks for it', async () => {
    expect(await decoded(zstdCompressSync!(JSON_TEXT), 'zstd')).toBe(JSON_TEXT);
    expect(await decoded(gzipSync(zstdCompressSync!(JSON_TEXT)), 'zstd, gzip')).toBe(JSON_TEXT);
    expect(await codeOf(zstdCompressSync!(Buffer.alloc(2 * MAX)), 'zstd')).toBe('ERR_BUFFER_TOO_LARGE');
  });

  test('is refused if it ends too early, also on Node 22, whose decoder returns what it has', async () => {
    for (const text of ['12345', JSON_TEXT, 'a,b\n'.repeat(5_000)]) {
      const whole = zstdCompressSync!(text);
      for (const missing of [1, 2, 3])
        expect(await codeOf(whole.subarray(0, -missing), 'zstd')).toBe('Z_BUF_ERROR');
    }
  });

  test('may have a window of 8 MiB, and no larger one', async () => {
    const text = JSON.stringify('abc'.repeat(7 * 2 ** 20));
    const compress = (windowLog: number) =>
      zstdCompressSync!(text, {
        params: { [ZSTD_c_windowLog]: windowLog, [ZSTD_c_enableLongDistanceMatching]: 1 },
      });
    expect((await decode(compress(23), 'zstd', 2 ** 30)).length).toBe(text.length);
    expect(await codeOf(compress(24), 'zstd', 2 ** 30)).toMatch(/^ZSTD_error_frameParameter_windowTooLarge$/);
  });

  it('is refused where this Node has none', async () => {
    const { zstdDecompress } = zlib as { zstdDecompress?: unknown };
    const code = await codeOf(Buffer.from(JSON_TEXT), 'zstd');
    expect(code === 'ERR_HTTP_CONTENT_CODING').toBe(zstdDecompress === undefined);
  });
});
