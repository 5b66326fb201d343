import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { EventEmitter } from 'node:events';
import http, { Agent, type RequestListener } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { createServer as createTlsServer, type TlsOptions, TLSSocket } from 'node:tls';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { certificateVerdict, isCertain, verdictOfEnd } from '../../../lib/exchange/response.js';
import { classify, ExchangeFault } from '../../../lib/exchange/fault.js';
import { exchange, ExchangeProgress } from '../../../lib/exchange/exchange.js';
import { type ExchangeRequest } from '../../../lib/exchange/io.js';
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

/** Returns a function that lets the time limit of the latest exchange run out. */
function controlTimeLimit(): () => void {
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

const exchangeWith = (url: string, more: Partial<ExchangeRequest> = {}) =>
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

/**
 * An agent whose connections fail before a request uses them. Node has then already reported the socket's
 * error, so the request sees only the end of the connection.
 */
class AgentOfBrokenConnections extends Agent {
  override createConnection(...given: Parameters<Agent['createConnection']>): Duplex {
    const socket = super.createConnection(...given) as Socket;
    return socket.once('connect', () => Object.assign(socket, { _hadError: true }).destroy());
  }
}

describe('exchange()', () => {
  it('reports a reset at once when the connection ends without an error event because the socket had failed earlier', async () => {
    const { url } = await serve(() => undefined);
    const broken = new AgentOfBrokenConnections();
    expect(await faultOf(exchangeWith(url, { agent: broken, method: 'POST' }))).toMatchObject({
      kind: 'reset',
      reason: 'ECONNRESET',
      phase: 'sent',
    });
  });

  it('closes a keep-alive connection when the server responds without reading the rest of the request body', async () => {
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
    // maxSockets is 1: the second request has to wait until the first connection is closed.
    for (let call = 0; call < 2; call += 1) {
      expect(await exchangeWith(server.url, { method: 'POST', body, agent: one })).toMatchObject({
        status: 200,
      });
    }
  });

  it('sends method, path, query, headers and body, and returns status, headers and body of the response', async () => {
    const { url } = await serve((request, response) => {
      const { method, url: path, headers } = request;
      void request.toArray().then((chunks: Buffer[]) => {
        const body = Buffer.concat(chunks).toString();
        response
          .writeHead(201, 'Made', { 'x-made-by': '1' })
          .end(JSON.stringify({ method, path, x: headers['x-a'], body }));
      });
    });
    const response = await exchangeWith(`${url}/a/b?c=d`, {
      method: 'POST',
      headers: { 'x-a': '1' },
      body: 'text',
    });
    expect(response).toMatchObject({ status: 201, statusText: 'Made', headers: { 'x-made-by': '1' } });
    expect(JSON.parse(response.body.toString())).toEqual({
      method: 'POST',
      path: '/a/b?c=d',
      x: '1',
      body: 'text',
    });
  });

  it.each([
    ['http://[::1]:8443/a', { hostname: '::1', host: '::1', port: '8443' }],
    ['http://api.example/', { hostname: 'api.example', host: 'api.example' }],
  ])('connects to the host and port of %s', async (url, target) => {
    const connected: unknown[] = [];
    const mocked = agent();
    mocked.createConnection = (options) => {
      connected.push(options);
      throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    };
    expect(await faultOf(exchangeWith(url, { agent: mocked }))).toMatchObject({ phase: 'queued' });
    expect(connected[0]).toMatchObject(target);
    expect(connected).toHaveLength(1);
  });

  it('rejects a response that Node marks as incomplete', async () => {
    const outgoing = Object.assign(new EventEmitter(), { end: () => outgoing, destroy: () => outgoing });
    jest.spyOn(http, 'request').mockReturnValueOnce(outgoing as never);
    const fault = faultOf(exchangeWith('http://localhost/'));
    const incoming = Object.assign(new EventEmitter(), { complete: false, headers: {}, statusCode: 200 });
    outgoing.emit('response', incoming);
    incoming.emit('data', Buffer.from('{'));
    incoming.emit('end');
    expect(await fault).toMatchObject({ kind: 'reset', phase: 'reading' });
  });

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])(
    'decompresses a %s response, and accepts an empty body with that content encoding',
    async (encoding, compress) => {
      const { url } = await serve((_, response) =>
        response.setHeader('content-encoding', encoding).end(compress('plain')),
      );
      expect((await exchangeWith(url)).body.toString()).toBe('plain');
      const empty = await serve((_, response) => response.setHeader('content-encoding', encoding).end());
      for (const method of ['GET', 'HEAD'])
        expect((await exchangeWith(empty.url, { method })).body).toHaveLength(0);
    },
  );

  it.each<[string, string | undefined, Buffer]>([
    ['plain', undefined, Buffer.alloc(1_001, 'x')],
    // About 130 bytes on the wire. Only the decompressed body is above the limit.
    ['a gzip bomb', 'gzip', gzipSync(Buffer.alloc(100_000))],
  ])(
    'accepts a body of exactly maxResponseBytes, and aborts a body above that limit (%s)',
    async (_, encoding, body) => {
      const bodies = [Buffer.alloc(1_000), body];
      const { url } = await serve((__, response) => {
        if (encoding && bodies.length === 1) response.setHeader('content-encoding', encoding);
        response.end(bodies.shift());
      });
      expect((await exchangeWith(url)).body).toHaveLength(1_000);
      const fault = { kind: 'too_large', phase: 'reading', limitBytes: 1_000 };
      expect(await faultOf(exchangeWith(url))).toMatchObject({
        ...fault,
        bodyBytes: encoding ? undefined : body.length,
      });
    },
  );

  it('times out when the server sends no response, and when the response body arrives too slowly', async () => {
    const passTime = controlTimeLimit();
    const silent = await serve(() => passTime());
    expect(await faultOf(exchangeWith(silent.url))).toMatchObject({ kind: 'timeout', phase: 'sent' });

    const trickling = await serve((_, response) => {
      let written = 0;
      const timer = setInterval(() => {
        response.write('x');
        if (++written === 10) passTime();
      }, 5);
      response.on('close', () => clearInterval(timer));
    });
    expect(await faultOf(exchangeWith(trickling.url))).toMatchObject({ kind: 'timeout', phase: 'reading' });
  });

  it('reports in a timeout fault that the request never left the queue for a connection', async () => {
    const { url } = await serve(() => undefined);
    const one = new Agent({ keepAlive: true, maxSockets: 1 });
    closing.push(() => one.destroy());
    const first = faultOf(exchangeWith(url, { agent: one, timeoutMs: 400 }));
    const second = faultOf(exchangeWith(url, { agent: one, timeoutMs: 200 }));
    expect(await second).toMatchObject({ kind: 'timeout', phase: 'queued', limitMs: 200 });
    expect(await first).toMatchObject({ kind: 'timeout', phase: 'sent', limitMs: 400 });
  });

  it('returns a response that had already arrived when the event loop was blocked beyond the time limit', async () => {
    const passTime = controlTimeLimit();
    const { url } = await serve((_, response) => {
      response.end('{}');
      // After the event loop was blocked, Node runs due timers before it reads the response from the socket.
      setImmediate(passTime);
    });
    expect((await exchangeWith(url)).body.toString()).toBe('{}');
  });

  it('rejects at once with the abort reason of the caller, and closes the connection', async () => {
    const controller = new AbortController();
    const reason = new Error('mine');
    let connectionClosed: Promise<unknown> | undefined;
    const { url } = await serve((request) => {
      connectionClosed = new Promise((resolve) => request.on('close', resolve));
      controller.abort(reason);
    });
    await expect(exchangeWith(url, { signal: controller.signal })).rejects.toBe(reason);
    await connectionClosed;
    await expect(exchangeWith(url, { signal: controller.signal })).rejects.toBe(reason);
  });

  it('removes its listener from the AbortSignal of the caller', async () => {
    const { url } = await serve((_, response) => response.end());
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args));
    signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners--, remove(...args));
    await exchangeWith(url, { signal });
    expect(listeners).toBe(0);
  });

  it('distinguishes a refused connection, a failed DNS lookup and a reset after the request was sent', async () => {
    expect(await faultOf(exchangeWith(`http://127.0.0.1:${await deadPort()}/`))).toMatchObject({
      kind: 'refused',
      phase: 'connecting',
      reason: 'ECONNREFUSED',
    });
    expect(await faultOf(exchangeWith('http://no-such-host.invalid/'))).toMatchObject({
      kind: 'dns',
      phase: 'connecting',
    });
    const { url } = await serve((request) => request.socket.destroy());
    expect(await faultOf(exchangeWith(url))).toMatchObject({
      kind: 'reset',
      phase: 'sent',
      reusedSocket: false,
    });
  });

  it('reports the request as sent once the socket has accepted it, even if the socket never reports that it connected', async () => {
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
    const posted = exchangeWith('http://127.0.0.1/', { method: 'POST', body: 'text', agent: mocked });
    expect(await faultOf(posted)).toMatchObject({ kind: 'reset', phase: 'sent' });
  });

  it('applies the whole time limit, not the connect timeout, to a mocked TLS socket that accepts the request', async () => {
    /** Like the sockets of nock 15 and msw 3, it accepts writes although no TLS handshake ever takes place. */
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
      exchangeWith('https://127.0.0.1/', { method: 'POST', body: 'text', agent: mocked, ...limits }),
    );
    expect(fault).toMatchObject({ kind: 'timeout', phase: 'sent', limitMs: 200 });
  });

  it('applies only the connect timeout while a real TLS handshake does not finish', async () => {
    const silent = await rawServer(() => undefined);
    closing.push(silent.close);
    const limits = { connectTimeoutMs: 50, timeoutMs: 5_000 };
    const url = silent.url.replace('http:', 'https:');
    for (const body of [undefined, 'text', 'x'.repeat(300_000)]) {
      const secure = new TlsAgent();
      const fault = await faultOf(exchangeWith(url, { method: 'POST', body, agent: secure, ...limits }));
      expect(fault).toMatchObject({ kind: 'timeout', phase: 'connecting', limitMs: 50 });
    }
  });

  it('reuses a connection whose response arrived before Node reported that the request was written', async () => {
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
    for (let call = 0; call < 3; call += 1) await exchangeWith('http://127.0.0.1/', { agent: reusing });
    expect(connections).toBe(1);
  });

  it('marks a reset on a reused keep-alive connection as reusedSocket', async () => {
    let calls = 0;
    const { url } = await serve((request, response) => {
      if (calls++ === 0) response.end('{}');
      else request.socket.destroy();
    });
    const shared = agent();
    await exchangeWith(url, { agent: shared });
    expect(await faultOf(exchangeWith(url, { agent: shared }))).toMatchObject({
      kind: 'reset',
      reusedSocket: true,
    });
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
      'a switch to another protocol',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
      'protocol',
      'ERR_HTTP_UPGRADE',
    ],
    ['bytes that are not HTTP', 'SSH-2.0-x\r\n\r\n', 'protocol', 'HPE_INVALID_CONSTANT'],
    [
      'headers without an end',
      `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}`,
      'protocol',
      'HPE_HEADER_OVERFLOW',
    ],
    [
      'a content coding that cannot be decoded',
      'HTTP/1.1 200 OK\r\nContent-Encoding: compress\r\nContent-Length: 1\r\n\r\nx',
      'protocol',
      'ERR_HTTP_CONTENT_CODING',
    ],
    [
      'a corrupt gzip body',
      'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nxxxx',
      'protocol',
      'Z_DATA_ERROR',
    ],
  ])('rejects a response with %s', async (_, bytes, kind, reason) => {
    const server = await rawServer((socket) => socket.once('data', () => socket.end(bytes)));
    closing.push(server.close);
    expect(await faultOf(exchangeWith(server.url))).toMatchObject({ kind, ...(reason && { reason }) });
  });

  it('rejects an invalid header value as a protocol fault instead of throwing synchronously', async () => {
    const { url } = await serve((_, response) => response.end());
    expect(await faultOf(exchangeWith(url, { headers: { 'x-a': 'a\r\nb: c' } }))).toMatchObject({
      kind: 'protocol',
      phase: 'queued',
    });
  });

  it('leaves no timer running after the response', async () => {
    const { url } = await serve((_, response) => response.end());
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    await exchangeWith(url, { timeoutMs: 1_000_000 });
    expect(timers()).toBeLessThanOrEqual(before);
  });
});

