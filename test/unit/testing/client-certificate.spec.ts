import { afterEach, describe, expect, it } from '@jest/globals';
import { ServiceSimulator } from '../../../lib/testing/simulator.js';
import { type SimulatorOptions } from '../../../lib/testing/simulator.options.js';
import { call, failCode, keptAliveAgent } from './plain-client.js';

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
