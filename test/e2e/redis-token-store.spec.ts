import { createClientPool, createCluster, type RedisClientType } from '@redis/client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { RedisTokenStore, type RedisTokenStoreOptions } from 'nestjs-service/redis';
import { ServiceSimulator } from 'nestjs-service/testing';
import { onlyInSoak, partOf } from '../helpers/in-soak.js';
import { findPeer, itWith, requirePeer } from '../helpers/optional-peers.js';
import { startClusterNode } from '../helpers/redis-topologies.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { deadPort } from '../helpers/loopback.js';
import { startModule } from '../helpers/start-module.js';
import { startRedis, type RedisServer } from '../helpers/redis.js';
import { REGISTER } from '../helpers/source-process.js';

const program = findPeer('redis-server');
const redisIt = itWith(program, 'RedisTokenStore with a real Redis');
/** With processes, a lot of data, or a Redis that comes and goes. */
const soakRedisIt = onlyInSoak(redisIt);
type Client = RedisTokenStoreOptions['client'];

describe('RedisTokenStore', () => {
  let redis: RedisServer;
  let cluster: RedisServer;
  let observer: RedisClientType;
  let stores: RedisTokenStore[] = [];
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
    await Promise.all(stores.map((store) => store.close()));
    stores = [];
    for (const end of ends.splice(0)) await end();
  });
  afterAll(async () => {
    if (program.path === undefined) return;
    observer.destroy();
    await Promise.all([redis.kill(), cluster.kill()]);
  });

  function storeAt(url: string, more: RedisTokenStoreOptions = {}): RedisTokenStore {
    const store = new RedisTokenStore({ url, ...more });
    stores.push(store);
    return store;
  }
  /** Until what is asked for is so. */
  async function until(is: () => unknown): Promise<void> {
    while (!(await is())) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  describe('that cannot work is named at start, with its address and what is wrong:', () => {
    const REFUSED = 'WRONGPASS: it refuses the user or the password';
    const CASES: [string, string, string, string][] = [
      ['a database that it does not have', '', '/9999', 'WRONGDB: it has no database of this number'],
      ['a wrong user', 'nobody:s3cret-9@', '', REFUSED],
      ['a password where it has none', ':s3cret-9@', '/0', REFUSED],
      ['nobody listens', 'nobody:s3cret-9@', '', 'ECONNREFUSED: nothing listens at its address'],
    ];
    for (const [what, user, database, cause] of partOf(CASES, 4)) {
      redisIt(what, async () => {
        const port = what === 'nobody listens' ? await deadPort() : redis.port;
        const address = `127.0.0.1:${port}${database}`;
        const simulator = await ServiceSimulator.start();
        const logger = new CollectingLogger();
        const tokenStore = storeAt(`redis://${user}${address}`);
        const options = { ...simulator.moduleOptions({ authentication: 'oauth' }), tokenStore };
        const { module } = await startModule(options, logger);
        ends.push(
          () => module.close(),
          () => simulator.stop(),
        );
        const warnings = () =>
          logger.linesOf('ServiceModule').filter((line) => line.startsWith('The token store'));
        await until(() => warnings().length > 0);
        expect(warnings()).toEqual([
          `The token store at ${address} does not work (${cause}): this process works with its own tokens until it answers.`,
        ]);
        expect(simulator.requests).toEqual([]);
      });
    }
  });

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
    ['a url', async () => undefined],
  ];

  for (const [kind, connect] of partOf(KINDS, 3)) {
    redisIt(`${kind}: reads, writes, deletes and locks`, async () => {
      const client = await connect();
      const store = new RedisTokenStore(client ? { client } : { url: redis.url });
      stores.push(store);
      expect(await store.check()).toEqual([]);
      await store.open();
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
      // A host's client is not closed.
      if (client) {
        await store.close();
        expect(await client.del('nestjs-service:none')).toBe(0);
      }
    });
  }

  soakRedisIt('reads no more of a value than an entry can have', async () => {
    for (const [kind, connect] of KINDS) {
      const server = kind.includes('cluster') ? cluster : redis;
      const node = await server.connect();
      ends.push(() => node.destroy());
      const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await node.info('stats'))?.[1]);
      const client = await connect();
      const store = storeAt(redis.url, client ? { client, url: undefined } : {});
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
    const store = storeAt(redis.url, { keyPrefix: 'mine:' });
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
    for (const store of [storeAt(redis.url), others]) {
      await observer.del('nestjs-service:list');
      await observer.rPush('nestjs-service:list', 'x');
      expect(await store.get('list')).toBeUndefined();
      await store.set('list', 'one', 60_000);
      expect(await store.get('list')).toBe('one');
    }
  });

  it('does nothing before it is used', async () => {
    const store = new RedisTokenStore({ url: 'redis://127.0.0.1:1' });
    expect(await store.check()).toEqual([]);
    await store.close();
  });

  soakRedisIt('connects again by itself after Redis was gone, and rejects at once meanwhile', async () => {
    const own = await startRedis(requirePeer(program));
    ends.push(() => own.kill());
    const store = storeAt(own.url);
    await store.open();
    await own.crash();
    await until(() =>
      store.get('a').then(
        () => false,
        (error: unknown) => (error as { code?: string }).code === 'ECONNREFUSED',
      ),
    );
    await own.restart();
    await until(() =>
      store.get('a').then(
        () => true,
        () => false,
      ),
    );
  });

  soakRedisIt('keeps no process running, while Redis is there and after it has gone', async () => {
    for (const goes of [false, true]) {
      const own = await startRedis(requirePeer(program));
      ends.push(() => own.kill());
      const code = `
        import { RedisTokenStore } from 'nestjs-service/redis';
        const held = setInterval(() => undefined, 1_000);
        const store = new RedisTokenStore({ url: ${JSON.stringify(own.url)} });
        await store.get('a');
        process.send('connected');
        while (${goes}) {
          const error = await store.get('a').catch((reason) => reason);
          if (error?.code === 'ECONNREFUSED') break;
        }
        process.disconnect();
        clearInterval(held);`;
      const child = spawn(
        process.execPath,
        ['--no-warnings', '--import', REGISTER, '--input-type=module', '--eval', code],
        {
          stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
        },
      );
      ends.push(() => child.kill());
      const ended = once(child, 'exit');
      await once(child, 'message');
      if (goes) await own.crash();
      expect(await ended).toEqual([0, null]);
    }
  });

  redisIt(
    'can be used again after it was closed, and is closed with the last of those who opened it',
    async () => {
      const clients = async () => Number(/connected_clients:(\d+)/.exec(await observer.info('clients'))?.[1]);
      await until(async () => (await clients()) === 1);
      const store = storeAt(redis.url);
      await Promise.all([store.open(), store.open()]);
      const connected = await observer.clientList();
      expect(connected).toHaveLength(2);
      await store.close();
      await store.get('a');
      expect((await observer.clientList()).map(({ id }) => id)).toEqual(connected.map(({ id }) => id));
      await store.close();
      await until(async () => (await clients()) === 1);
      await store.get('a');
      expect(await clients()).toBe(2);
      await store.close();
      await store.close();
      await until(async () => (await clients()) === 1);
    },
  );

  soakRedisIt.each([
    ['@redis/client alone', /^redis$/, []],
    ['redis alone', /^@redis\/client$/, []],
    [
      'neither',
      /^(@redis\/client|redis)$/,
      [expect.stringContaining('neither is installed. Install one: npm i')],
    ],
  ])('needs one client library: %s', async (_, missing, faults) => {
    const hooks = `export async function resolve(name, context, next) {
      if (!${missing}.test(name)) return next(name, context);
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    }`;
    const code = `
      import { register } from 'node:module';
      register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hooks)}));
      const { RedisTokenStore } = await import('nestjs-service/redis');
      const held = setInterval(() => undefined, 1_000);
      const store = new RedisTokenStore({ url: ${JSON.stringify(redis.url)} });
      const faults = await store.check();
      const [got] = await Promise.allSettled([store.get('a')]);
      process.send({ faults, got: got.status });
      process.disconnect();
      clearInterval(held);`;
    const child = spawn(
      process.execPath,
      ['--no-warnings', '--import', REGISTER, '--input-type=module', '--eval', code],
      { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
    );
    ends.push(() => child.kill());
    const [told] = await once(child, 'message');
    expect(told).toEqual({ faults, got: faults.length === 0 ? 'fulfilled' : 'rejected' });
  });

  soakRedisIt('rediss: refuses a server whose certificate does not verify', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'redis-tls-'));
    await using simulator = await ServiceSimulator.start();
    const { certificate, privateKey } = await simulator.issueCertificate();
    const files = {
      cert: join(folder, 'cert.pem'),
      key: join(folder, 'key.pem'),
      ca: join(folder, 'ca.pem'),
    };
    await Promise.all([
      writeFile(files.cert, certificate),
      writeFile(files.key, privateKey),
      writeFile(files.ca, simulator.chain),
    ]);
    const tls = ['--tls-cert-file', files.cert, '--tls-key-file', files.key, '--tls-ca-cert-file', files.ca];
    const own = await startRedis(
      requirePeer(program),
      '--tls-port',
      'PORT',
      '--tls-auth-clients',
      'no',
      ...tls,
    );
    ends.push(() => own.kill());
    const error = await storeAt(own.url)
      .get('a')
      .catch((reason: unknown) => reason);
    expect(error).toHaveProperty('code', expect.stringMatching(/CERT|UNABLE_TO|INVALID_PURPOSE/));
    await rm(folder, { recursive: true });
  });

  redisIt('shows neither url nor password, printed or in an error', async () => {
    const own = await startRedis(requirePeer(program), '--requirepass', 'right-password');
    ends.push(() => own.kill());
    const url = `redis://:wrong-password@127.0.0.1:${own.port}/0`;
    const store = storeAt(url);
    const error = await store.get('a').catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/WRONGPASS/);
    for (const shown of [store, error, await store.check()]) {
      const text = inspect(shown, { depth: 10, showHidden: true });
      expect(text + JSON.stringify(shown)).not.toMatch(/wrong-password/);
    }
    expect(await storeAt(url.replace('wrong', 'right')).get('a')).toBeUndefined();
  });
});