const coded = (code: string | undefined, message = '') => Object.assign(new Error(message), { code });

describe('classify()', () => {
  /** Whether the alert itself says so, also outside of a handshake. */
  const isCertificateRefused = (classified: ReturnType<typeof classify>): boolean =>
    isCertain(verdictOfEnd(classified, {}, { isOverForUs: false, isPending: false }));

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
  ])('classifies the error code %s as kind %s', (code, kind) => {
    expect(classify(coded(code))).toEqual({ kind, reason: code });
  });

  it('classifies a proxy that does not respond as a connect timeout', () => {
    expect(classify(coded('ERR_PROXY_TIMEOUT'))).toMatchObject({
      kind: 'timeout',
      reason: 'ERR_CONNECT_TIMEOUT',
    });
  });

  // If a TLS write fails, Node sets the code EPROTO. OpenSSL's reason is only in the message.
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
    ['a message that is not an OpenSSL error', 'EPROTO', undefined],
  ])(
    'takes the reason of an EPROTO error only from a well-formed message of OpenSSL: %s',
    (message, reason, alert) => {
      const classified = classify(coded('EPROTO', `write EPROTO 80D2:${message}`));
      expect(classified).toEqual({ kind: 'tls', reason, alert });
      expect(isCertificateRefused(classified)).toBe(alert === 48);
    },
  );

  it.each([
    ['permitted subtree violation', true],
    ['CA signature digest algorithm too weak', true],
    ["Issuer's name, (or) key/id", true],
    ['<b>evil</b>', false],
    ['a: b', false],
    ['x'.repeat(81), false],
  ])(
    "keeps OpenSSL's text of an UNSPECIFIED verification error only if it is plain words: %s",
    (message, isKept) => {
      expect(classify(coded('UNSPECIFIED', message)).opensslText).toBe(isKept ? message : undefined);
      expect(classify(coded('CERT_REVOKED', message)).opensslText).toBeUndefined();
    },
  );

  // The codes of alert 40 in Node 20 and in Node 22.20 (OpenSSL 3.5).
  it.each(['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE'])(
    'recognizes %s as TLS alert 40 and replaces the slash in the reason',
    (code) => {
      expect(classify(coded(code))).toMatchObject({ reason: code.replace('/', '_'), alert: 40 });
    },
  );

  it.each([
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', ''],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED', ''],
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', ''],
    ...[42, 43, 44, 45, 46, 48, 49, 116].map((alert) => ['EPROTO', `SSL alert number ${alert}`]),
  ])('classifies %s %s as a refusal of our client certificate', (code, message) => {
    const classified = classify(coded(code, message));
    expect(classified.kind).toBe('tls');
    expect(isCertificateRefused(classified)).toBe(true);
  });

  it.each([41, 47, 50, 115])(
    'does not classify TLS alert %d as a refusal of our client certificate',
    (alert) => {
      expect(isCertificateRefused(classify(coded('EPROTO', `SSL alert number ${alert}`)))).toBe(false);
    },
  );

  it('classifies an AggregateError of several addresses by its first error', () => {
    const all = new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]);
    expect(classify(all)).toMatchObject({ kind: 'refused', reason: 'ECONNREFUSED' });
  });

  it.each([
    ['socket hang up', 'reset'],
    ['aborted', 'reset'],
    ['anything else', 'network'],
  ])(
    'classifies the message "%s" of an error without a code as %s, and does not keep the message',
    (message, kind) => {
      expect(classify(coded(undefined, message))).toEqual({ kind, reason: undefined });
    },
  );

  it.each([undefined, null, 'a text', 7])('classifies the thrown value %p as a network fault', (thrown) => {
    expect(classify(thrown)).toEqual({ kind: 'network' });
  });
});

