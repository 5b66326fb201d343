import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import tls, { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { shakeHands } from '../../../../lib/cli/doctor/handshake.js';
import { judgeClientCertificate, judgeEnd } from '../../../../lib/cli/doctor/judge-handshake.js';
import { Secret } from '../../../../lib/config/secret.js';
import { summarize } from '../../../../lib/tls/certificate-summary.js';
import { createAuthority, type Authority, type Issued } from '../../../helpers/certificates.js';
import { startConnectProxy } from '../../../helpers/connect-proxy.js';
import { mtlsServer, type MtlsServerOptions } from '../../tls/mtls-server.js';

const place = {
  host: 'api.bank',
  port: 443,
  option: 'urls.baseUrl',
  url: new URL('https://api.bank'),
  server: 'api' as const,
  describeOption: (option: string) => option,
};
const [OLD, NEW] = (['TLSv1.2', 'TLSv1.3'] as const).map((version) => ({
  minVersion: version,
  maxVersion: version,
}));
const WAYS: Record<string, MtlsServerOptions> = {
  'TLS 1.2': OLD,
  'TLS 1.3': NEW,
  'a hello retry request': { ...NEW, ecdhCurve: 'P-384' },
};
const ASKS_NOT = { requestCert: false, rejectUnauthorized: false };
const TAKES_ANY = { requestCert: true, rejectUnauthorized: false };
const DEMANDS = { requestCert: true, rejectUnauthorized: true };

describe('a handshake shows whether the server asks for a client certificate', () => {
  let authority: Authority;
  let ours: Issued;
  let foreign: Issued;
  const closes: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    authority = await createAuthority();
    ours = await authority.client('app');
    foreign = await (await createAuthority('Other')).client('app');
  });
  afterEach(() => Promise.all(closes.splice(0).map((close) => close())));

  const offering = (issued?: Issued): SecureContext => {
    const pair: SecureContextOptions = issued ? { cert: issued.certificate, key: issued.key } : {};
    return createSecureContext({ ca: authority.chain, ...pair });
  };
  const shake = async (url: string, issued?: Issued, proxy?: Secret) => {
    const target = { host: '127.0.0.1', port: Number(new URL(url).port), context: offering(issued), proxy };
    return shakeHands(target, 5_000);
  };
  const server = async (options: MtlsServerOptions) => {
    const live = await mtlsServer(authority, options);
    closes.push(() => live.close());
    return live.url;
  };

  describe.each(Object.entries(WAYS))('%s', (_, way) => {
    it('where it does not ask', async () => {
      const url = await server({ ...way, ...ASKS_NOT });
      for (const offered of [undefined, ours]) {
        expect(await shake(url, offered)).toMatchObject({ established: true, askedForCertificate: false });
      }
    });

    it('where it takes any, or none', async () => {
      const url = await server({ ...way, ...TAKES_ANY });
      for (const offered of [undefined, ours, foreign]) {
        const { fault, askedForCertificate } = await shake(url, offered);
        expect({ fault, askedForCertificate }).toEqual({ fault: undefined, askedForCertificate: true });
      }
    });

    it('where it refuses', async () => {
      const url = await server({ ...way, ...DEMANDS });
      expect(await shake(url, ours)).toMatchObject({ fault: undefined, askedForCertificate: true });
      // Without any it sends an alert, and with another than it wants it ends the connection.
      for (const [offered, message] of [
        [undefined, /^The server asks for a client certificate and none is offered \(/],
        [foreign, /^The server asked for the client certificate and then ended the connection.*"CN=app"/],
      ] as const) {
        const facts = await shake(url, offered);
        expect(facts.askedForCertificate).toBe(true);
        const certificate = offered && summarize(new X509Certificate(offered.certificate));
        expect(judgeClientCertificate({ place, facts, certificate })).toMatchObject({
          status: 'failed',
          message: expect.stringMatching(message),
        });
      }
    });

    it('through a proxy', async () => {
      const proxy = await startConnectProxy();
      closes.push(() => proxy.stop());
      for (const how of [ASKS_NOT, DEMANDS]) {
        const facts = await shake(await server({ ...way, ...how }), ours, new Secret(proxy.url));
        expect(facts).toMatchObject({ established: true, askedForCertificate: how.requestCert });
      }
    });
  });
});

it.each([
  ['TLS 1.2', 'TLSv1', 'TLSv1.1'],
  ['what the process says', 'TLSv1.3', 'TLSv1.2'],
] as const)('speaks at least %s, without a context too', async (_, least, maxVersion) => {
  const { DEFAULT_MIN_VERSION, DEFAULT_CIPHERS } = tls;
  const old = { minVersion: 'TLSv1', maxVersion, ciphers: 'ALL:@SECLEVEL=0' } as const;
  const live = await mtlsServer(await createAuthority(), { ...old, demandCertificate: false });
  Object.assign(tls, { DEFAULT_MIN_VERSION: least, DEFAULT_CIPHERS: old.ciphers });
  try {
    const facts = await shakeHands({ host: '127.0.0.1', port: live.port }, 5_000);
    expect(facts).toMatchObject({ established: false, fault: { kind: 'tls' } });
  } finally {
    Object.assign(tls, { DEFAULT_MIN_VERSION, DEFAULT_CIPHERS });
    await live.close();
  }
});

it('says that there is nothing to do where a client certificate is asked for and not needed', () => {
  const facts = { established: true, certificates: [], askedForCertificate: true };
  const { status, message } = judgeClientCertificate({ place, facts });
  expect(status).toBe('skipped');
  expect(message).toMatch(/ may be optional, .* There is nothing to do here: /);
});

it('says that it is not known whether a server asks, as on Bun', () => {
  const { status, message } = judgeClientCertificate({
    place,
    facts: { established: true, certificates: [] },
  });
  expect(status).toBe('skipped');
  expect(message).toMatch(/is not known/);
});

describe('the end of a handshake', () => {
  // As OpenSSL 3.0, 3.5 and Node over a pipe spell them.
  it.each([
    ['TLS_ALERT_70', /another version of TLS/],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', /another version of TLS/],
    ['TLS_ALERT_112', /no host of this name/],
    ['ERR_SSL_TLSV1_UNRECOGNIZED_NAME', /no host of this name/],
    ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', /the server ended the TLS handshake/],
  ])('%s', (reason, words) => {
    const fault = { kind: 'tls' as const, reason, certificateRefused: false };
    const finding = judgeEnd({
      place,
      facts: { established: false, fault, certificates: [] },
    });
    expect(finding?.message).toMatch(words);
  });
});
