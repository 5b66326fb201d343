import { createClientPool, createCluster, type RedisClientType } from '@redis/client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { LinkSdkService, type ServiceModuleOptions } from 'nestjs-service';
import { RedisTokenStore, type RedisTokenStoreOptions } from 'nestjs-service/redis';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { startFleet } from '../helpers/fleet.js';
import { partOf } from '../helpers/in-soak.js';
import { findProgram, itWith, requireProgram } from '../helpers/optional-programs.js';
import { startClusterNode } from '../helpers/redis-topologies.js';
import { type RedisServer, startRedis } from '../helpers/redis.js';
import { startSimulator } from '../helpers/simulators.js';
import { rejection, type StartedModule, startModule } from '../helpers/start-module.js';
import { until } from '../helpers/until.js';

type Client = RedisTokenStoreOptions['client'];

const program = findProgram('redis-server');
const redisIt = itWith(program, 'tokens shared over a real Redis');

/** Modules that share a store as separate processes would, each with a Redis connection of its own. */
describe('tokens shared over Redis', () => {
  let simulator: ServiceSimulator;
  let redis: RedisServer;
  let clients: RedisClientType[];
  let modules: StartedModule[];

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterAll(() => simulator.stop());
  beforeEach(async () => {
    clients = [];
    modules = [];
    if (program.path !== undefined) redis = await startRedis(requireProgram(program));
    simulator.clearRequests();
  });
  afterEach(async () => {
    await Promise.all(modules.map(({ module }) => module.close()));
    clients.forEach((client) => client.destroy());
    if (program.path !== undefined) await redis.kill();
  });

  /** Stands for one process of a host: a module with its own connection to the store. */
  async function start(
    more: Partial<ServiceModuleOptions> = {},
    client?: RedisClientType,
  ): Promise<StartedModule> {
    const own = client ?? (await redis.connect());
    if (!client) clients.push(own);
    const started = await startModule({
      ...simulator.moduleOptions({ authentication: 'oauth' }),
      tokenStore: new RedisTokenStore({ client: own }),
      ...more,
    });
    modules.push(started);
    return started;
  }
  const startMany = (count: number) => Promise.all(Array.from({ length: count }, () => start()));
  /** Waits for this many entries and no lock, because a token is returned before it is stored. Returns the keys. */
  async function stored(count: number): Promise<string[]> {
    let keys: string[] = [];
    await until(async () => {
      keys = await clients[0].keys('*');
      return keys.length === count && !keys.some((key) => key.endsWith(':lock'));
    });
    return keys.sort();
  }

  redisIt('ten processes that start at once without a token share one token request', async () => {
    const all = await startMany(10);
    await Promise.all(all.map(({ banks }) => banks.list()));
    expect(simulator.tokenRequests).toHaveLength(1);
    expect(new Set(simulator.apiRequests.map(({ headers }) => headers.authorization)).size).toBe(1);
    const [key] = await stored(1);
    const ttl = await clients[0].pTTL(key);
    expect(ttl).toBeGreaterThan(3_000_000);
    expect(ttl).toBeLessThanOrEqual(3_600_000);
  });

  redisIt('a revoked token is replaced with one token request for all processes', async () => {
    const all = await startMany(5);
    await Promise.all(all.map(({ banks }) => banks.list()));
    await stored(1);
    simulator.clearRequests();
    simulator.revokeTokens();
    await Promise.all(all.map(({ banks }) => banks.list()));
    expect(simulator.tokenRequests).toHaveLength(1);
    expect(simulator.apiRequests.map(({ status }) => status).sort()).toEqual([
      ...Array<number>(5).fill(200),
      ...Array<number>(5).fill(401),
    ]);
  });

  redisIt(
    'customers and OAuth clients never get a token of another, even if somebody moves an entry',
    async () => {
      const tokenOf = async (customer_id: string, { module }: StartedModule): Promise<string> => {
        const request = { customer_id, permissions: ['identity'] };
        return (await module.get(LinkSdkService).connectParameters(request)).access_token ?? '';
      };
      const [one, other] = await startMany(2);
      const stranger = await start({ oauth: { clientId: crypto.randomUUID(), clientSecret: 'of-another' } });
      const token = await tokenOf('c-1', one);
      const [first] = await stored(1);
      expect(await tokenOf('c-1', other)).toBe(token);
      expect(await tokenOf('c-2', other)).not.toBe(token);
      await expect(stranger.auth.getCustomerToken('c-1')).rejects.toMatchObject({ error: 'invalid_client' });
      const [second] = (await stored(2)).filter((key) => key !== first);
      await clients[0].set(second, (await clients[0].get(first)) ?? '');
      expect(await tokenOf('c-2', await start())).not.toBe(token);
      expect(simulator.tokenRequests.map(({ status }) => status)).toEqual([200, 200, 401, 200]);
    },
  );

  redisIt('a store entry that is not a valid token is ignored and overwritten', async () => {
    await (await start()).auth.getApiToken();
    const [key] = await stored(1);
    const entry = (await clients[0].get(key)) ?? '';
    for (const wrong of ['{', entry.slice(0, -9)]) {
      await clients[0].set(key, wrong);
      simulator.clearRequests();
      await (await start()).banks.list();
      expect(simulator.tokenRequests).toHaveLength(1);
      await until(async () => (await clients[0].get(key)) !== wrong);
    }
  });

  redisIt('calls succeed with a token of each process while Redis is full, frozen or gone', async () => {
    const [first, second, third, fourth] = await startMany(4);
    await clients[0].configSet({ maxmemory: '1', 'maxmemory-policy': 'noeviction' });
    await first.banks.list();
    await second.banks.list();
    redis.freeze();
    await third.banks.list();
    redis.thaw();
    await redis.kill();
    await fourth.banks.list();
    await (await start({}, clients[0])).banks.list();
    expect(simulator.tokenRequests).toHaveLength(5);
  });

  redisIt(
    'ten processes together send at most one request per second while the token endpoint responds 503, and then recover',
    async () => {
      const all = await startMany(10);
      simulator.fail({ face: 'token', fault: { status: 503 }, times: Infinity });
      const begun = performance.now();
      const errors = await Promise.all(all.map(({ banks }) => rejection(banks.list())));
      for (const error of errors) expect(error).toMatchObject({ code: 'token_unavailable', retryable: true });
      const seconds = (performance.now() - begun) / 1_000;
      expect(simulator.tokenRequests.length).toBeLessThanOrEqual(1 + seconds);
      simulator.clearFaults();
      const isAnswered = ({ banks }: StartedModule) =>
        banks.list().then(
          () => true,
          () => false,
        );
      await Promise.all(all.map((one) => until(() => isAnswered(one))));
      expect(simulator.tokenRequests.filter(({ status }) => status === 200)).toHaveLength(1);
    },
  );

  redisIt(
    'a process that was suspended for longer than its tokens live neither returns nor sends an expired token',
    async () => {
      const lifetime = simulator.tokenLifetime;
      const [one] = startFleet(1, simulator, redis.url);
      try {
        simulator.tokenLifetime = 2;
        await one.order('start');
        simulator.fail({ face: 'token', fault: { delayMs: 1_000 }, times: 2 });
        // The order `customer` fails if the returned token has expired.
        const waiting = [one.order('customer', { customer: 'c-1' }), one.order('call')];
        await until(() => simulator.tokenRequests.length === 2);
        one.suspend();
        await until(() => simulator.tokenRequests.every(({ status }) => status === 200));
        const end = Date.now() + 2_100;
        await until(() => Date.now() > end);
        one.resume();
        await Promise.all(waiting);
        expect(simulator.apiRequests.map(({ status }) => status)).toEqual([200]);
        expect(simulator.tokenRequests).toHaveLength(4);
      } finally {
        simulator.tokenLifetime = lifetime;
        await one.kill();
      }
    },
  );

  redisIt('if the holder of a lock dies, the other processes go on when the lock expires', async () => {
    const first = await start();
    await first.auth.getApiToken();
    const [key] = await stored(1);
    await clients[0].del(key);
    await clients[0].set(`${key}:lock`, 'of-one-that-died', { PX: 800 });
    simulator.clearRequests();
    const others = await startMany(2);
    await Promise.all(others.map(({ banks }) => banks.list()));
    expect(simulator.tokenRequests).toHaveLength(1);
    expect(await stored(1)).toEqual([key]);
  });
});

