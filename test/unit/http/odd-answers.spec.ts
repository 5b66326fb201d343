import { beforeAll, describe, expect, it } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import { Agent as HttpAgent, type ServerResponse } from 'node:http';
import { Agent } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { ServiceTokenError } from '../../../lib/errors/index.js';
import { type Authority, createAuthority } from '../../helpers/certificates.js';
import { afterwards, errorOf, setUp } from './setup.js';

describe('an answer that is cut', () => {
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
  const NO_JSON = { code: 'invalid_response', outcomeUnknown: false };
  const NO_GZIP = { kind: 'protocol', reason: 'Z_BUF_ERROR', outcomeUnknown: false };

  it.each<[string, Buffer, object]>([
    ['the beginning of an array', Buffer.from(`${JSON_HEAD}[{"id":1},{"id":2}`), NO_JSON],
    ['a number, which may go on', Buffer.from(`${JSON_HEAD}12`), NO_JSON],
    [
      'the beginning of gzip',
      Buffer.concat([Buffer.from(GZIP_HEAD), gzipSync('{"a":1}').subarray(0, 15)]),
      NO_GZIP,
    ],
    ['nothing', Buffer.from(JSON_HEAD), NO_JSON],
    ...['identity', 'gzip', 'chunked, gzip', 'xchunked', 'chunked;q=1'].map(
      (coding): [string, Buffer, object] => [
        `a number in Transfer-Encoding: ${coding}`,
        Buffer.from(`${OK}transfer-encoding: ${coding}\r\n\r\n12`),
        NO_JSON,
      ],
    ),
    [
      'the beginning of gzip in Transfer-Encoding: identity',
      Buffer.concat([
        Buffer.from(`${OK}content-encoding: gzip\r\ntransfer-encoding: identity\r\n\r\n`),
        gzipSync('{"a":1}').subarray(0, 15),
      ]),
      NO_GZIP,
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
    ['no JSON of a known length', Buffer.from(`${OK}content-length: 1\r\n\r\n[`), NO_JSON],
  ])('an answer that ends with its connection after %s', async (what, answer, expected) => {
    const { axios, requests } = await ending(answer);
    const outcomeOf = (method: string) =>
      axios.request<unknown>({ url: '/a', method }).then(
        ({ data }) => (typeof data === 'number' ? Object(data) : data) as unknown,
        (error: unknown) => error,
      );
    expect(await outcomeOf('GET')).toMatchObject(expected);
    expect(requests()).toBe(1);
    const post = await outcomeOf('POST');
    if (what === 'nothing') expect(post).toBeUndefined();
    else
      expect(post).toMatchObject({
        ...expected,
        ...('outcomeUnknown' in expected && { outcomeUnknown: true }),
      });
    expect(requests()).toBe(2);
  });

  it('is whole where the caller asked for text or bytes', async () => {
    const { axios } = await ending(Buffer.from(`${OK}\r\nname;sum`));
    expect((await axios.get<unknown>('/a', { responseType: 'text' })).data).toBe('name;sum');
    expect((await axios.get<unknown>('/a', { responseType: 'arraybuffer' })).data).toEqual(
      Buffer.from('name;sum'),
    );
    expect(await errorOf(axios.get('/a'))).toMatchObject(NO_JSON);
  });

  it.each(['204 No Content', '205 Reset Content'])('is whole where %s has none', async (status) => {
    const { axios, requests } = await ending(Buffer.from(`HTTP/1.1 ${status}\r\n\r\n`));
    expect((await axios.get<unknown>('/a')).data).toBeUndefined();
    expect(requests()).toBe(1);
  });
});

const PLAIN = '<html><h1>Access denied</h1></html>';
const NGINX =
  '<html>\r\n<head><title>400 No required SSL certificate was sent</title></head>\r\n<body></body></html>';
/** A filter's, which withheld the answer to a call that was carried out. */
const WITHHELD = '<html>The answer was withheld. <a href="/ca">Install our root certificate</a></html>';
const html = { 'content-type': 'text/html' };

/** A page may come from a firewall that looks at answers, after the application acted. */
type Row = [method: string, status: number, headers: Record<string, string>, page: string, attempts: number];
it.each<Row>([
  ['GET', 403, html, PLAIN, 2],
  ['POST', 403, html, PLAIN, 1],
  ['DELETE', 403, html, PLAIN, 1],
  ['POST', 401, html, PLAIN, 1],
  ['GET', 401, html, PLAIN, 2],
  ['POST', 401, { ...html, 'www-authenticate': 'Basic realm=x' }, PLAIN, 1],
  ['POST', 401, { ...html, 'www-authenticate': 'Bearer error="invalid_token"' }, PLAIN, 2],
  ['POST', 401, {}, '{"status":"UNAUTHORIZED","message":"no"}', 2],
  ['POST', 400, html, NGINX, 1],
  ['GET', 400, html, NGINX, 2],
  ['POST', 403, html, NGINX, 1],
  ...['POST', 'PUT', 'PATCH', 'DELETE'].map((method): Row => [method, 400, html, WITHHELD, 1]),
  ['POST', 401, html, WITHHELD, 1],
  ['POST', 403, html, WITHHELD, 1],
  ['GET', 400, html, WITHHELD, 2],
  ['GET', 403, html, WITHHELD, 2],
  ['POST', 495, {}, '', 1],
  ['GET', 496, {}, '', 2],
  ['POST', 400, html, PLAIN, 1],
  ['POST', 408, {}, '', 1],
])('%s answered %d with %j and %s: %d attempts where credentials are renewed', async (...row) => {
  const [method, status, headers, page, attempts] = row;
  let left = 1;
  const { axios, arrived } = await setUp({
    listener: (_, response) => {
      if (left-- > 0) response.writeHead(status, headers).end(page);
      else response.end('{"ok":true}');
    },
    renewed: { Authorization: 'Bearer new' },
    identity: { reloadAfterRefusal: async () => true },
    retries: 0,
  });
  const outcome = axios.request<unknown>({ url: '/a', method, data: method === 'GET' ? undefined : {} });
  if (attempts === 2) expect((await outcome).data).toEqual({ ok: true });
  else expect(await errorOf(outcome)).toMatchObject({ status });
  expect(arrived).toHaveLength(attempts);
  // What was renewed is there for the next call.
  expect((await axios.get<unknown>('/a')).data).toEqual({ ok: true });
});

it('a certificate that is refused again after it was read anew is not sent a third time', async () => {
  let read = 0;
  const { axios, arrived } = await setUp({
    listener: (_, response) => response.writeHead(495).end(),
    identity: { reloadAfterRefusal: async () => (read += 1) < 5 },
    retries: 0,
  });
  expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 495 });
  expect([arrived.length, read]).toEqual([2, 1]);
});

