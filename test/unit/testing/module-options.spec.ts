import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ServiceSimulator } from '../../../lib/testing/simulator.js';

describe('moduleOptions() and env() of ServiceSimulator', () => {
  let simulator: ServiceSimulator;
  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
  });
  afterAll(() => simulator.stop());

  it('are complete for production mTLS by default', () => {
    const { certificate, privateKey } = simulator.application;
    expect(simulator.moduleOptions()).toEqual({
      environment: 'production',
      authentication: 'mtls',
      urls: simulator.urls,
      appToken: simulator.appToken,
      tls: { certificate, privateKey, chain: simulator.chain },
    });
    expect(new Set(Object.values(simulator.urls)).size).toBe(6);
  });

  it.each([
    [{ environment: 'sandbox' }, 'app-token', false, false],
    [{ environment: 'sandbox', authentication: 'mtls' }, 'mtls', false, true],
    [{ environment: 'sandbox', authentication: 'oauth' }, 'oauth', true, false],
    [{ environment: 'sandbox', authentication: 'oauth', clientCertificate: true }, 'oauth', true, true],
    [{ environment: 'production', oauth: true }, 'mtls', true, true],
    [{ environment: 'production', authentication: 'oauth' }, 'oauth', true, false],
  ] as const)('fit the mode %j', (mode, authentication, oauth, certificate) => {
    const options = simulator.moduleOptions(mode);
    expect(options).toMatchObject({ environment: mode.environment, authentication });
    const { clientId, clientSecret } = simulator;
    expect(options.oauth).toEqual(oauth ? { clientId, clientSecret } : undefined);
    expect(Object.keys(options.tls).sort()).toEqual(
      certificate ? ['certificate', 'chain', 'privateKey'] : ['chain'],
    );
  });

  it('take another certificate, the token endpoint over mTLS, and leave {oauth_base_url} out', async () => {
    const certificate = await simulator.issueCertificate({ passphrase: 'pass' });
    const options = simulator.moduleOptions({
      authentication: 'oauth',
      certificate,
      oauthMtls: true,
      oauthBaseUrl: false,
    });
    expect(options.tls).toEqual({
      certificate: certificate.certificate,
      privateKey: certificate.privateKey,
      passphrase: 'pass',
      chain: simulator.chain,
    });
    expect(options.oauth).toMatchObject({ mtls: true });
    expect(options.urls).not.toHaveProperty('oauthBaseUrl');
  });

  it('contain the current client secret', () => {
    const secret = simulator.rotateClientSecret();
    expect(simulator.moduleOptions({ oauth: true }).oauth?.clientSecret).toBe(secret);
  });

  it('are the same as variables, each on one line', () => {
    const options = simulator.moduleOptions({ oauth: true });
    const env = simulator.env();
    expect(env).toEqual({
      SERVICE_ENVIRONMENT: 'production',
      SERVICE_AUTHENTICATION: 'mtls',
      SERVICE_BASE_URL: options.urls.baseUrl,
      SERVICE_SANDBOX_URL: options.urls.sandboxUrl,
      SERVICE_SANDBOX_MTLS_URL: options.urls.sandboxMtlsUrl,
      SERVICE_AUTH_URL: options.urls.authUrl,
      SERVICE_SANDBOX_AUTH_URL: options.urls.sandboxAuthUrl,
      SERVICE_APP_TOKEN: simulator.appToken,
      SERVICE_CLIENT_ID: simulator.clientId,
      SERVICE_CLIENT_SECRET: simulator.clientSecret,
      SERVICE_TLS_CERTIFICATE: options.tls.certificate?.replaceAll('\n', '\\n'),
      SERVICE_TLS_PRIVATE_KEY: options.tls.privateKey?.replaceAll('\n', '\\n'),
      SERVICE_TLS_CHAIN: simulator.chain.replaceAll('\n', '\\n'),
    });
    expect(Object.values(env).join('')).not.toContain('\n');
  });

  it('have all credentials as variables in each mode, but those that are left out', async () => {
    const all = simulator.env();
    const mode = { environment: 'sandbox', authentication: 'app-token' } as const;
    expect(simulator.env(mode)).toEqual({
      ...all,
      SERVICE_ENVIRONMENT: 'sandbox',
      SERVICE_AUTHENTICATION: 'app-token',
    });
    const less = simulator.env({ ...mode, oauth: false, clientCertificate: false, oauthBaseUrl: true });
    expect(less).toHaveProperty('SERVICE_OAUTH_BASE_URL', simulator.urls.oauthBaseUrl);
    expect(Object.keys(less)).toEqual(
      expect.not.arrayContaining(['SERVICE_CLIENT_ID', 'SERVICE_CLIENT_SECRET']),
    );
    expect(Object.keys(less).filter((name) => name.includes('_TLS_'))).toEqual(['SERVICE_TLS_CHAIN']);
    const other = await simulator.issueCertificate();
    expect(simulator.env({ certificate: other }).SERVICE_TLS_CERTIFICATE).toBe(
      other.certificate.replaceAll('\n', '\\n'),
    );
    const withoutOAuth = await ServiceSimulator.start({ oauth: { enabled: false } });
    expect(withoutOAuth.env()).not.toHaveProperty('SERVICE_CLIENT_ID');
    await withoutOAuth.stop();
  });

  it('are named where the module is', () => {
    const env = simulator.env({ environment: 'sandbox', name: 'ksa' });
    expect(env.SERVICE_KSA_AUTHENTICATION).toBe('app-token');
    expect(Object.keys(env).every((key) => key.startsWith('SERVICE_KSA_'))).toBe(true);
  });
});
