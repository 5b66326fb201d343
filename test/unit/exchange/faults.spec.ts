import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { Agent } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { type CertificateSummary, mayPass } from '../../../lib/errors/index.js';
import { certificateVerdict, reloadRefused } from '../../../lib/exchange/certificate-refusal.js';
import { classify } from '../../../lib/exchange/classify.js';
import { ExchangeProgress } from '../../../lib/exchange/exchange-progress.js';
import { exchange } from '../../../lib/exchange/exchange.js';
import { CertificateAuthority } from '../../../lib/testing/certificate-authority.js';

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

  // Node has only the system's word for what OpenSSL says when it writes.
  it.each([
    [
      'error:0A000410:SSL routines:ssl3_read_bytes:ssl/tls alert handshake failure:rec_layer_s3.c:1602:SSL alert number 40',
      'ERR_SSL_SSL_TLS_ALERT_HANDSHAKE_FAILURE',
      false,
    ],
    [
      'error:0A000152:SSL routines:final_renegotiate:unsafe legacy renegotiation disabled:extensions.c:946:',
      'ERR_SSL_UNSAFE_LEGACY_RENEGOTIATION_DISABLED',
      false,
    ],
    ['error:0A000418:SSL routines::tlsv1 alert unknown ca:', 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', true],
    ['error:0A00010B:SSL routines::wrong version number:', 'ERR_SSL_WRONG_VERSION_NUMBER', false],
    ['error:0A000126:SSL routines::<b>evil</b>\r\n:', 'EPROTO', false],
    ['of another kind', 'EPROTO', false],
  ])(
    "EPROTO with OpenSSL's reason, and none of the other side: %s",
    (message, reason, certificateRefused) => {
      expect(classify(coded('EPROTO', `write EPROTO 80D2:${message}`))).toEqual({
        kind: 'tls',
        reason,
        certificateRefused,
      });
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

  it.each([
    ['ERR_PROXY_TUNNEL_407', true],
    ['ERR_PROXY_TUNNEL_403', true],
    ['ERR_PROXY_CERT_HAS_EXPIRED', true],
    ['ERR_PROXY_TUNNEL_503', false],
    ['ERR_PROXY_TIMEOUT', false],
    ['ERR_PROXY_ECONNREFUSED', false],
    ['ERR_PROXY_EHOSTUNREACH', false],
  ])('%s would come again from the proxy: %j', (reason, refuses) => {
    expect(mayPass(classify(coded(reason)))).toBe(!refuses);
  });

  it.each([undefined, null, 'a text', 7])('%p is a fault of the network', (thrown) => {
    expect(classify(thrown)).toMatchObject({ kind: 'network', certificateRefused: false });
  });
});

const JSON_TYPE = 'application/json';
const HTML = 'text/html; charset=utf-8';

const answer = (
  status: number,
  headers: Record<string, string | undefined>,
  text: string,
  reusedSocket = false,
) => ({
  status,
  statusText: '',
  headers,
  body: Buffer.from(text),
  reusedSocket,
  untilClose: false,
});

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
    expect(certificateVerdict(answer(status, headers, text))).toBe(verdict);
  });
});

describe('reloadRefused', () => {
  const reading = (result: Promise<boolean>) => {
    const asked: unknown[] = [];
    return { asked, reloadAfterRefusal: (used: unknown) => (asked.push(used), result) };
  };
  const { signal } = new AbortController();
  const used = { subject: 'CN=app' } as CertificateSummary;

  it('reads the certificate again, and tells whether it is another one', async () => {
    for (const isOther of [true, false]) {
      const identity = reading(Promise.resolve(isOther));
      expect(await reloadRefused(identity, used, signal)).toBe(isOther);
      expect(identity.asked).toEqual([used]);
    }
    const failing = reading(Promise.reject(new Error('no such file')));
    expect(await reloadRefused(failing, used, signal)).toBe(false);
  });

  it('reads nothing for a call that ended', async () => {
    const identity = reading(Promise.resolve(true));
    expect(await reloadRefused(identity, used, AbortSignal.abort())).toBe(false);
    expect(identity.asked).toEqual([]);
  });

  it('waits no longer than the call', async () => {
    const call = new AbortController();
    const reloaded = reloadRefused(reading(new Promise(() => undefined)), used, call.signal);
    call.abort();
    expect(await reloaded).toBe(false);
  });
});

describe('a fault of the handshake', () => {
  let ca: string;
  let pems: TlsOptions;
  beforeAll(async () => {
    const authority = await CertificateAuthority.create('Handshakes');
    const server = await authority.issue({ server: ['localhost'] }, { commonName: 'localhost' });
    ca = authority.chain;
    pems = { key: server.privateKey, cert: server.certificate, ca };
  });

  const closing: (() => void)[] = [];
  afterEach(() => closing.splice(0).forEach((close) => close()));

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
    const agent = new Agent({ ca });
    closing.push(
      () => server.close(),
      () => agent.destroy(),
    );
    const url = new URL(`https://localhost:${(server.address() as AddressInfo).port}/`);
    const request = { url, method: 'POST', headers: {}, body: 'text', agent };
    await expect(exchange({ ...request, timeoutMs: 5_000, maxResponseBytes: 1_000 })).rejects.toMatchObject(
      expected,
    );
  });

  /** A TLS connection and its request, as far as an exchange follows them. */
  function followed({ protocol = 'TLSv1.3', secureConnecting = true, reusedSocket = false } = {}) {
    const request = Object.assign(new EventEmitter(), { reusedSocket });
    const socket = Object.assign(new EventEmitter(), {
      secureConnecting,
      bytesRead: 0,
      getProtocol: () => protocol,
    });
    const progress = new ExchangeProgress();
    progress.follow(request as never);
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
});
