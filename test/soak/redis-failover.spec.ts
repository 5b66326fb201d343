import { createCluster, createSentinel } from '@redis/client';
import { afterAll, afterEach, beforeAll, describe, expect } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisTokenStore, type IoredisClient, type NodeRedisClient } from 'nestjs-service/redis';
import { ServiceSimulator } from 'nestjs-service/testing';
import { findProgram, itWith, requireProgram } from '../helpers/optional-programs.js';
import { readDocument, writeSnippets, type Snippets } from '../helpers/readme.js';
import { startCluster, startSentinels, type RedisTopology } from '../helpers/redis-topologies.js';
import { startModule, type StartedModule } from '../helpers/start-module.js';
import { steadyLoad } from '../helpers/steady-load.js';
import { printFigure } from '../helpers/print-figure.js';

const program = findProgram('redis-server');
const redisIt = itWith(program, 'the failover of a Redis Cluster and of Sentinel');

type Client = (NodeRedisClient | IoredisClient) & {
  on(event: 'error', listener: () => void): unknown;
  connect(): Promise<unknown>;
  disconnect?(): unknown;
  destroy?(): unknown;
};
type Make = (seeds: RedisTopology['seeds']) => Client;
/** The exports of the code in docs/fleet.md. */
type Guide = Record<'nodeRedisCluster' | 'ioredisCluster' | 'nodeRedisSentinel' | 'ioredisSentinel', Make>;

/** Clients as the guide makes them, and with default settings, which queue commands while there is no connection. */
const TOPOLOGIES: [string, typeof startCluster, (guide: Guide) => Record<string, Make>][] = [
  [
    'Redis Cluster',
    startCluster,
    (guide) => ({
      'node-redis': guide.nodeRedisCluster,
      'node-redis by default': (seeds) => createCluster({ rootNodes: seeds.map((socket) => ({ socket })) }),
      ioredis: guide.ioredisCluster,
      'ioredis by default': (seeds) => new Cluster(seeds, { lazyConnect: true }),
    }),
  ],
  [
    'Sentinel',
    startSentinels,
    (guide) => ({
      'node-redis': guide.nodeRedisSentinel,
      'node-redis, a pool': (seeds) =>
        createSentinel({ name: 'mymaster', sentinelRootNodes: seeds, masterPoolSize: 5 }),
      ioredis: guide.ioredisSentinel,
      'ioredis by default': (seeds) => new Redis({ name: 'mymaster', sentinels: seeds, lazyConnect: true }),
    }),
  ],
];

describe('Redis failover under 200 calls a second', () => {
  const ends: (() => unknown)[] = [];
  let snippets: Snippets;

  beforeAll(async () => {
    snippets = await writeSnippets((await readDocument('docs/fleet.md')).fences, { name: 'redis-failover' });
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });
  afterAll(() => snippets.remove());

  async function startClient(make: Make, seeds: RedisTopology['seeds']): Promise<Client> {
    const client = make(seeds);
    ends.push(() => (client.destroy ? client.destroy() : client.disconnect?.()));
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  redisIt.each(TOPOLOGIES)(
    'no call fails during a failover of %s, and tokens are shared again afterwards',
    async (name, start, clientsOf) => {
      const simulator = await ServiceSimulator.start();
      ends.push(() => simulator.stop());
      simulator.tokenLifetime = 3;
      const topology = await start(requireProgram(program));
      ends.push(() => topology.kill());
      const warnings: string[] = [];
      const warn = (line: unknown): void => void warnings.push(String(line));
      const modules = new Map<string, StartedModule>();
      const clients = clientsOf((await import(snippets.path('redis-clients.ts'))) as Guide);
      for (const [kind, make] of Object.entries(clients)) {
        const tokenStore = new RedisTokenStore({ client: await startClient(make, topology.seeds) });
        const options = { ...simulator.moduleOptions({ authentication: 'oauth' }), tokenStore };
        const started = await startModule(options, { log: () => undefined, error: warn, warn });
        ends.push(() => started.module.close());
        modules.set(kind, started);
      }

      const apiTokens = async (): Promise<string[]> => {
        const all = await Promise.all([...modules.values()].map(({ auth }) => auth.getApiToken()));
        return [...new Set(all.map(({ accessToken }) => accessToken))];
      };
      await apiTokens();
      const isToken = (key: string): boolean => /^nestjs-service:token:v1:\{[^}]+\}$/.test(key);
      let keys: string[] = [];
      while (keys.length === 0) keys = (await topology.keys()).filter(isToken);
      const [key] = keys;
      let calls = 0;
      const longest = new Map<string, number>();
      const loads = [...modules].map(([kind, { banks, auth }]) => {
        const call = async (): Promise<void> => {
          calls += 1;
          const begun = performance.now();
          // There are ten new customers a second, and several modules request the token of each.
          await (calls % 2 === 0 ? banks.list() : auth.getCustomerToken(`c-${Math.floor(calls / 20)}`));
          longest.set(kind, Math.max(longest.get(kind) ?? 0, performance.now() - begun));
        };
        return steadyLoad(call, { perSecond: 200 / modules.size, concurrency: 10 });
      });
      ends.push(() => Promise.all(loads.map((load) => load.stop())));
      const during = async (what: string, change?: Promise<void>): Promise<void> => {
        longest.clear();
        const lateness = monitorEventLoopDelay();
        lateness.enable();
        const begun = performance.now();
        const since = (): string => `${((performance.now() - begun) / 1000).toFixed(1)} s`;
        await change;
        const changed = since();
        // Wait until all modules have the same token and it is a new one.
        const before = await apiTokens();
        for (let now = before; now.length > 1 || before.includes(now[0]); now = await apiTokens())
          await sleep(50);
        const waits = [...longest].map(([kind, ms]) => `${kind} ${Math.round(ms)} ms`);
        printFigure(
          `${name}, ${what}, done after ${changed}, shared again after ${since()}; longest call: ${waits.join(', ')}; ` +
            `event loop late by ${Math.round(lateness.max / 1e6)} ms`,
        );
      };
      await during('nothing changes');
      await during('the replica takes over', topology.handOver(key));
      await during('the master dies', topology.crash(key));
      await Promise.all(loads.map((load) => load.stop()));
      expect(loads.flatMap(({ failures }) => failures)).toEqual([]);
      expect(warnings).toContainEqual(expect.stringMatching(/^The token store has failed/));
    },
    240_000,
  );
});
