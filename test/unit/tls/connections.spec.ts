import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import dns, { type LookupAddress } from 'node:dns';
import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import * as net from 'node:net';
import { nextTick } from 'node:process';
import tls from 'node:tls';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { shakeHands } from '../../../lib/cli/doctor/handshake.js';
import { Secret } from '../../../lib/config/secret.js';
import { exchange } from '../../../lib/exchange/exchange.js';
import { type ExchangeFault } from '../../../lib/exchange/fault.js';
import { type ExchangeRequest } from '../../../lib/exchange/io.js';
import { detectUnreadInput } from '../../../lib/tls/connections/connection-state.js';
import { plainConnector, tlsConnector, ProxyTunnel } from '../../../lib/tls/connections/connectors.js';
import { type AgentSettings, KeepAliveAgent } from '../../../lib/tls/connections/keep-alive-agent.js';
import { blockEventLoop } from '../../helpers/block-event-loop.js';
import { createAuthority, type Authority, type Issued } from '../../helpers/certificates.js';
import { startConnectProxy } from '../../helpers/connect-proxy.js';
import { FakeClock } from '../../helpers/fake-clock.js';
import { freePort } from '../../helpers/loopback.js';
import { nodeProcess } from '../../helpers/node-process.js';
import { silentAddress } from '../../helpers/silent-address.js';
import {
  sendRequest,
  mtlsServer,
  type MtlsServer,
  type MtlsServerOptions,
} from '../../helpers/mtls-server.js';
import { until } from '../../helpers/until.js';
import { loadIdentity, tlsSettings } from './tls-settings.js';

let authority: Authority;
let first: Issued;
let second: Issued;
const open: (() => unknown)[] = [];

beforeAll(async () => {
  authority = await createAuthority();
  [first, second] = await Promise.all([authority.client('first'), authority.client('second')]);
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const close of open.splice(0).reverse()) await close();
});

async function server(options?: MtlsServerOptions, by = authority): Promise<MtlsServer> {
  const started = await mtlsServer(by, options);
  open.push(() => started.close());
  return started;
}

/** One whose answers wait until the test sends them. */
async function holdingServer(options?: MtlsServerOptions) {
  const waiting: http.ServerResponse[] = [];
  const live = await server({ ...options, onRequest: (_, response) => void waiting.push(response) });
  return { live, waiting };
}

async function contextOf(
  client: Issued | undefined,
  chain: string | undefined = authority.chain,
): Promise<() => tls.SecureContext> {
  const pems = client ? { certificate: client.certificate, privateKey: client.key } : {};
  const { identity, faults } = await loadIdentity(tlsSettings({ ...pems, chain }));
  expect(faults).toEqual([]);
  return () => (identity as { apiContext: tls.SecureContext }).apiContext;
}

async function agent(settings = {}, context?: () => tls.SecureContext): Promise<KeepAliveAgent> {
  const connect = tlsConnector(context ?? (await contextOf(first)), settings);
  const made = new KeepAliveAgent(connect, { maxSockets: 50, ...settings });
  open.push(() => made.close(0));
  return made;
}

async function listen(listening: net.Server, host = '127.0.0.1', port = 0): Promise<number> {
  listening.listen(port, host);
  await once(listening, 'listening');
  open.push(() => {
    listening.close();
    if (listening instanceof http.Server) listening.closeAllConnections();
  });
  return (listening.address() as net.AddressInfo).port;
}

