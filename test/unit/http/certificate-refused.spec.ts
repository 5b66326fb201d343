import { beforeAll, describe, expect, it } from '@jest/globals';
import { Agent } from 'node:https';
import { type TLSSocket } from 'node:tls';
import {
  ServiceCertificateError,
  ServiceConnectionError,
  type CertificateSummary,
} from '../../../lib/errors/index.js';
import { alertingServer } from '../../helpers/alerting-server.js';
import { createAuthority, type Authority, type Issued } from '../../helpers/certificates.js';
import { afterwards, errorOf, setUp } from './setup.js';

const FINGERPRINT = 'AA:BB:CC';
const certificate = { subject: 'CN=app', issuer: 'CN=i', fingerprint256: FINGERPRINT } as CertificateSummary;
certificate.validFrom = new Date(0);
certificate.validTo = new Date(8e15);

type When =
  | 'in the handshake'
  | 'instead of an answer'
  | 'on a kept-alive connection'
  | 'after an informational answer'
  | 'after the first bytes of an answer'
  | 'in the body of an answer';

let authority: Authority;
let client: Issued;
beforeAll(async () => {
  authority = await createAuthority();
  client = await authority.client('app');
});

/** A server that refuses the certificate of one call, and the client; `done` counts the calls that it carried out. */
async function refusing(version: 'TLSv1.2' | 'TLSv1.3', when: When, alert: number, hasNewPair: boolean) {
  const done: string[] = [];
  let left = 1;
  let silent = false;
  const { serverChain: cert, server, chain: ca } = authority;
  const api = await alertingServer(
    version,
    { cert, key: server.key, ca, requestCert: true, rejectUnauthorized: true },
    (request, response, send) => {
      request.resume().on('end', () => {
        if (silent) return;
        done.push(`${request.method} ${request.url}`);
        if (request.url !== '/a' || left === 0) return response.end('{"ok":true}');
        left -= 1;
        const socket = request.socket as TLSSocket;
        if (when === 'after an informational answer') response.writeProcessing();
        if (when === 'after the first bytes of an answer') socket.write('HTTP/1.1 20');
        if (when === 'in the body of an answer') response.writeHead(200, { 'content-length': 90 }).write('{');
        // Behind what was written just now.
        setImmediate(() => setImmediate(() => send(alert)));
      });
    },
    (send) => {
      silent = when === 'in the handshake' && left === 1;
      if (!silent) return;
      left -= 1;
      // Before OpenSSL's session tickets, as servers do that refuse.
      send(alert);
    },
  );
  afterwards(api.close);
  const agent = new Agent({ keepAlive: true, ca, cert: client.certificate, key: client.key });
  let reloads = 0;
  const identity = {
    certificate,
    reloadAfterRefusal: async () => {
      reloads += 1;
      return hasNewPair;
    },
  };
  const { axios } = await setUp({
    baseUrl: api.url,
    agent: agent,
    identity,
    retries: 0,
    timeoutMs: 10_000,
  });
  if (when === 'on a kept-alive connection') await axios.get('/warm');
  return { axios, done, api, reloads: () => reloads };
}

const AFTER: When[] = [
  'on a kept-alive connection',
  'after an informational answer',
  'after the first bytes of an answer',
  'in the body of an answer',
];
const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;
/** What comes before the request was looked at: the handshake's own verdict. */
const PROOFS: [(typeof VERSIONS)[number], When][] = [['TLSv1.3', 'in the handshake']];
const DOUBTS: [(typeof VERSIONS)[number], When][] = [
  ...VERSIONS.flatMap((version) => AFTER.map((when): [(typeof VERSIONS)[number], When] => [version, when])),
  // In TLS 1.2 the verdict on the certificate comes before the handshake ends; in TLS 1.3 before the session tickets.
  ...VERSIONS.map((version): [(typeof VERSIONS)[number], When] => [version, 'instead of an answer']),
];
const ALERTS = [44, 49];

describe.each(ALERTS)('alert %d about our certificate', (alert) => {
  it.each(DOUBTS)('%s, %s: a POST is sent once, and its outcome is unknown', async (version, when) => {
    for (const hasNewPair of [true, false]) {
      const { axios, done, reloads } = await refusing(version, when, alert, hasNewPair);
      const error = await errorOf(axios.post('/a', {}));
      expect(error).toBeInstanceOf(ServiceConnectionError);
      expect(error).toMatchObject({ kind: 'tls', outcomeUnknown: true, method: 'POST', path: '/a' });
      expect((error as Error).message).toContain(FINGERPRINT);
      expect(done.filter((call) => call === 'POST /a')).toHaveLength(1);
      // For the next call.
      expect(reloads()).toBe(1);
      expect((await axios.post<unknown>('/a', {})).data).toEqual({ ok: true });
    }
  });

  it.each([...DOUBTS, ...PROOFS])(
    '%s, %s: a GET is sent once more with a new pair',
    async (version, when) => {
      const renewed = await refusing(version, when, alert, true);
      expect((await renewed.axios.get<unknown>('/a')).data).toEqual({ ok: true });
      const { axios } = await refusing(version, when, alert, false);
      const error = await errorOf(axios.get('/a'));
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect((error as Error).message).toContain(FINGERPRINT);
    },
  );

  it.each(DOUBTS)('%s, %s: a POST with a key is sent once more with a new pair', async (version, when) => {
    const renewed = await refusing(version, when, alert, true);
    const key = { idempotencyKey: 'k-1' } as object;
    expect((await renewed.axios.post<unknown>('/a', {}, key)).data).toEqual({ ok: true });
    expect(renewed.done.filter((call) => call === 'POST /a')).toHaveLength(2);
    const { axios } = await refusing(version, when, alert, false);
    const error = await errorOf(axios.post('/a', {}, key));
    expect(error).toMatchObject({ kind: 'tls', outcomeUnknown: true, idempotencyKey: 'k-1' });
  });

  it.each(PROOFS)('%s, %s: a POST is sent once more with a new pair, else refused', async (version, when) => {
    const renewed = await refusing(version, when, alert, true);
    expect((await renewed.axios.post<unknown>('/a', {})).data).toEqual({ ok: true });
    const { axios, reloads } = await refusing(version, when, alert, false);
    const error = await errorOf(axios.post('/a', {}));
    expect(error).toBeInstanceOf(ServiceCertificateError);
    expect((error as Error).message).toContain(FINGERPRINT);
    expect(reloads()).toBe(1);
  });
});
