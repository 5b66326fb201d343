import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { EventEmitter } from 'node:events';
import http, { Agent, type RequestListener } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { createServer as createTlsServer, type TlsOptions, TLSSocket } from 'node:tls';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { certificateVerdict } from '../../../lib/exchange/certificate-refusal.js';
import { classify } from '../../../lib/exchange/classify.js';
import { ExchangeProgress } from '../../../lib/exchange/exchange-progress.js';
import { exchange } from '../../../lib/exchange/exchange.js';
import { ExchangeFault, type ExchangeRequest } from '../../../lib/exchange/exchange.types.js';
import { ServiceSimulator } from '../../../lib/testing/simulator.js';
import { deadPort, httpServer, rawServer, type Loopback } from '../../helpers/loopback.js';
import { startSimulator } from '../../helpers/simulators.js';

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

/** A connection with an error that Node has noticed before a request took it: of that request, Node then reports only the end. */
class AgentOfBrokenConnections extends Agent {
  override createConnection(...given: Parameters<Agent['createConnection']>): Duplex {
    const socket = super.createConnection(...given) as Socket;
    return socket.once('connect', () => Object.assign(socket, { _hadError: true }).destroy());
  }
}

describe('exchange', () => {
  it('fails at once if its connection ends without an error, because it had one before', async () => {
    const { url } = await serve(() => undefined);
    const broken = new AgentOfBrokenConnections();
    expect(await faultOf(ask(url, { agent: broken, method: 'POST' }))).toMatchObject({
      kind: 'reset',
      reason: 'ECONNRESET',
      phase: 'sent',
    });
  });

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

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('decompresses %s, and no body that is empty', async (encoding, compress) => {
    const { url } = await serve((_, response) =>
      response.setHeader('content-encoding', encoding).end(compress('plain')),
    );
    expect((await ask(url)).body.toString()).toBe('plain');
    const empty = await serve((_, response) => response.setHeader('content-encoding', encoding).end());
    for (const method of ['GET', 'HEAD']) expect((await ask(empty.url, { method })).body).toHaveLength(0);
  });

  it.each<[string, string | undefined, Buffer]>([
    ['plain', undefined, Buffer.alloc(1_001, 'x')],
    // 130 bytes on the wire: only what comes out of them is too large.
    ['a gzip bomb', 'gzip', gzipSync(Buffer.alloc(100_000))],
  ])('takes a body that just fits, and aborts one over the cap: %s', async (_, encoding, body) => {
    const bodies = [Buffer.alloc(1_000), body];
    const { url } = await serve((__, response) => {
      if (encoding && bodies.length === 1) response.setHeader('content-encoding', encoding);
      response.end(bodies.shift());
    });
    expect((await ask(url)).body).toHaveLength(1_000);
    expect(await faultOf(ask(url))).toMatchObject({ kind: 'too_large', phase: 'reading' });
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

  it('has the time of the whole call for a mock of a TLS socket that takes the request and answers late', async () => {
    /** Like the one of nock 15 and msw 3: it takes what is written before any handshake, which never comes. */
    class MockSocket extends TLSSocket {
      override _write(_chunk: unknown, _encoding: unknown, done: () => void): void {
        done();
      }
      override _writev(_chunks: unknown, done: () => void): void {
        done();
      }
    }
    const mocked = new TlsAgent();
    mocked.createConnection = () => {
      const inner = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
      const socket = new MockSocket(inner);
      Object.defineProperty(socket, 'connecting', { value: true });
      return socket;
    };
    const limits = { connectTimeoutMs: 50, timeoutMs: 200 };
    const fault = await faultOf(
      ask('https://127.0.0.1/', { method: 'POST', body: 'text', agent: mocked, ...limits }),
    );
    expect(fault).toMatchObject({ kind: 'timeout', phase: 'sent', limitMs: 200 });
  });

  it('has the time to connect alone while a real TLS handshake does not end', async () => {
    const silent = await rawServer(() => undefined);
    closing.push(silent.close);
    const limits = { connectTimeoutMs: 50, timeoutMs: 5_000 };
    const url = silent.url.replace('http:', 'https:');
    for (const body of [undefined, 'text', 'x'.repeat(300_000)]) {
      const secure = new TlsAgent();
      const fault = await faultOf(ask(url, { method: 'POST', body, agent: secure, ...limits }));
      expect(fault).toMatchObject({ kind: 'timeout', phase: 'connecting', limitMs: 50 });
    }
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

  it('leaves no timer behind', async () => {
    const { url } = await serve((_, response) => response.end());
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    await ask(url, { timeoutMs: 1_000_000 });
    expect(timers()).toBeLessThanOrEqual(before);
  });
});

const coded = (code: string | undefined, message = '') => Object.assign(new Error(message), { code });

describe('classify', () => {
  it.each([
    ['ECONNREFUSED', 'refused'],
    ['ENOTFOUND', 'dns'],
    ['EAI_AGAIN', 'dns'],
    ['ETIMEDOUT', 'timeout'],
    ['ECONNRESET', 'reset'],
    ['EPIPE', 'reset'],
    ['CERT_HAS_EXPIRED', 'tls'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
    ['HPE_INVALID_CONSTANT', 'protocol'],
    ['ERR_PROXY_TUNNEL_407', 'proxy'],
    ['ERR_AGENT_CLOSED', 'closed'],
    ['EMFILE', 'network'],
  ])('%s is %s', (code, kind) => {
    expect(classify(coded(code))).toEqual({ kind, reason: code, certificateRefused: false });
  });

  it('a silent proxy is the time-out that it is, whichever timer is seen first', () => {
    expect(classify(coded('ERR_PROXY_TIMEOUT'))).toMatchObject({
      kind: 'timeout',
      reason: 'ERR_CONNECT_TIMEOUT',
    });
  });

  // Node has only the system's word for what OpenSSL says when it writes.
  it.each([
    [
      'error:0A000410:SSL routines:ssl3_read_bytes:ssl/tls alert handshake failure:rec_layer_s3.c:1602:SSL alert number 40',
      'ERR_SSL_SSL_TLS_ALERT_HANDSHAKE_FAILURE',
      40,
    ],
    [
      'error:0A000152:SSL routines:final_renegotiate:unsafe legacy renegotiation disabled:extensions.c:946:',
      'ERR_SSL_UNSAFE_LEGACY_RENEGOTIATION_DISABLED',
      undefined,
    ],
    ['error:0A000418:SSL routines::tlsv1 alert unknown ca:', 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 48],
    ['error:0A00010B:SSL routines::wrong version number:', 'ERR_SSL_WRONG_VERSION_NUMBER', undefined],
    ['error:0A000126:SSL routines::<b>evil</b>\r\n:', 'EPROTO', undefined],
    ['of another kind', 'EPROTO', undefined],
  ])("EPROTO with OpenSSL's reason, and none of the other side: %s", (message, reason, alert) => {
    expect(classify(coded('EPROTO', `write EPROTO 80D2:${message}`))).toEqual({
      kind: 'tls',
      reason,
      alert,
      certificateRefused: alert === 48,
    });
  });

  it.each([
    ['permitted subtree violation', true],
    ['CA signature digest algorithm too weak', true],
    ["Issuer's name, (or) key/id", true],
    ['<b>evil</b>', false],
    ['a: b', false],
    ['x'.repeat(81), false],
  ])("keeps OpenSSL's words of UNSPECIFIED only if they are plain: %s", (message, isKept) => {
    expect(classify(coded('UNSPECIFIED', message)).opensslText).toBe(isKept ? message : undefined);
    expect(classify(coded('CERT_REVOKED', message)).opensslText).toBeUndefined();
  });

  // What Node 20 and Node 22.20 (OpenSSL 3.5) make of alert 40.
  it.each(['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE'])(
    '%s has no slash in its reason, and is alert 40',
    (code) => {
      expect(classify(coded(code))).toMatchObject({ reason: code.replace('/', '_'), alert: 40 });
    },
  );

  it.each([
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', ''],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED', ''],
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', ''],
    ...[42, 43, 44, 45, 46, 48, 49, 116].map((alert) => ['EPROTO', `SSL alert number ${alert}`]),
  ])('%s %s is about our certificate', (code, message) => {
    expect(classify(coded(code, message))).toMatchObject({ kind: 'tls', certificateRefused: true });
  });

  it.each([41, 47, 50, 115])('alert %d is not', (alert) => {
    expect(classify(coded('EPROTO', `SSL alert number ${alert}`)).certificateRefused).toBe(false);
  });

  it('the first of several addresses stands for all', () => {
    const all = new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]);
    expect(classify(all)).toMatchObject({ kind: 'refused', reason: 'ECONNREFUSED' });
  });

  it.each([
    ['socket hang up', 'reset'],
    ['aborted', 'reset'],
    ['anything else', 'network'],
  ])('without a code, "%s" is %s; the text is not kept', (message, kind) => {
    expect(classify(coded(undefined, message))).toEqual({
      kind,
      reason: undefined,
      certificateRefused: false,
    });
  });

  it.each([undefined, null, 'a text', 7])('%p is a fault of the network', (thrown) => {
    expect(classify(thrown)).toMatchObject({ kind: 'network', certificateRefused: false });
  });
});

const JSON_TYPE = 'application/json';
const HTML = 'text/html; charset=utf-8';

describe('certificateVerdict', () => {
  it.each([
    ['nginx, missing', 400, HTML, '<center>No required SSL certificate was sent</center>', 'refused'],
    ['nginx, bad', 400, HTML, '<center>The SSL certificate error</center>', 'refused'],
    ['without a type', 400, undefined, ' \n<html>No required SSL certificate was sent', 'refused'],
    ['nginx, 495', 495, JSON_TYPE, '{}', 'refused'],
    ['nginx, 496', 496, undefined, '', 'refused'],
    ['a 403 that says why', 403, HTML, '<p>Client Certificate required</p>', 'refused'],
    ['HAProxy denies', 403, HTML, '<h1>403 Forbidden</h1>Request forbidden.', 'perhaps'],
    ['HAProxy, 401', 401, undefined, '<html><h1>401</h1>', 'perhaps'],
    ['another bad request', 400, HTML, '<h1>Bad Request</h1>', undefined],
    ['the service, 403', 403, JSON_TYPE, '{"status":"FORBIDDEN","message":"certificate"}', undefined],
    ['the service, 400', 400, JSON_TYPE, '{"message":"no certificate"}', undefined],
    ['plain text', 403, 'text/plain', 'no certificate', undefined],
    ['another status', 404, HTML, '<p>certificate</p>', undefined],
    ['far down the page', 400, HTML, `<html>${' '.repeat(5_000)}certificate`, undefined],
  ])('%s', (_, status, type, text, verdict) => {
    const headers = type === undefined ? {} : { 'content-type': type };
    const answer = { status, statusText: '', headers, body: Buffer.from(text), untilClose: false };
    expect(certificateVerdict(answer)).toBe(verdict);
  });
});

describe('a fault of the handshake', () => {
  let ca: string;
  let pems: TlsOptions;
  beforeAll(async () => {
    const simulator = await startSimulator();
    const { server } = ServiceSimulator.certificatesOf(simulator);
    ca = simulator.chain;
    pems = { key: server.privateKey, cert: server.certificate, ca };
    await simulator.stop();
  });

  const afterHello = (act: (socket: Socket) => void) => () =>
    createServer((socket) => socket.on('error', () => undefined).once('data', () => act(socket)));
  const demanding = (maxVersion: 'TLSv1.2' | 'TLSv1.3') => () =>
    createTlsServer({ ...pems, maxVersion, requestCert: true, rejectUnauthorized: true });

  it.each<[string, () => Server, { kind: string; phase: string }]>([
    ['a reset', afterHello((socket) => socket.resetAndDestroy()), { kind: 'reset', phase: 'connecting' }],
    ['an end', afterHello((socket) => socket.end()), { kind: 'reset', phase: 'connecting' }],
    [
      'no TLS',
      afterHello((socket) => socket.end('HTTP/1.1 400\r\n\r\n')),
      { kind: 'tls', phase: 'connecting' },
    ],
    ['an alert of TLS 1.2', demanding('TLSv1.2'), { kind: 'tls', phase: 'connecting' }],
    // The request goes out before the verdict comes.
    ['an alert of TLS 1.3', demanding('TLSv1.3'), { kind: 'tls', phase: 'sent' }],
  ])('knows of %s in the handshake whether the request had gone out', async (_, makeServer, expected) => {
    const server = makeServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const agent = new TlsAgent({ ca });
    closing.push(
      () => void server.close(),
      () => agent.destroy(),
    );
    const { port } = server.address() as AddressInfo;
    const posted = ask(`https://localhost:${port}/`, { method: 'POST', body: 'text', agent });
    expect(await faultOf(posted)).toMatchObject(expected);
  });

  /** A TLS connection and its request, as far as an exchange follows them. */
  function followed({
    protocol = 'TLSv1.3',
    secureConnecting = true,
    reusedSocket = false,
    hasCertificate = true,
  } = {}) {
    const request = Object.assign(new EventEmitter(), { reusedSocket });
    const socket = Object.assign(new EventEmitter(), {
      secureConnecting,
      bytesRead: 0,
      getProtocol: () => protocol,
    });
    const progress = new ExchangeProgress(hasCertificate);
    progress.observe(request as never);
    request.emit('socket', socket);
    return { progress, socket };
  }

  it.each<[string, boolean, Parameters<typeof followed>[0], (made: ReturnType<typeof followed>) => void]>([
    ['before it is over', true, {}, () => undefined],
    ['of TLS 1.3, until something comes back', true, {}, ({ socket }) => socket.emit('secureConnect')],
    ['of TLS 1.2', false, { protocol: 'TLSv1.2' }, ({ socket }) => socket.emit('secureConnect')],
    [
      'whose session ticket came',
      false,
      {},
      ({ socket }) => void (socket.emit('secureConnect'), socket.emit('session')),
    ],
    [
      'after a byte of an answer',
      false,
      {},
      ({ socket }) => void (socket.emit('secureConnect'), (socket.bytesRead = 1)),
    ],
    [
      'once an answer begins',
      false,
      {},
      ({ socket, progress }) => void (socket.emit('secureConnect'), (progress.phase = 'reading')),
    ],
    ['that was over before this request', false, { secureConnecting: false }, () => undefined],
    [
      'of a connection that is used again',
      false,
      { secureConnecting: false, reusedSocket: true },
      () => undefined,
    ],
  ])('an alert can be the verdict on the handshake %s: %s', (_, expected, kind, happens) => {
    const made = followed(kind);
    happens(made);
    expect(made.progress.isHandshakePending).toBe(expected);
  });

  const REFUSED = { certificateRefused: true, certificateSuspected: false, refusedInHandshake: true };
  const SUSPECTED = { certificateRefused: false, certificateSuspected: true, refusedInHandshake: false };
  const UNRELATED = { certificateRefused: false, certificateSuspected: false, refusedInHandshake: false };
  const FOUR = [40, 47, 50, 51];
  /** Alerts that are also sent because of a request: unexpected_message, bad_record_mac, record_overflow. */
  const OTHERS = [10, 20, 22];

  it.each<[string, number[], object, Parameters<typeof followed>[0], string[]]>([
    ['over TLS 1.3 instead of a session ticket', FOUR, REFUSED, {}, ['keylog', 'secureConnect']],
    ['over TLS 1.3 instead of a session ticket', [80], SUSPECTED, {}, ['keylog', 'secureConnect']],
    ['over TLS 1.3 instead of a session ticket', OTHERS, UNRELATED, {}, ['keylog', 'secureConnect']],
    [
      'without a certificate',
      FOUR,
      { ...UNRELATED, refusedInHandshake: true },
      { hasCertificate: false },
      ['secureConnect'],
    ],
    ['after the ticket', [...FOUR, 80], UNRELATED, {}, ['keylog', 'secureConnect', 'session']],
    ['over TLS 1.2 in the handshake', [...FOUR, 80], SUSPECTED, { protocol: 'TLSv1.2' }, ['keylog']],
    ['over TLS 1.2 in the handshake', OTHERS, UNRELATED, { protocol: 'TLSv1.2' }, ['keylog']],
    ['over TLS 1.2 later', [...FOUR, 80], UNRELATED, { protocol: 'TLSv1.2' }, ['keylog', 'secureConnect']],
    ['as the answer to the ClientHello', [...FOUR, 80], UNRELATED, {}, []],
  ])('an alert %s, %j: %j', (_, alerts, expected, kind, events) => {
    for (const alert of alerts) {
      const { progress, socket } = followed(kind);
      for (const event of events) socket.emit(event);
      expect(progress.describeFault({ kind: 'tls', alert, certificateRefused: false })).toMatchObject(
        expected,
      );
    }
  });

  it.each<[string, object, Parameters<typeof followed>[0], string[]]>([
    ['over TLS 1.3 instead of a session ticket', SUSPECTED, {}, ['keylog', 'secureConnect']],
    ['over TLS 1.2 in the handshake', SUSPECTED, { protocol: 'TLSv1.2' }, ['keylog']],
    ['after the ticket', UNRELATED, {}, ['keylog', 'secureConnect', 'session']],
    ['over TLS 1.2 later', UNRELATED, { protocol: 'TLSv1.2' }, ['keylog', 'secureConnect']],
    ['before the ServerHello', UNRELATED, {}, []],
    ['without a certificate', UNRELATED, { hasCertificate: false }, ['keylog', 'secureConnect']],
    ['of a connection that is used again', UNRELATED, { secureConnecting: false, reusedSocket: true }, []],
  ])('an end without an alert, %s: %j', (_, expected, kind, events) => {
    const { progress, socket } = followed(kind);
    for (const event of events) socket.emit(event);
    expect(progress.describeFault({ kind: 'reset' })).toMatchObject(expected);
  });
});
