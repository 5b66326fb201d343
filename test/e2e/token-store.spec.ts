import { createClientPool, createCluster, type RedisClientType } from '@redis/client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { LinkSdkService, type ServiceModuleOptions } from 'nestjs-service';
import { RedisTokenStore, type RedisTokenStoreOptions } from 'nestjs-service/redis';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { startFleet } from '../helpers/fleet.js';
import { partOf } from '../helpers/in-soak.js';
import { findPeer, itWith, requirePeer } from '../helpers/optional-peers.js';
import { startClusterNode } from '../helpers/redis-topologies.js';
import { type RedisServer, startRedis } from '../helpers/redis.js';
import { startSimulator } from '../helpers/simulators.js';
import { rejection, type StartedModule, startModule } from '../helpers/start-module.js';
import { until } from '../helpers/until.js';

type Client = RedisTokenStoreOptions['client'];

const program = findPeer('redis-server');
const redisIt = itWith(program, 'tokens shared over a real Redis');

/** Processes that share a store, each with a connection of its own. */
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
    if (program.path !== undefined) redis = await startRedis(requirePeer(program));
    simulator.clearRequests();
  });
  afterEach(async () => {
    await Promise.all(modules.map(({ module }) => module.close()));
    clients.forEach((client) => client.destroy());
    if (program.path !== undefined) await redis.kill();
  });

  /** One process of a host: the module, and a connection to the store. */
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
  /** The names of so many entries, once no lock is left: a token is returned before the store has it. */
  async function stored(count: number): Promise<string[]> {
    for (;;) {
      const keys = await clients[0].keys('*');
      if (keys.length === count && !keys.some((key) => key.endsWith(':lock'))) return keys.sort();
    }
  }

  redisIt('ten processes at once, with no token: one request, and a call of each is answered', async () => {
    const all = await startMany(10);
    await Promise.all(all.map(({ banks }) => banks.list()));
    expect(simulator.tokenRequests).toHaveLength(1);
    expect(new Set(simulator.apiRequests.map(({ headers }) => headers.authorization)).size).toBe(1);
    const [key] = await stored(1);
    const ttl = await clients[0].pTTL(key);
    expect(ttl).toBeGreaterThan(3_000_000);
    expect(ttl).toBeLessThanOrEqual(3_600_000);
  });

  redisIt('a revoked token: dropped for all, replaced once', async () => {
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

  redisIt('customers and clients do not meet in it, though somebody moves an entry', async () => {
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
  });

  redisIt('what stands there and is no token of ours: passed over, and written anew', async () => {
    await (await start()).auth.getApiToken();
    const [key] = await stored(1);
    const entry = (await clients[0].get(key)) ?? '';
    for (const wrong of ['{', entry.slice(0, -9)]) {
      await clients[0].set(key, wrong);
      simulator.clearRequests();
      await (await start()).banks.list();
      expect(simulator.tokenRequests).toHaveLength(1);
      while ((await clients[0].get(key)) === wrong);
    }
  });

  redisIt(
    'full, frozen, then gone, then never there: each process asks for itself, and calls go on',
    async () => {
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
    },
  );

  redisIt(
    'an endpoint that answers 503 gets one request a second of all processes, until it is back',
    async () => {
      const all = await startMany(10);
      simulator.fail({ face: 'token', fault: { status: 503 }, times: Infinity });
      const begun = performance.now();
      const errors = await Promise.all(all.map(({ banks }) => rejection(banks.list())));
      for (const error of errors) expect(error).toMatchObject({ code: 'token_unavailable', status: 503 });
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
    'a process that is suspended for longer than its tokens live hands out none of them, and sends none',
    async () => {
      const lifetime = simulator.tokenLifetime;
      const [one] = startFleet(1, simulator, redis.url);
      try {
        simulator.tokenLifetime = 2;
        await one.order('start');
        simulator.fail({ face: 'token', fault: { delayMs: 1_000 }, times: 2 });
        // It fails if its token has ended.
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

  redisIt('whoever holds the lock dies: the others go on when it ends', async () => {
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
    redis = await startRedis(requirePeer(program));
    cluster = await startClusterNode(requirePeer(program));
    observer = await redis.connect();
    const node = await cluster.connect();
    await node.sendCommand(['CLUSTER', 'ADDSLOTSRANGE', '0', '16383']);
    while (!(await node.clusterInfo()).includes('cluster_state:ok'));
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

  const ended = <T extends { destroy(): unknown } | { disconnect(): unknown }>(client: T): T => {
    ends.push(() => ('destroy' in client ? client.destroy() : client.disconnect()));
    return client;
  };
  const connected = async <T extends { connect(): Promise<unknown>; destroy(): unknown }>(
    client: T,
  ): Promise<T> => {
    await client.connect();
    return ended(client);
  };
  const KINDS: [string, () => Client | Promise<Client>][] = [
    ['node-redis', async () => ended(await redis.connect())],
    ['node-redis, a pool', () => connected(createClientPool({ url: redis.url }))],
    ['node-redis, a cluster', () => connected(createCluster({ rootNodes: [{ url: cluster.url }] }))],
    ['ioredis', () => ended(new Redis(redis.url))],
    ['ioredis, a cluster', () => ended(new Cluster([cluster.url]))],
  ];

  for (const [kind, connect] of partOf(KINDS, 3)) {
    redisIt(`${kind}: reads, writes, deletes and locks`, async () => {
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
      // Of one that ended by itself, the holder cannot release that of the next.
      await until(() => store.lock(`${key}:lock`, 60_000));
      await release?.();
      expect(await store.lock(`${key}:lock`, 60_000)).toBeUndefined();
    });

    redisIt(`${kind}: somebody's list under a key is no entry, and is replaced`, async () => {
      const store = new RedisTokenStore({ client: await connect() });
      const key = `list:{${kind}}`;
      if (!kind.includes('cluster')) await observer.rPush(`nestjs-service:${key}`, 'x');
      expect(await store.get(key)).toBeUndefined();
      await store.set(key, 'one', 60_000);
      expect(await store.get(key)).toBe('one');
    });

    redisIt(`${kind}: reads no more of a value than an entry can have`, async () => {
      const node = ended(await (kind.includes('cluster') ? cluster : redis).connect());
      const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await node.info('stats'))?.[1]);
      const store = new RedisTokenStore({ client: await connect() });
      const longest = 'x'.repeat(65_536);
      await store.set('huge', longest, 60_000);
      expect((await store.get('huge')) === longest).toBe(true);
      await node.setRange('nestjs-service:huge', 10 * 1024 * 1024, 'x');
      const before = await sent();
      expect((await store.get('huge'))?.length).toBeUndefined();
      expect((await sent()) - before).toBeLessThan(200_000);
      await store.set('huge', 'one', 60_000);
      expect(await store.get('huge')).toBe('one');
    });
  }

  redisIt('every key has its prefix and an end', async () => {
    await observer.flushAll();
    const client = ended(await redis.connect());
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
    ['none, with a client and a time', { client, timeout: 500 }, undefined],
    ['nothing given', {}, NO_CLIENT],
    ['null', { client: null }, NO_CLIENT],
    ['no client', { client: {} }, NO_CLIENT],
    ['an address', { client: 'redis://host:6379' }, NO_CLIENT],
    ['no time', { client, timeout: 0 }, NO_TIME],
    ['too much time', { client, timeout: 60_000 }, NO_TIME],
    ['no number', { client, timeout: Number.NaN }, NO_TIME],
  ])('tells at start-up what is wrong with its options: %s', (_name, options, message) => {
    const faults = new RedisTokenStore(options as RedisTokenStoreOptions).check();
    expect(faults).toEqual(message ? [expect.stringMatching(message)] : []);
  });
});
