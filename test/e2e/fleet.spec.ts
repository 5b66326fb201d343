import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { type RedisClientType } from '@redis/client';
import { ServiceSimulator } from 'nestjs-service/testing';
import { startFleet, type FleetProcess, type LoadReport } from '../helpers/fleet.js';
import { findPeer, itWith, requirePeer } from '../helpers/optional-peers.js';
import { scanRedis } from '../helpers/redis-scan.js';
import { startRedis, type RedisServer } from '../helpers/redis.js';

const program = findPeer('redis-server');
const redisIt = itWith(program, 'a fleet of processes over a real Redis');

/** A short version of test/soak/fleet.spec.ts. */
describe('processes that share their tokens over Redis', () => {
  let simulator: ServiceSimulator;
  let redis: RedisServer;
  let observer: RedisClientType;
  let fleet: FleetProcess[] = [];

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
  });
  beforeEach(async () => {
    if (program.path === undefined) return;
    redis = await startRedis(requirePeer(program));
    observer = await redis.connect();
  });
  afterEach(async () => {
    await Promise.all(fleet.splice(0).map((one) => one.kill()));
    if (program.path === undefined) return;
    observer.destroy();
    await redis.kill();
  });
  afterAll(() => simulator.stop());

  redisIt('make one token request; Redis may crash and come back under load, and no call fails', async () => {
    fleet = startFleet(3, simulator, redis.url);
    await Promise.all(fleet.map((one) => one.order('call')));
    expect(simulator.tokenRequests).toHaveLength(1);
    const tokens = [];
    for (const one of fleet) tokens.push(await one.order('customer', { customer: 'customer-of-a-bank' }));
    expect(new Set(tokens).size).toBe(1);
    expect(simulator.tokenRequests).toHaveLength(2);

    const scan = await scanRedis(observer, simulator, {
      customer: 'customer-of-a-bank',
      customerToken: String(tokens[0]),
    });
    expect(scan).toMatchObject({ endless: [], shown: [] });
    // Without a lock, or the sign of a request that took its time.
    expect(scan.keys.filter((key) => key.endsWith('}'))).toHaveLength(2);

    simulator.clearRequests();
    for (const one of fleet) await one.order('load', { perSecond: 50 });
    const answered = async (): Promise<void> => {
      const before = simulator.apiRequests.length;
      while (simulator.apiRequests.length < before + 30)
        await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await answered();
    await redis.crash();
    simulator.revokeTokens();
    await answered();
    await redis.restart();
    await answered();
    const reports = await Promise.all(fleet.map((one) => one.order<LoadReport>('report')));
    expect(reports.flatMap(({ failures }) => failures)).toEqual([]);
    await Promise.all(fleet.map((one) => one.end()));
  });
});
