import { createClientPool, createCluster, type RedisClientType } from '@redis/client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { RedisTokenStore, type RedisTokenStoreOptions } from 'nestjs-service/redis';
import { onlyInSoak, partOf } from '../helpers/in-soak.js';
import { findPeer, itWith, requirePeer } from '../helpers/optional-peers.js';
import { startClusterNode } from '../helpers/redis-topologies.js';
import { startRedis, type RedisServer } from '../helpers/redis.js';

const program = findPeer('redis-server');
const redisIt = itWith(program, 'RedisTokenStore with a real Redis');
/** With processes, a lot of data, or a Redis that comes and goes. */
const soakRedisIt = onlyInSoak(redisIt);
type Client = RedisTokenStoreOptions['client'];

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

  const own = async (): Promise<RedisTokenStore> => {
    const client = await redis.connect();
    ends.push(() => client.destroy());
    return new RedisTokenStore({ client });
  };
  /** Until what is asked for is so. */
  async function until(is: () => unknown): Promise<void> {
    while (!(await is())) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  const KINDS: [string, () => Promise<Client>][] = [
    [
      'node-redis',
      async () => {
        const client = await redis.connect();
        ends.push(() => client.destroy());
        return client;
      },
    ],
    [
      'node-redis, a pool',
      async () => {
        const pool = createClientPool({ url: redis.url });
        await pool.connect();
        ends.push(() => pool.destroy());
        return pool;
      },
    ],
    [
      'node-redis, a cluster',
      async () => {
        const client = createCluster({ rootNodes: [{ url: cluster.url }] });
        await client.connect();
        ends.push(() => client.destroy());
        return client;
      },
    ],
    [
      'ioredis',
      async () => {
        const client = new Redis(redis.url);
        ends.push(() => client.disconnect());
        return client;
      },
    ],
    [
      'ioredis, a cluster',
      async () => {
        const client = new Cluster([cluster.url]);
        ends.push(() => client.disconnect());
        return client;
      },
    ],
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
  }

  soakRedisIt('reads no more of a value than an entry can have', async () => {
    for (const [kind, connect] of KINDS) {
      const server = kind.includes('cluster') ? cluster : redis;
      const node = await server.connect();
      ends.push(() => node.destroy());
      const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await node.info('stats'))?.[1]);
      const store = new RedisTokenStore({ client: await connect() });
      const longest = 'x'.repeat(65_536);
      await store.set('huge', longest, 60_000);
      expect((await store.get('huge')) === longest).toBe(true);
      await node.setRange('nestjs-service:huge', 100 * 1024 * 1024, 'x');
      const before = await sent();
      expect((await store.get('huge'))?.length).toBeUndefined();
      expect((await sent()) - before).toBeLessThan(200_000);
      await store.set('huge', 'one', 60_000);
      expect(await store.get('huge')).toBe('one');
    }
  });

  redisIt('every key has its prefix and an end', async () => {
    await observer.flushAll();
    const client = await redis.connect();
    ends.push(() => client.destroy());
    const store = new RedisTokenStore({ client, keyPrefix: 'mine:' });
    await store.set('a', 'value', 60_000);
    await store.lock('b', 60_000);
    const keys = await observer.keys('*');
    expect(keys.sort()).toEqual(['mine:a', 'mine:b']);
    for (const key of keys) expect(await observer.pTTL(key)).toBeGreaterThan(0);
  });

  redisIt("somebody's list under a key is no entry, and is replaced", async () => {
    const ioredis = new Redis(redis.url);
    ends.push(() => ioredis.disconnect());
    const others = new RedisTokenStore({ client: ioredis });
    for (const store of [await own(), others]) {
      await observer.del('nestjs-service:list');
      await observer.rPush('nestjs-service:list', 'x');
      expect(await store.get('list')).toBeUndefined();
      await store.set('list', 'one', 60_000);
      expect(await store.get('list')).toBe('one');
    }
  });
});

describe('what is wrong with the options of a RedisTokenStore is said at start-up:', () => {
  const client = { getRange: Date.now, set: Date.now, del: Date.now, eval: Date.now } as unknown as Client;
  const NO_CLIENT = /^the client of RedisTokenStore is not a client of node-redis or ioredis/;

  it.each<[string, object, RegExp]>([
    ['nothing given', {}, NO_CLIENT],
    ['null', { client: null }, NO_CLIENT],
    ['no client', { client: {} }, NO_CLIENT],
    ['an address', { client: 'redis://host:6379' }, NO_CLIENT],
    ['no time', { client, timeout: 0 }, /timeout of RedisTokenStore/],
    ['too much time', { client, timeout: 60_000 }, /timeout of RedisTokenStore/],
    ['no number', { client, timeout: Number.NaN }, /timeout of RedisTokenStore/],
  ])('%s', (_name, options, message) => {
    const faults = new RedisTokenStore(options as RedisTokenStoreOptions).check();
    expect(faults).toEqual([expect.stringMatching(message)]);
  });

  it('nothing, with a client', () => {
    expect(new RedisTokenStore({ client, timeout: 500 }).check()).toEqual([]);
  });
});
