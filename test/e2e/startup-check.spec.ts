import { describe, expect, it } from '@jest/globals';
import { type DynamicModule } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { BanksService, ServiceModule, ServiceStartupError } from 'nestjs-service';
import { BROKEN_SETUPS } from '../helpers/broken-setups.js';
import { CollectingLogger, everyForm, secretsIn } from '../helpers/secret-scan.js';
import { simulatorsOfBlock } from '../helpers/simulators.js';
import { modulesOfBlock } from '../helpers/start-module.js';
import { testStartupFailures } from '../helpers/startup-failures.js';
import { TimerCount } from '../helpers/timer-count.js';

describe('startupCheck', () => {
  const { start } = modulesOfBlock();

  describe("'fail' names the true cause", () => {
    // All of them are in test/soak.
    testStartupFailures(Object.keys(BROKEN_SETUPS).filter((_, index) => index % 8 === 3));
  });

  describe('of a set-up that works', () => {
    const startSimulator = simulatorsOfBlock();

    it('makes one call and asks for one token, which the first call then uses', async () => {
      const simulator = await startSimulator();
      const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
      const logger = new CollectingLogger();
      const app = await start(
        { imports: [ServiceModule.forRoot({ ...options, startupCheck: 'fail' })] },
        logger,
      );
      expect(simulator.requests.map(({ path }) => path)).toEqual(['/oauth2/token', '/banks/v1']);
      await app.get(BanksService).list();
      expect(simulator.tokenRequests).toHaveLength(1);
      expect(simulator.handshakes['oauth-base'].total).toBe(1);
      expect(logger.linesOf('ServiceModule')).toContain('The start-up check passed.');
    });

    it('does nothing by default', async () => {
      const simulator = await startSimulator();
      await start({ imports: [ServiceModule.forRoot(simulator.moduleOptions())] });
      expect(simulator.requests).toEqual([]);
    });

    it("starts with 'fail' too where another attempt brings what the first did not", async () => {
      const simulator = await startSimulator();
      simulator.fail({ path: '/banks/v1', fault: { status: 500 } });
      const options = { ...simulator.moduleOptions(), startupCheck: 'fail' as const };
      const logger = new CollectingLogger();
      await start({ imports: [ServiceModule.forRoot(options)] }, logger);
      expect(logger.linesOf('ServiceModule')).toContain('The start-up check passed.');
    });
  });

  describe('of a set-up that does not work', () => {
    const startSimulator = simulatorsOfBlock();

    async function refusing(startupCheck: 'warn' | 'fail', name?: string): Promise<DynamicModule> {
      const simulator = await startSimulator();
      simulator.rotateClientSecret('another');
      const mode = { environment: 'production', authentication: 'oauth' } as const;
      const options = {
        ...simulator.moduleOptions(mode),
        oauth: { clientId: simulator.clientId, clientSecret: 'wrong-s3cret' },
      };
      return ServiceModule.forRoot({ ...options, name, startupCheck });
    }

    it("only logs the cause and what to do with 'warn'", async () => {
      const logger = new CollectingLogger();
      await start({ imports: [await refusing('warn')] }, logger);
      expect(logger.linesOf('ServiceModule')).toContainEqual(
        expect.stringMatching(
          /^The start-up check failed \(token\.api\): .*invalid_client.*Check oauth\.clientId/,
        ),
      );
      expect(secretsIn(everyForm(logger.lines), { secret: 'wrong-s3cret' })).toEqual([]);
    });

    it('asks the endpoint once with a secret that it refuses', async () => {
      const simulator = await startSimulator();
      const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
      simulator.rotateClientSecret();
      const starting = start({ imports: [ServiceModule.forRoot({ ...options, startupCheck: 'fail' })] });
      await expect(starting).rejects.toThrow(/token\.api/);
      expect(simulator.tokenRequests).toHaveLength(1);
    });

    it("names the variables of a named module, and leaves nothing running, with 'fail'", async () => {
      const timers = new TimerCount();
      try {
        const module = await Test.createTestingModule({ imports: [await refusing('fail', 'ksa')] })
          .setLogger(new CollectingLogger())
          .compile();
        const error: unknown = await module.init().catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(ServiceStartupError);
        expect((error as ServiceStartupError).faults[0]).toEqual({
          option: 'oauth.clientSecret',
          variable: 'SERVICE_KSA_CLIENT_SECRET',
          message: expect.stringMatching(/SERVICE_KSA_CLIENT_ID/),
        });
        expect(timers.running).toBe(0);
      } finally {
        timers.restore();
      }
    });
  });
});