const JSON_TYPE = 'application/json';
const HTML = 'text/html; charset=utf-8';

describe('Certificate verdict of a response', () => {
  it.each([
    [
      'an nginx page about a missing certificate',
      'not-sent',
      400,
      HTML,
      '<center>No required SSL certificate was sent</center>',
    ],
    [
      'an nginx page about a bad certificate',
      'refused',
      400,
      HTML,
      '<center>The SSL certificate error</center>',
    ],
    [
      'an nginx page without a content type',
      'not-sent',
      400,
      undefined,
      ' \n<html>No required SSL certificate was sent',
    ],
    ['status 495 of nginx', 'refused', 495, JSON_TYPE, '{}'],
    ['status 496 of nginx', 'not-sent', 496, undefined, ''],
    [
      'a 403 page that names the client certificate',
      'refused',
      403,
      HTML,
      '<p>Client Certificate required</p>',
    ],
    [
      'a 403 page of HAProxy that names no cause',
      'perhaps-refused',
      403,
      HTML,
      '<h1>403 Forbidden</h1>Request forbidden.',
    ],
    ['a 401 page of HAProxy that names no cause', 'perhaps-refused', 401, undefined, '<html><h1>401</h1>'],
    ['a 400 page that names no certificate', undefined, 400, HTML, '<h1>Bad Request</h1>'],
    [
      'a 403 with a JSON error of the service',
      undefined,
      403,
      JSON_TYPE,
      '{"status":"FORBIDDEN","message":"certificate"}',
    ],
    ['a 400 with a JSON error of the service', undefined, 400, JSON_TYPE, '{"message":"no certificate"}'],
    ['a 403 with plain text', undefined, 403, 'text/plain', 'no certificate'],
    ['a 404 page that mentions a certificate', undefined, 404, HTML, '<p>certificate</p>'],
    [
      'a 400 page that mentions a certificate only after 5,000 characters',
      undefined,
      400,
      HTML,
      `<html>${' '.repeat(5_000)}certificate`,
    ],
  ])('certificateVerdict() of %s is %s', (_, verdict, status, type, text) => {
    const headers = type === undefined ? {} : { 'content-type': type };
    const response = { status, statusText: '', headers, body: Buffer.from(text), untilClose: false };
    expect(certificateVerdict({ response })).toBe(verdict);
  });
});