const idleOf = ({ freeSockets }: http.Agent) => Object.values(freeSockets).flat() as net.Socket[];
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Runs `count` calls with so many at a time. */
async function run(count: number, concurrency: number, one: () => Promise<unknown>): Promise<void> {
  let left = count;
  const worker = async () => {
    while (left-- > 0) await one();
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

type Answering = (socket: net.Socket, own: Buffer, request: number) => void;
type Way = 'TLSv1.2' | 'TLSv1.3' | 'a proxy' | 'plain http';
const WAYS: Way[] = ['TLSv1.2', 'TLSv1.3', 'a proxy', 'plain http'];

const answer = (body: string) =>
  Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
const FOREIGN = answer('foreign');
const headOf = (own: Buffer) => own.subarray(0, own.indexOf('\r\n\r\n') + 4);
const withHeader = (own: Buffer, header: string) => own.toString().replace('\r\n', `\r\n${header}`);

/** A server that writes the given bytes as the response to each request, and counts its connections. */
async function setUp(
  way: Way,
  answering: Answering,
  {
    maxSockets = 5,
    greeting = '',
    clock,
    idleTimeoutMs,
    longIdleTimeoutMs,
  }: Partial<AgentSettings & { greeting: string }> = {},
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
  const { serverChain: cert, server: pair } = authority;
  const isPlain = way === 'plain http';
  const tlsOptions = { cert, key: pair.key, minVersion: version, maxVersion: version };
  const port = await listen(isPlain ? net.createServer(serve) : tls.createServer(tlsOptions, serve));
  const settings = { maxSockets, clock, idleTimeoutMs, longIdleTimeoutMs };
  let used: KeepAliveAgent;
  let endAll = (): void => sockets.forEach((socket) => socket.destroy());
  if (isPlain) {
    const plain = new KeepAliveAgent(plainConnector(), settings, 'http:');
    used = plain;
    open.push(() => plain.close(0));
  } else {
    const proxy = way === 'a proxy' ? await startConnectProxy() : undefined;
    if (proxy) {
      open.push(() => proxy.stop());
      endAll = proxy.drop;
    }
    used = await agent({ ...settings, proxyFor: () => proxy && new Secret(proxy.url) });
  }
  const url = new URL(`${isPlain ? 'http' : 'https'}://127.0.0.1:${port}`);
  const send = async (path: string, method = 'GET', more: Partial<ExchangeRequest> = {}) => {
    // A guard alone: a busy machine may take seconds.
    const limits = { timeoutMs: 30_000, maxResponseBytes: 1_000 };
    const request = { url: new URL(path, url), method, headers: {}, agent: used, ...limits, ...more };
    return (await exchange(request)).body.toString();
  };
  return { agent: used, call: send, sockets, endAll, connections: () => connections, url };
}

/** The first response announces a body that only arrives after the next request has been sent. */
function withLateBody(begun: string): Answering {
  let late: net.Socket | undefined;
  return (socket, own, request) => {
    if (request > 1) return void socket.write(socket === late ? FOREIGN : own);
    late = socket;
    socket.write(begun);
  };
}

describe.each(WAYS)('A connection over %s', (way) => {
  it('is reused after a response, also at once by a request that waited in the queue', async () => {
    const { call, connections } = await setUp(way, (socket, own) => socket.write(own), { maxSockets: 1 });
    for (const path of ['/a', '/b']) expect(await call(path)).toBe(`GET ${path}`);
    expect(await Promise.all([call('/c'), call('/d')])).toEqual(['GET /c', 'GET /d']);
    expect(connections()).toBe(1);
  });

  it.each<[string, string, (socket: net.Socket, own: Buffer) => void]>([
    ['a HEAD whose response has no body', 'HEAD', (socket, own) => socket.write(headOf(own))],
    ['a HEAD whose response wrongly carries a body', 'HEAD', (socket, own) => socket.write(own)],
    [
      'a HEAD whose response wrongly carries a body, with another response right behind it',
      'HEAD',
      (socket, own) => socket.write(Buffer.concat([own, FOREIGN])),
    ],
    [
      'a HEAD whose response is followed by another response',
      'HEAD',
      (socket, own) => {
        socket.write(headOf(own));
        socket.write(FOREIGN);
      },
    ],
    [
      'a response that comes together with another one',
      'GET',
      (socket, own) => socket.write(Buffer.concat([own, FOREIGN])),
    ],
  ])('is not used again after %s', async (_, method, toFirst) => {
    const { call, connections } = await setUp(way, (socket, own, request) =>
      request === 1 ? toFirst(socket, own) : socket.write(own),
    );
    expect([await call('/a', method), await call('/b')]).toEqual([
      method === 'GET' ? 'GET /a' : '',
      'GET /b',
    ]);
    expect(connections()).toBe(2);
  });

  it.each<[string, (socket: net.Socket, own: Buffer) => void]>([
    ['in the same write as the first response', (socket, own) => socket.write(Buffer.concat([own, FOREIGN]))],
    [
      'right behind the first response',
      (socket, own) => {
        socket.write(own);
        // What a proxy passes on may come a turn later.
        if (way !== 'a proxy') socket.write(FOREIGN);
      },
    ],
  ])('is not reused by a waiting request if another response comes %s', async (_, both) => {
    const { call } = await setUp(
      way,
      (socket, own, request) => (request === 1 ? both(socket, own) : socket.write(own)),
      { maxSockets: 1 },
    );
    expect(await Promise.all([call('/a'), call('/b')])).toEqual(['GET /a', 'GET /b']);
  });

  it('is replaced by a new connection if it breaks before a waiting request gets it', async () => {
    const { agent, url, call, connections } = await setUp(way, (socket, own) => socket.write(own), {
      maxSockets: 1,
    });
    const first = (url.protocol === 'https:' ? https : http).get(url, { agent });
    const [socket] = (await once(first, 'socket')) as [net.Socket];
    const waiting = call('/b', 'POST');
    // The socket is about to become free, and no request listens to its errors.
    first.once('close', () => nextTick(() => socket.destroy(new Error('reset'))));
    expect(await waiting).toBe('POST /b');
    expect(connections()).toBe(2);
  });

  it('is closed if a response arrives while it is idle', async () => {
    const { agent, call, sockets, connections } = await setUp(way, (socket, own) => socket.write(own));
    expect(await call('/a')).toBe('GET /a');
    await until(() => idleOf(agent).length > 0);
    for (const socket of sockets) socket.write(FOREIGN);
    await until(() => sockets.size === 0);
    expect(await call('/b')).toBe('GET /b');
    expect(connections()).toBe(2);
  });

  it('is not reused for a POST once the event loop has read its FIN', async () => {
    const { agent, call, sockets, connections } = await setUp(way, (socket, own) => socket.write(own));
    await call('/a');
    await until(() => idleOf(agent).length > 0);
    const [idle] = idleOf(agent);
    // Node 20 emits 'end' before it closes the connection.
    const ended = new Promise((resolve) => idle.once('end', resolve).once('close', resolve));
    const next = ended.then(() => call('/b', 'POST'));
    for (const socket of sockets) socket.end();
    expect(await next).toBe('POST /b');
    expect(connections()).toBe(2);
  });

  // The proxy runs in this process, so it passes nothing on before the event loop reads it.
  const withoutProxy = way === 'a proxy' ? it.skip : it;
  withoutProxy(
    'is not reused for a GET if a second response has arrived while the event loop was blocked',
    async () => {
      const { agent, call, sockets, connections } = await setUp(way, (socket, own) => socket.write(own));
      await call('/a');
      await until(() => idleOf(agent).length === 1);
      for (const socket of sockets) socket.write(FOREIGN);
      blockEventLoop(20);
      expect(await call('/b', 'GET', { mayUseOlderConnection: true })).toBe('GET /b');
      expect(connections()).toBe(2);
    },
  );

  it.each(['127.0.0.1', 'localhost'])(
    'is not reused for a POST if its FIN has arrived but the event loop has not read the FIN yet (host %s)',
    async (host) => {
      const { agent, call, url, endAll, connections } = await setUp(way, (socket, own) => socket.write(own));
      url.hostname = host;
      await Promise.all([call('/a'), call('/b')]);
      await until(() => idleOf(agent).length === 2);
      endAll();
      expect(await call('/c', 'POST')).toBe('POST /c');
      expect(connections()).toBe(3);
    },
  );

  it.each([
    ['an older connection that the server keeps for longer is reused', 2, ['/b'], 2],
    [
      'a younger connection that the server keeps for longer is reused, and further requests connect',
      1,
      ['/b', '/c'],
      3,
    ],
  ])(
    'is not reused after the machine slept beyond its idle timeout; %s',
    async (_, hinted, next, expected) => {
      const clock = new FakeClock();
      const held: (() => void)[] = [];
      const { agent, call, connections } = await setUp(
        way,
        (socket, own, request) => {
          const hint = request === hinted ? 'keep-alive: timeout=5\r\n' : '';
          if (request > 2) socket.write(own);
          else held.push(() => socket.write(withHeader(own, hint)));
        },
        { clock, idleTimeoutMs: 30_000 },
      );
      const responses = [call('/a'), call('/a')];
      await until(() => held.length === 2);
      for (const [at, send] of held.entries()) {
        send();
        await until(() => idleOf(agent).length === at + 1);
      }
      await Promise.all(responses);
      clock.jump(4_001);
      const posts = await Promise.all(next.map((path) => call(path, 'POST')));
      expect(posts).toEqual(next.map((path) => `POST ${path}`));
      expect(connections()).toBe(expected);
    },
  );

  describe('Long-idle connection', () => {
    const REPEATABLE = { mayUseOlderConnection: true };

    it.each([
      ['55 s without a Keep-Alive hint', '', undefined, 55_000],
      ['19 s with a Keep-Alive hint of 20 s', 'Keep-Alive: timeout=20\r\n', undefined, 19_000],
      ['http.idleTimeout if that is longer than 55 s', '', 90_000, 90_000],
    ])(
      'is reused by a repeatable request after an idle time of at most %s',
      async (_, hint, idleTimeoutMs, limitMs) => {
        const clock = new FakeClock();
        const { agent, call, connections } = await setUp(
          way,
          (socket, own) => socket.write(withHeader(own, hint)),
          { clock, idleTimeoutMs },
        );
        await call('/a');
        for (const [waitedMs, expected] of [
          [limitMs, 1],
          [limitMs + 1, 2],
        ]) {
          await until(() => idleOf(agent).length === 1);
          clock.jump(waitedMs);
          await call('/b', 'GET', REPEATABLE);
          expect(connections()).toBe(expected);
        }
      },
    );

    it('is not reused by any request with http.idleTimeout: 0', async () => {
      const { call, connections } = await setUp(way, (socket, own) => socket.write(own), {
        idleTimeoutMs: 0,
      });
      for (let calls = 0; calls < 2; calls += 1) await call('/a', 'GET', REPEATABLE);
      expect(connections()).toBe(2);
    });

    it('is not reused by a non-repeatable request, which opens a new one and closes the oldest; the others stay for reads', async () => {
      const clock = new FakeClock();
      const { agent, call, sockets, connections } = await setUp(way, (socket, own) => socket.write(own), {
        clock,
      });
      await Promise.all(['/a', '/b', '/c'].map((path) => call(path)));
      await until(() => idleOf(agent).length === 3);
      for (let calls = 1; calls <= 5; calls += 1) {
        clock.jump(4_001);
        await call('/d', 'POST');
        await until(() => idleOf(agent).length === 3 && sockets.size === 3);
        expect(connections()).toBe(3 + calls);
      }
      clock.jump(4_001);
      await Promise.all(['/e', '/f', '/g'].map((path) => call(path, 'GET', REPEATABLE)));
      expect(connections()).toBe(8);
    });

    it('has a time limit for the first byte of the response after an idle time over 4 s, and none after a shorter one', async () => {
      const clock = new FakeClock();
      let isDead = false;
      const { agent, call } = await setUp(way, (socket, own) => void (isDead || socket.write(own)), {
        clock,
      });
      const limits = { ...REPEATABLE, idleConnectionTimeoutMs: 50, timeoutMs: 400 };
      for (const [idleMs, reason] of [
        [4_001, 'ERR_IDLE_CONNECTION_TIMEOUT'],
        [4_000, undefined],
      ] as const) {
        isDead = false;
        await call('/a');
        await until(() => idleOf(agent).length === 1);
        isDead = true;
        clock.jump(idleMs);
        const fault = await call('/b', 'GET', limits).catch((error: unknown) => error as ExchangeFault);
        expect(fault).toMatchObject({ kind: 'timeout', phase: 'sent', reusedSocket: true });
        expect((fault as ExchangeFault).reason).toBe(reason);
      }
    });

    it('closes the other connections of its origin if it turns out to be dead, and for 5 minutes only http.idleTimeout counts', async () => {
      const clock = new FakeClock();
      let isDead = false;
      const { agent, call, sockets, connections } = await setUp(
        way,
        (socket, own) => void (isDead || socket.write(own)),
        { clock },
      );
      const idle = async () => {
        await until(() => idleOf(agent).length > 0);
        clock.jump(10_000);
      };
      await Promise.all(['/a', '/b', '/c'].map((path) => call(path)));
      await until(() => idleOf(agent).length === 3);
      clock.jump(10_000);
      isDead = true;
      const lost = call('/lost', 'GET', { ...REPEATABLE, timeoutMs: 200 });
      await until(() => idleOf(agent).length === 2);
      clock.jump(1_001);
      await expect(lost).rejects.toMatchObject({ kind: 'timeout', phase: 'sent' });
      await until(() => sockets.size === 0);
      isDead = false;
      for (const expected of [4, 5]) {
        await call('/d', 'GET', REPEATABLE);
        expect(connections()).toBe(expected);
        await idle();
      }
      await clock.advance(300_000);
      await call('/e', 'GET', REPEATABLE);
      await idle();
      await call('/f', 'GET', REPEATABLE);
      expect(connections()).toBe(6);
    });
  });

  it('is not closed during a request that outlasts the idle timeout, but after it', async () => {
    const answering: Answering = (socket, own, request) => {
      if (request === 1) return void socket.write(own);
      const [[inUse]] = Object.values(used.agent.sockets) as [[net.Socket]];
      inUse.once('timeout', () => socket.write(own));
    };
    const used = await setUp(way, answering, { idleTimeoutMs: 400, longIdleTimeoutMs: 400 });
    await used.call('/a');
    expect(await used.call('/b')).toBe('GET /b');
    expect([used.connections(), used.sockets.size]).toEqual([1, 1]);
    await until(() => used.sockets.size === 0);
  });

  it.each([
    ['204 None', 'content-length: 2', 2],
    ['204 None', 'transfer-encoding: chunked', 2],
    ['204 None', 'content-length: 0', 1],
    ['304 None', 'content-length: 2', 2],
    ['304 None', 'transfer-encoding: chunked', 2],
    ['304 None', 'content-length: 0', 1],
  ])('is reused after %s only if no body is announced (%s)', async (status, announced, expected) => {
    const none = `HTTP/1.1 ${status}\r\n${announced}\r\n\r\n`;
    const { call, connections } = await setUp(
      way,
      expected === 2
        ? withLateBody(none)
        : (socket, own, request) => socket.write(request === 1 ? none : own),
    );
    expect([await call('/a'), await call('/b', 'POST')]).toEqual(['', 'POST /b']);
    expect(connections()).toBe(expected);
  });

  it.each([
    ['4 s if neither the option nor the server says anything', '', undefined, 4_000],
    ['http.idleTimeout if the server says nothing', '', 7_000, 7_000],
    ['the time that the server announces, minus a second', 'timeout=5', 30_000, 4_000],
    ['the announced time also if that is longer than the option', 'max=100, timeout=20', 4_000, 19_000],
    ['60 s at most', 'timeout=300', 4_000, 60_000],
  ])('is reused for %s', async (_, hint, idleTimeoutMs, expectedMs) => {
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
      await until(() => idleOf(used.agent).length > 0);
    }
  });

  it('is not reused if it is destroyed, although it is still in the pool', async () => {
    const used = await setUp(way, (socket, own) => socket.write(own));
    await Promise.all([used.call('/a'), used.call('/b')]);
    await until(() => idleOf(used.agent).length === 2);
    idleOf(used.agent).at(-1)?.destroy();
    expect(await used.call('/c', 'POST')).toBe('POST /c');
    expect(used.connections()).toBe(2);
  });

  it('is not reused for longer because a request that took it was aborted at once', async () => {
    const clock = new FakeClock();
    const used = await setUp(way, (socket, own) => socket.write(own), { clock });
    await used.call('/a');
    await until(() => idleOf(used.agent).length > 0);
    clock.jump(3_000);
    const controller = new AbortController();
    const aborted = used.call('/b', 'POST', { signal: controller.signal }).catch(() => undefined);
    controller.abort(new Error('the caller has gone'));
    await aborted;
    await nextTurn();
    clock.jump(3_000);
    expect(await used.call('/c', 'POST')).toBe('POST /c');
    expect(used.connections()).toBe(2);
  });

  it('is not reused after the wall clock was set back, because nobody knows for how long it was idle', async () => {
    const clock = new FakeClock();
    const used = await setUp(way, (socket, own) => socket.write(own), { clock });
    await used.call('/a', 'POST');
    await until(() => idleOf(used.agent).length > 0);
    clock.jump(-1_000);
    await used.call('/b', 'POST');
    expect(used.connections()).toBe(2);
  });

  it.each([
    ['with http.idleTimeout: 0, not even by a waiting request', '', 0],
    ['with http.idleTimeout: 0, whatever the server announces', 'Keep-Alive: timeout=60\r\n', 0],
    ['if the announced time leaves nothing', 'Keep-Alive: timeout=1\r\n', 30_000],
  ])('is never reused %s', async (_, hint, idleTimeoutMs) => {
    const { agent, call, connections, sockets } = await setUp(
      way,
      (socket, own) => socket.write(withHeader(own, hint)),
      { maxSockets: 1, idleTimeoutMs },
    );
    const waits = idleTimeoutMs === 0;
    const bodies = waits ? await Promise.all([call('/a'), call('/b')]) : [await call('/a'), await call('/b')];
    expect(bodies).toEqual(['GET /a', 'GET /b']);
    expect(connections()).toBe(2);
    await until(() => sockets.size === 0);
    expect(idleOf(agent)).toEqual([]);
  });
});

it.each([
  ['a waiting request', false],
  ['a request that waits behind an aborted one', true],
])(
  'A connection whose FIN has arrived but was not read yet is not given to %s',
  async (_, isBehindAborted) => {
    const { url, connections, endAll } = await setUp('plain http', (socket, own) => socket.write(own));
    class Ending extends KeepAliveAgent {
      override emit(event: string, ...details: unknown[]): boolean {
        // Just before the connection is given to the next request, in the second turn.
        if (event === 'free' && connections() === 1) setImmediate(() => setImmediate(endAll));
        return super.emit(event, ...details);
      }
    }
    const settings = { maxSockets: 1 };
    const agent = new Ending(plainConnector(), settings, 'http:');
    open.push(() => agent.close(0));
    const send = (more: Partial<ExchangeRequest>) =>
      exchange({
        url,
        method: 'POST',
        headers: {},
        agent,
        timeoutMs: 30_000,
        maxResponseBytes: 1_000,
        ...more,
      });
    const first = send({});
    const controller = new AbortController();
    const aborted = isBehindAborted
      ? send({ method: 'GET', mayUseOlderConnection: true, signal: controller.signal }).catch(() => undefined)
      : undefined;
    const last = send({});
    controller.abort(new Error('the caller has gone'));
    expect(await Promise.all([first, last])).toMatchObject([{ status: 200 }, { status: 200 }]);
    await aborted;
    expect(connections()).toBe(2);
  },
);

it('A connection on which the server has sent something first is not reused', async () => {
  const greeting = FOREIGN.toString();
  const { call, connections, sockets } = await setUp('TLSv1.3', (socket, own) => socket.write(own), {
    greeting,
  });
  // A response on a new connection may belong to the handshake, such as a 400. But the next call must not get our response.
  expect(await call('/a')).toBe('foreign');
  await until(() => sockets.size === 0);
  await call('/b');
  expect(connections()).toBe(2);
});

describe('A preconnected socket', () => {
  const answering: Answering = (socket, own) => void socket.write(own);
  const ahead = async (clock = new FakeClock(), settings = {}) => {
    const made = await setUp('TLSv1.3', answering, { clock, ...settings });
    const connect = () => made.agent.preconnect(made.url);
    return { ...made, connect, clock };
  };

  it('is given to the next request as a new connection, whether its handshake is over or not', async () => {
    for (const isOver of [true, false]) {
      const { agent, url, connect, connections } = await ahead();
      connect();
      connect();
      if (isOver) await until(() => connections() === 1);
      const request = https.get(url, { agent }, (response) => response.resume());
      const [socket] = (await once(request, 'socket')) as [tls.TLSSocket];
      await once(request, 'close');
      expect([request.reusedSocket, connections()]).toEqual([false, 1]);
      expect(idleOf(agent)).toEqual([socket]);
      connect();
      expect(Object.values(agent.sockets).flat()).toEqual([]);
      expect(connections()).toBe(1);
    }
  });

  it.each<[string, (made: Awaited<ReturnType<typeof ahead>>) => unknown]>([
    ['after 4 s', ({ clock }) => clock.advance(4_000)],
    [
      'when another certificate comes into use',
      async ({ agent }) => agent.switchConnector(tlsConnector(await contextOf(second))),
    ],
    ['when the agent closes', ({ agent }) => agent.close(0)],
    ['when the host application destroys the agent', ({ agent }) => agent.destroy()],
    ['when the server sends something', ({ sockets }) => sockets.forEach((socket) => socket.write(FOREIGN))],
  ])('is closed %s', async (_, end) => {
    const made = await ahead();
    made.connect();
    await until(() => made.connections() === 1);
    await end(made);
    await until(() => made.sockets.size === 0);
    expect(made.clock.timers).toBe(0);
  });

  it('is closed after http.idleTimeout if that is shorter than 4 s, and not used later even if the event loop was blocked', async () => {
    const { agent, url, connect, connections, sockets, clock } = await ahead(undefined, {
      idleTimeoutMs: 900,
    });
    connect();
    await until(() => connections() === 1);
    await clock.advance(900);
    await until(() => sockets.size === 0);
    connect();
    await until(() => connections() === 2);
    // The timer has not run.
    clock.jump(901);
    const request = https.get(url, { agent }, (response) => response.resume());
    await once(request, 'close');
    expect(connections()).toBe(3);
  });

  it('lets a POST fail as certainly not executed if the server refuses the certificate after the handshake', async () => {
    const live = await server();
    const used = await agent({}, await contextOf(undefined));
    const made = jest.spyOn(tls, 'connect');
    used.preconnect(new URL(live.url));
    // TLS 1.3: the verdict on the client's certificate comes a round trip later, and a session ticket never.
    await once(made.mock.results[0].value as tls.TLSSocket, 'secureConnect');
    const limits = { timeoutMs: 30_000, maxResponseBytes: 1_000 };
    const post = exchange({ url: new URL(live.url), method: 'POST', headers: {}, agent: used, ...limits });
    await expect(post).rejects.toMatchObject({
      phase: 'sent',
      reusedSocket: false,
      certificateVerdict: 'not-sent',
      handshakeRefused: true,
    });
    expect(made).toHaveBeenCalledTimes(1);
    expect(live.subjects).toEqual([]);
  });

  it('is not used if the server has closed it, and not made at maxSockets, with http.idleTimeout: 0 or after closing', async () => {
    const { agent, call, connect, connections, endAll } = await ahead();
    const made = jest.spyOn(tls, 'connect');
    connect();
    const spare = made.mock.results[0].value as tls.TLSSocket;
    await once(spare, 'session');
    await until(() => !detectUnreadInput(spare));
    endAll();
    expect(await call('/a', 'POST')).toBe('POST /a');
    expect(connections()).toBe(2);
    await agent.close(0);
    connect();
    const never = await ahead(undefined, { idleTimeoutMs: 0 });
    never.connect();
    const full = await ahead(undefined, { maxSockets: 1 });
    const running = full.call('/b');
    full.connect();
    await running;
    await nextTurn();
    expect([connections(), never.connections(), full.connections()]).toEqual([2, 0, 1]);
  });
});

describe("The host application's own request through our agent", () => {
  it.each<[string, string, boolean]>([
    ['HEAD', 'HTTP/1.1 200 OK\r\n\r\n', true],
    ['DELETE', 'HTTP/1.1 204 None\r\ntransfer-encoding: chunked\r\n\r\n', true],
    ['DELETE', 'HTTP/1.1 204 None\r\ntransfer-encoding: chunked\r\n\r\n', false],
    ['GET', 'HTTP/1.1 304 None\r\ncontent-length: 3\r\n\r\n', true],
  ])(
    'never leaves a rest that becomes our response: %s with %j, read by the application: %s',
    async (method, none, reads) => {
      const { agent, url, call, connections } = await setUp('TLSv1.3', withLateBody(none));
      const request = https.request(url, { agent, method });
      if (reads) request.on('response', (response) => response.resume());
      await once(request.end(), 'close');
      expect(await call('/b', 'POST')).toBe('POST /b');
      expect(connections()).toBe(2);
    },
  );

  it.each<[string, (url: URL, agent: https.Agent) => Promise<http.IncomingMessage>]>([
    ['a callback', (url, agent) => new Promise((resolve) => https.get(url, { agent }, resolve))],
    [
      'once()',
      async (url, agent) => {
        const [response] = (await once(https.get(url, { agent }), 'response')) as [http.IncomingMessage];
        return response;
      },
    ],
    ['on()', (url, agent) => new Promise((resolve) => https.get(url, { agent }).on('response', resolve))],
  ])('has its whole body although the application reads it a few turns later: %s', async (_, get) => {
    const text = 'x'.repeat(100_000);
    const live = await server({ onRequest: (__, response) => void response.end(text) });
    const used = await agent();
    for (let request = 0; request < 2; request += 1) {
      const response = await get(new URL(live.url), used);
      await nextTurn();
      await nextTurn();
      let body = '';
      for await (const chunk of response) body += String(chunk);
      expect(body.length).toBe(text.length);
    }
  });

  it('gives its connection back if only an APM listens to its response, as OpenTelemetry does', async () => {
    const { agent, url, call, connections } = await setUp('TLSv1.3', (socket, own) => socket.write(own));
    const request = https.get(url, { agent });
    request.prependListener('response', (response) => {
      if (request.listenerCount('response') <= 1) response.resume();
    });
    await until(() => idleOf(agent).length > 0);
    expect(await call('/b')).toBe('GET /b');
    expect(connections()).toBe(1);
  });

  it('gives its connection back if nobody listens to its response', async () => {
    const { agent, url, call, connections } = await setUp('TLSv1.3', (socket, own) => socket.write(own));
    https.get(url, { agent });
    await until(() => idleOf(agent).length > 0);
    expect(await call('/b')).toBe('GET /b');
    expect(connections()).toBe(1);
  });

  it('has its own time-out, even on a reused connection and if it equals the idle timeout', async () => {
    let isAnswering = true;
    const live = await server({ onRequest: (_, response) => void (isAnswering && response.end('{}')) });
    const used = await agent({ idleTimeoutMs: 50 });
    await sendRequest(live.url, used);
    isAnswering = false;
    const request = https.get(live.url, { agent: used, timeout: 50 });
    request.on('timeout', () => request.destroy(new Error('its own time-out')));
    await expect(once(request, 'response')).rejects.toThrow('its own time-out');
  });
});

describe('KeepAliveAgent', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'resumes the TLS session after an idle connection was closed, %s',
    async (version) => {
      const live = await server({ minVersion: version, maxVersion: version, keepAliveTimeout: 0 });
      const used = await agent({ idleTimeoutMs: 30, longIdleTimeoutMs: 30 });
      await sendRequest(live.url, used);
      await until(() => live.sockets.size === 0);
      expect((await sendRequest(live.url, used)).reused).toBe(false);
      expect([live.handshakes, live.resumed]).toEqual([2, 1]);
      expect(live.subjects).toEqual(['first', 'first']);
    },
  );

  it('opens at most maxSockets connections', async () => {
    let most = 0;
    const live = await server({
      onRequest: (_, response) => {
        most = Math.max(most, live.sockets.size);
        setImmediate(() => response.end('{}'));
      },
    });
    const used = await agent({ maxSockets: 3 });
    await run(60, 20, () => sendRequest(live.url, used));
    expect([most, live.handshakes, live.subjects.length]).toEqual([3, 3, 60]);
  });

  it('opens no connection for requests that were aborted while they waited', async () => {
    let arrived = 0;
    const live = await server({ onRequest: () => void (arrived += 1) });
    const used = await agent({ maxSockets: 3 });
    const aborting = Array.from({ length: 60 }, () => new AbortController());
    const calls = aborting.map(({ signal }) =>
      sendRequest(live.url, used, { signal }).catch(({ code }: NodeJS.ErrnoException) => code),
    );
    await until(() => arrived === 3);
    for (const each of aborting) each.abort();
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ABORT_ERR']));
    await until(() => live.sockets.size === 0);
    expect([live.handshakes, Object.keys(used.requests)]).toEqual([3, []]);
    // One that is waited for gets a connection, behind others too.
    const ended = new AbortController();
    const dead = Array.from({ length: 6 }, () =>
      sendRequest(live.url, used, { signal: ended.signal }).catch(() => 'dead'),
    );
    const alive = sendRequest(live.url, used).catch(({ code }: NodeJS.ErrnoException) => code);
    await until(() => arrived === 6);
    ended.abort();
    await until(() => arrived === 7);
    await used.close(0);
    const outcomes = [await alive, ...(await Promise.all(dead))];
    expect(outcomes).toEqual(['ECONNRESET', ...Array<string>(6).fill('dead')]);
  });

  it('shows the connections of the identity in use in its properties, as any agent does', async () => {
    const { live, waiting } = await holdingServer();
    const used = await agent({ maxSockets: 1 });
    const calls = [sendRequest(live.url, used), sendRequest(live.url, used)];
    await until(() => waiting.length === 1);
    const name = used.getName({ host: '127.0.0.1', port: live.port });
    expect([used.sockets[name]?.length, used.requests[name]?.length]).toEqual([1, 1]);
    for (let turn = 0; turn < 2; turn++) {
      await until(() => waiting.length === 1);
      waiting.pop()?.end('{}');
    }
    await Promise.all(calls);
    await until(() => used.freeSockets[name]?.length === 1);
    expect(Object.keys(used)).not.toEqual(expect.arrayContaining(['sockets']));
    expect(live.handshakes).toBe(1);
  });

  it('names a pool by its destination, without PEMs', async () => {
    const used = await agent();
    const pems = { ca: authority.chain, cert: first.certificate, key: first.key };
    expect(used.getName({ host: 'api', port: 443, ...pems })).toBe('api:443::::0');
    const from = { localAddress: '127.0.0.2', family: 4, servername: 'a' };
    expect(used.getName({ host: 'api', port: 443, ...from })).toBe('api:443:127.0.0.2:4:a:0');
  });

  it('passes on the connection options of a request, and of the TLS options only servername', async () => {
    const used = await agent();
    const connect = jest.spyOn(tls, 'connect').mockReturnValue(new net.Socket() as tls.TLSSocket);
    const allowed = {
      host: 'api.example',
      port: 443,
      servername: 'api.example',
      family: 4,
      hints: 1,
      lookup: () => undefined,
      localAddress: '127.0.0.1',
      localPort: 4_321,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: 20,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 1_000,
    };
    const refused = { key: 'x', ca: 'x', rejectUnauthorized: false, ALPNProtocols: ['x'] };
    used.createConnection({ ...allowed, ...refused });
    const { secureContext, ...given } = (connect.mock.calls[0] as unknown[])[0] as Record<string, unknown>;
    expect(secureContext).toBeDefined();
    expect(given).toEqual({ ...allowed, rejectUnauthorized: true });
  });
});

