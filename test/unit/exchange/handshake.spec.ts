import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { Agent } from 'node:https';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { exchange } from '../../../lib/exchange/exchange.js';
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
