import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { ServiceSimulator } from 'nestjs-service/testing';
import { startModule, type StartedModule } from '../helpers/start-module.js';

const CUSTOMERS = 40;

let simulator: ServiceSimulator;
let started: StartedModule;

beforeAll(async () => {
  simulator = await ServiceSimulator.start({ delayMs: { token: 100 } });
});
afterEach(() => started.module.close());
afterAll(() => simulator.stop());

/** Requests for customer tokens never delay the api token, however many there are. */
it('with few connections and a slow token endpoint, the api token comes before the customer tokens that wait', async () => {
  started = await startModule({
    ...simulator.moduleOptions({ authentication: 'oauth' }),
    http: { maxSockets: 2 },
  });
  const { auth, banks } = started;
  const customers = Array.from({ length: CUSTOMERS }, (_, n) => auth.getCustomerToken(`c-${n}`));
  await simulator.waitForRequest(({ face }) => face === 'token');
  await banks.list();
  const before = simulator.tokenRequests.length;
  await Promise.all(customers);
  const scopes = simulator.tokenRequests.map(({ body }) => new URLSearchParams(body).get('scope'));
  expect(scopes).toHaveLength(CUSTOMERS + 1);
  expect(before).toBeLessThan(CUSTOMERS);
  expect(scopes.indexOf('api')).toBeLessThan(before);
  // In the order of the calls, except for those that run at the same time.
  const order = scopes.filter((scope) => scope !== 'api').map((scope) => Number(scope?.split('-')[1]));
  order.forEach((customer, place) => expect(Math.abs(customer - place)).toBeLessThanOrEqual(2));
});
