import { afterEach, describe, expect, it } from '@jest/globals';
import { Inject, Module, type ModuleMetadata } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { type ModulesContainer } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import axios from 'axios';
import { BanksService, ServiceConfigurationError, ServiceModule } from 'nestjs-service';
import { ServiceTestingModule, stubService } from 'nestjs-service/testing';
import { readFileSync } from 'node:fs';
import { run } from '../../../lib/cli/doctor.js';
import { type Service } from '../../../lib/engine/create-service.js';
import { axiosFaults, OLDEST_AXIOS } from '../../../lib/module/axios-version.js';
import { SERVICE } from '../../../lib/module/definition.js';
import { openService } from '../../../lib/module/load-configuration.js';
import { MODULE_NAME, type ModuleName, refuseSharedVariables } from '../../../lib/module/namesakes.js';
import { requestScopeCheck, serviceHooks } from '../../../lib/module/providers.js';
import { ServiceClients } from '../../../lib/module/service-clients.js';
import { commandIo } from '../../helpers/command-io.js';
import { rejection } from '../../helpers/start-module.js';

describe('The modules of an application', () => {
  /** One for each name, and one of the host. */
  const application = (...names: (string | undefined)[]) => {
    const own = names.map((name): ModuleName => ({ name }));
    const modules = [new Map(), ...own.map((instance) => new Map([[MODULE_NAME, { instance }]]))];
    const container = new Map(modules.map((providers, key) => [key, { providers }]));
    return { own, container: container as unknown as ModulesContainer };
  };

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

describe('Options that depend on a request', () => {
  const own: ModuleName = { name: 'ksa' };
  const moduleOf = (instance: ModuleName, isStatic?: boolean) => ({
    providers: new Map<unknown, unknown>([
      [MODULE_NAME, { instance }],
      ...(isStatic === undefined ? [] : [[SERVICE, { isDependencyTreeStatic: () => isStatic }] as const]),
    ]),
  });
  const check = (...modules: object[]): void =>
    requestScopeCheck(
      own,
      new Map(modules.map((each, key) => [key, each])) as unknown as ModulesContainer,
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

it('a module of a name that others have too is reported once, by the first', async () => {
  const lines: string[] = [];
  const warn = (line: string): void => void lines.push(line);
  const service = { log: { warn }, start: async () => undefined } as unknown as Service;
  const own = [{ name: 'ksa' }, { name: 'ksa' }, {}, { name: 'uae' }, {}, {}];
  const modules = new Map(
    own.map((instance, key) => [key, { providers: new Map([[MODULE_NAME, { instance }]]) }]),
  );
  for (const each of own) {
    await serviceHooks(service, each, modules as unknown as ModulesContainer).onApplicationBootstrap();
  }
  expect(lines).toEqual([
    expect.stringMatching(/^2 ServiceModules named 'ksa'/),
    expect.stringMatching(/^3 ServiceModules without a name.*isGlobal/),
  ]);
});

it('a client that does not start is ended once, and not kept until the application ends', async () => {
  const ended: string[] = [];
  const service = {
    start: () => Promise.reject(new Error('no')),
    beginShutdown: () => void ended.push('beginShutdown'),
    close: async () => void ended.push('close'),
  } as unknown as Service;
  const clients = new ServiceClients(async () => service);
  await expect(clients.create({ name: 'acme' })).rejects.toThrow('no');
  clients.beforeApplicationShutdown();
  await clients.onApplicationShutdown();
  expect(ended).toEqual(['close']);
});

class BankNames {
  constructor(@Inject(BanksService) readonly banks: BanksService) {}
}

const feature = (metadata: ModuleMetadata) => {
  @Module(metadata)
  class FeatureModule {}
  return FeatureModule;
};

const BARE: Record<string, ModuleMetadata> = {
  'on its own': { imports: [ServiceModule] },
  'beside ConfigModule, for a provider': {
    imports: [ConfigModule.forRoot({ ignoreEnvFile: true }), ServiceModule],
    providers: [BankNames],
  },
  'in a feature, for a provider': {
    imports: [feature({ imports: [ServiceModule], providers: [BankNames] })],
  },
  'in a feature, before a named module': {
    imports: [feature({ imports: [ServiceModule] }), ServiceModule.forRoot({ name: 'ksa' })],
  },
  'in a feature, beside a global module': {
    imports: [ServiceModule.forRoot({ isGlobal: true }), feature({ imports: [ServiceModule] })],
  },
};

describe('imports: [ServiceModule], without forRoot()', () => {
  for (const [where, metadata] of Object.entries(BARE)) {
    it(`says what to import: ${where}`, async () => {
      const stubbed = Test.createTestingModule(metadata);
      stubService(stubbed);
      for (const builder of [Test.createTestingModule(metadata), stubbed]) {
        const error = await rejection(builder.compile());
        expect(error).toBeInstanceOf(ServiceConfigurationError);
        expect((error as ServiceConfigurationError).faults).toEqual([
          {
            option: 'imports',
            variable: undefined,
            message: expect.stringContaining('ServiceModule.forRoot()'),
          },
        ]);
      }
    });
  }

  it('is exported as the class where forRoot() is imported', async () => {
    const imports = [feature({ imports: [ServiceModule.forRoot()], exports: [ServiceModule] })];
    const builder = Test.createTestingModule({ imports, providers: [BankNames] });
    stubService(builder, { banks: { list: () => ['Alpha Bank'] } });
    const module = await builder.compile();
    expect(await module.get(BankNames).banks.list()).toEqual(['Alpha Bank']);
    await module.close();
  });

  it('is not refused where only ServiceTestingModule is imported', async () => {
    const imports = [ServiceTestingModule.forRoot({ named: { ksa: {} } })];
    const module = await Test.createTestingModule({ imports }).compile();
    expect(await module.get(BanksService).list()).toHaveLength(2);
    await module.close();
  });
});

interface Manifest {
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
}

/** Its type says that nobody sets it. */
const mutable = axios as { VERSION: string };

const manifestOf = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest;
const sandbox = { appToken: 'a1', urls: { sandboxUrl: 'https://sandbox.bank' } };

describe('The version of axios', () => {
  const installed = axios.VERSION;
  afterEach(() => {
    mutable.VERSION = installed;
  });

  it.each(['0.30.2', '1.7.9', '1.13.4', '1.13.4-beta.1'])('%s is too old', (version) => {
    expect(axiosFaults(version)).toEqual([
      { option: 'axios', message: expect.stringContaining(`version ${version} is too old`) },
    ]);
  });

  it.each(['1.13.5', '1.13.10', '1.21.0', '2.0.0', installed, undefined, '', 'mocked'])(
    '%s is not',
    (version) => {
      expect(axiosFaults(version)).toEqual([]);
    },
  );

  it('ends a start, beside what else is wrong', async () => {
    mutable.VERSION = '1.12.2';
    await expect(openService({ ...sandbox, appToken: '' }, undefined)).rejects.toMatchObject({
      name: 'ServiceConfigurationError',
      faults: [
        { option: 'axios', message: expect.stringMatching(/^version 1\.12\.2 .* npm i axios@1\.$/) },
        { option: 'appToken' },
      ],
    });
  });

  it('is in the first row of the doctor, with those of Node, NestJS and this package', async () => {
    const variables = { SERVICE_APP_TOKEN: 'a1', SERVICE_SANDBOX_URL: 'https://sandbox.bank' };
    const rowOf = async () => {
      const io = commandIo(variables);
      const code = await run(['--offline'], io);
      return { code, row: io.printed().split('\n').slice(0, 2).join('') };
    };
    expect(await rowOf()).toEqual({
      code: 0,
      row: expect.stringMatching(
        /^ok +versions +Node \d+\.\d+\.\d+, NestJS 1\d\.\d+\.\d+, axios 1\.\d+\.\d+, nestjs-service \d+\.\d+\.\d+\./,
      ),
    });
    mutable.VERSION = '1.12.2';
    expect(await rowOf()).toEqual({
      code: 1,
      row: expect.stringMatching(/^failed +versions .*axios 1\.12\.2.* too old.*-> .*npm i axios@1\.$/),
    });
  });

  it('that the range of package.json begins with is that of a consumer in CI', () => {
    expect(manifestOf('package.json').peerDependencies.axios).toBe(`^${OLDEST_AXIOS}`);
    expect(manifestOf('test/consumers/cjs-nest11/package.json').dependencies.axios).toBe(OLDEST_AXIOS);
  });
});