describe('Verification of the server', () => {
  type Options = https.RequestOptions & Record<string, unknown>;

  it.each<[string, Options]>([
    ['nothing special', {}],
    ['rejectUnauthorized', { rejectUnauthorized: false }],
    ['checkServerIdentity', { checkServerIdentity: () => undefined, rejectUnauthorized: false }],
    ['a context of its own', { secureContext: tls.createSecureContext(), rejectUnauthorized: false }],
    ['pskCallback', { pskCallback: () => null, rejectUnauthorized: false }],
  ])(
    'is not switched off by the request option %s: a foreign authority and a wrong host name are refused',
    async (_, options) => {
      const authorityOfOthers = await createAuthority('Foreign');
      const foreign = await server({ demandCertificate: false }, authorityOfOthers);
      const live = await server();
      const used = await agent();
      const trusting = { ...options, ca: authorityOfOthers.chain };
      await expect(sendRequest(foreign.url, used, trusting)).rejects.toMatchObject({
        code: expect.stringMatching(/^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_)/),
      });
      const elsewhere = { ...options, servername: 'elsewhere.example' };
      await expect(sendRequest(live.url, used, elsewhere)).rejects.toMatchObject({
        code: 'ERR_TLS_CERT_ALTNAME_INVALID',
      });
      expect([foreign.subjects, live.subjects]).toEqual([[], []]);
    },
  );

  it('is not switched off by NODE_TLS_REJECT_UNAUTHORIZED, or by changed options of the agent', async () => {
    const foreign = await server({ demandCertificate: false }, await createAuthority('Foreign'));
    const used = await agent();
    Object.assign(used.options, { rejectUnauthorized: false, ca: [] });
    // Node emits a warning for this option.
    jest.spyOn(nodeProcess, 'emitWarning').mockReturnValue(undefined);
    nodeProcess.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    open.push(() => delete nodeProcess.env.NODE_TLS_REJECT_UNAUTHORIZED);
    await expect(sendRequest(foreign.url, used)).rejects.toThrow(/self.signed|unable to/);
    expect((await sendRequest(foreign.url, new https.Agent())).status).toBe(200);
  });

  it('is not switched off by a TLS session in the request', async () => {
    const live = await server();
    const { certificate: cert, key } = first;
    const socket = tls.connect({ port: live.port, host: '127.0.0.1', ca: authority.chain, cert, key });
    open.push(() => socket.destroy());
    socket.on('data', () => undefined).write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    const [session] = (await once(socket, 'session')) as [Buffer];
    const refused = sendRequest(live.url, await agent(), { session, servername: 'elsewhere.example' });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });

  it('accepts an intermediate certificate as the only trust anchor', async () => {
    const live = await server();
    const used = await agent({}, await contextOf(first, authority.intermediate.certificate));
    expect((await sendRequest(live.url, used)).status).toBe(200);
  });

  it('needs at least TLS 1.2, whatever the request asks for', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
    const live = await server(old);
    await expect(sendRequest(live.url, await agent(), old)).rejects.toThrow(/alert protocol version/);
  });

  it('needs at least the TLS version of the process, even TLS 1.3', async () => {
    const { DEFAULT_MIN_VERSION } = tls;
    open.push(() => (tls.DEFAULT_MIN_VERSION = DEFAULT_MIN_VERSION));
    const live = await server({ maxVersion: 'TLSv1.2' });
    expect((await sendRequest(live.url, await agent())).status).toBe(200);
    tls.DEFAULT_MIN_VERSION = 'TLSv1.3';
    await expect(sendRequest(live.url, await agent())).rejects.toThrow(/alert protocol version/);
  });
});

