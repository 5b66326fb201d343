import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { LinkSdkService } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { startModule, type StartedModule } from '../helpers/start-module.js';

let simulator: ServiceSimulator;
let started: StartedModule;

beforeAll(async () => {
  simulator = await ServiceSimulator.start();
  started = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
});
afterEach(() => void jest.useRealTimers());
afterAll(async () => {
  await started.module.close();
  await simulator.stop();
});

/** All that jest fakes by default: Date, performance, timers, nextTick and queueMicrotask. */
it('calls and tokens need no timer: a host that fakes all of them gets its answers', async () => {
  jest.useFakeTimers();
  const { auth, banks, customers, module } = started;
  const id = 'user+1=a@example';
  expect(await banks.list()).toBeInstanceOf(Array);
  expect(await customers.create({ app_user_id: 'u-1' })).toMatchObject({ app_user_id: 'u-1' });
  expect((await auth.getCustomerToken(id)).scope).toBe(`customer.${id}`);
  const request = { customer_id: id, permissions: ['identity'] };
  expect(await module.get(LinkSdkService).connectParameters(request)).toHaveProperty('access_token');
});

/** test/soak/polluted-prototype.spec.ts has all that Node's own code reads too. */
it('sends nothing that somebody put into Object.prototype', async () => {
  const { banks, customers } = started;
  simulator.clearRequests();
  const prototype = Object.prototype as Record<string, unknown>;
  const foreign = { auth: 'their:password', host: '127.0.0.2', socketPath: '/their.sock', scope: 'theirs' };
  for (const [name, value] of Object.entries(foreign)) {
    prototype[name] = value;
    const calls = Promise.all([banks.list(), customers.create({ app_user_id: 'u-1' })]);
    await calls.finally(() => delete prototype[name]);
  }
  expect(simulator.apiRequests).toHaveLength(8);
  for (const { headers } of simulator.apiRequests) {
    expect(headers.authorization).toMatch(/^Bearer /);
    expect(JSON.stringify(headers)).not.toContain('their');
  }
});
