import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ServiceError, type ServiceModuleOptions } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { playHistories } from '../helpers/histories/histories.js';
import { onlyInSoak, scaled } from '../helpers/in-soak.js';
import { startSimulator } from '../helpers/simulators.js';
import { rejection, type StartedModule, startModule } from '../helpers/start-module.js';
import { until } from '../helpers/until.js';

const LIMIT_MS = 600_000;
/** So long that no call ends by it on a slow machine: a call that fails then, fails by its fault. */
const TIMEOUT_MS = 300_000;

// Jest itself fails a test for an unhandled rejection.
describe('random histories', () => {
  it(
    `${scaled(5_000)} calls: each has its own credentials and ends in time, and nothing shows a secret or is left`,
    async () => {
      await playHistories(scaled(5_000), 2);
    },
    LIMIT_MS,
  );
});

describe('many calls', () => {
  let simulator: ServiceSimulator;
  let api: StartedModule | undefined;

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterEach(async () => {
    await api?.module.close();
    // It takes some time until the end of a connection arrives.
    await until(() => simulator.openConnections === 0);
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(() => simulator.stop());

  const start = async (more: Partial<ServiceModuleOptions> = {}): Promise<StartedModule> => {
    const options = simulator.moduleOptions({ authentication: 'oauth' });
    const http = { timeout: TIMEOUT_MS, connectTimeout: TIMEOUT_MS };
    return (api = await startModule({ ...options, http, ...more }));
  };

  it(
    `${scaled(10_000)} callers with a wrong client secret: one request, and an error for each of them`,
    async () => {
      const { oauth } = simulator.moduleOptions({ authentication: 'oauth' });
      const { auth } = await start({ oauth: { clientId: oauth?.clientId, clientSecret: 'wrong' } });
      const errors = await Promise.all(
        Array.from({ length: scaled(10_000) }, () => rejection(auth.getApiToken())),
      );
      for (const error of errors) expect(error).toMatchObject({ code: 'token_refused' });
      expect(new Set(errors).size).toBe(scaled(10_000));
      expect(simulator.tokenRequests).toHaveLength(1);
    },
    LIMIT_MS,
  );

  it(
    `${scaled(1_000)} customers while the token endpoint fails: two requests after those in flight, and an error for each`,
    async () => {
      const { auth } = await start();
      simulator.fail({ face: 'token', times: Infinity, fault: { status: 503 } });
      const customers = Array.from({ length: scaled(1_000) }, (_, n) => auth.getCustomerToken(`c-${n}`));
      const errors = await Promise.all(customers.map(rejection));
      for (const error of errors) expect(error).toMatchObject({ code: 'token_unavailable', status: 503 });
      expect(new Set(errors).size).toBe(scaled(1_000));
      // 50 may be in flight; one more begins when the first of them fails, as that may be about this customer alone.
      expect(simulator.tokenRequests.length).toBeLessThanOrEqual(53);
    },
    LIMIT_MS,
  );

  it(
    `${scaled(1_000)} calls of a service in trouble: their retries stay in the budget`,
    async () => {
      const { banks } = await start();
      simulator.fail({ path: /v1/, times: Infinity, fault: { status: 503 } });
      const doomed = await Promise.all(Array.from({ length: scaled(1_000) }, () => rejection(banks.list())));
      for (const error of doomed) expect(error).toMatchObject({ status: 503 });
      // It has 500 tokens, and each retry takes 5.
      expect(simulator.apiRequests).toHaveLength(scaled(1_000) + 100);
    },
    LIMIT_MS,
  );

  it(
    `${scaled(2_000)} odd ids, headers and bodies: no crash, nothing sent outside the service, nothing split`,
    async () => {
      const { auth, customers, http } = await start();
      await auth.getApiToken();
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
            ? http.post(`/echo/v1`, json, { headers: { 'x-odd': odd } })
            : kind % 3 === 0
              ? http.get(odd.startsWith('/') ? `/${odd}` : `https://evil.example/${odd}`)
              : kind % 3 === 1
                ? auth.getCustomerToken(`${odd} `)
                : customers.create({ app_user_id: 1, [odd]: json } as never);
          if (isSent) sent += 1;
          await outcome.catch((error: unknown) => expect(error).toBeInstanceOf(ServiceError));
        }),
        // One that arrives, whatever the others are.
        { numRuns: scaled(2_000), examples: [['a', {}, 0]] },
      );
      const arrived = simulator.requests;
      expect(arrived.length).toBeLessThanOrEqual(sent);
      expect(arrived.length).toBeGreaterThan(0);
      for (const { path, headers } of arrived) {
        expect(path).toBe('/echo/v1');
        expect(Object.keys(headers).sort()).toEqual(expect.arrayContaining(['authorization', 'host']));
        expect(headers['x-odd']?.includes('\n') ?? false).toBe(false);
      }
    },
    LIMIT_MS,
  );

  onlyInSoak(it)(
    '5,000 that share a signal end by it, for less work than they began with',
    async () => {
      const { banks } = await start();
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
    LIMIT_MS,
  );
});