describe('A new identity', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'is used by new requests at once; requests in flight finish over old connections, which then close, %s',
    async (version) => {
      const versions = { minVersion: version, maxVersion: version, keepAliveTimeout: 60_000 };
      const { live, waiting } = await holdingServer(versions);
      const used = await agent();
      const before = [sendRequest(live.url, used), sendRequest(live.url, used)];
      await until(() => waiting.length === 2);
      waiting.shift()?.end('{}');
      await before[0];
      await until(() => idleOf(used).length > 0);

      used.switchConnector(tlsConnector(await contextOf(second)));
      await until(() => live.sockets.size === 1);
      const after = sendRequest(live.url, used);
      await until(() => live.subjects.length === 3);
      expect(live.subjects).toEqual(['first', 'first', 'second']);
      for (const response of waiting.splice(0)) response.end('{}');
      expect((await before[1]).status).toBe(200);
      expect((await after).status).toBe(200);
      await until(() => live.sockets.size === 1);
      expect(live.resumed).toBe(0);

      const again = sendRequest(live.url, used);
      await until(() => waiting.length === 1);
      waiting.pop()?.end('{}');
      expect((await again).reused).toBe(true);
      expect(live.subjects.at(-1)).toBe('second');
    },
  );

  it('is not used by requests that already waited for a connection: they use the old connections and close them', async () => {
    const { live, waiting } = await holdingServer();
    const used = await agent({ maxSockets: 1 });
    const calls = [sendRequest(live.url, used), sendRequest(live.url, used)];
    await until(() => waiting.length === 1);
    used.switchConnector(tlsConnector(await contextOf(second)));
    calls.push(sendRequest(live.url, used));
    for (let answered = 0; answered < 3; answered++) {
      await until(() => waiting.length > 0);
      waiting.shift()?.end('{}');
    }
    await Promise.all(calls);
    expect(live.subjects.sort()).toEqual(['first', 'first', 'second']);
    await until(() => live.sockets.size === 1);
  });

  it('has its own maxSockets: requests over old connections do not count', async () => {
    const waiting = new Map<string, http.ServerResponse>();
    const live = await server({ onRequest: ({ url }, response) => void waiting.set(String(url), response) });
    const used = await agent({ maxSockets: 1 });
    const old = sendRequest(`${live.url}/old`, used);
    await until(() => waiting.has('/old'));
    used.switchConnector(tlsConnector(await contextOf(second)));
    const [next, last] = ['next', 'last'].map((path) => sendRequest(`${live.url}/${path}`, used));
    await until(() => waiting.has('/next'));
    waiting.get('/old')?.end('{}');
    await old;
    expect(Object.values(used.requests)).toHaveLength(1);
    expect(live.subjects).toEqual(['first', 'second']);
    waiting.get('/next')?.end('{}');
    await next;
    await until(() => waiting.has('/last'));
    waiting.get('/last')?.end('{}');
    expect((await last)?.status).toBe(200);
    expect(live.handshakes).toBe(2);
  });

  it('is not used by a request that came before it, because its token may be bound to the old certificate', async () => {
    const live = await server();
    const used = await agent();
    const next = await contextOf(second);
    await sendRequest(live.url, used);
    // The connection is not free again yet.
    const before = sendRequest(live.url, used);
    used.switchConnector(tlsConnector(next));
    expect((await before).status).toBe(200);
    await sendRequest(live.url, used);
    expect(live.subjects).toEqual(['first', 'first', 'second']);
    await until(() => live.sockets.size === 1);
  });

  it('is released when its last request has ended and another identity is in use', async () => {
    const used = await agent();
    const rotate = async (): Promise<WeakRef<tls.SecureContext>> => {
      const context = await contextOf(second);
      used.switchConnector(tlsConnector(context));
      return new WeakRef(context());
    };
    const gone = await rotate();
    await rotate();
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await until(() => {
      collect();
      return gone.deref() === undefined;
    });
  });

  it('loses no request under load during four rotations', async () => {
    const live = await server();
    const used = await agent();
    const contexts = [await contextOf(second), await contextOf(first)];
    let done = 0;
    const swaps = (async () => {
      for (let swap = 1; swap <= 4; swap++) {
        await until(() => done >= swap * 40);
        used.switchConnector(tlsConnector(contexts[swap % 2]));
      }
    })();
    await Promise.all([
      swaps,
      run(200, 20, async () => {
        const { status } = await sendRequest(live.url, used);
        if (status === 200) done++;
      }),
    ]);
    expect(done).toBe(200);
    expect(new Set(live.subjects)).toEqual(new Set(['first', 'second']));
  });
});

