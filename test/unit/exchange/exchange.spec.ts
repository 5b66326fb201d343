import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { EventEmitter } from 'node:events';
import http, { Agent, type RequestListener } from 'node:http';
import { Duplex } from 'node:stream';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { exchange } from '../../../lib/exchange/exchange.js';
import { ExchangeFault, type ExchangeRequest } from '../../../lib/exchange/exchange.types.js';
import { deadPort, httpServer, rawServer, type Loopback } from '../../helpers/loopback.js';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function agent(): Agent {
  const made = new Agent({ keepAlive: true });
  closing.push(() => made.destroy());
  return made;
}

async function serve(listener: RequestListener): Promise<Loopback> {
  const server = await httpServer(listener);
  closing.push(server.close);
  return server;
}

const LIMIT_MS = 5_000;

/** From now on, the returned function ends the time of the last exchange. */
function timeLimit(): () => void {
  const timers = jest.spyOn(globalThis, 'setTimeout');
  const now = performance.now.bind(performance);
  let passedMs = 0;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + passedMs);
  closing.push(() => (timers.mockRestore(), clock.mockRestore()));
  return () => {
    passedMs += LIMIT_MS;
    timers.mock.calls.findLast(([, ms]) => ms === LIMIT_MS)?.[0]();
  };
}

const ask = (url: string, more: Partial<ExchangeRequest> = {}) =>
  exchange({
    url: new URL(url),
    method: 'GET',
    headers: {},
    agent: more.agent ?? agent(),
    timeoutMs: LIMIT_MS,
    maxResponseBytes: 1_000,
    ...more,
  });

const faultOf = (promise: Promise<unknown>): Promise<ExchangeFault> =>
  promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => {
      if (error instanceof ExchangeFault) return error;
      throw error;
    },
  );

