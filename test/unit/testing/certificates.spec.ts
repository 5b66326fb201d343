import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import { explainAbsence } from '../../../lib/testing/certificate-authority.js';
import { ServiceSimulator } from '../../../lib/testing/simulator.js';
import { type SimulatorOptions } from '../../../lib/testing/simulator.options.js';
import { issue } from '../../helpers/certificates.js';
import { simulatorsOfBlock } from '../../helpers/simulators.js';
import { call, failCode, keptAliveAgent } from '../../helpers/plain-client.js';

describe('the certificates of ServiceSimulator', () => {
  let simulator: ServiceSimulator;
  const start = simulatorsOfBlock((options) => ServiceSimulator.start(options));
  beforeAll(async () => {
    simulator = await start();
  });

  const blocks = (pem: string) => pem.match(/-----BEGIN[^]+?-----END [A-Z ]+-----/g) ?? [];

  it('form a chain: application, intermediate, root', () => {
    const application = new X509Certificate(simulator.application.certificate);
    const [intermediate, root] = blocks(simulator.chain).map((pem) => new X509Certificate(pem));
    expect(application.checkIssued(intermediate)).toBe(true);
    expect(application.verify(intermediate.publicKey)).toBe(true);
    expect(intermediate.verify(root.publicKey)).toBe(true);
    expect(root.verify(root.publicKey)).toBe(true);
    expect([application.ca, intermediate.ca, root.ca]).toEqual([false, true, true]);
    expect(application.checkPrivateKey(createPrivateKey(simulator.application.privateKey))).toBe(true);
    expect(simulator.application.subject).toBe('CN=application, O=Simulated Application');
  });

  it('serve a server certificate for 127.0.0.1 and localhost, with the intermediate, that verifies', async () => {
    const { port } = new URL(simulator.urls.sandboxUrl);
    const [intermediate = '', root] = blocks(simulator.chain);
    for (const ca of [simulator.chain, root]) {
      for (const servername of ['localhost', undefined]) {
        const socket = connect({ host: '127.0.0.1', port: Number(port), ca, servername });
        await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
        expect(socket.authorized).toBe(true);
        const issuer = socket.getPeerX509Certificate()?.issuerCertificate;
        expect(issuer?.fingerprint256).toBe(new X509Certificate(intermediate).fingerprint256);
        socket.destroy();
      }
    }
  });

  it('are not trusted without the chain', async () => {
    const code = await failCode(call(simulator, simulator.urls.sandboxUrl, { ca: undefined }));
    expect(code).toMatch(
      /^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/,
    );
  });

  it('are issued with the name, dates and passphrase asked for', async () => {
    const notBefore = new Date('2030-01-01T00:00:00Z');
    const notAfter = new Date('2031-01-01T00:00:00Z');
    const issued = await simulator.issueCertificate({
      commonName: 'billing, with comma',
      notBefore,
      notAfter,
      passphrase: 'pass',
    });
    const certificate = new X509Certificate(issued.certificate);
    expect(new Date(certificate.validFrom)).toEqual(notBefore);
    expect(new Date(certificate.validTo)).toEqual(notAfter);
    expect(certificate.subject).toContain('billing, with comma'.replace(',', '\\,'));
    expect(issued.fingerprint256).toBe(certificate.fingerprint256);
    expect(issued.chain).toBe(simulator.chain);
    expect(issued.privateKey).toContain('BEGIN ENCRYPTED PRIVATE KEY');
    expect(() => createPrivateKey(issued.privateKey)).toThrow();
    const key = createPrivateKey({ key: issued.privateKey, passphrase: 'pass' });
    expect(certificate.checkPrivateKey(key)).toBe(true);
  });

  it('are foreign on demand: same form, another root', async () => {
    const foreign = await simulator.issueCertificate({ foreign: true });
    const [, root] = blocks(simulator.chain).map((pem) => new X509Certificate(pem));
    const [foreignIntermediate, foreignRoot] = blocks(foreign.chain).map((pem) => new X509Certificate(pem));
    expect(new X509Certificate(foreign.certificate).verify(foreignIntermediate.publicKey)).toBe(true);
    expect(foreignRoot.fingerprint256).not.toBe(root.fingerprint256);
  });

  it('differ from simulator to simulator', async () => {
    const other = await start();
    expect(other.chain).not.toBe(simulator.chain);
    expect(await failCode(call(simulator, other.urls.sandboxUrl))).toMatch(/CERT|SIGNATURE/);
  });

  it('live as long as asked for', async () => {
    const short = await start({
      certificates: { applicationLifetime: 86_400 },
    });
    const days =
      (Date.parse(new X509Certificate(short.application.certificate).validTo) - Date.now()) / 86_400_000;
    expect(days).toBeCloseTo(1, 2);
  });

  it.each([
    ['foreign', { foreign: true }, /SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO/],
    ['expired', { notAfter: new Date(Date.now() - 1000) }, /^CERT_HAS_EXPIRED$/],
    ['for another host', { names: ['elsewhere.example'] }, /^ERR_TLS_CERT_ALTNAME_INVALID$/],
  ])('can be replaced on the server by one that is %s, and put back', async (_, request, code) => {
    const url = `${simulator.urls.sandboxUrl}/echo/v1`;
    await simulator.useServerCertificate({ face: 'sandbox', ...request });
    expect(await failCode(call(simulator, url))).toMatch(code);
    expect((await call(simulator, `${simulator.urls.authUrl}/x`)).status).toBe(404);
    await simulator.useServerCertificate();
    expect((await call(simulator, url)).status).toBe(401);
  });

  it('need optional peers, whose absence is explained', () => {
    const absent = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    expect(explainAbsence(absent)).toMatchObject({
      message: expect.stringContaining('npm i -D @peculiar/x509') as unknown,
    });
    const other = new Error('another fault');
    expect(explainAbsence(other)).toBe(other);
  });
});

