import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger, type FactoryProvider } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { ModuleRef, type ModulesContainer } from '@nestjs/core';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { ServiceCertificateError, type ServiceConfigurationError } from '../../../lib/errors/index.js';
import {
  givenOptions,
  hideOptions,
  hideValue,
  type GivenOptions,
} from '../../../lib/module/given-options.js';
import { HOST_CONFIG, readHostConfig } from '../../../lib/module/host-config.js';
import { openService } from '../../../lib/module/open-service.js';

afterEach(() => void jest.useRealTimers());

describe('givenOptions', () => {
  it.each([undefined, null, 'text', () => ({})])('refuses %p', async (options) => {
    const refused = 'the options factory returned no object';
    await expect(givenOptions(async () => options)).rejects.toThrow(refused);
    if (typeof options !== 'function') await expect(givenOptions(options)).rejects.toThrow(refused);
  });

  it('gives the options back, also those that a test has put in their place', async () => {
    const options = { appToken: 'app-token-1' };
    expect(await givenOptions(options)).toBe(options);
    expect(await givenOptions(async () => options)).toBe(options);
  });
});

describe('the providers of a definition', () => {
  const token = Symbol('options');

  it('hide a value', () => {
    const provider = { provide: 'vault', useValue: { key: 'k-1' } };
    const hidden = hideValue(provider) as { useFactory: () => unknown };
    expect(hidden).not.toHaveProperty('useValue');
    expect(hidden.useFactory()).toBe(provider.useValue);
    const options = hideOptions({ provide: token, useValue: { appToken: 'app-token-1' } }, token, 'own');
    expect(options).toEqual({ provide: 'own', useValue: expect.any(Function) });
    expect(inspect(options, { showHidden: true }) + JSON.stringify(options)).not.toContain('app-token-1');
  });

  it('are not changed where they have no value, or provide something else', () => {
    class Vault {}
    const factory = { provide: 'other', useFactory: () => 1 };
    for (const provider of [Vault, factory, { provide: Vault, useClass: Vault }]) {
      expect(hideValue(provider)).toBe(provider);
      expect(hideOptions(provider, token, 'own')).toBe(provider);
    }
  });
});

describe('An options factory', () => {
  const token = Symbol('options');
  const service = new ConfigService();
  type Factory = FactoryProvider['useFactory'];
  const hidden = (useFactory: Factory, inject: FactoryProvider['inject'] = []) =>
    hideOptions({ provide: token, useFactory, inject }, token, 'own') as Required<FactoryProvider>;
  /** What it brings when the options are asked for. */
  const askedFor = async ({ useFactory }: FactoryProvider, ...injected: unknown[]) =>
    (useFactory(...injected) as GivenOptions)();
  const faultOf = async (made: Promise<unknown>) =>
    ((await made.catch((error: unknown) => error)) as ServiceConfigurationError).faults[0];

  it('gets the ConfigService of the application, where Nest has none for this module', async () => {
    const optional = { token: ConfigService, optional: true };
    let got: unknown[] = [];
    const factory = (...args: unknown[]) => ((got = args), { appToken: 'a' });
    const provider = hidden(factory, [ConfigService, optional, 'vault']);
    expect(provider.inject).toEqual([HOST_CONFIG, optional, optional, 'vault']);
    const asked = askedFor(provider, { service }, undefined, undefined, 'v');
    expect(await asked).toEqual({ appToken: 'a' });
    expect(got).toEqual([service, service, 'v']);
    const own = new ConfigService();
    await askedFor(provider, { service }, own, own, undefined);
    expect([got[0] === own, got[1] === own, got[2]]).toEqual([true, true, undefined]);
  });

  it('is called when the options are asked for', () => {
    const factory = jest.fn();
    expect(hidden(factory).useFactory({})).toBeInstanceOf(Function);
    expect(factory).not.toHaveBeenCalled();
  });

  it('is refused where it needs a ConfigService and there is none', async () => {
    const options = () => ({});
    for (const asked of [ConfigService, { token: ConfigService, optional: false }]) {
      expect(await faultOf(askedFor(hidden(options, [asked]), {}, undefined))).toEqual({
        option: 'forRootAsync',
        variable: undefined,
        message: expect.stringMatching(/injects ConfigService.*import ConfigModule\.forRoot\(\)/),
      });
    }
    const optional = hidden(options, [{ token: ConfigService, optional: true }]);
    expect(await askedFor(optional, {}, undefined)).toEqual({});
  });

  it('fails with its own error', async () => {
    const own = new TypeError('mine');
    const failing = hidden(() => {
      throw own;
    });
    await expect(askedFor(failing, {})).rejects.toBe(own);
  });

  it('has 60 s', async () => {
    jest.useFakeTimers();
    const late = faultOf(
      askedFor(
        hidden(() => new Promise(() => undefined)),
        {},
      ),
    );
    await jest.advanceTimersByTimeAsync(59_999);
    expect(jest.getTimerCount()).toBe(1);
    await jest.advanceTimersByTimeAsync(1);
    expect(await late).toMatchObject({
      option: 'forRootAsync',
      message: expect.stringMatching(/within 60 s/),
    });
    expect(jest.getTimerCount()).toBe(0);
  });
});

