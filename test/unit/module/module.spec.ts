import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Inject, Logger, Module, type FactoryProvider, type ModuleMetadata } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { Test } from '@nestjs/testing';
import {
  BanksService,
  ServiceCertificateError,
  ServiceConfigurationError,
  ServiceModule,
} from 'nestjs-service';
import { stubService } from 'nestjs-service/testing';
import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import {
  getGivenOptions,
  hideOptions,
  hideValue,
  type GivenOptions,
} from '../../../lib/module/host-config.js';
import { createModuleClient } from '../../../lib/module/providers.js';
import { rejection } from '../../helpers/start-module.js';

describe('Provider of the options', () => {
  const token = Symbol('options');

  it.each([undefined, null, 'text', () => ({})])('refuses %p as the options', async (options) => {
    const refused = 'the options factory returned no object';
    await expect(getGivenOptions(async () => options)).rejects.toThrow(refused);
    // As a test may have put them in their place.
    if (typeof options !== 'function') await expect(getGivenOptions(options)).rejects.toThrow(refused);
  });

  it('shows no value when Nest prints the provider of the options, or a provider that the host application adds', () => {
    const provider = { provide: 'vault', useValue: { key: 'k-1' } };
    const hidden = hideValue(provider) as FactoryProvider;
    expect(hidden).not.toHaveProperty('useValue');
    expect(hidden.useFactory()).toBe(provider.useValue);
    const definition = ServiceModule.forRoot({ appToken: 'app-token-1', extraProviders: [provider] });
    const printed = inspect(definition, { depth: 12, showHidden: true }) + JSON.stringify(definition);
    expect(printed).toContain('vault');
    expect(printed).not.toMatch(/app-token-1|k-1/);
  });

  it('leaves providers without a value, or with another token, as they are', () => {
    class Vault {}
    const factory = { provide: 'other', useFactory: () => 1 };
    for (const provider of [Vault, factory, { provide: Vault, useClass: Vault }]) {
      expect(hideValue(provider)).toBe(provider);
      expect(hideOptions(provider, token, 'own')).toBe(provider);
    }
  });

  it('calls the options factory when the options are needed, and gives it 60 s', async () => {
    jest.useFakeTimers();
    try {
      const useFactory = jest.fn(() => new Promise(() => undefined));
      const provider = hideOptions({ provide: token, useFactory }, token, 'own') as FactoryProvider;
      const options = provider.useFactory({}) as GivenOptions;
      expect(useFactory).not.toHaveBeenCalled();
      const late = rejection(options());
      await jest.advanceTimersByTimeAsync(59_999);
      expect(jest.getTimerCount()).toBe(1);
      await jest.advanceTimersByTimeAsync(1);
      const message = expect.stringMatching(/within 60 s/);
      expect(await late).toMatchObject({ faults: [{ option: 'forRootAsync', message }] });
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('Configuration of a module', () => {
  const sandbox = { urls: { sandboxUrl: 'https://sandbox.bank' }, appToken: 'app-1' };
  const lines: string[] = [];
  const note = (level: string) => (line: string, label: string) =>
    void lines.push(`${level} ${label}: ${line}`);

  beforeEach(() => {
    lines.length = 0;
    Logger.overrideLogger({ log: note('log'), warn: note('warn'), error: note('error') });
  });
  afterEach(() => Logger.overrideLogger(false));

  interface Around {
    name?: string;
    variables?: Record<string, unknown>;
    /** Whether the application imports ConfigModule. */
    imported?: boolean;
  }

  /** The client, closed. */
  async function load(given: ServiceModuleOptions, { name, variables = {}, imported = true }: Around = {}) {
    const service = imported ? new ConfigService() : undefined;
    const client = await createModuleClient(given, name, {
      configService: service,
      get: (key: string) => variables[key],
    });
    await client.close();
    return client;
  }
  const errorOf = async (given: ServiceModuleOptions, around?: Around) =>
    (await rejection(load(given, around))) as ServiceConfigurationError;
  const titleOf = async (given: ServiceModuleOptions, around?: Around) =>
    (await errorOf(given, around)).message.split(':\n')[0];

  it('takes each option from the code, then from the namespace, then from the variables, of its own name', async () => {
    const variables = {
      service: { http: { trailingSlash: 'banks' } },
      SERVICE_APP_TOKEN: 'of the environment',
      SERVICE_HTTP_TRAILING_SLASH: 'customers',
      SERVICE_KSA_HTTP_TRAILING_SLASH: 'customers',
    };
    const paths = async (around: Around) => {
      const { http } = await load(sandbox, around);
      return [http.collectionPath('banks'), http.collectionPath('customers')];
    };
    expect(await paths({ variables })).toEqual(['/banks/v1/', '/customers/v1']);
    expect(await paths({ variables, name: 'ksa' })).toEqual(['/banks/v1', '/customers/v1/']);
    expect(await paths({ variables: { service: 'text' } })).toEqual(['/banks/v1', '/customers/v1']);
    expect(lines).toEqual([]);
  });

  it('lists the usual causes if no variable is set', async () => {
    const none =
      /^ServiceModule found no SERVICE_\* variable\. In a test, use stubService\(builder\), or overrideProvider\(getServiceOptionsToken\(\)\)\.useValue\(options\), which need no variable: https:\S+docs\/testing\.md#overrideprovider\. /;
    const dotEnv =
      'Check that .env, or the file that envFilePath names, is in the working directory, where ConfigModule.forRoot() reads it';
    const noModule =
      'The application does not import ConfigModule, so .env files are not read (import ConfigModule.forRoot())';
    const help =
      /\. https:\S+docs\/modes\.md#the-five-modes shows what to set, and npx nestjs-service doctor checks it$/;
    for (const given of [{}, { appToken: 'a' }]) {
      for (const [title, cause] of [
        [await titleOf(given), dotEnv],
        [await titleOf(given, { imported: false }), noModule],
      ]) {
        expect(title).toMatch(none);
        expect(title).toMatch(help);
        expect(title.replace(none, '').replace(help, '')).toBe(cause);
      }
    }
    expect(await titleOf({}, { name: 'ksa' })).toMatch(
      /^ServiceModule:ksa found no SERVICE_KSA_\* variable\. .*overrideProvider\(getServiceOptionsToken\('ksa'\)\).* doctor --name ksa checks it$/,
    );
  });

  it.each<[string, ServiceModuleOptions, Around, string]>([
    ['a variable', { appToken: 'a' }, { variables: { SERVICE_HTTP_RETRIES: '1' } }, ''],
    ['a wrong value', { ...sandbox, http: { retries: -1 } }, { name: 'ksa', imported: false }, ':ksa'],
  ])('does not list the usual causes if there is %s', async (_, given, around, label) => {
    expect(await titleOf(given, around)).toBe(`The configuration of ServiceModule${label} is not usable`);
  });

  it('reports faults of certificates together with the other faults, each option once', async () => {
    const urls = { sandboxMtlsUrl: 'https://m.bank' };
    const tls = { certificate: 'nonsense', privateKey: '<key>' };
    const given = { ...sandbox, authentication: 'mtls', urls, tls } as const;
    const both = await errorOf({ ...given, appToken: ' ' });
    expect(both).not.toBeInstanceOf(ServiceCertificateError);
    expect(both.faults.map(({ option }) => option)).toEqual([
      'appToken',
      'tls.certificate',
      'tls.privateKey',
    ]);
    const onlyThose = await errorOf({ ...given, tls: () => ({ ...tls, privateKey: 'nonsense' }) });
    expect(onlyThose).toBeInstanceOf(ServiceCertificateError);
    expect(onlyThose.faults.map(({ option }) => option)).toEqual(['tls.certificate', 'tls.privateKey']);
    const variables = { SERVICE_APP_TOKEN: 'a', SERVICE_APP_TOKEN_FILE: '/no/such/file' };
    expect((await errorOf({ urls: sandbox.urls }, { variables })).faults).toEqual([
      { option: 'appToken', variable: 'SERVICE_APP_TOKEN', message: expect.stringMatching(/both set/) },
    ]);
  });

  it('reports a tls function that returns no certificate, in a mode that needs one', async () => {
    const tls = () => ({});
    const urls = {
      sandboxUrl: 'https://s.bank',
      sandboxMtlsUrl: 'https://m.bank',
      sandboxAuthUrl: 'https://a.bank',
    };
    const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 's' };
    const given = { appToken: 'a', urls, tls };
    for (const [mode, needed] of [
      [{ authentication: 'mtls' as const }, "'mtls'"],
      [{ authentication: 'oauth' as const, oauth: { ...oauth, mtls: true } }, 'oauth.mtls'],
    ] as const) {
      const message = `is missing: ${needed} needs it, and the tls function returned none.`;
      const fault = { option: 'tls.certificate', variable: undefined, message };
      expect((await errorOf({ ...given, ...mode })).faults).toEqual([fault]);
    }
    await load({ ...given, authentication: 'oauth', oauth });
  });
});

describe('imports: [ServiceModule], without forRoot()', () => {
  class BankNames {
    constructor(@Inject(BanksService) readonly banks: BanksService) {}
  }
  const feature = (metadata: ModuleMetadata) => {
    @Module(metadata)
    class FeatureModule {}
    return FeatureModule;
  };

  let endFactories: () => void = () => undefined;
  const ended = new Promise<never>(
    (_, reject) => (endFactories = () => reject(new Error('The test has ended'))),
  );
  ended.catch(() => undefined);
  /** Once a provider has failed, Nest does not wait for the others. So this module waits in its factory, and reads no file. */
  const pending = (given: { name?: string; isGlobal?: boolean }) =>
    ServiceModule.forRootAsync({ ...given, useFactory: () => ended });
  afterAll(() => endFactories());

  it.each<[string, ModuleMetadata]>([
    ['on its own', { imports: [ServiceModule] }],
    [
      'beside ConfigModule, for a provider',
      { imports: [ConfigModule.forRoot({ ignoreEnvFile: true }), ServiceModule], providers: [BankNames] },
    ],
    [
      'in a feature, before a named module',
      { imports: [feature({ imports: [ServiceModule] }), pending({ name: 'ksa' })] },
    ],
    [
      'in a feature, beside a global module',
      { imports: [pending({ isGlobal: true }), feature({ imports: [ServiceModule] })] },
    ],
  ])('says what to import in its place: %s', async (_, metadata) => {
    const stubbed = Test.createTestingModule(metadata);
    stubService(stubbed);
    for (const builder of [Test.createTestingModule(metadata), stubbed]) {
      const error = await rejection(builder.compile());
      expect(error).toBeInstanceOf(ServiceConfigurationError);
      const message = expect.stringContaining('ServiceModule.forRoot()');
      expect((error as ServiceConfigurationError).faults).toEqual([
        { option: 'imports', variable: undefined, message },
      ]);
    }
  });

  it('can be exported as the class by a module that imports forRoot()', async () => {
    const imports = [feature({ imports: [ServiceModule.forRoot()], exports: [ServiceModule] })];
    const builder = Test.createTestingModule({ imports, providers: [BankNames] });
    stubService(builder, { banks: { list: () => ['Alpha Bank'] } });
    const module = await builder.compile();
    expect(await module.get(BankNames).banks.list()).toEqual(['Alpha Bank']);
    await module.close();
  });
});

it('the supported range of axios begins with the version of a consumer in CI', () => {
  const of = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, { axios: string }>;
  const { axios: oldest } = of('test/consumers/cjs-nest11/package.json').dependencies;
  expect(of('package.json').peerDependencies.axios).toBe(`^${oldest}`);
});