describe('Closing an agent', () => {
  it('closes idle connections at once, waits for requests in flight, and accepts no new ones', async () => {
    const { live, waiting } = await holdingServer();
    const clock = new FakeClock();
    const used = await agent({ clock });
    const calls = Promise.all([sendRequest(live.url, used), sendRequest(live.url, used)]);
    await until(() => waiting.length === 2);
    waiting[0].end('{}');
    await until(() => idleOf(used).length > 0);
    const closed = used.close(60_000);
    await expect(sendRequest(live.url, used)).rejects.toMatchObject({ code: 'ERR_AGENT_CLOSED' });
    await until(() => live.sockets.size === 1);
    expect(clock.timers).toBe(1);
    waiting[1].end('{}');
    expect((await calls).map(({ status }) => status)).toEqual([200, 200]);
    await closed;
    expect(clock.timers).toBe(0);
    await until(() => live.sockets.size === 0);
  });

  it('ends at once if it is closed again without a grace period', async () => {
    const { live, waiting } = await holdingServer();
    const used = await agent();
    const outcome = sendRequest(live.url, used).catch((error: NodeJS.ErrnoException) => error.code);
    await until(() => waiting.length === 1);
    const [[socket]] = Object.values(used.sockets) as [[net.Socket]];
    const closes = [used.close(60_000), used.close(0)];
    expect(socket.destroyed).toBe(true);
    await Promise.all(closes);
    expect(await outcome).toBe('ECONNRESET');
  });

  it('lets a waiting request get its connection within the grace period', async () => {
    const { live, waiting } = await holdingServer();
    const used = await agent({ maxSockets: 1 });
    const calls = Promise.all([sendRequest(live.url, used), sendRequest(live.url, used)]);
    await until(() => waiting.length === 1);
    const closed = used.close(60_000);
    waiting.pop()?.setHeader('connection', 'close').end('{}');
    await until(() => waiting.length === 1);
    waiting.pop()?.end('{}');
    expect((await calls).map(({ status }) => status)).toEqual([200, 200]);
    await closed;
    await until(() => live.sockets.size === 0);
  });

  it('ends all requests after the grace period, waiting ones included', async () => {
    const { live, waiting } = await holdingServer();
    const used = await agent({ maxSockets: 1 });
    const outcomes = Promise.allSettled([sendRequest(live.url, used), sendRequest(live.url, used)]);
    await until(() => waiting.length === 1);
    await used.close(20);
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await until(() => live.sockets.size === 0);
    expect(live.subjects).toHaveLength(1);
  });

  it('accepts no new identity afterwards, and opens no connection', async () => {
    const live = await server();
    const used = await agent();
    await used.close(0);
    used.switchConnector(tlsConnector(await contextOf(second)));
    const made = used.createConnection({ host: '127.0.0.1', port: live.port });
    expect((await once(made, 'error'))[0]).toMatchObject({ code: 'ERR_AGENT_CLOSED' });
    await expect(sendRequest(live.url, used)).rejects.toMatchObject({ code: 'ERR_AGENT_CLOSED' });
    expect(live.sockets.size).toBe(0);
  });

  it('destroy() closes all connections, those of an old identity too, and later requests open new ones', async () => {
    const { live, waiting } = await holdingServer();
    const used = await agent();
    const calls = [sendRequest(live.url, used)];
    await until(() => waiting.length === 1);
    for (const [rotation, next] of [second, first].entries()) {
      used.switchConnector(tlsConnector(await contextOf(next)));
      calls.push(sendRequest(live.url, used));
      await until(() => waiting.length === rotation + 2);
    }
    used.destroy();
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await until(() => live.sockets.size === 0);
    const again = sendRequest(live.url, used);
    await until(() => waiting.length === 4);
    waiting[3].end('{}');
    expect((await again).status).toBe(200);
  });
});

