import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type DynamicModule } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { Test } from '@nestjs/testing';
import { BanksService, ServiceConfigurationError, ServiceModule, ServiceStartupError } from 'nestjs-service';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

describe('an application with a broken .env', () => {
  const before = { ...process.env };
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'broken-'));
  });
  afterEach(async () => {
    for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
    await rm(folder, { recursive: true });
  });

  it('gets every fault once, with what to do, and of no consequence of another fault', async () => {
    const { error } = await start([
      'SERVICE_ENVIRONMENT=prod',
      'SERVICE_AUTHENTICATION=mtls',
      'SERVICE_BASE_URL=https://api.bank',
      'SERVICE_APP_TOKEN=a1',
      'SERVICE_TLS_CERTIFICATE_FILE=/no/such/application.crt',
      'SERVICE_CLIENT_ID=00000000-0000-4000-8000-000000000000',
      'SERVICE_CLIENT_SECRET_FILE=/no/such/secret',
      'SERVICE_HTTP_TIMEOUT=30s',
      'SERVICE_HTTP_PROXY=proxy:s3cret',
    ]);
    expect(error.message.split('\n')).toEqual([
      'The configuration of ServiceModule is not usable:',
      "  - environment (SERVICE_ENVIRONMENT): must be one of: production, sandbox; it is 'prod'",
      "  - http.timeout (SERVICE_HTTP_TIMEOUT): must be a whole number of milliseconds from 1 to 86400000; it is '30s'",
      '  - http.proxy (SERVICE_HTTP_PROXY): must be the URL of a proxy, for example http://proxy.example:3128; or environment or none',
      `  - oauth.clientSecret (SERVICE_CLIENT_SECRET_FILE): the file /no/such/secret cannot be read (ENOENT).`,
      `  - tls.certificate (SERVICE_TLS_CERTIFICATE_FILE): the file /no/such/application.crt cannot be read (ENOENT).`,
      expect.stringMatching(/^ {2}- tls\.privateKey \(SERVICE_TLS_PRIVATE_KEY\): /),
    ]);
  });

  it('says that a named module has no variable of its own only where it has none', async () => {
    const none = await start(['SERVICE_APP_TOKEN=a1'], { name: 'ksa' });
    expect(none.error.message).toMatch(
      /^ServiceModule:ksa found no SERVICE_KSA_\* variable; .*reads it\. .*doctor.*:\n {2}- /,
    );
    const one = await start(['SERVICE_KSA_APP_TOKEN=a1'], { name: 'ksa' });
    expect(one.error.message).toMatch(/^The configuration of ServiceModule:ksa is not usable:\n {2}- urls/);
    const inCode = await start([], { name: 'ksa', environment: 'sandbox' });
    expect(inCode.error.message).toMatch(/^ServiceModule:ksa found no SERVICE_KSA_\* variable; .*:\n {2}- /);
  });

  it('refuses a name that would give one variable two meanings', async () => {
    const { error } = await start(['SERVICE_SANDBOX_AUTH_URL=https://a.bank'], { name: 'sandbox' });
    expect(error.faults).toEqual([
      { option: 'name', variable: undefined, message: expect.stringMatching(/SERVICE_SANDBOX_AUTH_URL/) },
    ]);
  });

  /** Starts an application whose ConfigModule reads these lines. Resolves to the error, if any, and the warnings. */
  async function start(lines: string[], options: Parameters<typeof ServiceModule.forRoot>[0] = {}) {
    for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
    const envFilePath = join(folder, '.env');
    await writeFile(envFilePath, lines.join('\n'));
    const warnings: string[] = [];
    const quiet = { log() {}, error() {}, warn: (message: string) => void warnings.push(message) };
    let error: unknown;
    try {
      const module = await Test.createTestingModule({
        imports: [ConfigModule.forRoot({ envFilePath }), ServiceModule.forRoot(options)],
      })
        .setLogger(quiet)
        .compile();
      await module.close();
    } catch (caught) {
      expect(caught).toBeInstanceOf(ServiceConfigurationError);
      error = caught;
    }
    return { error: error as ServiceConfigurationError, warnings };
  }
});
