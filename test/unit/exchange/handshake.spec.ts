import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { Agent } from 'node:https';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { exchange } from '../../../lib/exchange/exchange.js';
import { ExchangeProgress } from '../../../lib/exchange/exchange-progress.js';
import { CertificateAuthority } from '../../../lib/testing/certificate-authority.js';

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
    ({ socket, progress }) => void (socket.emit('secureConnect'), (progress.phase = 'answering')),
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
