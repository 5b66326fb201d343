import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  Inject,
  Injectable,
  Module,
  type DynamicModule,
  type ModuleMetadata,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import { LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { BanksService, ServiceModule, type ServiceModuleOptions } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { SERVICE } from '../../lib/module/definition.js';
import { type Service } from '../../lib/engine/create-service.js';
import { CollectingLogger, secretsIn } from '../helpers/secret-scan.js';
import { modulesOfBlock } from '../helpers/start-module.js';
import { TimerCount } from '../helpers/timer-count.js';
import { startSimulator } from '../helpers/simulators.js';

describe('The start of a ServiceModule', () => {
  let simulator: ServiceSimulator;
  let folder: string;
  const { start } = modulesOfBlock();

  beforeAll(async () => {
    simulator = await startSimulator();
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

  it('does not come for a lazily loaded module: from its first call on its files are followed', async () => {
    const app = await start({});
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
});
