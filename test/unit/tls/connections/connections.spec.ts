import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import * as net from 'node:net';
import { nextTick } from 'node:process';
import * as tls from 'node:tls';
import axios from 'axios';
import { Secret } from '../../../../lib/config/secret.js';
import { exchange } from '../../../../lib/exchange/exchange.js';
import { Connections, connectPlain, type PoolSettings } from '../../../../lib/tls/connections/connections.js';
import { IdentityAgent } from '../../../../lib/tls/connections/identity-agent.js';
import { FakeClock } from '../../../helpers/fake-clock.js';
import { createAuthority, type Authority } from '../../../helpers/certificates.js';
import { until } from '../mtls-server.js';
import { loadIdentity, tlsSettings } from '../tls-settings.js';

let authority: Authority;
beforeAll(async () => {
  authority = await createAuthority();
});

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

type Answering = (socket: net.Socket, own: Buffer, request: number) => void;
type Way = 'TLSv1.2' | 'TLSv1.3' | 'a proxy' | 'plain http';
const WAYS: Way[] = ['TLSv1.2', 'TLSv1.3', 'a proxy', 'plain http'];

const answer = (body: string) =>
  Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
const FOREIGN = answer('foreign');

/** A server of bytes: what it answers to each request, and on which connections. */
async function setUp(
  way: Way,
  answering: Answering,
  { maxSockets = 5, greeting = '', clock, idleTimeoutMs }: Partial<PoolSettings & { greeting: string }> = {},
) {
  const sockets = new Set<net.Socket>();
  let connections = 0;
  let requests = 0;
  const serve = (socket: net.Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    // Each write goes out by itself, at once.
    socket.setNoDelay(true);
    if (greeting) socket.write(greeting);
    socket.on('data', (head) => {
      requests += 1;
      answering(socket, answer(head.toString().split(' ', 2).join(' ')), requests);
    });
  };
  const version = way.startsWith('TLS') ? (way as tls.SecureVersion) : undefined;
  const { serverChain: cert, server: pair, chain } = authority;
  const isPlain = way === 'plain http';
  const tlsOptions = { cert, key: pair.key, minVersion: version, maxVersion: version };
  const server = isPlain ? net.createServer(serve) : tls.createServer(tlsOptions, serve);
  const port = await listen(server);
  const proxy = way === 'a proxy' ? new Secret(`http://127.0.0.1:${await startProxy()}`) : undefined;
  const { identity } = await loadIdentity(tlsSettings({ chain }));
  const agent = isPlain
    ? new Connections(connectPlain({ maxSockets }), { maxSockets, clock, idleTimeoutMs })
    : new IdentityAgent(() => (identity as { apiContext: tls.SecureContext }).apiContext, {
        maxSockets,
        clock,
        idleTimeoutMs,
        proxyFor: () => proxy,
      });
  open.push(() => {
    return agent.close(0);
  });
  const url = new URL(`${isPlain ? 'http' : 'https'}://127.0.0.1:${port}`);
  const call = async (path: string, method = 'GET') => {
    // A guard alone: a busy machine may take seconds.
    const limits = { timeoutMs: 30_000, maxResponseBytes: 1_000 };
    const asked = { url: new URL(path, url), method, headers: {}, agent, ...limits };
    return (await exchange(asked)).body.toString();
  };
  return { agent, call, sockets, connections: () => connections, url };
}

async function listen(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(() => server.close());
  return (server.address() as net.AddressInfo).port;
}

function startProxy(): Promise<number> {
  const proxy = http.createServer().on('connect', ({ url = '' }, socket: net.Socket) => {
    const upstream = net.connect(Number(url.split(':')[1]), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(upstream).pipe(socket);
    });
    for (const each of [socket, upstream]) each.on('error', () => undefined);
    socket.on('close', () => upstream.destroy());
    upstream.on('close', () => socket.destroy());
  });
  return listen(proxy);
}

