import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import * as net from 'node:net';
import * as tls from 'node:tls';
import { systemClock } from '../../../../lib/time/clock.js';
import { Secret } from '../../../../lib/config/secret.js';
import { exchange } from '../../../../lib/exchange/exchange.js';
import { PlainAgent } from '../../../../lib/tls/connections/clean-reuse.js';
import { IdentityAgent } from '../../../../lib/tls/connections/identity-agent.js';
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
async function setUp(way: Way, answering: Answering, { maxSockets = 5, greeting = '' } = {}) {
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
    ? new PlainAgent({ maxSockets })
    : new IdentityAgent((identity as { apiContext: tls.SecureContext }).apiContext, {
        maxSockets,
        proxyFor: () => proxy,
      });
  open.push(() => {
    if (agent instanceof IdentityAgent) return agent.close(0, systemClock);
    agent.destroy();
  });
  const url = new URL(`${isPlain ? 'http' : 'https'}://127.0.0.1:${port}`);
  const call = async (path: string, method = 'GET') => {
    const limits = { timeoutMs: 5_000, maxResponseBytes: 1_000 };
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

  it.each<[string, Answering]>([
    ['in one piece', (socket, own) => socket.write(Buffer.concat([own, FOREIGN]))],
    [
      'in two',
      (socket, own) => {
        socket.write(own);
        socket.write(FOREIGN);
      },
    ],
  ])('is not used again where an answer that nobody asked for follows at once, %s', async (_, twice) => {
    for (const maxSockets of [1, 5]) {
      const { call, connections } = await setUp(
        way,
        (socket, own, request) => (request === 1 ? twice(socket, own, request) : socket.write(own)),
        { maxSockets },
      );
      // The second one waits for the connection where there may be one only.
      const answers = maxSockets === 1 ? Promise.all([call('/a'), call('/b')]) : undefined;
      expect((await answers) ?? [await call('/a'), await call('/b')]).toEqual(['GET /a', 'GET /b']);
      expect(connections()).toBe(2);
    }
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

  it.each([204, 304])('is not used again after %d with the length of a body', async (status) => {
    const none = `HTTP/1.1 ${status} None\r\ncontent-length: 2\r\n\r\n`;
    const { call, connections } = await setUp(way, (socket, own, request) =>
      socket.write(request === 1 ? none : own),
    );
    expect(await call('/a')).toBe('');
    expect(await call('/b')).toBe('GET /b');
    expect(connections()).toBe(2);
  });
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

it('what a host asks by the agent is answered over clean connections too', async () => {
  const { agent, url, connections } = await setUp('TLSv1.3', (socket, own) => {
    socket.write(own);
    socket.write(FOREIGN);
  });
  const bodies: string[] = [];
  for (const path of ['/a', '/b', '/c']) {
    const [answered] = (await once(https.get(new URL(path, url), { agent }), 'response')) as [
      http.IncomingMessage,
    ];
    bodies.push((await answered.setEncoding('utf8').toArray()).join(''));
  }
  expect(bodies).toEqual(['GET /a', 'GET /b', 'GET /c']);
  expect(connections()).toBe(3);
});