describe('The configuration of the host', () => {
  const configModule = (config: ConfigService) => {
    const reference = { create: async () => ({ config }) };
    return { metatype: ConfigModule, providers: new Map([[ModuleRef, { instance: reference }]]) };
  };
  const container = (...modules: object[]) =>
    new Map(modules.map((each, key) => [key, each])) as unknown as ModulesContainer;

  it('is that of the first ConfigModule, or the one that Nest injects', async () => {
    const [first, second, own] = ['first', 'second', 'own'].map((VALUE) => new ConfigService({ VALUE }));
    const modules = container({ metatype: class {} }, configModule(first), configModule(second));
    const read = await readHostConfig(modules);
    expect([read.service === first, read.get('VALUE')]).toEqual([true, 'first']);
    expect((await readHostConfig(modules, own)).get('VALUE')).toBe('own');
  });

  it('is the environment where there is no ConfigModule', async () => {
    const read = await readHostConfig(container({ metatype: class {} }));
    expect([read.service, read.get('PATH')]).toEqual([undefined, process.env.PATH]);
  });
});

describe('The configuration of a module', () => {
  const sandbox = { urls: { sandboxUrl: 'https://sandbox.bank' }, appToken: 'app-1' };
  const lines: string[] = [];
  const note = (level: string) => (message: string, label: string) =>
    void lines.push(`${level} ${label}: ${message}`);

  /** The client, closed. */
  async function load(
    given: ServiceModuleOptions,
    {
      name,
      variables = {},
      imported = true,
    }: { name?: string; variables?: Record<string, unknown>; imported?: boolean } = {},
  ) {
    lines.length = 0;
    Logger.overrideLogger({ log: note('log'), warn: note('warn'), error: note('error') });
    const service = imported ? new ConfigService() : undefined;
    const config = { service, get: (key: string) => variables[key] };
    try {
      const client = await openService(given, name, config);
      await client.close();
      return client;
    } finally {
      Logger.overrideLogger(false);
    }
  }
  const errorOf = (loaded: Promise<unknown>): Promise<ServiceConfigurationError> =>
    loaded.then(
      () => Promise.reject(new Error('it did not fail')),
      (error: ServiceConfigurationError) => error,
    );
  const titleOf = async (loaded: Promise<unknown>) => (await errorOf(loaded)).message.split(':\n')[0];

  it('takes options, then the namespace, then the variables', async () => {
    const variables = {
      service: { http: { trailingSlash: 'banks' } },
      SERVICE_APP_TOKEN: 'of the environment',
      SERVICE_HTTP_TRAILING_SLASH: 'customers',
      SERVICE_HTTP_USER_AGENT: 'bank/1',
    };
    const { auth, http } = await load(sandbox, { variables });
    expect(await auth.authorizationHeaders().catch(String)).toMatch(/closed/);
    expect([http.pathOf('banks'), http.pathOf('customers')]).toEqual(['/banks/v1/', '/customers/v1']);
    const named = { ...variables, SERVICE_KSA_HTTP_TRAILING_SLASH: 'customers' };
    const ksa = await load(sandbox, { name: 'ksa', variables: named });
    expect([ksa.http.pathOf('banks'), ksa.http.pathOf('customers')]).toEqual(['/banks/v1', '/customers/v1/']);
    const text = await load(sandbox, { variables: { service: 'text' } });
    expect(text.http.pathOf('banks')).toBe('/banks/v1');
    expect(lines).toEqual([]);
  });

  it('says what is usual where nothing is there', async () => {
    const none =
      /^ServiceModule found no SERVICE_\* variable; a test needs none with stubService\(builder\), or with overrideProvider\(getServiceOptionsToken\(\)\)\.useValue\(options\): https:\S+docs\/testing\.md#overrideprovider\. /;
    const dotEnv =
      'Check that .env, or the file that envFilePath names, is in the working directory, where ConfigModule.forRoot() reads it';
    const noModule =
      'The application does not import ConfigModule, so .env files are not read (import ConfigModule.forRoot())';
    const help =
      /\. https:\S+docs\/getting-started\.md#the-five-modes shows what to set, and npx nestjs-service doctor checks it$/;
    const unusable = (label = '') => `The configuration of ServiceModule${label} is not usable`;
    for (const given of [{}, { appToken: 'a' }]) {
      for (const [title, cause] of [
        [await titleOf(load(given)), dotEnv],
        [await titleOf(load(given, { imported: false })), noModule],
      ]) {
        expect(title).toMatch(none);
        expect(title).toMatch(help);
        expect(title.replace(none, '').replace(help, '')).toBe(cause);
      }
    }
    const one = { variables: { SERVICE_HTTP_RETRIES: '1' } };
    expect(await titleOf(load({ appToken: 'a' }, one))).toBe(unusable());
    const wrong = { ...sandbox, http: { retries: -1 } };
    expect(await titleOf(load(wrong, { name: 'ksa', imported: false }))).toBe(unusable(':ksa'));
  });

  it('says so where .env is there, and has no value for a variable of this module', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'env-'));
    const before = process.cwd();
    process.chdir(folder);
    try {
      await writeFile('.env', 'PORT=1\nSERVICE_APP_TOKEN=a\nSERVICE_KSA_APP_TOKEN=\n');
      const title = await titleOf(load({}, { name: 'ksa' }));
      expect(title).toMatch(/^ServiceModule:ksa found no SERVICE_KSA_\* variable; /);
      expect(title).toMatch(
        /\. \.env in the working directory has no value for any of them: fill it in, or check the file that envFilePath names\./,
      );
      expect(title).not.toContain('Check that .env');
      // It is not read, whatever it has.
      const unread = await titleOf(load({}, { name: 'ksa', imported: false }));
      expect(unread).toMatch(/does not import ConfigModule/);
    } finally {
      process.chdir(before);
      await rm(folder, { recursive: true });
    }
  });

  it('names faults of certificates beside the others, each option once', async () => {
    const urls = { sandboxMtlsUrl: 'https://m.bank' };
    const tls = { certificate: 'nonsense', privateKey: '<key>' };
    const given = { ...sandbox, authentication: 'mtls', urls, tls } as const;
    const both = await errorOf(load({ ...given, appToken: ' ' }));
    expect(both).not.toBeInstanceOf(ServiceCertificateError);
    expect(both.faults.map(({ option }) => option)).toEqual([
      'appToken',
      'tls.certificate',
      'tls.privateKey',
    ]);
    const onlyThose = await errorOf(load({ ...given, tls: () => ({ ...tls, privateKey: 'nonsense' }) }));
    expect(onlyThose).toBeInstanceOf(ServiceCertificateError);
    expect(onlyThose.faults.map(({ option }) => option)).toEqual(['tls.certificate', 'tls.privateKey']);
    const variables = { SERVICE_APP_TOKEN: 'a', SERVICE_APP_TOKEN_FILE: '/no/such/file' };
    const twice = await errorOf(load({ urls: sandbox.urls }, { variables }));
    expect(twice.faults).toEqual([
      { option: 'appToken', variable: 'SERVICE_APP_TOKEN', message: expect.stringMatching(/both set/) },
    ]);
  });

  it('needs a certificate of the tls function, where the mode has one', async () => {
    const tls = () => ({});
    const urls = {
      sandboxUrl: 'https://s.bank',
      sandboxMtlsUrl: 'https://m.bank',
      sandboxAuthUrl: 'https://a.bank',
    };
    const clientSecret = 's';
    const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret };
    for (const [given, needed] of [
      [{ authentication: 'mtls' as const }, "'mtls'"],
      [{ authentication: 'oauth' as const, oauth: { ...oauth, mtls: true } }, 'oauth.mtls'],
    ] as const) {
      const { faults } = await errorOf(load({ appToken: 'a', urls, tls, ...given }));
      expect(faults).toEqual([
        {
          option: 'tls.certificate',
          variable: undefined,
          message: `is missing: ${needed} needs it, and the tls function returned none.`,
        },
      ]);
    }
    await load({ authentication: 'oauth', oauth, urls, tls });
  });
});
