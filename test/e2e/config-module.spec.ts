import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { HttpModule, HttpService } from '@nestjs/axios';
import { Global, Module, type DynamicModule, type ModuleMetadata } from '@nestjs/common';
import { ConfigModule, ConfigService, registerAs } from '@nestjs/config';
import {
  BanksService,
  getServiceToken,
  serviceConfig,
  ServiceConfigurationError,
  ServiceModule,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
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

describe('ServiceModule beside ConfigModule', () => {
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
  for (const [name, setup] of SETUPS) {
    for (const order of ['before', 'after'] as const) {
      it(`waits for what is loaded: ${name}, imported ${order} it`, async () => {
        const beside = await setup();
        const mine = ServiceModule.forRoot();
        const module = await start(order === 'before' ? [...beside, mine] : [mine, ...beside]);
        expect(await module.get(BanksService).list()).toBeDefined();
        expect(simulator.requests[0]?.headers['service-app-token']).toBe(simulator.appToken);
      });
    }
  }

  it('waits for one that forRootAsync imports, in its factory and for what the factory leaves out', async () => {
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

  it('calls a factory when also those ConfigModules are loaded that it does not inject from', async () => {
    const module = await start([
      ServiceModule.forRootAsync({
        inject: [ConfigService],
        useFactory: (configService: ConfigService) => ({
          ...options,
          appToken: configService.getOrThrow<string>('SERVICE_APP_TOKEN'),
        }),
      }),
      config({ isGlobal: true }),
      config({ load: [flat] }),
    ]);
    expect(await module.get(BanksService).list()).toBeDefined();
  });

  it("reads a host's own ConfigService, with and without ConfigModule", async () => {
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

  it('reads what validate made of the variables', async () => {
    setVariables({ SERVICE_HTTP_TIMEOUT: 'soon' });
    const module = await start([
      config({ load: [namespace], validate: (found) => ({ ...found, SERVICE_HTTP_TIMEOUT: 5_000 }) }),
      ServiceModule.forRoot(),
    ]);
    expect(await module.get(BanksService).list()).toBeDefined();
  });

  it('reads serviceConfig, globally loaded or by forFeature', async () => {
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
    "leaves a host's own namespace 'service' alone: %j",
    async (own) => {
      const beside = config({ isGlobal: true, load: [registerAs('service', () => own as object)] });
      const module = await start([beside, ServiceModule.forRoot(options)]);
      expect(await module.get(BanksService).list()).toBeDefined();
      if (!Array.isArray(own)) expect(module.get(ConfigService).get('service')).toEqual(own);
    },
  );

  it("names the namespace where there are faults, as it may be the host's own", async () => {
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
      /^The configuration of ServiceModule is not usable. It reads the namespace 'service' \(registerAs\) too; if yours has another purpose, give it another name:/,
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

  it("reads 'service-<name>' for a named module, and nothing else", async () => {
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

  for (const order of ['before', 'after'] as const) {
    it(`shows a factory the same ConfigService as HttpModule.registerAsync, imported ${order} it`, async () => {
      const seen: Record<string, unknown[]> = { http: [], service: [] };
      const look = <T>(who: string, result: T) => {
        return (configService: ConfigService): T => {
          seen[who]?.push(configService, configService.get('remote.url'), configService.get('FLAT'));
          return result;
        };
      };
      const mine = [
        HttpModule.registerAsync({ inject: [ConfigService], useFactory: look('http', {}) }),
        ServiceModule.forRootAsync({ inject: [ConfigService], useFactory: look('service', options) }),
      ];
      const theirs = config({
        isGlobal: true,
        load: [
          registerAs('remote', () => later({ url: 'https://remote.example' })),
          () => later({ FLAT: 1 }),
        ],
      });
      const module = await start(order === 'before' ? [theirs, ...mine] : [...mine, theirs]);
      expect(seen.service).toEqual([module.get(ConfigService), 'https://remote.example', 1]);
      expect(seen.service[0]).toBe(seen.http[0]);
      expect(seen.http.slice(1)).toEqual(seen.service.slice(1));
      expect(module.get(HttpService)).toBeDefined();
    });
  }

  for (const order of ['before', 'after'] as const) {
    it(`lets a factory inject ConfigService from a ConfigModule beside it, imported ${order} it`, async () => {
      const mine = ServiceModule.forRootAsync({
        inject: [ConfigService],
        useFactory: (configService: ConfigService) => ({
          ...options,
          appToken: configService.getOrThrow<string>('SERVICE_APP_TOKEN'),
        }),
      });
      const theirs = config({ load: [flat] });
      const module = await start(order === 'before' ? [theirs, mine] : [mine, theirs]);
      expect(await module.get(BanksService).list()).toBeDefined();
    });
  }

  it('lets a factory name ConfigService as Nest spells a dependency that may be missing, or not', async () => {
    for (const optional of [true, false]) {
      const mine = ServiceModule.forRootAsync({
        inject: [{ token: ConfigService, optional }],
        useFactory: (configService?: ConfigService) => ({
          ...options,
          appToken: configService?.get<string>('SERVICE_APP_TOKEN'),
        }),
      });
      const module = await start([config({ load: [flat] }), mine]);
      expect(await module.get(BanksService).list()).toBeDefined();
    }
    const seen: unknown[] = [];
    await start([
      ServiceModule.forRootAsync({
        inject: [{ token: ConfigService, optional: true }],
        useFactory: (configService?: ConfigService) => (seen.push(configService), options),
      }),
    ]);
    expect(seen).toEqual([undefined]);
  });

  it('says so where a factory injects ConfigService and there is no ConfigModule', async () => {
    const mine = ServiceModule.forRootAsync({ inject: [ConfigService], useFactory: () => ({}) });
    const error = await failure([mine]);
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect(error.message).toMatch(/does not import ConfigModule/);
  });

  it('works without ConfigModule: options in code, and the variables of the process', async () => {
    setVariables({ SERVICE_APP_TOKEN: simulator.appToken });
    const module = await start([ServiceModule.forRoot({ ...options, appToken: undefined })]);
    expect(await module.get(BanksService).list()).toBeDefined();
  });

  it('says that no ConfigModule is imported where something is missing', async () => {
    for (const given of [{}, { ...options, appToken: undefined }]) {
      const error = await failure([ServiceModule.forRoot(given)]);
      expect(error).toBeInstanceOf(ServiceConfigurationError);
      expect(error.message).toMatch(/does not import ConfigModule/);
      const other = await failure([config({}), ServiceModule.forRoot(given)]);
      expect(other.message).not.toMatch(/does not import/);
    }
  });

  it('says so where a validate of ConfigModule hides what .env has', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'validate-'));
    const before = process.cwd();
    process.chdir(folder);
    try {
      await writeFile(
        '.env',
        'PORT=1\nSERVICE_APP_TOKEN=a1\nSERVICE_SANDBOX_URL=https://sandbox.bank\nSERVICE_BASE_URL=\n',
      );
      const validate = ({ PORT }: Record<string, unknown>) => ({ PORT });
      const hidden = await failure([ConfigModule.forRoot({ validate }), ServiceModule.forRoot()]);
      expect(hidden.message).toMatch(
        /^ServiceModule found no SERVICE_\* variable; .*\. \.env has SERVICE_APP_TOKEN and 1 more, and ConfigModule does not give them: .*z\.looseObject/,
      );
      expect(hidden.message).toMatch(/envFilePath names another file/);
      expect(hidden.message).not.toContain('Check that .env');
      delete process.env.PORT;
      await writeFile('.env', 'PORT=1\n');
      const without = await failure([ServiceModule.forRoot()]);
      expect(without.message).toMatch(/does not import ConfigModule/);
      // As dotenv or node --env-file.
      setVariables({ PORT: '1' });
      const loaded = await failure([ServiceModule.forRoot()]);
      expect(loaded.message).not.toMatch(/ConfigModule|\.\. /);
    } finally {
      process.chdir(before);
      delete process.env.PORT;
      await rm(folder, { recursive: true });
    }
  });

  it('rejects with what a load function throws', async () => {
    const sealed = (): Promise<never> =>
      later(null).then(() => Promise.reject(new Error('the vault is sealed')));
    for (const isGlobal of [true, false]) {
      const error = await failure([ServiceModule.forRoot(options), config({ isGlobal, load: [sealed] })]);
      expect(error.message).toBe('the vault is sealed');
    }
  });
});
