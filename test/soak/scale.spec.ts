import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceSimulator } from 'nestjs-service/testing';
import { type FleetProcess, type FleetReport, startFleet } from '../helpers/fleet.js';
import { findProgram, itWith, requireProgram } from '../helpers/optional-programs.js';
import { startRedis, type RedisServer } from '../helpers/redis.js';
import { printFigure } from '../helpers/print-figure.js';

const REPLICAS = 1_000;
const PROCESSES = 5;
const WAVES = 10;
const LIFETIME_S = 24;
/** A token is not used in the last tenth of its lifetime. */
const USABLE_MS = LIFETIME_S * 1_000 * 0.9;
const MOST_IN_A_LIFE = 1.4;
const SCOPES = ['api', ...Array.from({ length: 20 }, (_, index) => `customer.c-${index}`)];

const program = findProgram('redis-server');
const redisIt = itWith(program, '1,000 replicas over a real Redis');

describe('a thousand replicas that share their tokens over Redis', () => {
  let simulator: ServiceSimulator;
  let redis: RedisServer;
  let processes: FleetProcess[] = [];

  beforeAll(async () => {
    if (program.path === undefined) return;
    redis = await startRedis(requireProgram(program));
    simulator = await ServiceSimulator.start({ tokenLifetime: LIFETIME_S, delayMs: { token: 50 } });
    processes = startFleet(PROCESSES, simulator, redis.url, SCOPES);
  });
  afterAll(async () => {
    await Promise.all(processes.map((one) => one.kill()));
    await simulator?.stop();
    await redis?.kill();
  });

  const all = <T = void>(order: 'start' | 'restart' | 'report', count = 0): Promise<T[]> =>
    Promise.all(processes.map((one) => one.order<T>(order, { count: count / PROCESSES })));

  /** @param extra requests for each token in addition to its renewals */
  async function phase(name: string, run: () => Promise<unknown>, extra = 0): Promise<void> {
    simulator.clearRequests();
    const begun = performance.now();
    await run();
    const lives = (performance.now() - begun) / USABLE_MS;
    const requests = simulator.tokenRequests.length;
    const reports = await all<FleetReport>('report');
    const wait = Math.max(...reports.map(({ longestMs }) => longestMs));
    const inALife = (requests / SCOPES.length - extra) / lives;
    printFigure(
      `${name}: ${requests} token requests in ${lives.toFixed(1)} lives of ${SCOPES.length} tokens, ` +
        `${inALife.toFixed(2)} in a life; the longest wait ${Math.round(wait)} ms`,
    );
    expect(reports.flatMap(({ failures }) => failures)).toEqual([]);
    // Round up, because a phase may begin just before a renewal.
    expect(requests).toBeLessThanOrEqual(SCOPES.length * (extra + Math.ceil(MOST_IN_A_LIFE * lives)));
  }

  redisIt(
    `${REPLICAS} replicas send at most ${MOST_IN_A_LIFE} token requests per token lifetime, and no replica fails to get a token`,
    async () => {
      // One extra request: a process whose event loop is blocked during its start works without the store for 5 s.
      await phase('start', () => all('start', REPLICAS), 1);
      await phase('rolling restart', async () => {
        for (let wave = 0; wave < WAVES; wave += 1) await all('restart', REPLICAS / WAVES);
      });
      await phase(
        'Redis empty',
        async () => {
          const client = await redis.connect();
          await client.flushAll();
          client.destroy();
          await sleep(USABLE_MS);
        },
        1,
      );
    },
    900_000,
  );
});
