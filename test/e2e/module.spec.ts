import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  Inject,
  Injectable,
  Module,
  type DynamicModule,
  type ModuleMetadata,
  type Type,
} from '@nestjs/common';
import { ConfigModule, registerAs } from '@nestjs/config';
import { inspect } from 'node:util';
import {
  BanksService,
  CustomersService,
  getServiceToken,
  InjectService,
  LinkSdkService,
  serviceConfig,
  ServiceAuthService,
  ServiceCertificateError,
  ServiceConfigurationError,
  ServiceHttpService,
  ServiceModule,
  type ServiceModuleOptions,
  type ServiceOptionsFactory,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { modulesOfBlock, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

describe('ServiceModule', () => {
  let simulator: ServiceSimulator;
  const { start, setVariables } = modulesOfBlock();

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterEach(() => simulator.clearRequests());
  afterAll(() => simulator.stop());

  const failure = async (
    imports: NonNullable<ModuleMetadata['imports']>,
  ): Promise<ServiceConfigurationError> => {
    const error: unknown = await start({ imports }).catch((reason: unknown) => reason);
    if (error instanceof ServiceConfigurationError) return error;
    throw new Error(`not a configuration error: ${inspect(error)}`);
  };

  it('is configured by SERVICE_* variables, with and without ConfigModule.forRoot()', async () => {
    setVariables(simulator.env({ environment: 'production', authentication: 'mtls', oauth: true }));
    for (const imports of [
      [ConfigModule.forRoot({ ignoreEnvFile: true }), ServiceModule.forRoot()],
      [ServiceModule.forRoot()],
    ]) {
      const module = await start({ imports });
      expect(await module.get(BanksService).list()).toBeDefined();
      expect(module.get(ServiceAuthService).certificate?.fingerprint256).toBe(
        simulator.application.fingerprint256,
      );
    }
    expect(simulator.requests.map(({ face }) => face)).toEqual(['base', 'base']);
  });

  it('takes explicit options first, then the namespace, then the variables, key by key', async () => {
    const { urls, appToken, tls } = simulator.moduleOptions({ environment: 'sandbox' });
    setVariables({
      SERVICE_APP_TOKEN: 'from-variable',
      SERVICE_SANDBOX_URL: urls.sandboxUrl as string,
      SERVICE_TLS_CHAIN: tls.chain,
    });
    const namespace = registerAs('service', () => ({
      appToken: 'from-namespace',
      urls: { sandboxUrl: 'https://x.invalid' },
    }));
    const module = await start({
      imports: [
        ConfigModule.forRoot({ ignoreEnvFile: true, isGlobal: true, load: [namespace] }),
        ServiceModule.forRoot({ urls: { sandboxUrl: urls.sandboxUrl }, appToken: undefined }),
      ],
    });
    await module
      .get(BanksService)
      .list()
      .catch(() => undefined);
    expect(simulator.requests[0]?.headers['service-app-token']).toBe('from-namespace');
    await module.close();
    simulator.clearRequests();

    const explicit = await start({
      imports: [
        ConfigModule.forRoot({ ignoreEnvFile: true, isGlobal: true, load: [serviceConfig] }),
        ServiceModule.forRoot({ appToken }),
      ],
    });
    await explicit.get(BanksService).list();
    expect(simulator.requests[0]?.headers['service-app-token']).toBe(appToken);
  });

  it('takes options from useFactory with inject and extraProviders, useClass and useExisting', async () => {
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

  it('says what is wrong with a factory', async () => {
    for (const options of [{}, { useFactory: 5 }, undefined, null]) {
      expect(() => ServiceModule.forRootAsync(options as never)).toThrow(ServiceConfigurationError);
    }
    expect(() => ServiceModule.forRoot(null as never)).toThrow(ServiceConfigurationError);
    const returnsNothing = ServiceModule.forRootAsync({ useFactory: () => undefined as never });
    expect((await failure([returnsNothing])).message).toMatch(/factory returned no object/);
    const throws = ServiceModule.forRootAsync({
      useFactory: () => {
        throw new Error('the vault is sealed');
      },
    });
    await expect(start({ imports: [throws] })).rejects.toThrow('the vault is sealed');
  });

  it('says that ConfigModule may be missing where no variable is set', async () => {
    expect((await failure([ServiceModule.forRoot()])).message).toMatch(
      /no SERVICE_\* variable.*ConfigModule\.forRoot\(\)/,
    );
  });

  it('is global only with isGlobal', async () => {
    @Injectable()
    class Feature {
      constructor(@Inject(BanksService) readonly banks: BanksService) {}
    }
    @Module({ providers: [Feature] })
    class FeatureModule {}
    const options = simulator.moduleOptions({ environment: 'sandbox' });
    const module = await start({
      imports: [ServiceModule.forRoot({ ...options, isGlobal: true }), FeatureModule],
    });
    expect(module.get(Feature, { strict: false }).banks).toBeInstanceOf(BanksService);
    await expect(start({ imports: [ServiceModule.forRoot(options), FeatureModule] })).rejects.toThrow(
      /BanksService/,
    );
  });

  it('separates named modules, each with its own variables', async () => {
    @Injectable()
    class Feature {
      constructor(
        @InjectService(BanksService, 'ksa') readonly ksa: BanksService,
        @InjectService(BanksService) readonly banks: BanksService,
      ) {}
    }
    const other = await ServiceSimulator.start();
    try {
      setVariables(simulator.env({ environment: 'sandbox' }));
      setVariables(
        other.env({ environment: 'sandbox', authentication: 'oauth', clientCertificate: false, name: 'ksa' }),
      );
      const module = await start({
        imports: [ServiceModule.forRoot(), ServiceModule.forRoot({ name: 'ksa' })],
        providers: [Feature],
      });
      const feature = module.get(Feature);
      expect(feature.ksa).not.toBe(feature.banks);
      expect(module.get(getServiceToken(BanksService, 'ksa'))).toBe(feature.ksa);
      await feature.banks.list();
      await feature.ksa.list();
      expect(simulator.requests.map(({ face }) => face)).toEqual(['sandbox']);
      expect(other.requests.map(({ face }) => face)).toEqual(['token', 'sandbox']);
      for (const type of [
        CustomersService,
        LinkSdkService,
        ServiceHttpService,
        ServiceAuthService,
      ] as Type[]) {
        expect(module.get(getServiceToken(type, 'ksa'))).not.toBe(module.get(type));
      }
    } finally {
      await other.stop();
    }
  });

  it('refuses a name that cannot be part of the name of a variable', () => {
    for (const name of ['', '--', '1x', 'a b', 'ü'])
      expect(() => ServiceModule.forRoot({ name })).toThrow(/name/);
  });

  it('reports faults of options, variables and certificates together', async () => {
    setVariables({ SERVICE_APP_TOKEN: 'x', SERVICE_APP_TOKEN_FILE: '/x', SERVICE_HTTP_TIMEOUT: '30s' });
    const { urls, tls } = simulator.moduleOptions({ environment: 'production' });
    const { faults, message } = await failure([
      ServiceModule.forRoot({
        environment: 'production',
        urls,
        tls: { ...tls, privateKey: 'garbage' },
        oauth: { clientId: 'no-uuid' },
      }),
    ]);
    expect(faults.map(({ option }) => option).sort()).toEqual([
      'appToken',
      'http.timeout',
      'oauth.clientId',
      'oauth.clientSecret',
      'tls.privateKey',
    ]);
    for (const { option, variable } of faults) {
      expect(message).toContain(`${option} (${variable})`);
    }
  });

  it('throws a ServiceCertificateError where all faults are about certificates', async () => {
    const options = simulator.moduleOptions({ environment: 'production' });
    const error = await failure([
      ServiceModule.forRoot({ ...options, tls: { ...options.tls, chain: 'garbage' } }),
    ]);
    expect(error).toBeInstanceOf(ServiceCertificateError);
    expect(error).toMatchObject({
      code: 'invalid_certificate',
      faults: [{ option: 'tls.chain', variable: 'SERVICE_TLS_CHAIN' }],
    });
  });

  it('shows no secret in any provider that is printed', async () => {
    const options = simulator.moduleOptions({
      environment: 'production',
      authentication: 'mtls',
      oauth: true,
    });
    const module = await start({ imports: [ServiceModule.forRoot(options)] });
    await module.get(LinkSdkService).connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
    await module.get(BanksService).list();
    const { accessToken } = await module.get(ServiceAuthService).getCustomerToken('c-1');
    const container = (
      module as unknown as {
        container: {
          getModules(): Map<string, { providers: Map<unknown, { instance: unknown }>; metatype: Type }>;
        };
      }
    ).container;
    const secrets = [
      options.appToken,
      simulator.clientSecret,
      accessToken,
      (options.tls.privateKey as string).split('\n')[1],
    ];
    let looked = 0;
    for (const { metatype, providers } of container.getModules().values()) {
      if (metatype !== ServiceModule) continue;
      for (const { instance } of providers.values()) {
        looked += 1;
        const printed = inspect(instance, { depth: 12, showHidden: true });
        for (const secret of secrets) expect(printed).not.toContain(secret);
      }
    }
    expect(looked).toBeGreaterThan(10);
  });

  it('logs once that {oauth_base_url} will be deprecated, where calls go there', async () => {
    for (const [oauthBaseUrl, times] of [
      [true, 1],
      [false, 0],
    ] as const) {
      const logger = new CollectingLogger();
      const options = simulator.moduleOptions({ authentication: 'oauth', oauthBaseUrl });
      const { module, banks } = await startModule(options, logger);
      await banks.list();
      await banks.list();
      expect(logger.lines.filter((line) => /deprecated/.test(String(line)))).toHaveLength(times);
      await module.close();
    }
  });

  it('gives other clients the same mTLS identity', async () => {
    const module = await start({
      imports: [
        ServiceModule.forRoot(simulator.moduleOptions({ environment: 'production', authentication: 'mtls' })),
      ],
    });
    const auth = module.get(ServiceAuthService);
    const { get } = await import('node:https');
    const status = await new Promise<number | undefined>((resolve, reject) => {
      get(
        `${simulator.urls.baseUrl}/banks/v1`,
        { agent: auth.httpsAgent, headers: { 'service-app-token': simulator.appToken } },
        (response) => {
          response.resume().on('end', () => resolve(response.statusCode));
        },
      ).on('error', reject);
    });
    expect(status).toBe(200);
    expect(simulator.requests[0]?.certificateSubject).toEqual(simulator.application.subject);
  });
});
