import { beforeAll, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Agent } from 'node:https';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { createAuthority, type Authority } from '../../helpers/certificates.js';
import { afterwards, errorOf, setUp } from './setup.js';

let authority: Authority;
beforeAll(async () => {
  authority = await createAuthority();
});

/** A server over TLS whose answers end with their connection, by a FIN without TLS's own end (close_notify). */
async function ending(answer: Buffer) {
  const { serverChain: cert, server, chain: ca } = authority;
  let raw: Socket;
  let requests = 0;
  const tls = createServer({ cert, key: server.key }, (socket) => {
    const below = raw;
    socket.on('error', () => undefined);
    socket.once('data', () => {
      requests += 1;
      // Behind what TLS writes for it.
      socket.write(answer, () => setImmediate(() => below.end()));
    });
  });
  const tcp = createTcpServer((socket) => {
    raw = socket.on('error', () => undefined);
    tls.emit('connection', socket);
  });
  tcp.listen(0, '127.0.0.1');
  await once(tcp, 'listening');
  const agent = new Agent({ ca });
  afterwards(() => void tcp.close());
  const baseUrl = `https://127.0.0.1:${(tcp.address() as AddressInfo).port}`;
  const { axios } = await setUp({ baseUrl, agent, timeoutMs: 10_000 });
  return { axios, requests: () => requests };
}

const OK = 'HTTP/1.1 200 OK\r\n';
const JSON_HEAD = `${OK}content-type: application/json\r\n\r\n`;
const GZIP_HEAD = `${OK}content-encoding: gzip\r\n\r\n`;
const CUT = { kind: 'reset' };

it.each<[string, Buffer, object]>([
  ['the beginning of an array', Buffer.from(`${JSON_HEAD}[{"id":1},{"id":2}`), CUT],
  ['a number, which may go on', Buffer.from(`${JSON_HEAD}12`), CUT],
  [
    'the beginning of gzip',
    Buffer.concat([Buffer.from(GZIP_HEAD), gzipSync('{"a":1}').subarray(0, 15)]),
    CUT,
  ],
  ['nothing', Buffer.from(JSON_HEAD), CUT],
  ...['identity', 'gzip', 'chunked, gzip', 'xchunked', 'chunked;q=1'].map(
    (coding): [string, Buffer, object] => [
      `a number in Transfer-Encoding: ${coding}`,
      Buffer.from(`${OK}transfer-encoding: ${coding}\r\n\r\n12`),
      CUT,
    ],
  ),
  [
    'the beginning of gzip in Transfer-Encoding: identity',
    Buffer.concat([
      Buffer.from(`${OK}content-encoding: gzip\r\ntransfer-encoding: identity\r\n\r\n`),
      gzipSync('{"a":1}').subarray(0, 15),
    ]),
    CUT,
  ],
  [
    'JSON that ends by itself in Transfer-Encoding: identity',
    Buffer.from(`${OK}transfer-encoding: identity\r\n\r\n{"a":1}`),
    { a: 1 },
  ],
  [
    'a number in chunks',
    Buffer.from(`${OK}transfer-encoding: identity, Chunked\r\n\r\n2\r\n12\r\n0\r\n\r\n`),
    Object(12) as object,
  ],
  ['a whole answer', Buffer.from(`${JSON_HEAD}{"a":1}`), { a: 1 }],
  ['a number of a known length', Buffer.from(`${OK}content-length: 2\r\n\r\n12`), Object(12) as object],
  ['no JSON of a known length', Buffer.from(`${OK}content-length: 1\r\n\r\n[`), { code: 'invalid_response' }],
])('an answer that ends with its connection after %s', async (what, answer, expected) => {
  const { axios, requests } = await ending(answer);
  const outcomeOf = (method: string) =>
    axios.request<unknown>({ url: '/a', method }).then(
      ({ data }) => (typeof data === 'number' ? Object(data) : data) as unknown,
      (error: unknown) => error,
    );
  expect(await outcomeOf('GET')).toMatchObject(expected);
  const attempts = expected === CUT ? 3 : 1;
  expect(requests()).toBe(attempts);
  const post = await outcomeOf('POST');
  if (what === 'nothing') expect(post).toBeUndefined();
  else expect(post).toMatchObject(expected === CUT ? { ...CUT, outcomeUnknown: true } : expected);
  expect(requests()).toBe(attempts + 1);
});

it('is whole where the caller asked for text or bytes', async () => {
  const { axios } = await ending(Buffer.from(`${OK}\r\nname;sum`));
  expect((await axios.get<unknown>('/a', { responseType: 'text' })).data).toBe('name;sum');
  expect((await axios.get<unknown>('/a', { responseType: 'arraybuffer' })).data).toEqual(
    Buffer.from('name;sum'),
  );
  expect(await errorOf(axios.get('/a'))).toMatchObject(CUT);
});

it.each(['204 No Content', '205 Reset Content'])('is whole where %s has none', async (status) => {
  const { axios, requests } = await ending(Buffer.from(`HTTP/1.1 ${status}\r\n\r\n`));
  expect((await axios.get<unknown>('/a')).data).toBeUndefined();
  expect(requests()).toBe(1);
});
