import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { type ModulesContainer } from '@nestjs/core';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';
import { CallsInFlight } from '../../../lib/http/calls-in-flight.js';
import { ServiceLifecycle, type LifecycleParts } from '../../../lib/module/lifecycle.js';
import {
  countNamesakes,
  MODULE_NAME,
  refuseSharedVariables,
  type ModuleName,
} from '../../../lib/module/module-names.js';
import { RequestScopeCheck } from '../../../lib/module/request-scope.js';
import { StartReport, type StartFacts } from '../../../lib/module/start-report.js';
import { runStartupCheck } from '../../../lib/module/startup-check.js';
import { SafeLogger } from '../../../lib/telemetry/log.js';
import { moduleLabel } from '../../../lib/config/variables.js';
import { Agents, ClientIdentity } from '../../../lib/tls/index.js';
import { systemClock } from '../../../lib/config/clock.js';
import { deadPort } from '../../helpers/loopback.js';

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
    log: new SafeLogger(moduleLabel(name as string | undefined)),
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

describe('Start and end', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  function lifecycle(checkStart: () => Promise<void> = async () => undefined) {
    const events: string[] = [];
    const note = (event: string) => (): void => void events.push(event);
    const calls = new CallsInFlight();
    const parts = {
      options: { http: { shutdownTimeout: 5_000 } },
      calls,
      tokens: {
        open: note('tokens open'),
        close: note('tokens close'),
        closeSource: async () => void events.push('source closed'),
      },
      agents: { close: async (graceMs?: number) => void events.push(`agents close ${graceMs}`) },
      identity: { follow: note('follow'), status: { daysLeft: 5 } },
      telemetry: {
        observeCertificate: (daysLeft: () => number) => {
          events.push(`observe ${daysLeft()}`);
          return note('observe no more');
        },
      },
      warn: (message: string) => void events.push(message),
      checkStart: () => (events.push('check'), checkStart()),
    };
    return { calls, events, hooks: new ServiceLifecycle(parts as unknown as LifecycleParts) };
  }

  it('follows the identity once the check has passed', async () => {
    const { hooks, events } = lifecycle();
    await hooks.onApplicationBootstrap();
    expect(events).toEqual(['tokens open', 'check', 'follow', 'observe 5']);
  });

  it('closes everything where the application must not start', async () => {
    const refused = new Error('not reached');
    const { hooks, events, calls } = lifecycle(() => Promise.reject(refused));
    await expect(hooks.onApplicationBootstrap()).rejects.toBe(refused);
    expect(events).toEqual(['tokens open', 'check', 'tokens close', 'source closed', 'agents close 0']);
    expect(() => calls.admit()).toThrow('shutting down');
  });

  it('waits for calls in flight, and gives connections of the host what is left of the time', async () => {
    const { hooks, events, calls } = lifecycle();
    await hooks.onApplicationBootstrap();
    events.length = 0;
    calls.begin();
    hooks.beforeApplicationShutdown();
    expect(() => calls.admit()).not.toThrow();
    await jest.advanceTimersByTimeAsync(1_000);
    const ended = hooks.onApplicationShutdown();
    expect(() => calls.admit()).toThrow('shutting down');
    await jest.advanceTimersByTimeAsync(1_000);
    expect(events).toEqual([]);
    calls.end();
    await ended;
    expect(events).toEqual(['tokens close', 'source closed', 'agents close 3000', 'observe no more']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    [0, undefined],
    [1, '1 call was'],
    [2, '2 calls were'],
  ])('ends what is left when the time is over: %d calls', async (count, which) => {
    const { hooks, events, calls } = lifecycle();
    for (let call = 0; call < count; call += 1) calls.begin();
    hooks.beforeApplicationShutdown();
    await jest.advanceTimersByTimeAsync(4_999);
    expect(events).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    const said = `Shutdown: ${which} still running after http.shutdownTimeout (5000 ms), and aborted.`;
    expect(events).toEqual(['tokens close', 'agents close undefined', ...(which ? [said] : [])]);
    await hooks.onApplicationShutdown();
    expect(events.at(-1)).toBe('agents close 0');
  });
});

describe('Options that depend on a request', () => {
  const own: ModuleName = { name: 'ksa' };
  const moduleOf = (instance: ModuleName, isStatic?: boolean) => ({
    providers: new Map<unknown, unknown>([
      [MODULE_NAME, { instance }],
      ...(isStatic === undefined ? [] : [['options', { isDependencyTreeStatic: () => isStatic }] as const]),
    ]),
  });
  const check = (...modules: object[]): void =>
    new RequestScopeCheck(
      own,
      new Map(modules.map((each, key) => [key, each])) as unknown as ModulesContainer,
      'options',
    ).onModuleInit();

  it('are refused for the module that has them', () => {
    const fault = { option: 'forRootAsync', message: expect.stringMatching(/depend on a request/) };
    const error = expect.objectContaining({ faults: [expect.objectContaining(fault)] });
    expect(() => check({ providers: new Map() }, moduleOf({}, true), moduleOf(own, false))).toThrow(error);
    expect(() => check(moduleOf({}, false), moduleOf(own, true))).not.toThrow();
    expect(() => check(moduleOf(own))).not.toThrow();
    expect(() => check()).not.toThrow();
  });
});

describe('The start-up check', () => {
  async function run(startupCheck: 'off' | 'warn' | 'fail', list: () => Promise<unknown>) {
    const lines: string[] = [];
    Logger.overrideLogger({
      ...silent,
      log: (message: string, label: string) => lines.push(`log ${label}: ${message}`),
      warn: (message: string, label: string) => lines.push(`warn ${label}: ${message}`),
    });
    const urls = { sandboxUrl: `http://127.0.0.1:${await deadPort()}` };
    const { options, tls } = await resolveOptions({ ...sandbox, urls, startupCheck }, 'ksa');
    const settings = { tls, maxSockets: 1, offerToTokenEndpoint: false, clock: systemClock };
    const { identity } = await ClientIdentity.open({ ...settings, log: () => undefined });
    if (!options || !identity) throw new Error('no options');
    const agents = new Agents(identity, 1);
    const parts = { options, identity, agents, banks: { list }, auth: {} } as never;
    const error = await runStartupCheck(parts, new SafeLogger('ServiceModule:ksa')).catch(
      (reason: unknown) => reason,
    );
    await agents.close();
    return { lines, error };
  }
  const failing = () => Promise.reject(new Error('no answer'));

  it('asks for nothing where it is off', async () => {
    const list = jest.fn(failing);
    expect(await run('off', list)).toEqual({ lines: [], error: undefined });
    expect(list).not.toHaveBeenCalled();
  });

  it.each(['warn', 'fail'] as const)('with %s: the log says that it passed', async (mode) => {
    const { lines, error } = await run(mode, async () => []);
    expect([lines, error]).toEqual([['log ServiceModule:ksa: The start-up check passed.'], undefined]);
  });

  it('that failed is a warning, or the end of the start, with what to do', async () => {
    const said = /refused.*SERVICE_KSA_SANDBOX_URL/s;
    const warned = await run('warn', failing);
    expect(warned.error).toBeUndefined();
    expect(warned.lines).toEqual([
      expect.stringMatching(/^warn ServiceModule:ksa: The start-up check failed \(api\.\w+\): \w/),
    ]);
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