it.each([
  [400, NGINX],
  [495, ''],
])('%d is no proof on a connection that was used before', async (status, page) => {
  let asked = 0;
  const { axios, arrived } = await setUp({
    listener: ({ url }, response) => {
      if (url === '/a') response.writeHead(status, html).end(page);
      else response.end('{}');
    },
    identity: { reloadAfterRefusal: async () => (asked += 1) > 0 },
  });
  await axios.get('/first');
  expect(await errorOf(axios.post('/a', {}))).toMatchObject({ status, credentialFault: true });
  expect(arrived.map(({ url }) => url)).toEqual(['/first', '/a']);
  // For the next call.
  expect(asked).toBe(1);
});

it('is no proof for a POST that waited for a connection in use, which Node does not count as used again', async () => {
  const { axios, arrived } = await setUp({
    listener: ({ url }, response) => {
      if (url === '/a') response.writeHead(400, html).end(NGINX);
      else response.end('{}');
    },
    agent: new HttpAgent({ keepAlive: true, maxSockets: 1 }),
    identity: { reloadAfterRefusal: async () => true },
  });
  const [, error] = await Promise.all([axios.get('/first'), errorOf(axios.post('/a', {}))]);
  expect(error).toMatchObject({ status: 400 });
  expect(arrived).toHaveLength(2);
});

describe('where no other token can be had after a 401', () => {
  const fault = new ServiceTokenError({ code: 'token_rate_limited', message: 'm' });
  it.each([
    ['POST', html, PLAIN, { status: 401 }],
    ['GET', html, PLAIN, { code: 'token_rate_limited' }],
    ['POST', {}, '{"status":401}', { code: 'token_rate_limited' }],
  ])('a %s answered with %j %s gets %j', async (method, headers, page, expected) => {
    const { axios, arrived } = await setUp({
      listener: (_, response) => response.writeHead(401, headers).end(page),
      renewed: fault,
    });
    expect(await errorOf(axios.request({ url: '/a', method }))).toMatchObject(expected);
    expect(arrived).toHaveLength(1);
  });
});

/** An identity whose reading never ends. */
const hanging = (begun: () => void = () => undefined) => ({
  reloadAfterRefusal: () => {
    begun();
    return new Promise<boolean>(() => undefined);
  },
});
const refusesAll = (page: string) => (_: unknown, response: ServerResponse) =>
  response.writeHead(400, html).end(page);

describe('while the identity is read again', () => {
  it.each([
    ['GET', NGINX, { kind: 'timeout', outcomeUnknown: false }],
    // It has its answer: nothing will change it.
    ['POST', NGINX, { status: 400, outcomeUnknown: true }],
    ['POST', WITHHELD, { status: 400 }],
  ])('a %s answered %s ends at its deadline', async (method, page, expected) => {
    const { axios } = await setUp({ listener: refusesAll(page), identity: hanging() });
    expect(await errorOf(axios.request({ url: '/a', method, timeout: 300 }))).toMatchObject(expected);
  });

  it.each(['GET', 'POST'])("a %s ends with the caller's own reason", async (method) => {
    for (const page of [NGINX, WITHHELD]) {
      const controller = new AbortController();
      const reason = new Error('mine');
      const identity = hanging(() => controller.abort(reason));
      const { axios } = await setUp({ listener: refusesAll(page), identity });
      expect(await errorOf(axios.request({ url: '/a', method, signal: controller.signal }))).toBe(reason);
    }
  });

  it('a call that the shutdown cuts ends as closed', async () => {
    const events = new EventEmitter();
    const begun = once(events, 'begun');
    const identity = hanging(() => events.emit('begun'));
    const { axios, inFlight } = await setUp({ listener: refusesAll(NGINX), identity });
    const cutOff = errorOf(axios.get('/a'));
    await begun;
    inFlight.close();
    expect(await cutOff).toMatchObject({ kind: 'closed', outcomeUnknown: false });
  });
});