describe('client certificates on ServiceSimulator', () => {
  let simulator: ServiceSimulator;
  afterEach(() => simulator.stop());

  const start = async (options?: SimulatorOptions) => {
    simulator = await ServiceSimulator.start(options);
    const headers = { 'service-app-token': simulator.appToken };
    return {
      base: `${simulator.urls.baseUrl}/banks/v1`,
      sandboxMtls: `${simulator.urls.sandboxMtlsUrl}/banks/v1`,
      headers,
    };
  };

  it('are accepted on both mTLS servers, and recorded', async () => {
    const { base, sandboxMtls, headers } = await start();
    const certificate = simulator.application;
    expect((await call(simulator, base, { certificate, headers })).status).toBe(200);
    expect((await call(simulator, sandboxMtls, { certificate, headers })).status).toBe(200);
    const { subject: certificateSubject, fingerprint256: certificateFingerprint256 } = certificate;
    expect(simulator.requests).toMatchObject([
      {
        face: 'base',
        environment: 'production',
        certificateSubject,
        certificateFingerprint256,
        status: 200,
      },
      { face: 'sandbox-mtls', environment: 'sandbox', certificateSubject, certificateFingerprint256 },
    ]);
    expect(simulator.refusals).toEqual([]);
  });

  it('are accepted with the chain after them and an encrypted key', async () => {
    const { base, headers } = await start();
    const issued = await simulator.issueCertificate({ passphrase: 'pass word' });
    const certificate = { ...issued, certificate: issued.certificate + issued.chain };
    expect((await call(simulator, base, { certificate, headers })).status).toBe(200);
  });

  it.each([
    ['foreign', { foreign: true }, /^ERR_SSL_TLSV1_ALERT_UNKNOWN_CA$/, 'unknown_ca'],
    [
      'expired',
      { notAfter: new Date(Date.now() - 5000) },
      /^ERR_SSL_SSL(V3|\/TLS)_ALERT_CERTIFICATE_EXPIRED$/,
      'certificate_expired',
    ],
    [
      'not yet valid',
      { notBefore: new Date(Date.now() + 60_000) },
      /^ERR_SSL_SSL(V3|\/TLS)_ALERT_BAD_CERTIFICATE$/,
      'bad_certificate',
    ],
  ])('are refused with a TLS alert when %s', async (_, request, code, alert) => {
    const { base, sandboxMtls, headers } = await start();
    const certificate = await simulator.issueCertificate(request);
    expect(await failCode(call(simulator, base, { certificate, headers }))).toMatch(code);
    expect(await failCode(call(simulator, sandboxMtls, { certificate, headers }))).toMatch(code);
    const certificateFingerprint256 = certificate.fingerprint256;
    expect(simulator.refusals).toMatchObject([
      { face: 'base', alert, certificateFingerprint256 },
      { face: 'sandbox-mtls', alert, certificateFingerprint256 },
    ]);
    expect(simulator.handshakes.base).toEqual({ total: 1, resumed: 0, refused: 1 });
    expect(simulator.requests).toEqual([]);
  });

  it.each(['TLS_AES_128_GCM_SHA256', 'TLS_CHACHA20_POLY1305_SHA256'])(
    'are refused under %s too',
    async (ciphers) => {
      const { base, headers } = await start();
      const certificate = await simulator.issueCertificate({ foreign: true });
      const code = await failCode(call(simulator, base, { certificate, headers, ciphers }));
      expect(code).toBe('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA');
    },
  );

  it('are refused without a subject too, and the simulator goes on', async () => {
    const { base, headers } = await start();
    const { certificate: cert, key } = await issue('');
    expect(await failCode(call(simulator, base, { cert, key, headers }))).toBe(
      'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
    );
    expect(simulator.refusals).toMatchObject([{ certificateSubject: '', alert: 'unknown_ca' }]);
  });

  it('are listed if refused, the newest of them', async () => {
    const { base, sandboxMtls, headers } = await start({ maxRequests: 2 });
    const certificate = await simulator.issueCertificate({ foreign: true });
    for (const url of [base, sandboxMtls, sandboxMtls])
      await failCode(call(simulator, url, { certificate, headers }));
    expect(simulator.refusals.map(({ face }) => face)).toEqual(['sandbox-mtls', 'sandbox-mtls']);
  });

  it('are required in the handshake on {sandbox_mtls_url}', async () => {
    const { sandboxMtls, headers } = await start();
    const code = await failCode(call(simulator, sandboxMtls, { headers }));
    expect(code).toBe('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED');
    expect(simulator.refusals).toMatchObject([{ face: 'sandbox-mtls', alert: 'certificate_required' }]);
  });

  it('are missed on {base_url} with an HTML 400, unless there is a bearer', async () => {
    const { base, headers } = await start();
    const refused = await call(simulator, base, { headers });
    expect(refused.status).toBe(400);
    expect(refused.headers['content-type']).toBe('text/html');
    expect(refused.body).toContain('No required SSL certificate was sent');
    const authorization = `Bearer ${await simulator.issueToken()}`;
    expect((await call(simulator, base, { headers: { authorization } })).status).toBe(200);
  });

  it('are required in the handshake on {base_url} with requireClientCertificate', async () => {
    const { base } = await start({ requireClientCertificate: true });
    const authorization = `Bearer ${await simulator.issueToken()}`;
    const code = await failCode(call(simulator, base, { headers: { authorization } }));
    expect(code).toBe('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED');
    const certificate = simulator.application;
    expect((await call(simulator, base, { headers: { authorization }, certificate })).status).toBe(200);
  });

  it('are refused with an HTML 400 in place of an alert on demand', async () => {
    const { base, sandboxMtls, headers } = await start({ clientCertificateRefusal: 'http-400' });
    const certificate = await simulator.issueCertificate({ foreign: true });
    for (const url of [base, sandboxMtls]) {
      const foreign = await call(simulator, url, { headers, certificate });
      expect([foreign.status, foreign.body]).toEqual([
        400,
        expect.stringContaining('The SSL certificate error'),
      ]);
      const absent = await call(simulator, url, { headers });
      expect([absent.status, absent.body]).toEqual([
        400,
        expect.stringContaining('No required SSL certificate'),
      ]);
    }
  });

  it('are refused on TLS 1.2: missing with an alert, foreign with a closed connection', async () => {
    const { sandboxMtls, headers } = await start({ maxTlsVersion: 'TLSv1.2' });
    expect(await failCode(call(simulator, sandboxMtls, { headers }))).toBe('EPROTO');
    const certificate = await simulator.issueCertificate({ foreign: true });
    expect(await failCode(call(simulator, sandboxMtls, { headers, certificate }))).toBe('ECONNRESET');
    expect((await call(simulator, sandboxMtls, { headers, certificate: simulator.application })).status).toBe(
      200,
    );
  });

  it('are refused once revoked, on new connections, resumed sessions and open connections', async () => {
    const { base, headers } = await start();
    const agent = keptAliveAgent(simulator, simulator.application);
    expect((await call(simulator, base, { agent, headers })).status).toBe(200);
    simulator.revokeCertificate();
    expect((await call(simulator, base, { agent, headers })).status).toBe(400);
    agent.destroy();
    const resumed = await failCode(call(simulator, base, { agent, headers }));
    expect(resumed).toMatch(/^ERR_SSL_SSL(V3|\/TLS)_ALERT_CERTIFICATE_REVOKED$/);
    expect(simulator.handshakes.base).toEqual({ total: 2, resumed: 1, refused: 1 });
    const code = await failCode(call(simulator, base, { headers, certificate: simulator.application }));
    expect(code).toMatch(/^ERR_SSL_SSL(V3|\/TLS)_ALERT_CERTIFICATE_REVOKED$/);
    agent.destroy();
    const other = await simulator.issueCertificate();
    expect((await call(simulator, base, { headers, certificate: other })).status).toBe(200);
  });

  it('are asked for, but not needed, at the token endpoint', async () => {
    await start();
    const url = `${simulator.urls.authUrl}/oauth2/token`;
    await call(simulator, url);
    await call(simulator, url, { certificate: simulator.application });
    const seen = simulator.tokenRequests.map((request) => request.certificateSubject);
    expect(seen).toEqual([undefined, simulator.application.subject]);
  });

  it('are counted: handshakes, resumed sessions, connections', async () => {
    const { base, headers } = await start();
    const agent = keptAliveAgent(simulator, simulator.application);
    const first = await call(simulator, base, { agent, headers });
    expect(first.headers['keep-alive']).toBe('timeout=5');
    await call(simulator, base, { agent, headers });
    expect(simulator.handshakes.base).toEqual({ total: 1, resumed: 0, refused: 0 });
    expect(simulator.requests.map((request) => request.connection)).toEqual([1, 1]);
    expect(simulator.openConnections).toBe(1);
    agent.destroy();
    const again = keptAliveAgent(simulator, simulator.application);
    await call(simulator, base, { agent: again, headers });
    again.destroy();
    expect((await call(simulator, base, { agent: again, headers })).status).toBe(200);
    expect(simulator.handshakes.base).toEqual({ total: 3, resumed: 1, refused: 0 });
    again.destroy();
  });
});
