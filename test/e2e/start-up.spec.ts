import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  Inject,
  Injectable,
  Module,
  Scope,
  type DynamicModule,
  type ModuleMetadata,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import { LazyModuleLoader, ModulesContainer, REQUEST } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import {
  BanksService,
  ServiceConfigurationError,
  ServiceModule,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { SERVICE } from '../../lib/module/definition.js';
import { type Service } from '../../lib/engine/create-service.js';
import { CollectingLogger, secretsIn } from '../helpers/secret-scan.js';
import { modulesOfBlock } from '../helpers/start-module.js';
import { TimerCount } from '../helpers/timer-count.js';

type Imports = NonNullable<ModuleMetadata['imports']>;

describe('The start of a ServiceModule', () => {
  let simulator: ServiceSimulator;
  let folder: string;
  const { start } = modulesOfBlock();

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
    folder = await mkdtemp(join(tmpdir(), 'start-up-'));
  });
  afterEach(() => simulator.clearRequests());
  afterAll(async () => {
    await simulator.stop();
    await rm(folder, { recursive: true });
  });

  const compile = (metadata: ModuleMetadata, logger: CollectingLogger | false = false) =>
    Test.createTestingModule(metadata)
      .setLogger(logger as CollectingLogger)
      .compile();

  async function failure(imports: Imports): Promise<ServiceConfigurationError> {
    const error: unknown = await start({ imports }).catch((reason: unknown) => reason);
    if (error instanceof ServiceConfigurationError) return error;
    throw new Error(`not a configuration error: ${String(error)}`);
  }

  /** mTLS with its certificate and key in files that are watched. */
  async function fileOptions(): Promise<ServiceModuleOptions> {
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'mtls' });
    const files = {
      certificate: { file: join(folder, 'tls.crt') },
      privateKey: { file: join(folder, 'tls.key') },
    };
    await writeFile(files.certificate.file, options.tls.certificate as string);
    await writeFile(files.privateKey.file, options.tls.privateKey as string);
    return { ...options, tls: { ...options.tls, ...files } };
  }

  describe('with options that depend on a request', () => {
    const options = (): ServiceModuleOptions => simulator.moduleOptions({ environment: 'sandbox' });

    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {
      createServiceOptions = options;
    }
    @Injectable({ scope: Scope.REQUEST, durable: true })
    class Durable extends PerRequest {}
    @Injectable({ scope: Scope.TRANSIENT })
    class TransientOfRequest {
      constructor(@Inject(REQUEST) readonly request: unknown) {}
    }
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient {
      createServiceOptions = options;
    }
    const from = (provider: Type): DynamicModule =>
      ServiceModule.forRootAsync({ extraProviders: [provider], inject: [provider], useFactory: options });
    const ways: Record<string, () => DynamicModule> = {
      REQUEST: () => ServiceModule.forRootAsync({ inject: [REQUEST], useFactory: options }),
      'a request-scoped provider': () => from(PerRequest),
      'a durable one': () => from(Durable),
      'a transient one that injects REQUEST': () => from(TransientOfRequest),
      'a request-scoped useClass': () => ServiceModule.forRootAsync({ useClass: PerRequest }),
    };
    for (const [way, make] of Object.entries(ways)) {
      it(`fails: ${way}`, async () => {
        // A second module without this fault must not hide it, whatever their order.
        for (const imports of [
          [make(), ServiceModule.forRoot({ ...options(), name: 'fine' })],
          [ServiceModule.forRoot({ ...options(), name: 'fine' }), make()],
        ]) {
          const { faults } = await failure(imports);
          expect(faults).toEqual([
            { option: 'forRootAsync', variable: undefined, message: expect.stringMatching(/REQUEST/) },
          ]);
        }
        expect(simulator.requests).toEqual([]);
      });
    }

    it('works with a transient provider of the default kind', async () => {
      for (const module of [from(Transient), ServiceModule.forRootAsync({ useClass: Transient })]) {
        expect(await (await start({ imports: [module] })).get(BanksService).list()).toBeDefined();
      }
    });
  });

  describe('leaves nothing behind where the host fails', () => {
    const fails: Record<string, (serviceModule: DynamicModule) => Type> = {
      'in another provider': (serviceModule) => {
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
      "in another module's onModuleInit": (serviceModule) => {
        @Module({ imports: [serviceModule] })
        class FeatureModule implements OnModuleInit {
          onModuleInit(): void {
            throw new Error('the host fails');
          }
        }
        return FeatureModule;
      },
    };
    for (const [where, make] of Object.entries(fails)) {
      it(where, async () => {
        const logger = new CollectingLogger();
        const timers = new TimerCount();
        try {
          const module = make(ServiceModule.forRoot(await fileOptions()));
          await expect(start({ imports: [module] }, logger)).rejects.toThrow('the host fails');
          expect(timers.running).toBe(0);
        } finally {
          timers.restore();
        }
        expect(logger.lines.join('\n')).not.toMatch(/certificate/);
      });
    }

    it('and follows the files once the application has started, until it ends', async () => {
      const timers = new TimerCount();
      try {
        const module = await compile({ imports: [ServiceModule.forRoot(await fileOptions())] });
        expect(timers.running).toBe(0);
        await module.init();
        expect(timers.running).toBeGreaterThan(0);
        await module.close();
        expect(timers.running).toBe(0);
      } finally {
        timers.restore();
      }
    });
  });

  it('does not come for a lazily loaded module: from its first call on its files are followed, and one warning says so', async () => {
    const logger = new CollectingLogger();
    const app = await start({}, logger);
    const options = { ...(await fileOptions()), startupCheck: 'fail' as const };
    // Only these: connections and files are real.
    jest.useFakeTimers({
      doNotFake: ['Date', 'performance', 'hrtime', 'nextTick', 'queueMicrotask', 'setImmediate'],
    });
    try {
      const loaded = await app.get(LazyModuleLoader).load(() => ServiceModule.forRoot(options));
      expect(jest.getTimerCount()).toBe(0);
      await loaded.get(BanksService).list();
      expect(simulator.requests).toHaveLength(1);
      expect(jest.getTimerCount()).toBeGreaterThan(1);
      jest.advanceTimersByTime(59_999);
      expect(logger.linesOf('ServiceModule')).toEqual([]);
      jest.advanceTimersByTime(1);
      await loaded.get(BanksService).list();
      jest.advanceTimersByTime(120_000);
      expect(logger.linesOf('ServiceModule')).toEqual([
        expect.stringMatching(/loaded lazily\. There was no start-up check, .* nothing ends its connections/),
      ]);
      // Nest calls none of its hooks at the end either.
      await app.close();
      expect(jest.getTimerCount()).toBeGreaterThan(0);
      await loaded.get<Service>(SERVICE).close();
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('prints one line, and shows nothing secret there or in the container', async () => {
    const logger = new CollectingLogger();
    const options = simulator.moduleOptions({
      environment: 'production',
      authentication: 'mtls',
      oauth: true,
    });
    const useFactory = async () => options;
    const app = await start({ imports: [ServiceModule.forRootAsync({ useFactory })] }, logger);
    const lines = logger.linesOf('ServiceModule');
    expect(lines).toEqual([
      expect.stringMatching(/^production, mtls: calls go to https:.*days left; tokens from/),
    ]);
    const secrets = { appToken: options.appToken, clientSecret: simulator.clientSecret };
    const container = inspect(app.get(ModulesContainer), { depth: 12, showHidden: true });
    expect(secretsIn(lines.join() + container, secrets)).toEqual([]);
  });

  it('warns once of several modules without a name', async () => {
    const logger = new CollectingLogger();
    const options = simulator.moduleOptions({ environment: 'sandbox' });
    const imports = [1, 2, 3].map(() => ServiceModule.forRoot(options));
    await start({ imports }, logger);
    const warnings = logger.linesOf('ServiceModule').filter((line) => /without a name/.test(line));
    expect(warnings).toEqual([expect.stringMatching(/^3 ServiceModules/)]);
    const single = new CollectingLogger();
    const named = ServiceModule.forRoot({ ...options, name: 'other' });
    await start({ imports: [imports[0], imports[0], named] }, single);
    expect(single.linesOf('ServiceModule')).toHaveLength(1);
  });

  it('refuses names that would share variables', async () => {
    const options = simulator.moduleOptions({ environment: 'sandbox' });
    const named = (name: string) => ServiceModule.forRoot({ ...options, name });
    for (const [one, other] of [
      ['a-b', 'a_b'],
      ['a_b', 'A-B'],
      ['ksa', 'KSA'],
      ['ksa', 'ksa-sandbox'],
    ]) {
      const { message } = await failure([named(one), named('else'), named(other)]);
      for (const name of [one, other]) expect(message).toContain(`'${name}'`);
      expect(message).toContain('SERVICE_');
    }
    await start({ imports: [named('a-b'), named('ab'), ServiceModule.forRoot(options)] });
  });
});