describe('what is wrong with the options of a RedisTokenStore is said at start-up:', () => {
  it.each<[string, RedisTokenStoreOptions, RegExp]>([
    ['nothing given', {}, /needs a client or a url.*forRootAsync/],
    ['a url from a variable that is not set', { url: undefined }, /needs a client or a url/],
    ['an empty url', { url: '' }, /the url of RedisTokenStore is not that of a Redis server/],
    ['another protocol', { url: 'https://host' }, /redis:\/\/host:6379 or rediss:/],
    ['a bad escape', { url: 'redis://:%zz@host' }, /percent-encoded/],
    ['no number of a database', { url: 'redis://host/one' }, /the url/],
    ['both', { url: 'redis://host', client: {} as Client }, /not both/],
    ['no client', { client: {} as Client }, /not a client of node-redis or ioredis/],
    ['no time', { url: 'redis://host', timeout: 0 }, /timeout of RedisTokenStore/],
    ['too much time', { url: 'redis://host', timeout: 60_000 }, /timeout of RedisTokenStore/],
    ['no number', { url: 'redis://host', timeout: Number.NaN }, /timeout of RedisTokenStore/],
  ])('%s', async (_name, options, message) => {
    const faults = await new RedisTokenStore(options).check();
    expect(faults).toEqual([expect.stringMatching(message)]);
  });
});