describe.each(WAYS)('A connection over %s', (way) => {
  it('is used again after an answer, at once, by a call that waited too', async () => {
    const { call, connections } = await setUp(way, (socket, own) => socket.write(own), { maxSockets: 1 });
    for (const path of ['/a', '/b']) expect(await call(path)).toBe(`GET ${path}`);
    expect(await Promise.all([call('/c'), call('/d')])).toEqual(['GET /c', 'GET /d']);
    expect(connections()).toBe(1);
  });

  it.each<[string, (socket: net.Socket, head: Buffer) => void]>([
    ['without a body', (socket, own) => socket.write(own.subarray(0, own.indexOf('\r\n\r\n') + 4))],
    ['with a body', (socket, own) => socket.write(own)],
    ['with an answer as its body', (socket, own) => socket.write(Buffer.concat([own, FOREIGN]))],
    [
      'with a body behind it',
      (socket, own) => {
        socket.write(own.subarray(0, own.indexOf('\r\n\r\n') + 4));
        socket.write(FOREIGN);
      },
    ],
  ])('is not used again after HEAD, answered %s', async (_, toHead) => {
    const { call, connections } = await setUp(way, (socket, own, request) =>
      request === 1 ? toHead(socket, own) : socket.write(own),
    );
    expect(await call('/a', 'HEAD')).toBe('');
    expect(await call('/b')).toBe('GET /b');
    expect(connections()).toBe(2);
  });

  it('is not used again where an answer that nobody asked for comes with the answer', async () => {
    const { call, connections } = await setUp(way, (socket, own, request) =>
      socket.write(request === 1 ? Buffer.concat([own, FOREIGN]) : own),
    );
    expect([await call('/a'), await call('/b')]).toEqual(['GET /a', 'GET /b']);
    expect(connections()).toBe(2);
  });

  it.each<[string, (socket: net.Socket, own: Buffer) => void]>([
    ['with the answer', (socket, own) => socket.write(Buffer.concat([own, FOREIGN]))],
    [
      'right behind it',
      (socket, own) => {
        socket.write(own);
        // What a proxy passes on may come a turn later.
        if (way !== 'a proxy') socket.write(FOREIGN);
      },
    ],
  ])('is not used by a call that waits where such an answer comes %s', async (_, both) => {
    const { call } = await setUp(
      way,
      (socket, own, request) => (request === 1 ? both(socket, own) : socket.write(own)),
      { maxSockets: 1 },
    );
    expect(await Promise.all([call('/a'), call('/b')])).toEqual(['GET /a', 'GET /b']);
  });

  it('breaks on its way to a call that waits, which takes another', async () => {
    const { agent, url, call, connections } = await setUp(way, (socket, own) => socket.write(own), {
      maxSockets: 1,
    });
    const first = (url.protocol === 'https:' ? https : http).get(url, { agent });
    const [socket] = (await once(first, 'socket')) as [net.Socket];
    const waiting = call('/b', 'POST');
    // It is free in a moment, and nobody listens to its errors.
    first.once('close', () => nextTick(() => socket.destroy(new Error('reset'))));
    expect(await waiting).toBe('POST /b');
    expect(connections()).toBe(2);
  });

  it('is closed where an answer comes while it is idle', async () => {
    const { agent, call, sockets, connections } = await setUp(way, (socket, own) => socket.write(own));
    expect(await call('/a')).toBe('GET /a');
    await until(() => Object.keys(agent.freeSockets).length > 0);
    for (const socket of sockets) socket.write(FOREIGN);
    await until(() => sockets.size === 0);
    expect(await call('/b')).toBe('GET /b');
    expect(connections()).toBe(2);
  });

  it('is not used again from the moment when the server ends it', async () => {
    const { agent, call, sockets, connections } = await setUp(way, (socket, own) => socket.write(own));
    await call('/a');
    await until(() => Object.keys(agent.freeSockets).length > 0);
    const [[idle]] = Object.values(agent.freeSockets) as [[net.Socket]];
    // Node 20 tells of the end before it closes the connection.
    const ended = new Promise((resolve) => idle.once('end', resolve).once('close', resolve));
    const next = ended.then(() => call('/b', 'POST'));
    for (const socket of sockets) socket.end();
    expect(await next).toBe('POST /b');
    expect(connections()).toBe(2);
  });

  it('is not used again after its idle time, but an older one that the server keeps for longer', async () => {
    const clock = new FakeClock();
    const held: (() => void)[] = [];
    const { agent, call, connections } = await setUp(
      way,
      (socket, own, request) => {
        const hint = request === 2 ? 'keep-alive: timeout=5\r\n' : '';
        const hinted = own.toString().replace('\r\n', `\r\n${hint}`);
        if (request > 2) socket.write(hinted);
        else held.push(() => socket.write(hinted));
      },
      { clock, idleTimeoutMs: 30_000 },
    );
    const answers = [call('/a'), call('/a')];
    await until(() => held.length === 2);
    const idle = () => Object.values(agent.freeSockets).flat().length;
    for (const [at, send] of held.entries()) {
      send();
      await until(() => idle() === at + 1);
    }
    await Promise.all(answers);
    clock.jump(4_001);
    expect(await call('/b', 'POST')).toBe('POST /b');
    expect(connections()).toBe(2);
  });

  it('is not used again after a sleep of the machine that ended its idle time, but not that of a younger one', async () => {
    const clock = new FakeClock();
    const held: (() => void)[] = [];
    const { agent, call, connections } = await setUp(
      way,
      (socket, own, request) => {
        const hint = request === 1 ? 'keep-alive: timeout=5\r\n' : '';
        const hinted = own.toString().replace('\r\n', `\r\n${hint}`);
        if (request > 2) socket.write(own);
        else held.push(() => socket.write(hinted));
      },
      { clock, idleTimeoutMs: 30_000 },
    );
    const answers = [call('/a'), call('/a')];
    await until(() => held.length === 2);
    for (const [at, send] of held.entries()) {
      send();
      await until(() => Object.values(agent.freeSockets).flat().length === at + 1);
    }
    await Promise.all(answers);
    clock.jump(4_001);
    expect(await Promise.all([call('/b', 'POST'), call('/c', 'POST')])).toEqual(['POST /b', 'POST /c']);
    expect(connections()).toBe(3);
  });

  it('is not ended while it has a call, however long, and is after that', async () => {
    const answering: Answering = (socket, own, request) => {
      if (request === 1) return void socket.write(own);
      const [[inUse]] = Object.values(used.agent.sockets) as [[net.Socket]];
      inUse.once('timeout', () => socket.write(own));
    };
    const used = await setUp(way, answering, { idleTimeoutMs: 400 });
    await used.call('/a');
    expect(await used.call('/b')).toBe('GET /b');
    expect([used.connections(), used.sockets.size]).toEqual([1, 1]);
    await until(() => used.sockets.size === 0);
  });

  describe.each([204, 304])('is not used again after %d', (status) => {
    it.each(['content-length: 2', 'transfer-encoding: chunked'])('with %s', async (announced) => {
      const none = `HTTP/1.1 ${status} None\r\n${announced}\r\n\r\n`;
      const { call, connections } = await setUp(way, withLateBody(none));
      expect(await call('/a')).toBe('');
      expect(await call('/b', 'POST')).toBe('POST /b');
      expect(connections()).toBe(2);
    });

    it('without either, it is', async () => {
      const { call, connections } = await setUp(way, (socket, own, request) =>
        socket.write(request === 1 ? `HTTP/1.1 ${status} None\r\ncontent-length: 0\r\n\r\n` : own),
      );
      expect([await call('/a'), await call('/b')]).toEqual(['', 'GET /b']);
      expect(connections()).toBe(1);
    });
  });

  it.each([
    ['4 s where neither the option nor the server says anything', '', undefined, 4_000],
    ['http.idleTimeout where the server says nothing', '', 7_000, 7_000],
    ['as long as the server says, less a second', 'timeout=5', 30_000, 4_000],
    ['so long also if that is longer than the option', 'max=100, timeout=20', 4_000, 19_000],
    ['60 s at most', 'timeout=300', 4_000, 60_000],
  ])('is used for %s', async (_, hint, idleTimeoutMs, expectedMs) => {
    const clock = new FakeClock();
    const head = `HTTP/1.1 200 OK\r\n${hint && `Keep-Alive: ${hint}\r\n`}content-length: 0\r\n\r\n`;
    const used = await setUp(way, (socket) => socket.write(head), { clock, idleTimeoutMs });
    for (const [waited, expected] of [
      [0, 1],
      [expectedMs, 1],
      [expectedMs + 1, 2],
    ]) {
      clock.jump(waited);
      await used.call('/a', 'POST');
      expect(used.connections()).toBe(expected);
      await until(() => Object.keys(used.agent.freeSockets).length > 0);
    }
  });

  it.each(['', 'Keep-Alive: timeout=60\r\n'])(
    'is never used again with http.idleTimeout: 0, by a call that waits neither (%j)',
    async (hint) => {
      const { agent, call, connections, sockets } = await setUp(
        way,
        (socket, own) => socket.write(own.toString().replace('\r\n', `\r\n${hint}`)),
        { maxSockets: 1, idleTimeoutMs: 0 },
      );
      expect(await Promise.all([call('/a'), call('/b')])).toEqual(['GET /a', 'GET /b']);
      expect(connections()).toBe(2);
      await until(() => sockets.size === 0);
      expect(Object.keys(agent.freeSockets)).toEqual([]);
    },
  );
});

