import { describe, expect, it } from '@jest/globals';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ServiceRequestError } from '../../../lib/errors/index.js';
import { checkTimeout } from '../../../lib/exchange/call-limits.js';
import { parseJson } from '../../../lib/exchange/decode.js';
import { parseRetryAfter } from '../../../lib/exchange/retry-after.js';
import { rawServer } from '../../helpers/loopback.js';
import { startProcess } from '../../helpers/sample-process.js';
import { REGISTER } from '../../helpers/source-process.js';

describe('parseJson', () => {
  it('passes over a byte order mark', () => {
    expect(parseJson('\uFEFF{"a":1}')).toEqual({ a: 1 });
  });

  it('gives undefined for what is no JSON', () => {
    expect(parseJson('<html>')).toBeUndefined();
  });
});

const NOW = Date.UTC(2030, 0, 1, 12, 0, 0);

describe('parseRetryAfter', () => {
  it.each([
    ['0', 0],
    ['120', 120],
    [' 7 ', 7],
    ['1.2', 2],
    ['Tue, 01 Jan 2030 12:00:30 GMT', 30],
    ['Tuesday, 01-Jan-30 12:00:30 GMT', 30],
    ['Mon, 31 Dec 2029 12:00:00 GMT', 0],
    [['5', '9'], 5],
    ['2147483648', 2 ** 31],
    ['2147483649', 2 ** 31],
    ['12345678901234567', 2 ** 31],
    ['9'.repeat(310), 2 ** 31],
    ['Fri, 31 Dec 9999 23:59:59 GMT', 2 ** 31],
  ])('%j is %d s', (value, seconds) => {
    expect(parseRetryAfter(value, NOW)).toBe(seconds);
  });

  it.each([undefined, '', '-5', 'soon', '1e3', 'Tue, never', '2030-01-01', []])(
    '%j says nothing',
    (value) => {
      expect(parseRetryAfter(value, NOW)).toBeUndefined();
    },
  );
});

const ROOT = join(import.meta.dirname, '../../..');
const BYTES = 1_000_000;

const program = (url: string): string => `
  import { Agent } from 'node:http';
  const { exchange } = await import(${JSON.stringify(pathToFileURL(join(ROOT, 'lib/exchange/exchange.ts')).href)});
  const { body } = await exchange({
    url: new URL('${url}'),
    method: 'GET',
    headers: {},
    agent: new Agent(),
    timeoutMs: 600_000,
    maxResponseBytes: ${BYTES},
  });
  const [first] = body;
  console.log(body.length, body.every((byte) => byte === first));`;

it('a body in chunks of one byte takes no more memory than any other', async () => {
  const server = await rawServer((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      socket.end(`${'1\r\nx\r\n'.repeat(BYTES)}0\r\n\r\n`);
    });
  });
  // A Buffer for each byte would take 200 MB.
  const node = [process.execPath, '--no-warnings', '--max-old-space-size=64', '--import', REGISTER];
  const child = startProcess([...node, '--input-type=module', '--eval', program(server.url)], { cwd: ROOT });
  try {
    const { code } = await child.exited;
    expect([code, child.output().trim()]).toEqual([0, `${BYTES} true`]);
  } finally {
    await child.kill();
    await server.close();
  }
});

it.each([
  [undefined, undefined],
  [null, undefined],
  [0, undefined],
  [1, 1],
  [86_400_000, 86_400_000],
])('takes %s for a time limit of %s', (given, limit) => {
  expect(checkTimeout(given)).toBe(limit);
});

it.each([-1, 86_400_001, Infinity, NaN, '5', true, {}])('refuses %s as a time limit', (given) => {
  expect(() => checkTimeout(given)).toThrow(ServiceRequestError);
});