describe('A host name with several addresses', () => {
  /** What dns.lookup finds for every name from now on. */
  function resolveTo(...addresses: string[]): jest.SpiedFunction<typeof dns.lookup> {
    const found = addresses.map((address): LookupAddress => ({ address, family: net.isIP(address) }));
    type Callback = (error: null, found: LookupAddress[] | string, family?: number) => void;
    return jest
      .spyOn(dns, 'lookup')
      .mockImplementation(((_host: string, { all }: dns.LookupOptions, callback: Callback) =>
        setImmediate(() =>
          all ? callback(null, found) : callback(null, addresses[0], 4),
        )) as unknown as typeof dns.lookup);
  }

  const connecting = { maxSockets: 1, connectTimeoutMs: 5_000 };
  const get = (url: string, used: http.Agent, connectTimeoutMs?: number) =>
    exchange({
      url: new URL(url),
      method: 'GET',
      headers: {},
      agent: used,
      timeoutMs: 10_000,
      connectTimeoutMs,
      maxResponseBytes: 1_000,
    });

  it('is connected to even if the first address needs a second SYN and the second address is dead', async () => {
    const live = await server({ demandCertificate: false });
    const slow = await silentAddress('127.0.0.2', undefined, live.port);
    const dead = await silentAddress('127.0.0.3', slow.port);
    open.push(slow.stop, dead.stop);
    const looked = resolveTo('127.0.0.2', '127.0.0.3');
    const response = sendRequest(`https://localhost:${slow.port}`, await agent(connecting));
    await until(() => looked.mock.calls.length > 0);
    // The first SYN is lost by then.
    setImmediate(() => setImmediate(() => setImmediate(slow.wake)));
    expect((await response).status).toBe(200);
  });

  it('fails with a fault that lists the tried addresses if none of them responds', async () => {
    const silent = await silentAddress('127.0.0.2');
    const other = await silentAddress('127.0.0.3', silent.port);
    open.push(silent.stop, other.stop);
    resolveTo('127.0.0.2', '127.0.0.3');
    const used = await agent({ ...connecting, connectTimeoutMs: 700 });
    await expect(get(`https://localhost:${silent.port}`, used, 700)).rejects.toMatchObject({
      kind: 'timeout',
      phase: 'connecting',
      reason: 'ERR_CONNECT_TIMEOUT',
      addresses: [`127.0.0.2:${silent.port}`, `127.0.0.3:${silent.port}`],
    });
  });

  it.each<[string, (port: number) => Promise<unknown>]>([
    [
      'the API and the token endpoint',
      async (port) => get(`https://localhost:${port}`, await agent(connecting)),
    ],
    [
      'a sidecar',
      (port) =>
        get(`http://localhost:${port}`, new KeepAliveAgent(plainConnector(connecting), connecting, 'http:')),
    ],
    [
      'a proxy',
      (port) => once(new ProxyTunnel(new Secret(`http://localhost:${port}`), 'a:443', 5_000), 'error'),
    ],
    [
      'a proxy that speaks TLS',
      (port) => once(new ProxyTunnel(new Secret(`https://localhost:${port}`), 'a:443', 5_000), 'error'),
    ],
    ['the doctor', (port) => shakeHands({ host: 'localhost', port }, tls.createSecureContext(), 5_000)],
  ])('gives each address a quarter of the time to connect: %s', async (_, connect) => {
    const listening = http.createServer((_, response) => response.end('{}'));
    const port = await listen(listening, '127.0.0.3', await freePort());
    resolveTo('127.0.0.2', '127.0.0.3');
    const connected = jest.spyOn(net.Socket.prototype, 'connect');
    await connect(port).catch(() => undefined);
    const given = connected.mock.calls.map((given) => given.flat()[0] as unknown as net.TcpNetConnectOpts);
    expect(given.map(({ autoSelectFamilyAttemptTimeout: ms }) => ms).filter(Boolean)).toEqual([1_250]);
    const sockets = connected.mock.contexts as net.Socket[];
    expect(sockets[0]?.autoSelectFamilyAttemptedAddresses).toEqual([
      `127.0.0.2:${port}`,
      `127.0.0.3:${port}`,
    ]);
    for (const each of sockets) each.destroy();
  });
});

