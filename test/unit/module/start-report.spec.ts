import { afterEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { type ModulesContainer } from '@nestjs/core';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';
import {
  countNamesakes,
  MODULE_NAME,
  refuseSharedVariables,
  type ModuleName,
} from '../../../lib/module/module-names.js';
import { StartReport, type StartFacts } from '../../../lib/module/start-report.js';

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

async function facts(
  given: ServiceModuleOptions,
  { name, hasChain = true, namesakes = 1, ...status }: Record<string, unknown> = {},
): Promise<StartFacts> {
  const { options } = await resolveOptions(given, name as string | undefined);
  if (!options) throw new Error('no options');
  return {
    options,
    identity: { hasChain: hasChain as boolean, status: { healthy: true, ...status } },
    namesakes: namesakes as number,
  };
}

const silent = { log: () => undefined, warn: () => undefined, error: () => undefined };

/** What the report logs: its line, and its warnings. */
function reported(given: StartFacts): { lines: string[]; warnings: string[] } {
  const lines: string[] = [];
  const warnings: string[] = [];
  Logger.overrideLogger({
    ...silent,
    log: (message: string) => lines.push(message),
    warn: (message: string) => warnings.push(message),
  });
  new StartReport(given).onApplicationBootstrap();
  return { lines, warnings };
}

const warningsOf = (given: StartFacts): string[] => reported(given).warnings;

afterEach(() => Logger.overrideLogger(silent));

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
      production,
      { certificate, daysLeft: -1 },
      'production, mtls: calls go to https://api.example/base; client certificate "CN=app, O=Example", expired; no OAuth tokens',
    ],
  ])('describes the configuration', async (given, status, line) => {
    expect(reported(await facts(given, status)).lines).toEqual([line]);
  });
});

describe('Warnings at start', () => {
  it('are none for a usual configuration', async () => {
    expect(warningsOf(await facts(sandbox, { hasChain: false }))).toEqual([]);
    expect(warningsOf(await facts({ ...production, oauth }))).toEqual([]);
    expect(
      warningsOf(await facts({ ...production, authentication: 'oauth', oauth }, { hasChain: false })),
    ).toEqual([]);
  });

  it('report mtls without the chain of the service', async () => {
    const warnings = warningsOf(await facts({ ...production, oauth }, { hasChain: false, name: 'ksa' }));
    expect(warnings).toEqual([
      expect.stringMatching(/tls\.chain \(SERVICE_KSA_TLS_CHAIN\).*against Node's public roots, not against/),
    ]);
  });

  it('report app tokens in browsers, in production, unless includeAppToken is set', async () => {
    expect(warningsOf(await facts(production))).toEqual([
      expect.stringMatching(/app token to browsers.*SERVICE_CLIENT_ID.*SERVICE_LINK_SDK_INCLUDE_APP_TOKEN/),
    ]);
    expect(warningsOf(await facts({ ...production, linkSdk: { includeAppToken: true } }))).toEqual([]);
  });

  it('report several modules of one name', async () => {
    expect(warningsOf(await facts(sandbox, { namesakes: 2 }))[0]).toMatch(
      /^2 ServiceModules without a name.*isGlobal/,
    );
    expect(warningsOf(await facts(sandbox, { namesakes: 3, name: 'ksa' }))[0]).toMatch(/^3 .* named 'ksa'/);
  });
});

describe('The modules of an application', () => {
  /** One for each name, and one of the host. */
  const application = (...names: (string | undefined)[]) => {
    const own = names.map((name): ModuleName => ({ name }));
    const modules = [new Map(), ...own.map((instance) => new Map([[MODULE_NAME, { instance }]]))];
    const container = new Map(modules.map((providers, key) => [key, { providers }]));
    return { own, container: container as unknown as ModulesContainer };
  };

  it('of one name are counted, and the first of them reports it', () => {
    const { own, container } = application(undefined, 'ksa', 'ksa', undefined, 'ksa', 'uae');
    expect(own.map((each) => countNamesakes(each, container))).toEqual([2, 3, 1, 1, 1, 1]);
  });

  it.each([
    ['ksa', 'ksa-sandbox', /^'ksa' and 'ksa-sandbox' would both read SERVICE_KSA_SANDBOX_/],
    ['a-b', 'a_b', /^'a-b' and 'a_b' would both read SERVICE_A_B_/],
    ['ksa', 'uae', undefined],
    ['ksa', undefined, undefined],
    ['ksa', 'ksa', undefined],
  ])('named %s and %s: whether they share variables', (first, second, message) => {
    const { own, container } = application(first, second);
    const refuse = (): void => refuseSharedVariables(own[0], container);
    if (!message) return expect(refuse).not.toThrow();
    const fault = { option: 'name', message: expect.stringMatching(message) };
    expect(refuse).toThrow(expect.objectContaining({ faults: [expect.objectContaining(fault)] }));
  });
});