describe('exchange', () => {
  it('closes a connection whose server answered and does not read the rest of the request', async () => {
    const server = await rawServer((socket) =>
      socket.once('data', () => {
        socket.pause();
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
      }),
    );
    closing.push(server.close);
    const one = new Agent({ keepAlive: true, maxSockets: 1 });
    closing.push(() => one.destroy());
    const body = Buffer.alloc(20_000_000);
    // The second one has to wait for the connection of the first.
    for (let call = 0; call < 2; call += 1) {
      expect(await ask(server.url, { method: 'POST', body, agent: one })).toMatchObject({ status: 200 });
    }
  });

  it('sends method, path, query, headers and body, and brings status, headers and body back', async () => {
    const { url } = await serve((request, response) => {
      const { method, url: path, headers } = request;
      void request.toArray().then((chunks: Buffer[]) => {
        const body = Buffer.concat(chunks).toString();
        response
          .writeHead(201, 'Made', { 'x-answer': '1' })
          .end(JSON.stringify({ method, path, x: headers['x-a'], body }));
      });
    });
    const answer = await ask(`${url}/a/b?c=d`, { method: 'POST', headers: { 'x-a': '1' }, body: 'text' });
    expect(answer).toMatchObject({ status: 201, statusText: 'Made', headers: { 'x-answer': '1' } });
    expect(JSON.parse(answer.body.toString())).toEqual({
      method: 'POST',
      path: '/a/b?c=d',
      x: '1',
      body: 'text',
    });
  });

  it.each([
    ['http://[::1]:8443/a', { hostname: '::1', host: '::1', port: '8443' }],
    ['http://api.example/', { hostname: 'api.example', host: 'api.example' }],
  ])('connects to the host of %s', async (url, target) => {
    const connected: unknown[] = [];
    const mocked = agent();
    mocked.createConnection = (options) => {
      connected.push(options);
      throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    };
    expect(await faultOf(ask(url, { agent: mocked }))).toMatchObject({ phase: 'queued' });
    expect(connected[0]).toMatchObject(target);
    expect(connected).toHaveLength(1);
  });

  it('takes no answer that Node says is not whole', async () => {
    const outgoing = Object.assign(new EventEmitter(), { end: () => outgoing, destroy: () => outgoing });
    jest.spyOn(http, 'request').mockReturnValueOnce(outgoing as never);
    const asked = faultOf(ask('http://localhost/'));
    const incoming = Object.assign(new EventEmitter(), { complete: false, headers: {}, statusCode: 200 });
    outgoing.emit('response', incoming);
    incoming.emit('data', Buffer.from('{'));
    incoming.emit('end');
    expect(await asked).toMatchObject({ kind: 'reset', phase: 'reading' });
  });

  it('uses a connection again', async () => {
    const ports = new Set<number | undefined>();
    const { url } = await serve((request, response) => {
      ports.add(request.socket.remotePort);
      response.end('{}');
    });
    const shared = agent();
    for (let call = 0; call < 3; call++) await ask(url, { agent: shared });
    expect(ports.size).toBe(1);
  });

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('decompresses %s', async (encoding, compress) => {
    const { url } = await serve((_, response) =>
      response.setHeader('content-encoding', encoding).end(compress('plain')),
    );
    expect((await ask(url)).body.toString()).toBe('plain');
  });

  it.each([
    ['plain', undefined, Buffer.alloc(1_001, 'x')],
    // 130 bytes on the wire: only what comes out of them is too large.
    ['a gzip bomb', 'gzip', gzipSync(Buffer.alloc(100_000))],
  ])('aborts at the cap: %s', async (_, encoding, body) => {
    const { url } = await serve((__, response) => {
      if (encoding) response.setHeader('content-encoding', encoding);
      response.end(body);
    });
    expect(await faultOf(ask(url))).toMatchObject({ kind: 'too_large', phase: 'reading' });
  });

  it('takes a body that just fits', async () => {
    const { url } = await serve((_, response) => response.end(Buffer.alloc(1_000)));
    expect((await ask(url)).body).toHaveLength(1_000);
  });

  it('bounds a server that says nothing, and one whose body trickles', async () => {
    const passTime = timeLimit();
    const silent = await serve(() => passTime());
    expect(await faultOf(ask(silent.url))).toMatchObject({ kind: 'timeout', phase: 'sent' });

    const trickling = await serve((_, response) => {
      let written = 0;
      const timer = setInterval(() => {
        response.write('x');
        if (++written === 10) passTime();
      }, 5);
      response.on('close', () => clearInterval(timer));
    });
    expect(await faultOf(ask(trickling.url))).toMatchObject({ kind: 'timeout', phase: 'reading' });
  });

  it('knows of a time-out that it never had a connection', async () => {
    const { url } = await serve(() => undefined);
    const one = new Agent({ keepAlive: true, maxSockets: 1 });
    closing.push(() => one.destroy());
    const first = faultOf(ask(url, { agent: one, timeoutMs: 400 }));
    const second = faultOf(ask(url, { agent: one, timeoutMs: 200 }));
    expect(await second).toMatchObject({ kind: 'timeout', phase: 'queued', limitMs: 200 });
    expect(await first).toMatchObject({ kind: 'timeout', phase: 'sent', limitMs: 400 });
  });

  it('takes an answer that arrived while the process stood still beyond the time limit', async () => {
    const passTime = timeLimit();
    const { url } = await serve((_, response) => {
      response.end('{}');
      // After a standstill timers come first: before the answer, which has arrived, is read.
      setImmediate(passTime);
    });
    expect((await ask(url)).body.toString()).toBe('{}');
  });

  it("rejects with the caller's own reason, at once, and closes the connection", async () => {
    const controller = new AbortController();
    const reason = new Error('mine');
    let connectionClosed: Promise<unknown> | undefined;
    const { url } = await serve((request) => {
      connectionClosed = new Promise((resolve) => request.on('close', resolve));
      controller.abort(reason);
    });
    await expect(ask(url, { signal: controller.signal })).rejects.toBe(reason);
    await connectionClosed;
    await expect(ask(url, { signal: controller.signal })).rejects.toBe(reason);
  });

  it('leaves no listener on the signal of the caller', async () => {
    const { url } = await serve((_, response) => response.end());
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args));
    signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners--, remove(...args));
    await ask(url, { signal });
    expect(listeners).toBe(0);
  });

  it('tells refused and unresolved from a reset after the request was written', async () => {
    expect(await faultOf(ask(`http://127.0.0.1:${await deadPort()}/`))).toMatchObject({
      kind: 'refused',
      phase: 'connecting',
      reason: 'ECONNREFUSED',
    });
    expect(await faultOf(ask('http://no-such-host.invalid/'))).toMatchObject({
      kind: 'dns',
      phase: 'connecting',
    });
    const { url } = await serve((request) => request.socket.destroy());
    expect(await faultOf(ask(url))).toMatchObject({ kind: 'reset', phase: 'sent', reusedSocket: false });
  });

  it('takes a request for sent once a socket took it, though that never says that it is connected', async () => {
    const mocked = agent();
    mocked.createConnection = () => {
      const socket = new Duplex({
        read: () => undefined,
        write: (_chunk, _encoding, done) => done(),
        final: (done) => done(),
      });
      Object.assign(socket, { connecting: true, setTimeout: () => socket, ref: () => socket });
      setImmediate(() => socket.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' })));
      return socket;
    };
    const posted = ask('http://127.0.0.1/', { method: 'POST', body: 'text', agent: mocked });
    expect(await faultOf(posted)).toMatchObject({ kind: 'reset', phase: 'sent' });
  });

  it('uses a connection again whose answer came before Node said that the request was written', async () => {
    const reusing = agent();
    let connections = 0;
    reusing.createConnection = () => {
      connections += 1;
      const ignored = {
        setTimeout: () => socket,
        setKeepAlive: () => socket,
        ref: () => socket,
        unref: () => socket,
      };
      const socket: Duplex = Object.assign(
        new Duplex({
          read: () => undefined,
          write: (_chunk, _encoding, done) => {
            socket.push('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
            setImmediate(done);
          },
        }),
        ignored,
      );
      return socket;
    };
    for (let call = 0; call < 3; call += 1) await ask('http://127.0.0.1/', { agent: reusing });
    expect(connections).toBe(1);
  });

  it('knows a kept-alive connection that was closed meanwhile', async () => {
    let calls = 0;
    const { url } = await serve((request, response) => {
      if (calls++ === 0) response.end('{}');
      else request.socket.destroy();
    });
    const shared = agent();
    await ask(url, { agent: shared });
    expect(await faultOf(ask(url, { agent: shared }))).toMatchObject({ kind: 'reset', reusedSocket: true });
  });

  it.each([
    ['a truncated body', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"a"', 'reset', undefined],
    [
      'a truncated chunked body',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n',
      'reset',
      undefined,
    ],
    [
      'a change of the protocol',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
      'protocol',
      'ERR_HTTP_UPGRADE',
    ],
    ['no HTTP at all', 'SSH-2.0-x\r\n\r\n', 'protocol', 'HPE_INVALID_CONSTANT'],
    [
      'headers without an end',
      `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}`,
      'protocol',
      'HPE_HEADER_OVERFLOW',
    ],
    [
      'an unknown content coding',
      'HTTP/1.1 200 OK\r\nContent-Encoding: x\r\nContent-Length: 1\r\n\r\nx',
      'protocol',
      'ERR_HTTP_CONTENT_CODING',
    ],
    [
      'a broken gzip',
      'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nxxxx',
      'protocol',
      'Z_DATA_ERROR',
    ],
  ])('never takes %s for an answer', async (_, bytes, kind, reason) => {
    const server = await rawServer((socket) => socket.once('data', () => socket.end(bytes)));
    closing.push(server.close);
    expect(await faultOf(ask(server.url))).toMatchObject({ kind, ...(reason && { reason }) });
  });

  it('refuses what Node cannot send, as a fault and not as a crash', async () => {
    const { url } = await serve((_, response) => response.end());
    expect(await faultOf(ask(url, { headers: { 'x-a': 'a\r\nb: c' } }))).toMatchObject({
      kind: 'protocol',
      phase: 'queued',
    });
  });

  it('decodes no body that is empty', async () => {
    const { url } = await serve((_, response) => response.setHeader('content-encoding', 'gzip').end());
    for (const method of ['GET', 'HEAD']) expect((await ask(url, { method })).body).toHaveLength(0);
  });

  it('says of a fault only what is known of it', () => {
    expect(new ExchangeFault({ kind: 'reset', phase: 'reading' })).toMatchObject({
      reusedSocket: false,
      certificateRefused: false,
      refusedInHandshake: false,
    });
  });

  it('leaves no timer behind', async () => {
    const { url } = await serve((_, response) => response.end());
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    await ask(url, { timeoutMs: 1_000_000 });
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