describe('RedisTokenStore', () => {
  let redis: RedisServer;
  let cluster: RedisServer;
  let observer: RedisClientType;
  const ends: (() => unknown)[] = [];

  beforeAll(async () => {
    if (program.path === undefined) return;
    redis = await startRedis(requireProgram(program));
    cluster = await startClusterNode(requireProgram(program));
    observer = await redis.connect();
    const node = await cluster.connect();
    await node.sendCommand(['CLUSTER', 'ADDSLOTSRANGE', '0', '16383']);
    await until(async () => (await node.clusterInfo()).includes('cluster_state:ok'));
    node.destroy();
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });
  afterAll(async () => {
    if (program.path === undefined) return;
    observer.destroy();
    await Promise.all([redis.kill(), cluster.kill()]);
  });

  const closeAfterTest = <T extends { destroy(): unknown } | { disconnect(): unknown }>(client: T): T => {
    ends.push(() => ('destroy' in client ? client.destroy() : client.disconnect()));
    return client;
  };
  const connectAndCloseAfterTest = async <T extends { connect(): Promise<unknown>; destroy(): unknown }>(
    client: T,
  ): Promise<T> => {
    await client.connect();
    return closeAfterTest(client);
  };
  const KINDS: [string, () => Client | Promise<Client>][] = [
    ['node-redis', async () => closeAfterTest(await redis.connect())],
    ['node-redis, a pool', () => connectAndCloseAfterTest(createClientPool({ url: redis.url }))],
    [
      'node-redis, a cluster',
      () => connectAndCloseAfterTest(createCluster({ rootNodes: [{ url: cluster.url }] })),
    ],
    ['ioredis', () => closeAfterTest(new Redis(redis.url))],
    ['ioredis, a cluster', () => closeAfterTest(new Cluster([cluster.url]))],
  ];

  for (const [kind, connect] of partOf(KINDS, 3)) {
    redisIt(`RedisTokenStore with ${kind} reads, writes, deletes and locks`, async () => {
      const store = new RedisTokenStore({ client: await connect() });
      expect(store.check()).toEqual([]);
      const key = `token:{${kind}}`;
      expect(await store.get(key)).toBeUndefined();
      await store.set(key, 'one', 60_000.7);
      expect(await store.get(key)).toBe('one');
      await store.delete(key, 'other');
      expect(await store.get(key)).toBe('one');
      await store.delete(key, 'one');
      expect(await store.get(key)).toBeUndefined();
      await store.set(key, 'two', 60_000);
      await store.delete(key);
      expect(await store.get(key)).toBeUndefined();
      await store.set(key, 'short', 1);
      await until(async () => (await store.get(key)) === undefined);

      const release = await store.lock(`${key}:lock`, 60_000);
      expect(await store.lock(`${key}:lock`, 60_000)).toBeUndefined();
      await release?.();
      expect(await store.lock(`${key}:lock`, 1)).toBeInstanceOf(Function);
      // After a lock has expired, its old holder cannot release the lock of the next holder.
      await until(() => store.lock(`${key}:lock`, 60_000));
      await release?.();
      expect(await store.lock(`${key}:lock`, 60_000)).toBeUndefined();
    });

    redisIt(`RedisTokenStore with ${kind} ignores and replaces a value of another Redis type`, async () => {
      const store = new RedisTokenStore({ client: await connect() });
      const key = `list:{${kind}}`;
      if (!kind.includes('cluster')) await observer.rPush(`nestjs-service:${key}`, 'x');
      expect(await store.get(key)).toBeUndefined();
      await store.set(key, 'one', 60_000);
      expect(await store.get(key)).toBe('one');
    });

    redisIt(
      `RedisTokenStore with ${kind} reads no more of a value than the longest possible entry`,
      async () => {
        const node = closeAfterTest(await (kind.includes('cluster') ? cluster : redis).connect());
        const sentBytes = async () =>
          Number(/total_net_output_bytes:(\d+)/.exec(await node.info('stats'))?.[1]);
        const store = new RedisTokenStore({ client: await connect() });
        const longest = 'x'.repeat(65_536);
        await store.set('huge', longest, 60_000);
        expect((await store.get('huge')) === longest).toBe(true);
        await node.setRange('nestjs-service:huge', 10 * 1024 * 1024, 'x');
        const before = await sentBytes();
        expect((await store.get('huge'))?.length).toBeUndefined();
        expect((await sentBytes()) - before).toBeLessThan(200_000);
        await store.set('huge', 'one', 60_000);
        expect(await store.get('huge')).toBe('one');
      },
    );
  }

  redisIt('each key of RedisTokenStore has the keyPrefix and an expiry time', async () => {
    await observer.flushAll();
    const client = closeAfterTest(await redis.connect());
    const store = new RedisTokenStore({ client, keyPrefix: 'mine:' });
    await store.set('a', 'value', 60_000);
    await store.lock('b', 60_000);
    const keys = await observer.keys('*');
    expect(keys.sort()).toEqual(['mine:a', 'mine:b']);
    for (const key of keys) expect(await observer.pTTL(key)).toBeGreaterThan(0);
  });

  const client = { getRange: Date.now, set: Date.now, del: Date.now, eval: Date.now } as unknown as Client;
  const NO_CLIENT = /^the client of RedisTokenStore is not a client of node-redis or ioredis/;
  const NO_TIME = /timeout of RedisTokenStore/;
  it.each<[string, object, RegExp | undefined]>([
    ['accepts a client and a timeout', { client, timeout: 500 }, undefined],
    ['rejects missing options', {}, NO_CLIENT],
    ['rejects null as client', { client: null }, NO_CLIENT],
    ['rejects an object that is no client', { client: {} }, NO_CLIENT],
    ['rejects a URL as client', { client: 'redis://host:6379' }, NO_CLIENT],
    ['rejects a timeout of 0', { client, timeout: 0 }, NO_TIME],
    ['rejects a timeout of 60 s', { client, timeout: 60_000 }, NO_TIME],
    ['rejects NaN as timeout', { client, timeout: Number.NaN }, NO_TIME],
  ])('the startup check of RedisTokenStore %s', (_name, options, message) => {
    const faults = new RedisTokenStore(options as RedisTokenStoreOptions).check();
    expect(faults).toEqual(message ? [expect.stringMatching(message)] : []);
  });
});
