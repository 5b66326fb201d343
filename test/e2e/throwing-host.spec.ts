import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type ArgumentsHost, type LoggerService } from '@nestjs/common';
import { HealthIndicatorService } from '@nestjs/terminus';
import { EventEmitter } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ServiceExceptionFilter,
  type ServiceError,
  type ServiceModuleOptions,
  type TokenStore,
} from 'nestjs-service';
import { ServiceHealthIndicator } from 'nestjs-service/terminus';
import { ServiceSimulator } from 'nestjs-service/testing';
import { byRename } from '../helpers/certificate-files.js';
import { partOf } from '../helpers/in-soak.js';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';

const fail = (): never => {
  throw new Error('of the host');
};

const LOGGERS: [string, () => unknown][] = [
  ['throws', fail],
  ['rejects', () => Promise.reject(new Error('of the host'))],
];

/** Takes the lines of Nest itself, and fails at each of the module's, as pino does once its stream has ended. */
function failingLogger(how: () => unknown) {
  const failed: string[] = [];
  const lines = new EventEmitter();
  const take = (line: string, ...more: unknown[]): unknown => {
    if (!String(more.at(-1)).startsWith('Service')) return undefined;
    failed.push(line);
    lines.emit('line', line);
    return how();
  };
  /** Resolves once a line that is logged from now on has this in it. */
  const logged = (part: string): Promise<void> =>
    new Promise((resolve) => lines.on('line', (line: string) => line.includes(part) && resolve()));
  return { logger: { log: take, warn: take, error: take, debug: take }, failed, logged };
}

// Jest itself fails a test for an unhandled rejection.
describe('what a host brings along harms nothing where it throws:', () => {
  let simulator: ServiceSimulator;
  let folder: string;
  let modules: StartedModule[];

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
  });
  afterAll(() => simulator.stop());
  beforeEach(async () => {
    modules = [];
    folder = await mkdtemp(join(tmpdir(), 'throwing-host-'));
  });
  afterEach(async () => {
    for (const { module } of modules) await module.close();
    simulator.clearFaults();
    simulator.clearRequests();
    await rm(folder, { recursive: true });
  });

  const start = async (
    options: ServiceModuleOptions,
    logger: LoggerService | false = false,
  ): Promise<StartedModule> => {
    const started = await startModule(options, logger);
    modules.push(started);
    return started;
  };

  it.each(partOf(LOGGERS, 2))(
    'a logger that %s at the start, with a certificate that expires soon, and at two rotations of its files',
    async (_, how) => {
      const { logger, failed, logged } = failingLogger(how);
      const notAfter = new Date(Date.now() + 5 * 86_400_000);
      const [first, second, third] = await Promise.all([
        simulator.issueCertificate({ commonName: 'first', notAfter }),
        simulator.issueCertificate({ commonName: 'second' }),
        simulator.issueCertificate({ commonName: 'third' }),
      ]);
      await byRename(folder, first);
      const tls = {
        certificate: { file: join(folder, 'tls.crt') },
        privateKey: { file: join(folder, 'tls.key') },
        chain: simulator.chain,
      };
      const { banks, auth } = await start({ ...simulator.moduleOptions(), tls }, logger);
      // Followed without being asked: whatever is thrown there ends the process.
      const followed = logged('is in use: "CN=second"');
      await byRename(folder, second);
      await followed;
      await byRename(folder, third);
      expect(await auth.reloadCertificate()).toBe(true);
      await banks.list();
      expect(simulator.requests.at(-1)).toMatchObject({ certificateSubject: 'CN=third', status: 200 });
      expect(failed).toEqual(
        expect.arrayContaining([
          expect.stringMatching(/calls go to/),
          expect.stringMatching(/CN=first.* ends in [45] days/),
          expect.stringMatching(/new client identity is in use.*CN=third/),
        ]),
      );
    },
  );

  describe.each(LOGGERS)('a logger that %s', (_, how) => {
    it('at a GET that is tried again, and at a call that fails', async () => {
      const { logger, failed } = failingLogger(how);
      const { banks, http } = await start(simulator.moduleOptions({ authentication: 'mtls' }), logger);
      simulator.fail({ path: /banks/, fault: { status: 503 } });
      await banks.list();
      simulator.fail({ path: /odd/, fault: { status: 409 } });
      await expect(http.get('/odd/v1')).rejects.toMatchObject({ status: 409 });
      expect(failed.slice(-2)).toEqual([
        'GET /banks/v1: 503; another attempt follows',
        expect.stringMatching(/^GET \/odd\/v1: 409 after/),
      ]);
    });

    it('at a token while the store is down', async () => {
      const { logger, failed } = failingLogger(how);
      const down = () => Promise.reject(new Error('down'));
      const tokenStore: TokenStore = { get: down, set: down, delete: down };
      const { auth } = await start(
        { ...simulator.moduleOptions({ authentication: 'oauth' }), tokenStore },
        logger,
      );
      expect(await auth.getApiToken()).toMatchObject({ scope: 'api' });
      expect(failed.at(-1)).toMatch(/^The token store does not work/);
    });

    it('at what the exception filter and the health indicator say', async () => {
      const { logger, failed } = failingLogger(how);
      const { auth, banks } = await start(simulator.moduleOptions({ authentication: 'mtls' }), logger);
      simulator.fail({ path: /banks/, times: 2, fault: { status: 403 } });
      const refused = (await rejection(banks.list())) as ServiceError;
      const host = { getType: () => 'graphql' } as unknown as ArgumentsHost;
      expect(() => new ServiceExceptionFilter().catch(refused, host)).toThrow(
        expect.objectContaining({ extensions: { code: 'api_error', statusCode: 502 } }),
      );
      expect(failed.at(-1)).toMatch(/^502: api_error/);
      const health = new ServiceHealthIndicator(new HealthIndicatorService(), auth, banks);
      expect(await health.isHealthy('service', { ping: true })).toMatchObject({
        service: { status: 'down', ping: { code: 'api_error 403' } },
      });
      expect(failed.at(-1)).toMatch(/^The banks path did not answer/);
    });

    it('at a requestId that throws', async () => {
      const { logger } = failingLogger(how);
      const options = simulator.moduleOptions({ authentication: 'mtls' });
      const { banks } = await start({ ...options, http: { ...options.http, requestId: fail } }, logger);
      expect(await banks.list()).toBeDefined();
    });
  });
});