/** CONTRIBUTING.md lists them: what each is for, and what breaks without it. */
describe('Unpublished parts of Node that the agents use', () => {
  const answering = () => listen(http.createServer((_, response) => response.end('{}')));

  it("agent.addRequest(request, options) is called by node:http, and exists in Node's own agent", async () => {
    const port = await answering();
    const added: unknown[] = [];
    class Handle extends http.Agent {
      readonly inner = new http.Agent({ keepAlive: true });
      addRequest(request: http.ClientRequest, options: http.ClientRequestArgs): void {
        added.push([options.host, Number(options.port), options.timeout]);
        const own = http.Agent.prototype as unknown as Pick<Handle, 'addRequest'>;
        own.addRequest.call(this.inner, request, options);
      }
    }
    const handle = new Handle();
    open.push(() => handle.inner.destroy());
    const request = http.get({ host: '127.0.0.1', port, agent: handle, timeout: 5_000 });
    await once(
      request.on('response', (response) => response.resume()),
      'close',
    );
    expect(added).toEqual([['127.0.0.1', port, 5_000]]);
  });

  it.each(['plain', 'TLS'])('_handle.fd of a socket can be read from: %s', async (kind) => {
    const { serverChain: cert, server: pair } = authority;
    const peer = kind === 'TLS' ? tls.createServer({ cert, key: pair.key }) : net.createServer();
    const port = await listen(peer);
    const event = kind === 'TLS' ? 'secureConnection' : 'connection';
    const accepted = once(peer, event) as Promise<[net.Socket]>;
    const options = { host: '127.0.0.1', port, rejectUnauthorized: false };
    const socket = kind === 'TLS' ? tls.connect(options) : net.connect(options);
    const [other] = await accepted;
    // Session tickets come after the handshake.
    const limit = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')!;
    await until(() => !detectUnreadInput(socket));
    expect(Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')).toEqual(limit);
    other.destroy();
    // As with `node --frozen-intrinsics`
    Object.defineProperty(Error, 'stackTraceLimit', { ...limit, writable: false });
    expect(detectUnreadInput(socket)).toBe(true);
    Object.defineProperty(Error, 'stackTraceLimit', limit);
    socket.destroy();
    expect(detectUnreadInput(socket)).toBe(false);
  });

  it("the event 'free' of an agent, with the socket, gives the socket to the next waiting request", async () => {
    const port = await answering();
    let free: (() => void) | undefined;
    class Holding extends http.Agent {
      override emit(event: string, ...details: unknown[]): boolean {
        if (event !== 'free') return super.emit(event, ...details);
        expect(details[0]).toBeInstanceOf(net.Socket);
        free = () => void super.emit(event, ...details);
        return true;
      }
    }
    const holding = new Holding({ keepAlive: true, maxSockets: 1 });
    open.push(() => holding.destroy());
    const get = () =>
      once(
        http.get({ host: '127.0.0.1', port, agent: holding }, (response) => response.resume()),
        'close',
      );
    const responses = [get(), get()];
    await responses[0];
    await nextTurn();
    expect(Object.values(holding.requests).flat()).toHaveLength(1);
    free?.();
    expect(Object.values(holding.requests).flat()).toEqual([]);
    await responses[1];
  });
});
