import { expect } from '@jest/globals';
import fc from 'fast-check';
import { ServiceError } from 'nestjs-service';
import { ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { rejection, startModule } from './start-module.js';

/** Deadlines so long that no call ends by them on a slow machine: a call that fails then, fails by its fault. */
const TIMEOUT_MS = 300_000;
const CONCURRENCY = 50;
const FAULTS: SimulatorFault[] = ['reset', { status: 503 }, { delayMs: 300 }, 'truncate'];

/**
 * Calls of which one in five meets a fault. Each ends, few fail, no POST is done twice, a retry follows a failure only, and
 * no connection is left.
 */
export async function callThroughFaults(calls: number): Promise<void> {
  const simulator = await ServiceSimulator.start();
  const api = await startModule({
    ...simulator.moduleOptions({ authentication: 'oauth', clientCertificate: true }),
    http: { timeout: TIMEOUT_MS, connectTimeout: TIMEOUT_MS },
  });
  await api.banks.list();
  simulator.clearRequests();
  // Each as a share of what the ones before it left: one call in five in all.
  const played = FAULTS.map((fault, index) => ({
    fault,
    handle: simulator.fail({ path: /v1/, probability: 0.05 / (1 - 0.05 * index), fault }),
  }));
  let started = 0;
  let posts = 0;
  const errors: unknown[] = [];
  const worker = async (): Promise<void> => {
    while (started < calls) {
      started += 1;
      const isPost = started % 10 === 0;
      if (isPost) posts += 1;
      const call = isPost ? api.customers.create({ app_user_id: `u-${started}` }) : api.banks.list();
      await call.catch((error: unknown) => errors.push(error));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  for (const error of errors) expect(error).toBeInstanceOf(ServiceError);
  // Of the GETs hardly any: three attempts each. Of the POSTs those that met a fault.
  expect(errors.length).toBeLessThan(calls / 10);
  const arrived = simulator.apiRequests;
  const bodies = arrived.filter(({ method }) => method === 'POST').map(({ body }) => body);
  expect(new Set(bodies).size).toBe(bodies.length);
  const failures = played
    .filter(({ fault }) => !Object.hasOwn(Object(fault), 'delayMs'))
    .reduce((total, { handle }) => total + handle.hits, 0);
  // A call may use a connection that was just reset. It never arrives then.
  expect(posts - bodies.length).toBeLessThanOrEqual(failures);
  const retries = arrived.length - calls;
  expect(retries).toBeGreaterThan(0);
  expect(retries).toBeLessThanOrEqual(failures);
  await api.module.close();
  await expectNoConnections(simulator);
  await simulator.stop();
}

/** All calls of a service in trouble fail; their retries together are what the budget allows: 500 tokens, 5 a retry. */
export async function callServiceInTrouble(calls: number): Promise<void> {
  const simulator = await ServiceSimulator.start();
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
  const simulator = await ServiceSimulator.start();
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
    { numRuns: runs },
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
