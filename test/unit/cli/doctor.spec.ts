import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { ClockCheck } from '../../../lib/cli/doctor/clock.js';
import { shakeHands } from '../../../lib/cli/doctor/handshake.js';
import { judgeClientCertificate, judgeServer } from '../../../lib/cli/doctor/judge.js';
import { Secret } from '../../../lib/config/secret.js';
import { summarize } from '../../../lib/tls/certificate-summary.js';
import { type ExchangeRequest, type ExchangeResponse } from '../../../lib/exchange/exchange.types.js';
import { createAuthority, issue, type Authority, type Issued } from '../../helpers/certificates.js';
import { startConnectProxy } from '../../helpers/connect-proxy.js';
import { mtlsServer, type MtlsServerOptions } from '../tls/mtls-server.js';

const DAY_MS = 86_400_000;
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
    const target = { host: '127.0.0.1', port: Number(new URL(url).port), proxy };
    return shakeHands(target, offering(issued), 5_000);
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
        expect(judgeClientCertificate(place, facts, certificate)).toMatchObject({
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

it('says that there is nothing to do where a client certificate is asked for and not needed', () => {
  const facts = { established: true, certificates: [], askedForCertificate: true };
  const { status, message } = judgeClientCertificate(place, facts, undefined);
  expect(status).toBe('skipped');
  expect(message).toMatch(/ may be optional, .* There is nothing to do here: /);
});

it('says that it is not known whether a server asks, as on Bun', () => {
  const { status, message } = judgeClientCertificate(
    place,
    { established: true, certificates: [] },
    undefined,
  );
  expect(status).toBe('skipped');
  expect(message).toMatch(/is not known/);
});

describe('the end of a handshake', () => {
  it.each([
    [
      'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
      /the TLS connection failed \(ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION\)/,
    ],
    ['ERR_SSL_SSL_TLS_ALERT_HANDSHAKE_FAILURE', /the server ended the TLS handshake/],
  ])('%s', (reason, words) => {
    const fault = { kind: 'tls' as const, reason, certificateRefused: false };
    const { message } = judgeServer(place, { established: false, fault, certificates: [] }, [], Date.now());
    expect(message).toMatch(words);
  });
});

describe('the judgement of a server', () => {
  const now = Date.now();
  const over = { notBefore: new Date(now - 90 * DAY_MS), notAfter: new Date(now - 9 * DAY_MS) };
  let root: Issued;
  let oldRoot: Issued;
  let namesake: Issued;
  let leaf: Issued;

  beforeAll(async () => {
    root = await issue('Root', { ca: true });
    oldRoot = await issue('Old Root', { ca: true, ...over });
    namesake = await issue('Root', { ca: true });
    leaf = await issue('api', { issuer: root, names: ['api.bank'] });
  });

  const judge = (shown: Issued[], notVerified: string, chain: Issued[]) =>
    judgeServer(
      place,
      { established: true, notVerified, certificates: shown.map(parsed), askedForCertificate: false },
      chain.map(parsed),
      now,
    );

  it('does not blame an old root that is sent beside the chain', () => {
    const shown = () => [leaf, root, oldRoot];
    const otherName = judge(shown(), 'ERR_TLS_CERT_ALTNAME_INVALID', [root]);
    expect(otherName.message).toMatch(/for another host name/);
    const otherChain = judge(shown(), 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', [oldRoot]);
    expect(otherChain.message).not.toMatch(/has expired/);
    expect(otherChain.remedy).toContain('tls.chain');
  });

  it('blames it if the date is what is wrong', () => {
    const { message } = judge([leaf, root, oldRoot], 'CERT_HAS_EXPIRED', [root]);
    expect(message).toMatch(/has expired or is not valid yet: "CN=Old Root" ended/);
  });

  it('blames an expired certificate of the server, whatever else is wrong', async () => {
    const ended = await issue('api', { issuer: root, ...over });
    const { message } = judge([ended], 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', [namesake]);
    expect(message).toMatch(/has expired or is not valid yet: "CN=api" ended/);
  });

  it('sees the same name with another key, also if Node adds the one of the chain', () => {
    const { message } = judge([leaf, namesake], 'CERT_SIGNATURE_FAILURE', [namesake]);
    expect(message).toMatch(/the same name, but another key/);
  });
});

async function clockBy(date: string) {
  const response = { status: 200, headers: { date } } as ExchangeResponse;
  const check = new ClockCheck(
    () => Promise.resolve(response),
    () => Date.UTC(2030, 5, 1),
  );
  await check.exchange({} as ExchangeRequest);
  return check.judge();
}

describe('the clock by the Date of answers', () => {
  it.each([
    ['Sat, 01 Jun 2030 00:00:00 GMT', 'ok'],
    ['Sat, 01 Jun 2030 00:05:00 GMT', 'warning'],
    ['Sat, 01 Jun 2031 00:00:00 GMT', 'warning'],
    // The last moment that a Date can hold, and what no clock shows.
    ['Sat, 13 Sep 275760 00:00:00 GMT', 'skipped'],
    ['\u001b[31m', 'skipped'],
  ])('%j: %s', async (date, status) => {
    expect(await clockBy(date)).toMatchObject({ status });
  });
});

function parsed({ certificate }: Issued): X509Certificate {
  return new X509Certificate(certificate);
}