describe('Faults during the TLS handshake', () => {
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
  const requireClientCertificate = (maxVersion: 'TLSv1.2' | 'TLSv1.3') => () =>
    createTlsServer({ ...pems, maxVersion, requestCert: true, rejectUnauthorized: true });

  it.each<[string, () => Server, { kind: string; phase: string }]>([
    ['a reset', afterHello((socket) => socket.resetAndDestroy()), { kind: 'reset', phase: 'connecting' }],
    ['a FIN', afterHello((socket) => socket.end()), { kind: 'reset', phase: 'connecting' }],
    [
      'a plain HTTP response',
      afterHello((socket) => socket.end('HTTP/1.1 400\r\n\r\n')),
      { kind: 'tls', phase: 'connecting' },
    ],
    ['a TLS 1.2 alert', requireClientCertificate('TLSv1.2'), { kind: 'tls', phase: 'connecting' }],
    // With TLS 1.3 the client sends its request before the server has judged the client certificate.
    ['a TLS 1.3 alert', requireClientCertificate('TLSv1.3'), { kind: 'tls', phase: 'sent' }],
  ])(
    'reports, when the server ends the handshake with %s, whether the request had already been sent',
    async (_, makeServer, expected) => {
      const server = makeServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const agent = new TlsAgent({ ca });
      closing.push(
        () => void server.close(),
        () => agent.destroy(),
      );
      const { port } = server.address() as AddressInfo;
      const posted = exchangeWith(`https://localhost:${port}/`, { method: 'POST', body: 'text', agent });
      expect(await faultOf(posted)).toMatchObject(expected);
    },
  );

  /** A fake TLS socket and request, observed by an ExchangeProgress. */
  function observeProgress({
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
    const progress = new ExchangeProgress(hasCertificate ? {} : undefined);
    progress.onSocket(request as never, socket as never);
    return { progress, socket };
  }

  it.each<
    [
      string,
      boolean,
      Parameters<typeof observeProgress>[0],
      (made: ReturnType<typeof observeProgress>) => void,
    ]
  >([
    ['that is not finished', true, {}, () => undefined],
    [
      'over TLS 1.3 before the first byte from the server',
      true,
      {},
      ({ socket }) => socket.emit('secureConnect'),
    ],
    [
      'over TLS 1.2 that is finished',
      false,
      { protocol: 'TLSv1.2' },
      ({ socket }) => socket.emit('secureConnect'),
    ],
    [
      'over TLS 1.3 after the session ticket arrived',
      false,
      {},
      ({ socket }) => void (socket.emit('secureConnect'), socket.emit('session')),
    ],
    [
      'over TLS 1.3 after the first byte of a response',
      false,
      {},
      ({ socket }) => void (socket.emit('secureConnect'), (socket.bytesRead = 1)),
    ],
    [
      'over TLS 1.3 once the response is being read',
      false,
      {},
      ({ socket, progress }) => void (socket.emit('secureConnect'), (progress.phase = 'reading')),
    ],
    ['that finished before this request', false, { secureConnecting: false }, () => undefined],
    ['of a reused connection', false, { secureConnecting: false, reusedSocket: true }, () => undefined],
  ])('isHandshakePending for a handshake %s is %s', (_, expected, kind, happens) => {
    const made = observeProgress(kind);
    happens(made);
    expect(made.progress.isHandshakePending).toBe(expected);
  });

  const REFUSED = { certificateVerdict: 'refused', handshakeRefused: true };
  const SUSPECTED = { certificateVerdict: 'perhaps-refused', handshakeRefused: false };
  const UNRELATED = { certificateVerdict: undefined, handshakeRefused: false };
  const FOUR = [40, 47, 50, 51];
  /** Alerts that a request can cause too: unexpected_message, bad_record_mac, record_overflow. */
  const OTHERS = [10, 20, 22];

  it.each<[string, number[], object, Parameters<typeof observeProgress>[0], string[]]>([
    ['over TLS 1.3 instead of a session ticket', FOUR, REFUSED, {}, ['keylog', 'secureConnect']],
    ['over TLS 1.3 instead of a session ticket', [80], SUSPECTED, {}, ['keylog', 'secureConnect']],
    ['over TLS 1.3 instead of a session ticket', OTHERS, UNRELATED, {}, ['keylog', 'secureConnect']],
    [
      'over TLS 1.3 to a client without a certificate',
      FOUR,
      { ...UNRELATED, handshakeRefused: true },
      { hasCertificate: false },
      ['secureConnect'],
    ],
    [
      'over TLS 1.3 after the session ticket',
      [...FOUR, 80],
      UNRELATED,
      {},
      ['keylog', 'secureConnect', 'session'],
    ],
    ['during a TLS 1.2 handshake', [...FOUR, 80], SUSPECTED, { protocol: 'TLSv1.2' }, ['keylog']],
    ['during a TLS 1.2 handshake', OTHERS, UNRELATED, { protocol: 'TLSv1.2' }, ['keylog']],
    [
      'after a TLS 1.2 handshake',
      [...FOUR, 80],
      UNRELATED,
      { protocol: 'TLSv1.2' },
      ['keylog', 'secureConnect'],
    ],
    ['in response to the ClientHello', [...FOUR, 80], UNRELATED, {}, []],
  ])('judges an alert sent %s, one of %j, as %j', (_, alerts, expected, kind, events) => {
    for (const alert of alerts) {
      const { progress, socket } = observeProgress(kind);
      for (const event of events) socket.emit(event);
      expect(progress.describeFault({ kind: 'tls', alert })).toMatchObject(expected);
    }
  });

  it.each<[string, object, Parameters<typeof observeProgress>[0], string[]]>([
    ['over TLS 1.3 instead of a session ticket', SUSPECTED, {}, ['keylog', 'secureConnect']],
    ['during a TLS 1.2 handshake', SUSPECTED, { protocol: 'TLSv1.2' }, ['keylog']],
    ['over TLS 1.3 after the session ticket', UNRELATED, {}, ['keylog', 'secureConnect', 'session']],
    ['after a TLS 1.2 handshake', UNRELATED, { protocol: 'TLSv1.2' }, ['keylog', 'secureConnect']],
    ['before the ServerHello', UNRELATED, {}, []],
    [
      'over TLS 1.3 to a client without a certificate',
      UNRELATED,
      { hasCertificate: false },
      ['keylog', 'secureConnect'],
    ],
    ['on a reused connection', UNRELATED, { secureConnecting: false, reusedSocket: true }, []],
  ])('judges a connection that ends without an alert %s as %j', (_, expected, kind, events) => {
    const { progress, socket } = observeProgress(kind);
    for (const event of events) socket.emit(event);
    expect(progress.describeFault({ kind: 'reset' })).toMatchObject(expected);
  });
});
