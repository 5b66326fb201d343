import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  Inject,
  Injectable,
  Logger,
  Module,
  type DynamicModule,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import { ConfigModule, registerAs } from '@nestjs/config';
import { LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import {
  BanksService,
  createServiceClient,
  CustomersService,
  getServiceOptionsToken,
  getServiceToken,
  InjectService,
  LinkSdkService,
  serviceConfig,
  ServiceAuthService,
  ServiceCertificateError,
  ServiceConfigurationError,
  ServiceHttpService,
  ServiceModule,
  ServiceStartupError,
  type ServiceModuleOptions,
  type ServiceOptionsFactory,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { type StartableClient } from '../../lib/engine/create-client.js';
import { CLIENT } from '../../lib/module/providers.js';
import { CollectingLogger, secretsIn } from '../helpers/secret-scan.js';
import { startSimulator } from '../helpers/simulators.js';
import { modulesOfBlock, rejection } from '../helpers/start-module.js';
import { TimerCount } from '../helpers/timer-count.js';

let simulator: ServiceSimulator;
/** Another service, with certificates of its own. */
let other: ServiceSimulator;
let folder: string;
const { start, setVariables } = modulesOfBlock();

beforeAll(async () => {
  [simulator, other] = await Promise.all([startSimulator(), ServiceSimulator.start()]);
  folder = await mkdtemp(join(tmpdir(), 'module-'));
});
afterEach(() => {
  for (const each of [simulator, other]) {
    each.clearFaults();
    each.clearRequests();
  }
});
afterAll(async () => {
  await Promise.all([simulator.stop(), other.stop(), rm(folder, { recursive: true })]);
});

const mtls = { environment: 'production', authentication: 'mtls' } as const;
const facesOf = ({ requests }: ServiceSimulator) => requests.map(({ face }) => face);

/** Options for mTLS with the certificate and key in files, which the module watches. */
async function fileOptions() {
  const { tls, ...options } = simulator.moduleOptions(mtls);
  const [certificate, privateKey] = ['tls.crt', 'tls.key'].map((name) => ({ file: join(folder, name) }));
  await writeFile(certificate.file, tls.certificate as string);
  await writeFile(privateKey.file, tls.privateKey as string);
  return { ...options, tls: { ...tls, certificate, privateKey } };
}

/** Runs a test with real timers and counts those that are active. */
async function withTimerCount(test: (timers: TimerCount) => Promise<void>): Promise<void> {
  const timers = new TimerCount();
  try {
    await test(timers);
  } finally {
    timers.restore();
  }
}

describe('ServiceModule', () => {
  it('ServiceModule reads the SERVICE_* variables, with and without ConfigModule.forRoot()', async () => {
    setVariables(simulator.env({ ...mtls, oauth: true }));
    for (const beside of [[ConfigModule.forRoot({ ignoreEnvFile: true })], []]) {
      const module = await start({ imports: [...beside, ServiceModule.forRoot()] });
      expect(await module.get(BanksService).list()).toBeDefined();
      const { certificate } = module.get(ServiceAuthService);
      expect(certificate?.fingerprint256).toBe(simulator.application.fingerprint256);
    }
    expect(facesOf(simulator)).toEqual(['base', 'base']);
  });

  it('explicit options override the config namespace, which overrides the variables, key by key', async () => {
    const { urls, appToken, tls } = simulator.moduleOptions({ environment: 'sandbox' });
    setVariables({
      SERVICE_APP_TOKEN: 'from-variable',
      SERVICE_SANDBOX_URL: urls.sandboxUrl as string,
      SERVICE_TLS_CHAIN: tls.chain,
    });
    const own = registerAs('service', () => ({
      appToken: 'from-namespace',
      urls: { sandboxUrl: 'https://x.invalid' },
    }));
    const { sandboxUrl } = urls;
    for (const [namespace, options, sent] of [
      [own, { urls: { sandboxUrl }, appToken: undefined }, 'from-namespace'],
      [serviceConfig, { appToken }, appToken],
    ] as const) {
      const config = ConfigModule.forRoot({ ignoreEnvFile: true, isGlobal: true, load: [namespace] });
      const module = await start({ imports: [config, ServiceModule.forRoot(options)] });
      await module
        .get(BanksService)
        .list()
        .catch(() => undefined);
      expect(simulator.requests.at(-1)?.headers['service-app-token']).toBe(sent);
    }
  });

  it('forRootAsync takes options from useFactory with inject and extraProviders, from useClass and from useExisting', async () => {
    const options = simulator.moduleOptions({ environment: 'sandbox' });
    @Injectable()
    class Vault implements ServiceOptionsFactory {
      async createServiceOptions(): Promise<ServiceModuleOptions> {
        return options;
      }
    }
    @Module({ providers: [Vault], exports: [Vault] })
    class VaultModule {}
    const modules: DynamicModule[] = [
      ServiceModule.forRootAsync({
        extraProviders: [Vault],
        inject: [Vault],
        useFactory: (vault: Vault) => vault.createServiceOptions(),
      }),
      ServiceModule.forRootAsync({ useClass: Vault }),
      ServiceModule.forRootAsync({ imports: [VaultModule], useExisting: Vault }),
    ];
    for (const module of modules) await (await start({ imports: [module] })).get(BanksService).list();
    expect(simulator.requests).toHaveLength(3);
  });

  it('a wrong factory or module name is rejected with an error that says what is wrong', async () => {
    for (const options of [{}, { useFactory: 5 }, undefined, null]) {
      expect(() => ServiceModule.forRootAsync(options as never)).toThrow(ServiceConfigurationError);
    }
    expect(() => ServiceModule.forRoot(null as never)).toThrow(ServiceConfigurationError);
    expect(() => ServiceModule.forRoot({ name: 'a b' })).toThrow(/must begin with a letter/);
    const returning = (useFactory: () => never) =>
      start({ imports: [ServiceModule.forRootAsync({ useFactory })] });
    await expect(returning(() => undefined as never)).rejects.toThrow(/factory returned no object/);
    const sealed = () => {
      throw new Error('the vault is sealed');
    };
    await expect(returning(sealed)).rejects.toThrow('the vault is sealed');
  });

  it('startup fails with a ServiceCertificateError if all faults concern certificates', async () => {
    const options = simulator.moduleOptions({ environment: 'production' });
    const given = { ...options, tls: { ...options.tls, chain: 'garbage' } };
    const error = await rejection(start({ imports: [ServiceModule.forRoot(given)] }));
    expect(error).toBeInstanceOf(ServiceCertificateError);
    expect(error).toMatchObject({
      code: 'invalid_certificate',
      faults: [{ option: 'tls.chain', variable: 'SERVICE_TLS_CHAIN' }],
    });
  });

  it('ServiceModule is global only with isGlobal: true', async () => {
    @Injectable()
    class Feature {
      constructor(@Inject(BanksService) readonly banks: BanksService) {}
    }
    @Module({ providers: [Feature] })
    class FeatureModule {}
    const startWith = (isGlobal: boolean) => {
      const options = { ...simulator.moduleOptions({ environment: 'sandbox' }), isGlobal };
      return start({ imports: [ServiceModule.forRoot(options), FeatureModule] });
    };
    const module = await startWith(true);
    expect(module.get(Feature, { strict: false }).banks).toBeInstanceOf(BanksService);
    await expect(startWith(false)).rejects.toThrow(/BanksService/);
  });

  it('a named ServiceModule has its own variables and its own providers', async () => {
    @Injectable()
    class Feature {
      constructor(
        @InjectService(BanksService, 'ksa') readonly ksa: BanksService,
        @InjectService(BanksService) readonly banks: BanksService,
      ) {}
    }
    setVariables(simulator.env({ environment: 'sandbox' }));
    setVariables(
      other.env({ environment: 'sandbox', authentication: 'oauth', clientCertificate: false, name: 'ksa' }),
    );
    const module = await start({
      imports: [ServiceModule.forRoot(), ServiceModule.forRoot({ name: 'ksa' })],
      providers: [Feature],
    });
    const { ksa, banks } = module.get(Feature);
    await banks.list();
    await ksa.list();
    expect(facesOf(simulator)).toEqual(['sandbox']);
    expect(facesOf(other)).toEqual(['token', 'sandbox']);
    expect(module.get(getServiceToken(BanksService, 'ksa'))).toBe(ksa);
    for (const type of [
      BanksService,
      CustomersService,
      LinkSdkService,
      ServiceHttpService,
      ServiceAuthService,
    ] as Type[]) {
      expect(module.get(getServiceToken(type, 'ksa'))).not.toBe(module.get(type));
    }
  });

  it.each(['forRoot', 'forRootAsync'] as const)(
    '%s logs one line at startup, and neither that line nor an inspected provider shows a secret',
    async (method) => {
      const logger = new CollectingLogger();
      const options = simulator.moduleOptions({ ...mtls, oauth: true });
      const mine =
        method === 'forRoot'
          ? ServiceModule.forRoot(options)
          : ServiceModule.forRootAsync({ useFactory: async () => options });
      const app = await start({ imports: [mine] }, logger);
      const lines = logger.linesOf('ServiceModule');
      expect(lines).toEqual([
        expect.stringMatching(/^production, mtls: calls go to https:.*days left; tokens from/),
      ]);
      await app.get(LinkSdkService).connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
      await app.get(BanksService).list();
      const { accessToken } = await app.get(ServiceAuthService).getCustomerToken('c-1');
      const secrets = {
        accessToken,
        appToken: options.appToken,
        clientSecret: simulator.clientSecret,
        privateKey: options.tls.privateKey as string,
      };
      const container = app.get(ModulesContainer);
      const mineInIt = [...container.values()].filter(({ metatype }) => metatype === ServiceModule);
      const instances = mineInIt.flatMap(({ providers }) =>
        [...providers.values()].map(({ instance }) => instance),
      );
      expect(instances.length).toBeGreaterThan(10);
      // Inspecting takes half a second or more, so each case inspects either the providers or the whole container.
      for (const printed of method === 'forRoot' ? instances : [container]) {
        const text = inspect(printed, { depth: 12, showHidden: true });
        expect(secretsIn(lines.join() + text, secrets)).toEqual([]);
      }
    },
  );

  it('the log says once that {oauth_base_url} will be deprecated, but only if calls go there', async () => {
    for (const oauthBaseUrl of [true, false]) {
      const logger = new CollectingLogger();
      const options = simulator.moduleOptions({ authentication: 'oauth', oauthBaseUrl });
      const module = await start({ imports: [ServiceModule.forRoot(options)] }, logger);
      await module.get(BanksService).list();
      const deprecations = logger.lines.filter((line) => /deprecated/.test(String(line)));
      expect(deprecations).toHaveLength(oauthBaseUrl ? 1 : 0);
    }
  });

  it('httpsAgent gives other HTTP clients the same mTLS identity', async () => {
    const module = await start({ imports: [ServiceModule.forRoot(simulator.moduleOptions(mtls))] });
    const { httpsAgent: agent } = module.get(ServiceAuthService);
    const headers = { 'service-app-token': simulator.appToken };
    const status = await new Promise((resolve, reject) => {
      get(`${simulator.urls.baseUrl}/banks/v1`, { agent, headers }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
      }).on('error', reject);
    });
    expect(status).toBe(200);
    expect(simulator.requests[0]?.certificateSubject).toEqual(simulator.application.subject);
  });
});

describe("Nest's overrideProvider", () => {
  @Injectable()
  class Vault {
    read(): never {
      throw new Error('The vault was asked');
    }
  }
  @Module({
    imports: [
      ServiceModule.forRoot(),
      ServiceModule.forRootAsync({
        name: 'ksa',
        extraProviders: [Vault],
        inject: [Vault],
        useFactory: (vault: Vault) => vault.read(),
      }),
    ],
  })
  class AppModule {}

  it("overrideProvider replaces the options of each module without calling the module's factory", async () => {
    const module = await Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(getServiceOptionsToken())
      .useValue(simulator.moduleOptions())
      .overrideProvider(getServiceOptionsToken('ksa'))
      .useFactory({ factory: () => other.moduleOptions({ environment: 'sandbox' }) })
      .compile();
    await module.get(BanksService).list();
    await module.get<BanksService>(getServiceToken(BanksService, 'ksa'), { strict: false }).list();
    await module.get(BanksService).list();
    expect(facesOf(simulator)).toEqual(['base', 'base']);
    expect(facesOf(other)).toEqual(['sandbox']);
    await module.close();
  });

  it('overriding BanksService alone fails with a message that recommends stubService(builder)', async () => {
    const compiling = Test.createTestingModule({ imports: [ServiceModule.forRoot()] })
      .overrideProvider(BanksService)
      .useValue({ list: () => [] })
      .compile();
    await expect(compiling).rejects.toThrow(
      /^ServiceModule found no SERVICE_\* variable\. In a test, use stubService\(builder\)/,
    );
  });
});

describe('createServiceClient', () => {
  const logger = new CollectingLogger();
  beforeAll(() => Logger.overrideLogger(logger));
  afterAll(() => Logger.overrideLogger(false));

  it('createServiceClient makes clients without Nest, each with its own tokens, connections and certificate', async () => {
    const services = [simulator, other];
    const clients = await Promise.all(
      services.map((of) => createServiceClient(of.moduleOptions({ environment: 'production', oauth: true }))),
    );
    for (const [index, of] of services.entries()) {
      const client = clients[index];
      expect(await client.banks.list()).toHaveLength(10);
      await client.customers.create({ app_user_id: randomUUID() });
      await client.http.get('/banks/v1');
      const parameters = await client.sdk.sessionParameters({ customer_id: 'c-1' });
      expect(Object.keys(parameters)).toEqual(['app_token', 'access_token', 'customer_id']);
      const { fingerprint256 } = of.application;
      expect(client.auth.certificate?.fingerprint256).toBe(fingerprint256);
      const sent = of.apiRequests.map(({ certificateFingerprint256 }) => certificateFingerprint256);
      expect(sent).toEqual(Array(3).fill(fingerprint256));
      expect(of.tokenRequests).toHaveLength(1);
    }
    const [a, b] = clients;
    expect(a.auth.httpsAgent).not.toBe(b.auth.httpsAgent);
    expect(Object.keys(a).sort()).toEqual([
      'auth',
      'banks',
      'close',
      'customers',
      'health',
      'http',
      'sdk',
      'webhooks',
    ]);
    expect(logger.linesOf('ServiceClient')[0]).toMatch(/^production, mtls: calls go to/);
    await Promise.all(clients.map(({ close }) => close()));
  });

  it('createServiceClient reads no environment variable and names none in its errors', async () => {
    setVariables({ SERVICE_APP_TOKEN: 'of-another' });
    const { appToken: _, ...options } = simulator.moduleOptions({ environment: 'sandbox' });
    const error = (await rejection(createServiceClient(options))) as ServiceConfigurationError;
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect(error.message).toMatch(
      /^The options of createServiceClient\(\) are not usable:\n {2}- appToken: is missing/,
    );
    expect(error.message).not.toMatch(/SERVICE_|ConfigModule/);
    await expect(createServiceClient(undefined as never)).rejects.toThrow(/takes an object of options/);
  });

  it('errors about options from serviceConfig() name their variables, also if code adds other options', async () => {
    const { SERVICE_APP_TOKEN: _, ...variables } = simulator.env({ environment: 'sandbox' });
    const both = { SERVICE_CLIENT_SECRET: 'secret', SERVICE_CLIENT_SECRET_FILE: '/nowhere' };
    setVariables({ ...variables, ...both, SERVICE_HTTP_RETRIES: 'two' });
    const http = { timeout: 60_000 };
    for (const options of [
      serviceConfig(),
      { ...serviceConfig(), linkSdk: {}, name: 'ksa' },
      { ...serviceConfig(), http },
    ]) {
      const { message } = (await rejection(createServiceClient(options))) as ServiceConfigurationError;
      expect(message).toMatch(/\n {2}- appToken \(SERVICE_APP_TOKEN\): is missing/);
      expect(message).toMatch(/SERVICE_CLIENT_SECRET and SERVICE_CLIENT_SECRET_FILE are both set/);
      if (options.http !== http) expect(message).toMatch(/- http\.retries \(SERVICE_HTTP_RETRIES\): /);
      expect(message).not.toMatch(/ConfigModule/);
    }
  });

  it('the hint of a failed call names the variables if the options came from serviceConfig()', async () => {
    setVariables(simulator.env({ environment: 'sandbox' }));
    const { banks, close } = await createServiceClient({ ...serviceConfig(), http: { retries: 0 } });
    simulator.fail({ path: '/banks/v1', fault: { status: 401, json: {} } });
    expect(await rejection(banks.list())).toMatchObject({
      hint: expect.stringContaining('appToken (SERVICE_APP_TOKEN)'),
    });
    await close();
  });

  it('createServiceClient checks options and certificates and runs the startup check, like the module', async () => {
    const options = simulator.moduleOptions({ environment: 'production' });
    const tls = { ...options.tls, privateKey: other.application.privateKey };
    expect(await rejection(createServiceClient({ ...options, tls }))).toBeInstanceOf(ServiceCertificateError);
    await expect(createServiceClient({ ...options, isGlobal: true } as never)).rejects.toThrow(
      /isGlobal: is not an option/,
    );
    await withTimerCount(async (timers) => {
      const before = timers.running;
      const wrong: ServiceModuleOptions = { ...options, appToken: 'wrong', startupCheck: 'fail' };
      expect(await rejection(createServiceClient(wrong))).toBeInstanceOf(ServiceStartupError);
      expect(timers.running).toBe(before);
    });
    simulator.clearRequests();
    const client = await createServiceClient({ ...options, startupCheck: 'fail' });
    expect(simulator.apiRequests).toHaveLength(1);
    await client.close();
  });

  it('a client reloads its certificate files, and close() gives running calls a grace period and leaves no timer', async () => {
    await withTimerCount(async (timers) => {
      const before = timers.running;
      const options = await fileOptions();
      const client = await createServiceClient({ ...options, http: { shutdownTimeout: 200, retries: 0 } });
      const renewed = await simulator.issueCertificate();
      await writeFile(options.tls.certificate.file, renewed.certificate);
      await writeFile(options.tls.privateKey.file, renewed.privateKey);
      expect(await client.auth.reloadCertificate()).toBe(true);
      await client.banks.list();
      expect(simulator.apiRequests[0].certificateFingerprint256).toBe(renewed.fingerprint256);
      simulator.fail({ path: '/slow', fault: { delayMs: 100 } });
      simulator.fail({ path: '/hangs', fault: 'hang' });
      const slow = rejection(client.http.get('/slow'));
      const hangs = rejection(client.http.get('/hangs'));
      for (const path of ['/slow', '/hangs'])
        await simulator.waitForRequest((request) => request.path === path);
      await client.close();
      expect(await slow).toMatchObject({ status: 404 });
      expect(await hangs).toMatchObject({ kind: 'closed' });
      expect(await rejection(client.banks.list())).toMatchObject({ kind: 'closed' });
      expect(timers.running).toBe(before);
    });
  });
});

describe('start of a ServiceModule', () => {
  it.each<[string, (serviceModule: DynamicModule) => Type]>([
    [
      'in the constructor of another provider',
      (serviceModule) => {
        @Injectable()
        class Feature {
          constructor(@Inject(BanksService) _banks: BanksService) {
            throw new Error('the host fails');
          }
        }
        @Module({ imports: [serviceModule], providers: [Feature] })
        class FeatureModule {}
        return FeatureModule;
      },
    ],
    [
      "in another module's onModuleInit",
      (serviceModule) => {
        @Module({ imports: [serviceModule] })
        class FeatureModule implements OnModuleInit {
          onModuleInit(): void {
            throw new Error('the host fails');
          }
        }
        return FeatureModule;
      },
    ],
  ])('ServiceModule leaves no timer behind if the host application fails %s', async (_, make) => {
    const logger = new CollectingLogger();
    await withTimerCount(async (timers) => {
      const module = make(ServiceModule.forRoot(await fileOptions()));
      await expect(start({ imports: [module] }, logger)).rejects.toThrow('the host fails');
      expect(timers.running).toBe(0);
    });
    expect(logger.lines.join('\n')).not.toMatch(/certificate/);
  });

  it('ServiceModule watches its certificate files from the start of the application until it closes', async () => {
    await withTimerCount(async (timers) => {
      const builder = Test.createTestingModule({ imports: [ServiceModule.forRoot(await fileOptions())] });
      const module = await builder.setLogger(new CollectingLogger()).compile();
      expect(timers.running).toBe(0);
      await module.init();
      expect(timers.running).toBeGreaterThan(0);
      await module.close();
      expect(timers.running).toBe(0);
    });
  });

  describe('the first call before Nest has initialised the application', () => {
    const WARNING =
      /^The first call came before Nest has initialised .*so (.+) did not begin\..* call await app\.init\(\)/;
    const startHybrid = async (options: ServiceModuleOptions, isGlobal = false) => {
      const logger = new CollectingLogger();
      const builder = Test.createTestingModule({
        imports: [ServiceModule.forRoot({ ...options, isGlobal })],
      });
      const app = (await builder.setLogger(logger).compile()).createNestApplication({ logger });
      const strategy = {
        listen: (done: () => void) => done(),
        close: () => undefined,
        setTransportId: () => undefined,
      };
      app.connectMicroservice({ strategy });
      return { app, warnings: () => logger.linesOf('ServiceModule').filter((line) => WARNING.test(line)) };
    };

    it.each<[string, ServiceModuleOptions]>([
      ['the start-up check', { startupCheck: 'warn' }],
      ['the scheduled renewal of tokens', { oauth: { refresh: 'scheduled' } }],
      [
        'the start-up check and the scheduled renewal of tokens',
        { startupCheck: 'fail', oauth: { refresh: 'scheduled' } },
      ],
    ])('warns once, in a hybrid application without init(): %s', async (missing, changes) => {
      const given = simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' });
      const { app, warnings } = await startHybrid({
        ...given,
        ...changes,
        oauth: { ...given.oauth, ...changes.oauth },
      });
      await app.startAllMicroservices();
      for (let call = 0; call < 2; call += 1) await app.get(BanksService).list();
      expect(warnings().map((line) => WARNING.exec(line)?.[1])).toEqual([missing]);
      await app.close();
    });

    it('warns of nothing if there is nothing to begin, or after init()', async () => {
      const given = simulator.moduleOptions({ environment: 'sandbox' });
      for (const startupCheck of ['off', 'warn'] as const) {
        const { app, warnings } = await startHybrid({ ...given, startupCheck });
        if (startupCheck === 'warn') await app.init();
        await app.startAllMicroservices();
        await app.get(BanksService).list();
        expect(warnings()).toEqual([]);
        await app.close();
      }
    });

    it.each([true, false])(
      'warns of no call in an onModuleInit() of the host: isGlobal %s',
      async (isGlobal) => {
        const service = ServiceModule.forRoot({
          ...simulator.moduleOptions({ environment: 'sandbox' }),
          startupCheck: 'warn',
          isGlobal,
        });
        @Module({ imports: isGlobal ? [] : [service] })
        class Feature implements OnModuleInit {
          constructor(private readonly banks: BanksService) {}

          async onModuleInit(): Promise<void> {
            await this.banks.list();
          }
        }
        const logger = new CollectingLogger();
        await start({ imports: [Feature, service] }, logger);
        expect(simulator.apiRequests.length).toBeGreaterThan(1);
        expect(logger.lines.filter((line) => WARNING.test(String(line)))).toEqual([]);
      },
    );
  });

  it('a lazily loaded ServiceModule watches its certificate files from its first call until its client is closed', async () => {
    const app = await start({});
    const options = { ...(await fileOptions()), startupCheck: 'fail' as const };
    // Fake only setTimeout and setInterval: connections and files are real.
    jest.useFakeTimers({
      doNotFake: ['Date', 'performance', 'hrtime', 'nextTick', 'queueMicrotask', 'setImmediate'],
    });
    try {
      const loaded = await app.get(LazyModuleLoader).load(() => ServiceModule.forRoot(options));
      expect(jest.getTimerCount()).toBe(0);
      await loaded.get(BanksService).list();
      expect(simulator.requests).toHaveLength(1);
      expect(jest.getTimerCount()).toBeGreaterThan(1);
      // Nest does not call the shutdown hooks of a lazily loaded module either.
      await app.close();
      expect(jest.getTimerCount()).toBeGreaterThan(0);
      await loaded.get<StartableClient>(CLIENT).close();
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });
});
