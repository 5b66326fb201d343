import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceTokenError, type ServiceModuleOptions } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { rejection, startModule } from '../helpers/start-module.js';

const CALLS_PER_SECOND = 50;
const SECONDS = 6;

describe('rotation of the client secret', () => {
  let simulator: ServiceSimulator;
  let folder: string;

  beforeEach(async () => {
    // Short enough for several renewals, each of which needs the secret that is valid then.
    simulator = await ServiceSimulator.start({ tokenLifetime: 3 });
    folder = await mkdtemp(join(tmpdir(), 'secret-'));
  });
  afterEach(async () => {
    await simulator.stop();
    await rm(folder, { recursive: true });
  });

  const optionsWith = (
    clientSecret: NonNullable<ServiceModuleOptions['oauth']>['clientSecret'],
  ): ServiceModuleOptions => {
    const options = simulator.moduleOptions({ authentication: 'oauth' });
    return { ...options, oauth: { ...options.oauth, clientSecret } };
  };

  it.each(['a function', 'a file'])(
    'as %s: no call fails at 50 calls/s',
    async (source) => {
      const file = join(folder, 'client-secret');
      await writeFile(file, simulator.clientSecret);
      const secret = source === 'a file' ? { file } : () => simulator.clientSecret;
      const { module, banks, auth } = await startModule(optionsWith(secret));
      const outcomes: Promise<unknown>[] = [];
      for (let call = 0; call < CALLS_PER_SECOND * SECONDS; call++) {
        if (call % 100 === 50) await writeFile(file, simulator.rotateClientSecret());
        outcomes.push(banks.list());
        if (call % 10 === 0) outcomes.push(auth.getCustomerToken(`c-${call}`));
        await delay(1000 / CALLS_PER_SECOND);
      }
      const failed = (await Promise.allSettled(outcomes)).filter(({ status }) => status === 'rejected');
      expect(failed).toEqual([]);
      expect(simulator.apiRequests.filter(({ status }) => status !== 200)).toEqual([]);
      const granted = simulator.tokenRequests.filter(({ status }) => status === 200);
      expect(new Set(granted.map(({ form }) => form?.client_secret)).size).toBe(4);
      await module.close();
    },
    30_000,
  );

  it('as plain text: the old token serves to its end, then the error says what to check, and nothing is hammered', async () => {
    const { module, banks } = await startModule(optionsWith(simulator.clientSecret));
    await banks.list();
    simulator.rotateClientSecret();
    await banks.list();
    simulator.revokeTokens();
    simulator.clearRequests();
    const errors = await Promise.all(Array.from({ length: 500 }, () => rejection(banks.list())));
    const tokenErrors = errors.filter((error) => error instanceof ServiceTokenError);
    expect(tokenErrors.length).toBeGreaterThan(0);
    for (const error of tokenErrors) {
      expect(error).toMatchObject({ code: 'token_refused', error: 'invalid_client', status: 401 });
      expect(error.message).toMatch(/invalidates the one before/);
    }
    // Those whose 401 came when the limit on forced refreshes was reached already.
    for (const error of errors)
      if (!tokenErrors.includes(error as never)) expect(error).toMatchObject({ status: 401 });
    expect(simulator.tokenRequests.length).toBeLessThanOrEqual(2);
    await module.close();
  });
});
