import { afterAll, afterEach, beforeAll, describe, expect } from '@jest/globals';
import { type RedisClientType } from '@redis/client';
import { setTimeout as pause } from 'node:timers/promises';
import { ServiceSimulator } from 'nestjs-service/testing';
import { startFleet, type FleetProcess } from '../helpers/fleet.js';
import { findPeer, itWith, requirePeer } from '../helpers/optional-peers.js';
import { startRedis, type RedisServer } from '../helpers/redis.js';
import { tell } from '../helpers/tell.js';

const program = findPeer('redis-server');
const redisIt = itWith(program, 'a fleet of 24 processes over a real Redis');
const PROCESSES = 24;
const LIMIT = 60_000;

/** As docs/fleet.md says: who asks, if one asks and the others wait for its token. */
describe('24 processes that want the same token', () => {
  let simulator: ServiceSimulator;
  let redis: RedisServer;
  let observer: RedisClientType;
  let fleet: FleetProcess[] = [];

  beforeAll(async () => {
    if (program.path === undefined) return;
    simulator = await ServiceSimulator.start();
    redis = await startRedis(requirePeer(program));
    observer = await redis.connect();
    fleet = startFleet(PROCESSES, simulator, redis.url);
    await Promise.all(fleet.map((one) => one.order('call')));
    simulator.clearRequests();
  }, 240_000);
  afterEach(async () => {
    if (program.path === undefined) return;
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

  const endpointTakes = (delayMs: number): unknown =>
    simulator.fail({ face: 'token', fault: { delayMs }, times: Infinity });

  /** All of them, at once. @returns milliseconds until the last one had a token */
  async function allGet(customer: string, processes = fleet): Promise<number> {
    const begun = performance.now();
    await Promise.all(processes.map((one) => one.order('customer', { customer })));
    return performance.now() - begun;
  }
  function told(what: string, ms: number): number {
    const requests = simulator.tokenRequests.length;
    tell(
      `${what}: ${requests} requests of ${PROCESSES} processes, the last token after ${(ms / 1_000).toFixed(1)} s`,
    );
    return requests;
  }

  for (const ms of [2_000, 8_500, 4_000]) {
    redisIt(
      `an endpoint that takes ${ms} ms`,
      async () => {
        endpointTakes(ms);
        const took = await allGet(`slow-${ms}`);
        expect(told(`endpoint of ${ms} ms`, took)).toBeLessThanOrEqual(3);
      },
      LIMIT,
    );
  }

  redisIt(
    'an endpoint that never answers',
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
      tell(`endpoint that never answers: ${at.length} requests in all, at most ${most} in 12 s`);
      expect(most).toBeLessThanOrEqual(4);
    },
    LIMIT,
  );

  redisIt(
    'the process that asks dies',
    async () => {
      simulator.fail({ face: 'token', fault: 'hang' });
      const [first, ...others] = fleet;
      const lost = first.order('customer', { customer: 'died' }).catch(() => undefined);
      await simulator.waitForRequest(({ face }) => face === 'token');
      const waiting = allGet('died', others);
      await pause(1_000);
      await first.kill();
      await lost;
      fleet = others;
      const took = (await waiting) - 1_000;
      expect(told('the process that asks dies', took)).toBeLessThanOrEqual(3);
      expect(took).toBeLessThan(5_000);
    },
    LIMIT,
  );
});
