import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { HttpModule, HttpService } from '@nestjs/axios';
import { Global, Module, type DynamicModule, type ModuleMetadata } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { ConfigModule, ConfigService, registerAs } from '@nestjs/config';
import {
  BanksService,
  getServiceToken,
  serviceConfig,
  ServiceConfigurationError,
  ServiceExceptionFilter,
  ServiceModule,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { type ServiceSimulator, stubService } from 'nestjs-service/testing';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { modulesOfBlock } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

type Imports = NonNullable<ModuleMetadata['imports']>;
type ConfigSettings = NonNullable<Parameters<typeof ConfigModule.forRoot>[0]>;

/** Answers after some time, as a vault does. */
async function later<T>(value: T): Promise<T> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  return value;
}

describe('ServiceModule with ConfigModule', () => {
  let simulator: ServiceSimulator;
  let options: ServiceModuleOptions;
  const { start: startHost, setVariables } = modulesOfBlock();
  const start = (imports: Imports) => startHost({ imports });

  beforeAll(async () => {
    simulator = await startSimulator();
    options = simulator.moduleOptions({ environment: 'sandbox' });
  });
  afterEach(() => simulator.clearRequests());
  afterAll(() => simulator.stop());

  const config = (settings: ConfigSettings): Promise<DynamicModule> =>
    ConfigModule.forRoot({ ignoreEnvFile: true, ...settings });

  const failure = async (imports: Imports): Promise<Error> => {
    const error: unknown = await start(imports).catch((reason: unknown) => reason);
    if (error instanceof Error) return error;
    throw new Error('it started');
  };

  /** Each loads what forRoot() needs, asynchronously. */
  const namespace = registerAs('service', () => later(options));
  const flat = (): Promise<Record<string, unknown>> =>
    later({ SERVICE_APP_TOKEN: simulator.appToken, SERVICE_SANDBOX_URL: simulator.urls.sandboxUrl });
  const chain = registerAs('service', () => later({ tls: options.tls }));

  const FeatureConfig = (): DynamicModule => {
    @Module({ imports: [ConfigModule.forFeature(namespace)] })
    class Feature {}
    return { module: Feature };
  };

  const SETUPS: [string, () => Imports | Promise<Imports>][] = [
    ['a global ConfigModule', () => [config({ isGlobal: true, load: [namespace] })]],
    ['one that is imported beside it', () => [config({ load: [namespace] })]],
    ['forFeature', () => [config({}), ConfigModule.forFeature(namespace)]],
    ['forFeature of another module', () => [config({ isGlobal: true }), FeatureConfig()]],
    ['cache', () => [config({ load: [namespace], cache: true })]],
    ['skipProcessEnv', () => [config({ isGlobal: true, load: [namespace], skipProcessEnv: true })]],
    ['validate', () => [config({ load: [namespace], validate: (found) => found })]],
    ['several of them', () => [config({ load: [flat] }), config({ load: [chain] })]],
  ];
  it.each(SETUPS)('waits for what ConfigModule loads, wherever it is imported: %s', async (_, setup) => {
    for (const order of ['before', 'after']) {
      const beside = await setup();
      const mine = ServiceModule.forRoot();
      const module = await start(order === 'before' ? [...beside, mine] : [mine, ...beside]);
      expect(await module.get(BanksService).list()).toBeDefined();
      expect(simulator.requests.at(-1)?.headers['service-app-token']).toBe(simulator.appToken);
    }
  });

  it('waits for a ConfigModule that forRootAsync imports, in the factory and for options that the factory leaves out', async () => {
    const seen: unknown[] = [];
    const module = await start([
      ServiceModule.forRootAsync({
        imports: [config({ load: [flat] }), ConfigModule.forFeature(chain)],
        inject: [ConfigService],
        useFactory: (configService: ConfigService) => {
          seen.push(configService.get('SERVICE_APP_TOKEN'));
          return {};
        },
      }),
    ]);
    await module.get(BanksService).list();
    expect(seen).toEqual([simulator.appToken]);
  });

  it.each<[string, object, () => Imports]>([
    ['beside it', ConfigService, () => [config({ load: [flat] })]],
    [
      'of which only another is global',
      ConfigService,
      () => [config({ isGlobal: true }), config({ load: [flat] })],
    ],
    [
      'as one that may be missing',
      { token: ConfigService, optional: true },
      () => [config({ load: [flat] })],
    ],
    ['as one that may not', { token: ConfigService, optional: false }, () => [config({ load: [flat] })]],
  ])('lets a factory inject the ConfigService of a ConfigModule %s', async (_, inject, setup) => {
    for (const order of ['before', 'after']) {
      const mine = ServiceModule.forRootAsync({
        inject: [inject as typeof ConfigService],
        useFactory: (configService: ConfigService) => ({
          ...options,
          appToken: configService.getOrThrow<string>('SERVICE_APP_TOKEN'),
        }),
      });
      const module = await start(order === 'before' ? [...setup(), mine] : [mine, ...setup()]);
      expect(await module.get(BanksService).list()).toBeDefined();
    }
  });

  it('without ConfigModule injects no ConfigService if it is optional, and says so if it is required', async () => {
    const seen: unknown[] = [];
    const mine = (optional: boolean) =>
      ServiceModule.forRootAsync({
        inject: [{ token: ConfigService, optional }],
        useFactory: (configService?: ConfigService) => (seen.push(configService), options),
      });
    await start([mine(true)]);
    const needed = ServiceModule.forRootAsync({ inject: [ConfigService], useFactory: () => options });
    for (const each of [needed, mine(false)]) {
      const error = await failure([each]);
      expect(error).toBeInstanceOf(ServiceConfigurationError);
      expect(error.message).toMatch(
        /injects ConfigService, but the application does not import ConfigModule \(import ConfigModule\.forRoot/,
      );
    }
    expect(seen).toEqual([undefined]);
  });

  it("reads the application's own ConfigService, with and without ConfigModule", async () => {
    @Global()
    @Module({
      providers: [
        { provide: ConfigService, useValue: { get: (key: string) => ({ service: options })[key] } },
      ],
      exports: [ConfigService],
    })
    class OwnConfig {}
    for (const imports of [[OwnConfig], [OwnConfig, config({})]]) {
      const module = await start([...imports, ServiceModule.forRoot()]);
      expect(await module.get(BanksService).list()).toBeDefined();
    }
  });

  describe.each<[string, (name: PropertyKey) => unknown]>([
    ['has no methods', () => undefined],
    ['resolves to functions, as @golevelup/ts-jest does', () => () => () => undefined],
    ['answers undefined, as jest-mock-extended and sinon do', () => () => undefined],
    ['answers null, as ts-mockito does', () => () => null],
  ])('in a test with a mock of ConfigService that %s', (_, memberOf) => {
    const createMock = () =>
      new Proxy({}, { get: (_target, name) => (name === 'then' ? undefined : memberOf(name)) });
    const filter = { provide: APP_FILTER, useClass: ServiceExceptionFilter };
    const listOf = async (builder: ReturnType<typeof Test.createTestingModule>) => {
      const module = await builder.compile();
      const list = await module.get(BanksService).list();
      await module.close();
      return list;
    };

    it("reads the application's ConfigModule with useMocker(), also for the factory of forRootAsync", async () => {
      const mine = ServiceModule.forRootAsync({
        inject: [ConfigService],
        useFactory: (service: ConfigService) => ({ appToken: service.getOrThrow('SERVICE_APP_TOKEN') }),
      });
      for (const imports of [
        [config({ load: [namespace] }), ServiceModule.forRoot()],
        [config({ load: [flat, chain] }), mine],
      ]) {
        const builder = Test.createTestingModule({ imports, providers: [filter] }).useMocker(createMock);
        expect(await listOf(builder)).toHaveLength(10);
      }
    });

    it('reads the variables with useMocker() and no ConfigModule', async () => {
      setVariables(simulator.env({ environment: 'sandbox' }));
      const builder = Test.createTestingModule({ imports: [ServiceModule.forRoot()], providers: [filter] });
      expect(await listOf(builder.useMocker(createMock))).toHaveLength(10);
    });

    it('does not report options that nobody has set', async () => {
      const builder = Test.createTestingModule({ imports: [config({}), ServiceModule.forRoot()] });
      const overridden = builder.overrideProvider(ConfigService).useValue(createMock());
      await expect(overridden.compile()).rejects.toThrow(/^ServiceModule found no SERVICE_\* variable/);
    });
  });

  describe('with a ConfigService whose get() throws', () => {
    class UnknownKeyError extends Error {
      override readonly name = 'UnknownKeyError';
    }
    const configThat = (get: (key: string) => unknown) => {
      const asked: string[] = [];
      const service = { get: (key: string) => (asked.push(key), get(key)) };
      @Global()
      @Module({ providers: [{ provide: ConfigService, useValue: service }], exports: [ConfigService] })
      class StrictConfig {}
      return { imports: [StrictConfig, ServiceModule.forRoot()], asked };
    };
    const knowsOnly = (known: Record<string, unknown>) => (key: string) => {
      if (key in known) return known[key];
      throw new UnknownKeyError(`${key} is not known, and its secret is s3cret`);
    };

    it('reads the variables that it does not know from the process, and asks for each name once', async () => {
      const { SERVICE_APP_TOKEN, ...others } = simulator.env({ environment: 'sandbox' });
      setVariables(others);
      const { imports, asked } = configThat(knowsOnly({ SERVICE_APP_TOKEN }));
      const module = await start(imports);
      expect(await module.get(BanksService).list()).toHaveLength(10);
      expect(asked).toContain('SERVICE_APP_TOKEN');
      expect(asked).toHaveLength(new Set(asked).size);
    });

    it('that throws for everything reads the variables of the process, with stubService too', async () => {
      setVariables(simulator.env({ environment: 'sandbox' }));
      const { imports } = configThat(knowsOnly({}));
      const module = await start(imports);
      expect(await module.get(BanksService).list()).toHaveLength(10);
      setVariables({});
      const builder = Test.createTestingModule({ imports });
      stubService(builder, { banks: { list: () => ['a'] } });
      const stubbed = await builder.compile();
      expect(await stubbed.get(BanksService).list()).toEqual(['a']);
      await stubbed.close();
    });

    it('names the error in the fault of a missing option, without its text', async () => {
      const { SERVICE_APP_TOKEN: _, ...others } = simulator.env({ environment: 'sandbox' });
      setVariables(others);
      const error = await failure(configThat(knowsOnly({})).imports);
      expect(error.message).toMatch(
        /SERVICE_APP_TOKEN.* ConfigService\.get\(\) threw an error \(UnknownKeyError\)\./,
      );
      expect(error.message).not.toMatch(/s3cret/);
    });
  });

  it('reads the variables as validate() has returned them', async () => {
    setVariables({ SERVICE_HTTP_TIMEOUT: 'soon' });
    const module = await start([
      config({ load: [namespace], validate: (found) => ({ ...found, SERVICE_HTTP_TIMEOUT: 5_000 }) }),
      ServiceModule.forRoot(),
    ]);
    expect(await module.get(BanksService).list()).toBeDefined();
  });

  it('reads serviceConfig, loaded globally or by forFeature', async () => {
    setVariables(simulator.env({ environment: 'sandbox' }));
    for (const beside of [
      config({ isGlobal: true, load: [serviceConfig] }),
      ConfigModule.forFeature(serviceConfig),
    ]) {
      const module = await start([ServiceModule.forRoot(), beside]);
      expect(await module.get(BanksService).list()).toBeDefined();
    }
  });

  it.each([[{ port: 3000, url: 'https://x.invalid' }], [{ environment: undefined }], [['appToken']], [{}]])(
    "ignores a namespace 'service' that the application uses for something else: %j",
    async (own) => {
      const beside = config({ isGlobal: true, load: [registerAs('service', () => own as object)] });
      const module = await start([beside, ServiceModule.forRoot(options)]);
      expect(await module.get(BanksService).list()).toBeDefined();
      if (!Array.isArray(own)) expect(module.get(ConfigService).get('service')).toEqual(own);
    },
  );

  it('names the namespace if there are faults, because the application may use it for something else', async () => {
    const own = registerAs('service', () => ({
      name: 'billing',
      environment: 'dev',
      http: { port: 3000, retries: -1, timeout: -1 },
      tls: { chain: 'no PEM' },
    }));
    const given = { ...options, environment: undefined, tls: undefined, http: { timeout: -2 } };
    setVariables({ SERVICE_STARTUP_CHECK: 'maybe' });
    const error = await failure([config({ load: [own] }), ServiceModule.forRoot(given)]);
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    const { message, faults } = error as ServiceConfigurationError;
    expect(message).toMatch(
      /^The configuration of ServiceModule is not usable. It also reads the namespace 'service' \(registerAs\)\. If yours is meant for something else, rename it:/,
    );
    expect(faults.map(({ option }) => option).sort()).toEqual([
      'environment',
      'http.port',
      'http.retries',
      'http.timeout',
      'name',
      'startupCheck',
      'tls.chain',
    ]);
    expect(faults.find(({ option }) => option === 'name')?.message).toMatch(/belongs beside the options/);
  });

  it("reads only 'service-<name>' for a named module", async () => {
    const load = [
      registerAs('service', () => ({ appToken: 'of the other', environment: 'dev' })),
      registerAs('service-ksa', () => later(options)),
    ];
    const module = await start([config({ load }), ServiceModule.forRoot({ name: 'ksa' })]);
    expect(await module.get<BanksService>(getServiceToken(BanksService, 'ksa')).list()).toBeDefined();
    expect(simulator.requests[0]?.headers['service-app-token']).toBe(simulator.appToken);
    const bad = registerAs('service-ksa', () => ({ environment: 'dev' }));
    const error = await failure([
      config({ load: [bad] }),
      ServiceModule.forRoot({ ...options, name: 'ksa', environment: undefined }),
    ]);
    expect(error.message).toMatch(
      /namespace 'service-ksa' \(registerAs\).*\n.*environment \(SERVICE_KSA_ENVIRONMENT\): must be/,
    );
  });

  it('gives a factory the same ConfigService as HttpModule.registerAsync', async () => {
    const seen: Record<string, unknown[]> = { http: [], service: [] };
    const look = <T>(who: string, result: T) => {
      return (configService: ConfigService): T => {
        seen[who]?.push(configService, configService.get('remote.url'), configService.get('FLAT'));
        return result;
      };
    };
    const module = await start([
      HttpModule.registerAsync({ inject: [ConfigService], useFactory: look('http', {}) }),
      ServiceModule.forRootAsync({ inject: [ConfigService], useFactory: look('service', options) }),
      config({
        isGlobal: true,
        load: [
          registerAs('remote', () => later({ url: 'https://remote.example' })),
          () => later({ FLAT: 1 }),
        ],
      }),
    ]);
    expect(seen.service).toEqual([module.get(ConfigService), 'https://remote.example', 1]);
    expect(seen.http).toEqual(seen.service);
    expect(seen.http[0]).toBe(seen.service[0]);
    expect(module.get(HttpService)).toBeDefined();
  });

  describe('that reads .env', () => {
    let folder: string;
    const before = process.cwd();
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'env-'));
      process.chdir(folder);
    });
    afterEach(async () => {
      process.chdir(before);
      await rm(folder, { recursive: true });
    });

    /** Starts an application in a folder whose .env has these lines. Afterwards it unsets the variables that were read from this file. */
    async function messageWith(lines: string[], beside: () => Imports, name?: string): Promise<string> {
      await writeFile('.env', lines.join('\n'));
      const { message } = await failure([...beside(), ServiceModule.forRoot({ name })]);
      for (const line of lines) delete process.env[line.split('=')[0]];
      return message;
    }

    it('says so if validate() hides a variable of the file', async () => {
      const lines = [
        'PORT=1',
        'SERVICE_APP_TOKEN=a1',
        'SERVICE_SANDBOX_URL=https://sandbox.bank',
        'SERVICE_BASE_URL=',
      ];
      const validate = ({ PORT }: Record<string, unknown>) => ({ PORT });
      const message = await messageWith(lines, () => [ConfigModule.forRoot({ validate })]);
      expect(message).toMatch(
        /^ServiceModule found no SERVICE_\* variable\. .*\. \.env has SERVICE_APP_TOKEN \(and 1 more\), and ConfigModule does not give it\. .*z\.looseObject/,
      );
      expect(message).toMatch(/envFilePath may name another file/);
      expect(message).not.toContain('Check that .env');
    });

    it('says so if the file has no value for a variable of this module', async () => {
      const lines = ['PORT=1', 'SERVICE_APP_TOKEN=a', 'SERVICE_KSA_APP_TOKEN='];
      const message = await messageWith(lines, () => [ConfigModule.forRoot()], 'ksa');
      expect(message).toMatch(
        /^ServiceModule:ksa found no SERVICE_KSA_\* variable\. .*\. \.env in the working directory has no value for any of them: fill it in, or check the file that envFilePath names\./,
      );
      expect(message).not.toContain('Check that .env');
    });

    it('names skipProcessEnv if ConfigModule leaves out variables of the process', async () => {
      const beside = () => [ConfigModule.forRoot({ skipProcessEnv: true })];
      const skips =
        /\. SERVICE_APP_TOKEN is set, and ConfigModule does not give it: its option skipProcessEnv .* serviceConfig/;
      expect(await messageWith(['SERVICE_APP_TOKEN=a1'], beside)).toMatch(skips);
      setVariables({ SERVICE_APP_TOKEN: 'a1' });
      expect(await messageWith(['PORT=1'], beside)).toMatch(skips);
    });

    it('reads a PEM over several lines, whatever its last line looks like', async () => {
      // As node --env-file: the application imports no ConfigModule.
      const lines = [
        'SERVICE_TLS_CHAIN="-----BEGIN CERTIFICATE-----',
        'bG9uZwAA',
        'YQ==',
        '-----END CERTIFICATE-----"',
      ];
      const more = ['SERVICE_APP_TOKEN=a1'];
      setVariables({ SERVICE_TLS_CHAIN: lines.join('\n').slice(19, -1), SERVICE_APP_TOKEN: 'a1' });
      const message = await messageWith([...lines, ...more], () => []);
      expect(message).toMatch(/urls\.sandboxUrl \(SERVICE_SANDBOX_URL\): is missing/);
      expect(message).not.toContain('ConfigModule');
      // Without quotes, every reader takes the last line of base64 for a variable.
      setVariables({ SERVICE_TLS_CHAIN: '-----BEGIN CERTIFICATE-----', SERVICE_APP_TOKEN: 'a1' });
      const unquoted = [lines[0].replace('"', ''), 'YQ==', '-----END CERTIFICATE-----', ...more];
      expect(await messageWith(unquoted, () => [])).not.toContain('ConfigModule');
    });

    it('says which missing variable is set, but empty', async () => {
      // GitHub Actions sets an empty text for a secret that does not exist.
      const lines = ['SERVICE_APP_TOKEN=', 'PORT=1'];
      const message = await messageWith(lines, () => [ConfigModule.forRoot()]);
      expect(message).toMatch(/\(SERVICE_APP_TOKEN\): is missing: .*\. The variable is set, but empty\.$/m);
      expect(message).toMatch(/\(SERVICE_SANDBOX_URL\): is missing: .*\.$/m);
      expect(message.match(/is set, but empty/g)).toHaveLength(1);
    });

    it('says that ConfigModule is missing, unless the application has read the file by itself', async () => {
      expect(await messageWith(['PORT=1'], () => [])).toMatch(/does not import ConfigModule/);
      // As dotenv or node --env-file.
      setVariables({ PORT: '1' });
      expect(await messageWith(['PORT=1'], () => [])).not.toMatch(/ConfigModule|\.\. /);
    });
  });

  it('rejects with the error of a load function', async () => {
    const sealed = (): Promise<never> =>
      later(null).then(() => Promise.reject(new Error('the vault is sealed')));
    for (const isGlobal of [true, false]) {
      const error = await failure([ServiceModule.forRoot(options), config({ isGlobal, load: [sealed] })]);
      expect(error.message).toBe('the vault is sealed');
    }
  });
});
