import { describe, expect, it, jest } from '@jest/globals';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';
import { reportStart } from '../../../lib/engine/start-report.js';
import { checkStart } from '../../../lib/engine/startup-check.js';
import { type CertificateSummary, ServiceConnectionError } from '../../../lib/errors/index.js';
import { makeClient } from '../../helpers/make-client.js';

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
  { name, lacksChain = false, ...status }: Record<string, unknown> = {},
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
    {
      lacksChain: lacksChain as boolean,
      certificate: status.certificate as CertificateSummary | undefined,
      status: { healthy: true, ...status },
    },
    {
      debug: unexpected,
      error: unexpected,
      log: (message) => lines.push(message),
      warn: (message) => warnings.push(message),
    },
  );
  return { lines, warnings };
}

const warningsOf = async (...given: Parameters<typeof reported>) => (await reported(...given)).warnings;

describe('The line at start', () => {
  it.each([
    [
      sandbox,
      {},
      'sandbox, app-token: calls go to https://sandbox.example; no client certificate; no OAuth tokens',
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
      'sandbox, app-token: calls go to https://sandbox.example through the proxy proxy.bank:3128; no client certificate; no OAuth tokens',
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
});

describe('The start-up check', () => {
  type Call = (limit: { timeout?: number }) => Promise<unknown>;
  const notAsked: Call = () => Promise.reject(new Error('not asked for'));

  async function run(
    startupCheck: 'off' | 'warn' | 'fail',
    list: Call,
    getApiToken = notAsked,
    given: ServiceModuleOptions = {},
  ) {
    const urls = { sandboxUrl: 'https://sandbox.example', sandboxAuthUrl: 'https://auth.example' };
    const { options } = await makeClient(
      { urls, appToken: 'app-token', startupCheck, ...given },
      { name: 'ksa' },
    );
    const lines: string[] = [];
    const note = (level: string) => (line: string) => void lines.push(`${level}: ${line}`);
    const log = { debug: note('debug'), log: note('log'), warn: note('warn'), error: note('error') };
    const checked = checkStart(options, { getApiToken } as never, { list } as never, log);
    const error = await checked.catch((reason: unknown) => reason);
    return { lines, error };
  }
  const failing = () => Promise.reject(new ServiceConnectionError({ kind: 'refused', message: 'no answer' }));

  it('asks for nothing where it is off', async () => {
    const list = jest.fn(failing);
    expect(await run('off', list)).toEqual({ lines: [], error: undefined });
    expect(list).not.toHaveBeenCalled();
  });

  it.each(['warn', 'fail'] as const)('with %s: the log says that it passed', async (mode) => {
    const { lines, error } = await run(mode, async () => []);
    expect([lines, error]).toEqual([['log: The start-up check passed.'], undefined]);
  });

  it('has for both calls the time of one, and 15 s at most; a late token leaves the banks a millisecond', async () => {
    const limits: unknown[] = [];
    const list: Call = async ({ timeout }) => void limits.push(timeout);
    const late: Call = async ({ timeout }) => {
      limits.push(timeout);
      await new Promise((resolve) => setTimeout(resolve, 60));
    };
    const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 's3cret' };
    const { error } = await run('fail', list, late, { oauth, http: { timeout: 50 } });
    expect([limits, error]).toEqual([[expect.any(Number), 1], undefined]);
    expect(limits[0]).toBeLessThanOrEqual(50);
    await run('fail', list);
    expect(limits[2]).toBeLessThanOrEqual(15_000);
    expect(limits[2]).toBeGreaterThan(10_000);
  });

  it('that failed is a warning, or the end of the start, with what to do', async () => {
    const said = /no answer/;
    const warned = await run('warn', failing);
    expect(warned.error).toBeUndefined();
    expect(warned.lines).toEqual([expect.stringMatching(/^warn: The start-up check failed \(api\.banks\)/)]);
    expect(warned.lines[0]).toMatch(said);
    const { lines, error } = await run('fail', failing);
    expect(lines).toEqual([]);
    expect(error).toMatchObject({
      code: 'startup_check_failed',
      faults: [
        {
          option: 'urls.sandboxUrl',
          variable: 'SERVICE_KSA_SANDBOX_URL',
          message: expect.stringMatching(said),
        },
      ],
    });
  });
});
