import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ServiceError, type ServiceModuleOptions } from 'nestjs-service';
import { type RecordedRequest, type ServiceSimulator } from 'nestjs-service/testing';
import { setTimeout as pause } from 'node:timers/promises';
import { anyText } from '../helpers/any-text.js';
import { playHistories } from '../helpers/histories/histories.js';
import { onlyInSoak, scaled } from '../helpers/in-soak.js';
import { printFigure } from '../helpers/print-figure.js';
import { startSimulator } from '../helpers/simulators.js';
import { rejection, type StartedModule, startModule } from '../helpers/start-module.js';
import { until } from '../helpers/until.js';

const LIMIT_MS = 600_000;
/** So long that no call times out on a slow machine: a call fails only because of the simulated fault. */
const TIMEOUT_MS = 300_000;

// Jest itself fails a test for an unhandled rejection.
describe('random histories', () => {
  it(
    `${scaled(5_000)} random calls each send their own credentials and end in time, without a secret shown or a timer left`,
    async () => {
      await playHistories(scaled(5_000), 2);
    },
    LIMIT_MS,
  );
});

describe('large numbers of calls', () => {
  let simulator: ServiceSimulator;
  let api: StartedModule | undefined;

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterEach(async () => {
    await api?.module.close();
    // The simulator notices a closed connection a little later.
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
    `${scaled(10_000)} concurrent callers with a wrong client secret share one token request, and each gets its own error`,
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
    `${scaled(1_000)} customers each get their own error after at most 53 requests to a failing token endpoint`,
    async () => {
      const { auth } = await start();
      simulator.fail({ face: 'token', times: Infinity, fault: { status: 503 } });
      const customers = Array.from({ length: scaled(1_000) }, (_, n) => auth.getCustomerToken(`c-${n}`));
      const errors = await Promise.all(customers.map(rejection));
      for (const error of errors) expect(error).toMatchObject({ code: 'token_unavailable', status: 503 });
      expect(new Set(errors).size).toBe(scaled(1_000));
      // 50 token requests may be in flight. One more starts when the first fails, as the failure may concern one customer only.
      expect(simulator.tokenRequests.length).toBeLessThanOrEqual(53);
    },
    LIMIT_MS,
  );

  it(
    `${scaled(1_000)} calls to a service that responds 503 make only the 100 retries that the retry budget allows`,
    async () => {
      const { banks } = await start();
      simulator.fail({ path: /v1/, times: Infinity, fault: { status: 503 } });
      const doomed = await Promise.all(Array.from({ length: scaled(1_000) }, () => rejection(banks.list())));
      for (const error of doomed) expect(error).toMatchObject({ status: 503 });
      // The retry budget has 500 tokens and each retry takes 5, so there are 100 retries.
      expect(simulator.apiRequests).toHaveLength(scaled(1_000) + 100);
    },
    LIMIT_MS,
  );

  it(
    `${scaled(2_000)} odd ids, paths, headers and bodies cause only ServiceErrors and inject neither a path nor a header`,
    async () => {
      const { auth, customers, http } = await start();
      await auth.getApiToken();
      simulator.clearRequests();
      const text = fc.oneof(
        anyText,
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
        // One example that certainly reaches the simulator, whatever the random ones are.
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

  const customersOf = (...ids: string[]) => {
    const scopes = new Set(ids.map((id) => `customer.${id}`));
    return ({ form }: RecordedRequest) => scopes.has(form?.scope ?? '');
  };

  it(
    `${scaled(500)} customers one after the other get their tokens, except three in a row that the token endpoint does not know`,
    async () => {
      const { auth } = await start();
      const when = customersOf('c-10', 'c-11', 'c-12');
      const fault = { status: 400, json: { error: 'invalid_scope' } };
      simulator.fail({ face: 'token', times: Infinity, when, fault });
      for (let n = 0; n < scaled(500); n += 1) {
        const token = auth.getCustomerToken(`c-${n}`);
        if (n < 10 || n > 12) expect(await token).toMatchObject({ scope: `customer.c-${n}` });
        else expect(await rejection(token)).toMatchObject({ error: 'invalid_scope', scope: 'customer.{}' });
      }
      expect(simulator.tokenRequests).toHaveLength(scaled(500));
    },
    LIMIT_MS,
  );

  it('a 503 with a Retry-After of an hour for one customer delays neither the API token nor other customers', async () => {
    const { auth, banks } = await start();
    const fault = { status: 503, headers: { 'retry-after': '3600' } };
    simulator.fail({ face: 'token', times: Infinity, when: customersOf('c-1'), fault });
    expect(await rejection(auth.getCustomerToken('c-1'))).toMatchObject({ status: 503 });
    await banks.list();
    await auth.getCustomerToken('c-2');
    expect(await rejection(auth.getCustomerToken('c-1'))).toMatchObject({ retryAfter: 5 });
    expect(simulator.tokenRequests.map(({ status }) => status)).toEqual([503, 200, 200]);
  });

  it('three customers in turn cause three token requests, although the cache has room for two of them', async () => {
    const { auth } = await start({ tokenCache: { maxEntries: 2 } });
    simulator.fail({ face: 'token', times: Infinity, fault: { delayMs: 100 } });
    const tokens = Array.from({ length: 15 }, (_, call) => auth.getCustomerToken(`c-${call % 3}`));
    await Promise.all(tokens);
    expect(simulator.tokenRequests).toHaveLength(3);
  });

  onlyInSoak(it)(
    '20 customers wait for less than 1 s (p95) while the token endpoint never responds for two others',
    async () => {
      const { auth } = await start({ linkSdk: { minTokenLife: 1 } });
      simulator.tokenLifetime = 2;
      const when = customersOf('hanging-1', 'hanging-2');
      simulator.fail({ face: 'token', times: Infinity, when, fault: 'hang' });
      const waits: number[] = [];
      const calls: Promise<unknown>[] = [];
      for (let round = 0; round < 300; round += 1) {
        const begun = performance.now();
        if (round % 10 === 0)
          for (const id of ['hanging-1', 'hanging-2']) void rejection(auth.getCustomerToken(id));
        for (let n = 0; n < 20; n += 1)
          calls.push(auth.getCustomerToken(`c-${n}`).then(() => waits.push(performance.now() - begun)));
        await pause(100);
      }
      await Promise.all(calls);
      const p95 = waits.sort((one, other) => one - other)[waits.length * 0.95];
      printFigure(`two customers without a response: p95 of ${waits.length} others ${Math.round(p95)} ms`);
      expect(p95).toBeLessThan(1_000);
      simulator.tokenLifetime = 3_600;
    },
    LIMIT_MS,
  );

  onlyInSoak(it)(
    '5,000 calls that share an AbortSignal reject with its reason, and aborting takes less CPU time than starting them',
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
