import { expect } from '@jest/globals';
import fc from 'fast-check';
import { ServiceError } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { rejection, startModule } from './start-module.js';
import { startSimulator } from './simulators.js';

/** Deadlines so long that no call ends by them on a slow machine: a call that fails then, fails by its fault. */
const TIMEOUT_MS = 300_000;

/** All calls of a service in trouble fail; their retries together are what the budget allows: 500 tokens, 5 a retry. */
export async function callServiceInTrouble(calls: number): Promise<void> {
  const simulator = await startSimulator();
  const api = await startModule({
    ...simulator.moduleOptions(),
    http: { timeout: TIMEOUT_MS, connectTimeout: TIMEOUT_MS },
  });
  simulator.fail({ path: /v1/, times: Infinity, fault: { status: 503 } });
  const doomed = await Promise.all(Array.from({ length: calls }, () => rejection(api.banks.list())));
  for (const error of doomed) expect(error).toMatchObject({ status: 503 });
  expect(simulator.apiRequests).toHaveLength(calls + 100);
  await api.module.close();
  await expectNoConnections(simulator);
  await simulator.stop();
}

/** Random ids, headers and bodies: nothing breaks, nothing is sent outside the service, and no header is split. */
export async function sendOddInput(runs: number): Promise<void> {
  const simulator = await startSimulator();
  const api = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
  await api.auth.getApiToken();
  simulator.clearRequests();
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('\r', '\n', '\0', ' ', ':', 'a', 'é', '€', '"') }),
  );
  let sent = 0;
  await fc.assert(
    fc.asyncProperty(text, fc.jsonValue(), fc.integer({ min: 0, max: 19 }), async (odd, json, kind) => {
      const isSent = kind === 0;
      const outcome: Promise<unknown> = isSent
        ? api.http.post(`/echo/v1`, json, { headers: { 'x-odd': odd } })
        : kind % 3 === 0
          ? api.http.get(odd.startsWith('/') ? `/${odd}` : `https://evil.example/${odd}`)
          : kind % 3 === 1
            ? api.auth.getCustomerToken(`${odd} `)
            : api.customers.create({ app_user_id: 1, [odd]: json } as never);
      if (isSent) sent += 1;
      await outcome.catch((error: unknown) => expect(error).toBeInstanceOf(ServiceError));
    }),
    // One that arrives, whatever the others are.
    { numRuns: runs, examples: [['a', {}, 0]] },
  );
  const arrived = simulator.requests;
  expect(arrived.length).toBeLessThanOrEqual(sent);
  expect(arrived.length).toBeGreaterThan(0);
  for (const { path, headers } of arrived) {
    expect(path).toBe('/echo/v1');
    expect(Object.keys(headers).sort()).toEqual(expect.arrayContaining(['authorization', 'host']));
    expect(headers['x-odd']?.includes('\n') ?? false).toBe(false);
  }
  await api.module.close();
  await simulator.stop();
}

/** It takes some time until the end of a connection arrives. */
async function expectNoConnections(simulator: ServiceSimulator): Promise<void> {
  while (simulator.openConnections > 0) await new Promise((resolve) => setImmediate(resolve));
}
