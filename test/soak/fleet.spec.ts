import { afterAll, afterEach, beforeAll, describe, expect } from '@jest/globals';
import { type RedisClientType } from '@redis/client';
import { setTimeout as pause } from 'node:timers/promises';
import { ServiceSimulator } from 'nestjs-service/testing';
import { startFleet, type FleetProcess, type FleetReport } from '../helpers/fleet.js';
import { findProgram, itWith, requireProgram } from '../helpers/optional-programs.js';
import { scanRedis } from '../helpers/redis-scan.js';
import { startRedis, type RedisServer } from '../helpers/redis.js';
import { printFigure } from '../helpers/print-figure.js';

const PROCESSES = 12;
const LIMIT = 300_000;
const program = findProgram('redis-server');
const redisIt = itWith(program, `a fleet of ${PROCESSES} processes over a real Redis`);

describe(`${PROCESSES} processes that share their tokens over Redis`, () => {
  let simulator: ServiceSimulator;
  let redis: RedisServer;
  let observer: RedisClientType;
  let fleet: FleetProcess[] = [];
  let requestsAtStart = 0;

  beforeAll(async () => {
    if (program.path === undefined) return;
    simulator = await ServiceSimulator.start();
    redis = await startRedis(requireProgram(program));
    observer = await redis.connect();
    fleet = startFleet(PROCESSES, simulator, redis.url);
    await Promise.all(fleet.map((one) => one.order('start')));
    await Promise.all(fleet.map((one) => one.order('call')));
    requestsAtStart = simulator.tokenRequests.length;
    simulator.clearRequests();
  }, LIMIT);
  afterEach(async () => {
    if (program.path === undefined) return;
    const { endless, shown } = await scanRedis(observer, simulator);
    expect({ endless, shown }).toEqual({ endless: [], shown: [] });
    simulator.clearFaults();
    simulator.clearRequests();
    await observer.flushAll();
  });
  afterAll(async () => {
    if (program.path === undefined) return;
    await Promise.all(fleet.map((one) => one.kill()));
    observer.destroy();
    await redis.kill();
    await simulator.stop();
  });

  /** All processes request the customer's token at once. @returns milliseconds until the last one has it */
  async function allGet(customer: string, processes = fleet): Promise<number> {
    const begun = performance.now();
    await Promise.all(processes.map((one) => one.order('customer', { customer })));
    return performance.now() - begun;
  }
  function reportRequests(what: string, ms: number): number {
    const requests = simulator.tokenRequests.length;
    printFigure(
      `${what}: ${requests} requests of ${fleet.length} processes, the last token after ${(ms / 1_000).toFixed(1)} s`,
    );
    return requests;
  }

  /** Starts a steady load in each process, with tokens that live for 3 s. */
  async function load(perSecond: number): Promise<void> {
    simulator.tokenLifetime = 3;
    simulator.revokeTokens();
    await observer.flushAll();
    simulator.clearRequests();
    await Promise.all(fleet.map((one) => one.order('load', { perSecond })));
  }
  const reports = (): Promise<FleetReport[]> =>
    Promise.all(fleet.map((one) => one.order<FleetReport>('report')));

  redisIt(
    `${PROCESSES} processes share one token request at the start and one for each customer`,
    async () => {
      expect(requestsAtStart).toBe(1);
      const customer = 'customer-of-a-bank';
      const [first, ...others] = fleet;
      const token = await first.order<string>('customer', { customer });
      for (const one of others) expect(await one.order('customer', { customer })).toBe(token);
      expect(simulator.tokenRequests).toHaveLength(1);
      const { shown, bytes } = await scanRedis(observer, simulator, { customer, token });
      expect(shown).toEqual([]);
      // Count tokens only: locks have other key names.
      expect((await observer.keys('*')).filter((key) => key.endsWith('}'))).toHaveLength(2);
      printFigure(`bytes of each key: ${[...new Set(bytes)].join(', ')}`);
    },
  );

  redisIt.each([2_000, 8_500, 4_000])(
    'the processes send at most 3 requests to a token endpoint that takes %s ms',
    async (delayMs) => {
      simulator.fail({ face: 'token', fault: { delayMs }, times: Infinity });
      const took = await allGet(`slow-${delayMs}`);
      expect(reportRequests(`endpoint of ${delayMs} ms`, took)).toBeLessThanOrEqual(3);
    },
    LIMIT,
  );

  redisIt(
    'the processes send at most 4 requests in 12 s to a token endpoint that never responds',
    async () => {
      simulator.fail({ face: 'token', fault: 'hang', times: Infinity });
      const end = performance.now() + 30_000;
      await Promise.all(
        fleet.map(async (one) => {
          while (performance.now() < end) {
            await one.order('customer', { customer: 'never' }).catch(() => undefined);
          }
        }),
      );
      const at = simulator.tokenRequests.map(({ receivedAt }) => receivedAt);
      const most = Math.max(...at.map((from) => at.filter((ms) => ms >= from && ms < from + 12_000).length));
      printFigure(`endpoint that never answers: ${at.length} requests in all, at most ${most} in 12 s`);
      expect(most).toBeLessThanOrEqual(4);
    },
    LIMIT,
  );

  redisIt(
    '200 replicas send at most 30 requests in 10 s to a token endpoint that responds 503, and calls end within 12 s',
    async () => {
      const cold = startFleet(4, simulator, redis.url);
      try {
        await Promise.all(cold.map((one) => one.order('start', { count: 50 })));
        simulator.fail({ face: 'token', fault: { status: 503 }, times: Infinity });
        const begun = performance.now();
        const longest: number[] = [];
        while (performance.now() < begun + 20_000)
          longest.push(...(await Promise.all(cold.map((one) => one.order<number>('all')))));
        const at = simulator.tokenRequests.map(({ receivedAt }) => receivedAt);
        const requests = Math.max(
          ...at.map((from) => at.filter((ms) => ms >= from && ms < from + 10_000).length),
        );
        printFigure(
          `200 cold replicas: at most ${requests} requests in 10 s, the longest call ${Math.max(...longest)} ms`,
        );
        expect(requests).toBeLessThanOrEqual(30);
        expect(Math.max(...longest)).toBeLessThan(12_000);
      } finally {
        await Promise.all(cold.map((one) => one.kill()));
      }
    },
    LIMIT,
  );

  redisIt(
    'if the process that holds the lock dies, the others get a token within 5 s and no call fails',
    async () => {
      simulator.fail({ face: 'token', fault: 'hang' });
      const [first, ...others] = fleet;
      const lost = first.order('customer', { customer: 'died' }).catch(() => undefined);
      await simulator.waitForRequest(({ face }) => face === 'token');
      expect(await observer.keys('*:lock')).toHaveLength(1);
      const waiting = allGet('died', others);
      await pause(1_000);
      await first.kill();
      await lost;
      fleet = others;
      const took = (await waiting) - 1_000;
      expect(reportRequests('the process that asks dies', took)).toBeLessThanOrEqual(3);
      expect(took).toBeLessThan(5_000);
    },
    LIMIT,
  );

  redisIt(
    'the processes send at most 1.4 token requests per token lifetime under a steady load',
    async () => {
      await load(10);
      await pause(60_000);
      for (const { failures, calls } of await reports()) {
        expect(failures).toEqual([]);
        expect(calls).toBeGreaterThan(0);
      }
      const at = simulator.tokenRequests.map(({ receivedAt }) => receivedAt);
      // A token of 3 s is used for 2 s, because it is not used in its last second.
      const lifetimes = ((at.at(-1) ?? 0) - at[0]) / 2_000;
      const perLifetime = (at.length - 1) / lifetimes;
      printFigure(`${at.length} token requests in 60 s: ${perLifetime.toFixed(2)} a lifetime`);
      // The renewal policy leads to 1.37, whatever the number of processes.
      expect(perLifetime).toBeLessThanOrEqual(1.4);
    },
    LIMIT,
  );

  redisIt(
    'every call succeeds while Redis is flushed, full, read-only, frozen or down, and tokens are shared again afterwards',
    async () => {
      await load(10);
      const during = async (what: string, ms: number): Promise<void> => {
        const before = simulator.tokenRequests.length;
        await pause(ms);
        printFigure(`${what}: ${simulator.tokenRequests.length - before} token requests in ${ms / 1_000} s`);
      };
      await during('Redis works', 5_000);
      await observer.flushAll();
      await during('FLUSHALL', 4_000);
      await observer.configSet({ maxmemory: '1', 'maxmemory-policy': 'noeviction' });
      await during('maxmemory reached', 5_000);
      await observer.configSet({ maxmemory: '0' });
      await observer.sendCommand(['REPLICAOF', '127.0.0.1', '1']);
      await during('READONLY', 5_000);
      await observer.sendCommand(['REPLICAOF', 'NO', 'ONE']);
      await during('works again', 5_000);
      redis.freeze();
      await during('frozen', 20_000);
      await redis.crash();
      await during('crashed', 10_000);
      await redis.restart();
      await during('restarted', 40_000);
      for (const { failures, lines, longestMs } of await reports()) {
        expect(failures).toEqual([]);
        expect(lines.filter((line) => line.includes('token store')).length).toBeGreaterThan(0);
        printFigure(`the longest call: ${Math.round(longestMs)} ms`);
      }
      observer.destroy();
      observer = await redis.connect();
      expect((await observer.keys('*')).length).toBeGreaterThan(0);
    },
    LIMIT,
  );
});
