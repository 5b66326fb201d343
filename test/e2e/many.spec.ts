import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { ServiceSimulator } from 'nestjs-service/testing';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';

let simulator: ServiceSimulator;
let api: StartedModule | undefined;
beforeEach(async () => {
  simulator = await ServiceSimulator.start();
});
afterEach(async () => {
  await api?.module.close();
  api = undefined;
  await simulator.stop();
});

const options = () => simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });

it('10,000 callers with a wrong client secret: one request, and an error for each of them', async () => {
  const { oauth, ...others } = options();
  api = await startModule({ ...others, oauth: { ...oauth, clientSecret: 'wrong' } });
  const { auth } = api;
  const errors = await Promise.all(Array.from({ length: 10_000 }, () => rejection(auth.getApiToken())));
  expect(new Set(errors.map((error) => (error as { code: string }).code))).toEqual(
    new Set(['token_refused']),
  );
  expect(new Set(errors).size).toBe(10_000);
  expect(simulator.tokenRequests).toHaveLength(1);
});

it('more customers than tokenCache.maxEntries: the last used are kept, and the api token', async () => {
  api = await startModule({ ...options(), tokenCache: { maxEntries: 50 } });
  const { auth } = api;
  await auth.getApiToken();
  for (let group = 0; group < 10; group++) {
    await Promise.all(Array.from({ length: 50 }, (_, index) => auth.getCustomerToken(`c-${group}-${index}`)));
  }
  expect(simulator.tokenRequests).toHaveLength(501);
  await auth.getApiToken();
  await auth.getCustomerToken('c-9-49');
  expect(simulator.tokenRequests).toHaveLength(501);
  await auth.getCustomerToken('c-0-0');
  expect(simulator.tokenRequests).toHaveLength(502);
});

it('5,000 calls that share a signal end by it, for less work than they began with', async () => {
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
}, 120_000);
