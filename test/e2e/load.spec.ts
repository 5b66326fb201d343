import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { callServiceInTrouble, sendOddInput } from '../helpers/chaos.js';
import { onlyInSoak, scaled } from '../helpers/in-soak.js';
import { playHistories } from '../helpers/histories/histories.js';
import { rejection, type StartedModule, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

/** Short versions of what test/soak does at length. Jest itself fails a test for an unhandled rejection. */
describe('random histories and odd input', () => {
  it('60 calls in a random history: each has its own credentials and ends in time, nothing is left', async () => {
    await playHistories(60);
  });

  it('60 calls of a service in trouble: their retries stay in the budget', () => callServiceInTrouble(60));

  it('100 odd ids, headers and bodies: no crash, nothing sent outside the service, nothing split', () =>
    sendOddInput(100));
});

describe('many callers', () => {
  let simulator: ServiceSimulator;
  let api: StartedModule | undefined;
  beforeEach(async () => {
    simulator = await startSimulator();
  });
  afterEach(async () => {
    await api?.module.close();
    api = undefined;
    await simulator.stop();
  });

  const options = () => simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });

  it('thousands of callers with a wrong client secret: one request, and an error for each of them', async () => {
    const { oauth, ...others } = options();
    api = await startModule({ ...others, oauth: { ...oauth, clientSecret: 'wrong' } });
    const { auth } = api;
    const errors = await Promise.all(
      Array.from({ length: scaled(10_000) }, () => rejection(auth.getApiToken())),
    );
    expect(new Set(errors.map((error) => (error as { code: string }).code))).toEqual(
      new Set(['token_refused']),
    );
    expect(new Set(errors).size).toBe(scaled(10_000));
    expect(simulator.tokenRequests).toHaveLength(1);
  });

  it('more customers than tokenCache.maxEntries: the last used are kept, and the api token', async () => {
    api = await startModule({ ...options(), tokenCache: { maxEntries: 50 } });
    const { auth } = api;
    await auth.getApiToken();
    for (let group = 0; group < 2; group++) {
      await Promise.all(
        Array.from({ length: 50 }, (_, index) => auth.getCustomerToken(`c-${group}-${index}`)),
      );
    }
    expect(simulator.tokenRequests).toHaveLength(101);
    await auth.getApiToken();
    await auth.getCustomerToken('c-1-49');
    expect(simulator.tokenRequests).toHaveLength(101);
    await auth.getCustomerToken('c-0-0');
    expect(simulator.tokenRequests).toHaveLength(102);
  });

  onlyInSoak(it)(
    '5,000 calls that share a signal end by it, for less work than they began with',
    async () => {
      api = await startModule({ ...options(), http: { timeout: 600_000 } });
      const { banks } = api;
      await banks.list();
      simulator.clearRequests();
      simulator.fail({ path: '/banks/v1', times: Infinity, fault: 'hang' });
      const controller = new AbortController();
      const begun = process.cpuUsage();
      const calls = Array.from({ length: 5_000 }, () => rejection(banks.list({ signal: controller.signal })));
      await simulator.waitForRequest(({ path }) => path === '/banks/v1', 100_000);
      const { user: beginning } = process.cpuUsage(begun);
      const aborted = process.cpuUsage();
      const reason = new Error('enough');
      controller.abort(reason);
      const reasons = await Promise.all(calls);
      const { user: ending } = process.cpuUsage(aborted);
      expect(new Set(reasons)).toEqual(new Set([reason]));
      expect(ending).toBeLessThan(beginning);
    },
    120_000,
  );
});