it('A connection is not used again whose server spoke first', async () => {
  const greeting = FOREIGN.toString();
  const { call, connections, sockets } = await setUp('TLSv1.3', (socket, own) => socket.write(own), {
    greeting,
  });
  // An answer on a new connection: it may be one to the handshake, as 400 is. But the next call must not get ours.
  expect(await call('/a')).toBe('foreign');
  await until(() => sockets.size === 0);
  await call('/b');
  expect(connections()).toBe(2);
});

describe("A host's own call, then ours", () => {
  it.each<[string, string, boolean]>([
    ['HEAD', 'HTTP/1.1 200 OK\r\n\r\n', true],
    ['DELETE', 'HTTP/1.1 204 None\r\ntransfer-encoding: chunked\r\n\r\n', true],
    ['DELETE', 'HTTP/1.1 204 None\r\ntransfer-encoding: chunked\r\n\r\n', false],
    ['GET', 'HTTP/1.1 304 None\r\ncontent-length: 3\r\n\r\n', true],
  ])('after %s answered %j: no leftover is our answer; the host reads: %s', async (method, none, reads) => {
    const { agent, url, call, connections } = await setUp('TLSv1.3', withLateBody(none));
    const request = https.request(url, { agent, method });
    if (reads) request.on('response', (response) => response.resume());
    await once(request.end(), 'close');
    expect(await call('/b', 'POST')).toBe('POST /b');
    expect(connections()).toBe(2);
  });

  it('is read when its host reads it, also later', async () => {
    const { agent, url } = await setUp('TLSv1.3', (socket, own) => socket.write(own));
    const [response] = (await once(https.get(new URL('/later', url), { agent }), 'response')) as [
      http.IncomingMessage,
    ];
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(Buffer.concat((await response.toArray()) as Buffer[]).toString()).toBe('GET /later');
  });

  it('axios gives its connection back clean too', async () => {
    const none = 'HTTP/1.1 204 None\r\ntransfer-encoding: chunked\r\n\r\n';
    const { agent, url, call } = await setUp('TLSv1.3', withLateBody(none));
    expect((await axios.delete(url.href, { httpsAgent: agent, proxy: false })).status).toBe(204);
    expect(await call('/b', 'POST')).toBe('POST /b');
  });

  it('a request to which nobody listens gives its connection back', async () => {
    const { agent, url, call, connections } = await setUp('TLSv1.3', (socket, own) => socket.write(own));
    https.get(url, { agent });
    await until(() => Object.keys(agent.freeSockets).length > 0);
    expect(await call('/b')).toBe('GET /b');
    expect(connections()).toBe(1);
  });
});

/** The first answer, whose body is on its way while the next request comes. */
function withLateBody(first: string): Answering {
  let late: net.Socket | undefined;
  return (socket, own, request) => {
    if (request > 1) return void socket.write(socket === late ? FOREIGN : own);
    late = socket;
    socket.write(first);
  };
}
