import { describe, expect, it } from '@jest/globals';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';
import { reportStart } from '../../../lib/engine/start-report.js';

const certificate = {
  subject: 'CN=app, O=Example',
  issuer: 'CN=issuer',
  fingerprint256: 'AB:CD',
  validFrom: new Date(0),
  validTo: new Date(1),
};
const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 'client-secret' };
const production: ServiceModuleOptions = {
  environment: 'production',
  urls: { baseUrl: 'https://api.example/base/', authUrl: 'https://auth.example/' },
  appToken: 'app-token',
  tls: { certificate: 'PEM', privateKey: 'PEM' },
};
const sandbox: ServiceModuleOptions = {
  urls: { sandboxUrl: 'https://sandbox.example' },
  appToken: 'app-token',
};

/** What the report logs: its line, and its warnings. */
async function reported(
  given: ServiceModuleOptions,
  { name, lacksChain = false, versions, warned, ...status }: Record<string, unknown> = {},
): Promise<{ lines: string[]; warnings: string[] }> {
  const { options } = await resolveOptions(given, name as string | undefined);
  if (!options) throw new Error('no options');
  const lines: string[] = [];
  const warnings: string[] = [];
  const unexpected = (message: string): never => {
    throw new Error(message);
  };
  reportStart(
    options,
    { lacksChain: lacksChain as boolean, status: { healthy: true, ...status } },
    {
      log: {
        debug: unexpected,
        error: unexpected,
        log: (message) => lines.push(message),
        warn: (message) => warnings.push(message),
      },
      warned: warned as Set<string> | undefined,
    },
    versions as NodeJS.ProcessVersions | undefined,
  );
  return { lines, warnings };
}

const warningsOf = async (...given: Parameters<typeof reported>) => (await reported(...given)).warnings;

describe('The line at start', () => {
  it.each([
    [
      sandbox,
      {},
      'sandbox, app-token: calls go to https://sandbox.example; no client certificate; no OAuth tokens. To see each call in the log, set http.logCalls (SERVICE_HTTP_LOG_CALLS) to true.',
    ],
    [
      { ...production, oauth },
      { certificate, daysLeft: 87 },
      'production, mtls: calls go to https://api.example/base; client certificate "CN=app, O=Example", 87 days left; tokens from auth.example, kept in this process',
    ],
    [
      {
        ...production,
        authentication: 'oauth' as const,
        oauth,
        tokenStore: { get: async () => undefined, set: async () => undefined, delete: async () => undefined },
      },
      { certificate, daysLeft: 1 },
      'production, oauth: calls go to https://api.example/base; client certificate "CN=app, O=Example", 1 day left; tokens from auth.example, shared through tokenStore',
    ],
    [
      { ...sandbox, http: { proxy: 'http://user:password@proxy.bank:3128' } },
      {},
      'sandbox, app-token: calls go to https://sandbox.example through the proxy proxy.bank:3128; no client certificate; no OAuth tokens. To see each call in the log, set http.logCalls (SERVICE_HTTP_LOG_CALLS) to true.',
    ],
    [
      production,
      { certificate, daysLeft: 0 },
      'production, mtls: calls go to https://api.example/base; client certificate "CN=app, O=Example", 0 days left; no OAuth tokens',
    ],
    [
      production,
      { certificate, daysLeft: -1 },
      'production, mtls: calls go to https://api.example/base; client certificate "CN=app, O=Example", expired; no OAuth tokens',
    ],
  ])('describes the configuration', async (given, status, line) => {
    expect((await reported(given, status)).lines).toEqual([line]);
  });
});

describe('Warnings at start', () => {
  it('are none for a usual configuration', async () => {
    expect(await warningsOf(production)).toEqual([]);
    expect(await warningsOf(sandbox)).toEqual([]);
  });

  it('report a client certificate without the chain of the service, and what production will demand', async () => {
    const warnings = await warningsOf(sandbox, { lacksChain: true, name: 'ksa' });
    expect(warnings).toEqual([
      expect.stringMatching(
        /tls\.chain \(SERVICE_KSA_TLS_CHAIN\).*against Node's public roots, not against.*production does not start so.*SERVICE_KSA_TLS_PUBLIC_ROOTS/,
      ),
    ]);
  });

  it('are told once where several clients share what was told', async () => {
    const warned = new Set<string>();
    expect(await warningsOf(production, { warned, lacksChain: true })).toHaveLength(1);
    expect(await warningsOf(production, { warned, lacksChain: true })).toEqual([]);
    expect(await warningsOf(production, { warned, versions: { deno: '2.9.6' } })).toHaveLength(1);
  });
});

describe('The runtime', () => {
  it.each([
    [{ node: '20.19.0' }],
    [{ node: '24.0.0', bun: '1.4.0' }],
    [{ node: '24.0.0', bun: '1.10.2' }],
    [{ node: '24.0.0', bun: '2.0.1' }],
  ])('is supported: %j', async (versions) => {
    expect(await warningsOf(sandbox, { versions })).toEqual([]);
  });

  it.each([
    [{ deno: '2.9.6' }, /^Deno 2\.9\.6 is not supported: .*POST.* sent twice/],
    [{ bun: '1.3.14' }, /^Bun 1\.3\.14 is not supported: .*tls\.chain.*Bun 1\.4/],
  ])('is named where it is not supported: %j', async (versions, warning) => {
    expect(await warningsOf(sandbox, { versions })).toEqual([expect.stringMatching(warning)]);
  });
});
