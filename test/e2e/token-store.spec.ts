import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type RedisClientType } from '@redis/client';
import { LinkSdkService, type ServiceModuleOptions, type TokenStore } from 'nestjs-service';
import { RedisTokenStore } from 'nestjs-service/redis';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { StoredToken, StoreKeys } from '../../lib/auth/store/stored-token.js';
import { Secret } from '../../lib/config/secret.js';
import { findPeer, itWith, requirePeer } from '../helpers/optional-peers.js';
import { type RedisServer, startRedis } from '../helpers/redis.js';
import { type StartedModule, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

const program = findPeer('redis-server');
const redisIt = itWith(program, 'tokens shared over a real Redis');

/** A store that processes share, each with a connection of its own, over a real Redis. */
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
  async function start(more: Partial<ServiceModuleOptions> = {}): Promise<StartedModule> {
    const client = await redis.connect();
    clients.push(client);
    const started = await startModule({
      ...simulator.moduleOptions({ authentication: 'oauth' }),
      tokenStore: new RedisTokenStore({ client }),
      ...more,
    });
    modules.push(started);
    return started;
  }
  const keys = async (): Promise<string[]> => {
    const found = await clients[0].keys('*');
    return found.sort();
  };
  /** The token is returned before the store has it. */
  const stored = async (count: number): Promise<string[]> => {
    for (let found = await keys(); ; found = await keys()) {
      if (found.filter((key) => !key.endsWith(':lock')).length === count && found.length === count)
        return found;
    }
  };

  redisIt('ten processes at once, with no token: one request, and a call of each is answered', async () => {
    const all = await Promise.all(Array.from({ length: 10 }, () => start()));
    await Promise.all(all.map(({ banks }) => banks.list()));
    expect(simulator.tokenRequests).toHaveLength(1);
    expect(new Set(simulator.apiRequests.map(({ headers }) => headers.authorization)).size).toBe(1);
    const [key] = await stored(1);
    const ttl = await clients[0].pTTL(key);
    expect(ttl).toBeGreaterThan(3_000_000);
    expect(ttl).toBeLessThanOrEqual(3_600_000);
    for (const secret of [simulator.clientId, simulator.clientSecret, 'api'])
      expect(key).not.toContain(secret);
  });

  redisIt('a revoked token: dropped for all, replaced once', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => start()));
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

  redisIt('customers and clients do not meet in it', async () => {
    const [one, other] = [await start(), await start()];
    const stranger = await start({ oauth: { clientId: crypto.randomUUID(), clientSecret: 'of-another' } });
    const { accessToken } = await one.auth.getCustomerToken('c-1');
    await stored(1);
    expect((await other.auth.getCustomerToken('c-1')).accessToken).toBe(accessToken);
    expect((await other.auth.getCustomerToken('c-2')).accessToken).not.toBe(accessToken);
    await expect(stranger.auth.getCustomerToken('c-1')).rejects.toMatchObject({ error: 'invalid_client' });
    expect(simulator.tokenRequests.map(({ status }) => status)).toEqual([200, 200, 401]);
  });

  redisIt('what stands there and is no token of ours: passed over, and written anew', async () => {
    await (await start()).auth.getApiToken();
    const [key] = await stored(1);
    const entry = (await clients[0].get(key)) ?? '';
    for (const wrong of ['', 'null', '{', entry.slice(0, -9), `v1.${entry.slice(9)}`]) {
      expect(wrong).not.toBe(entry);
      await clients[0].set(key, wrong);
      simulator.clearRequests();
      await (await start()).banks.list();
      expect(simulator.tokenRequests).toHaveLength(1);
      while ((await clients[0].get(key)) === wrong);
    }
  });

  redisIt('full: each process asks for itself', async () => {
    const [one, other] = [await start(), await start()];
    await clients[0].configSet({ maxmemory: '1', 'maxmemory-policy': 'noeviction' });
    await one.banks.list();
    await other.banks.list();
    expect(simulator.tokenRequests).toHaveLength(2);
  });

  redisIt('frozen, then gone, then never there: calls go on', async () => {
    const [one, other] = [await start(), await start()];
    redis.freeze();
    await one.banks.list();
    redis.thaw();
    await redis.kill();
    await other.banks.list();
    const third = await startModule({
      ...simulator.moduleOptions({ authentication: 'oauth' }),
      tokenStore: new RedisTokenStore({ client: clients[0] }),
    });
    modules.push(third);
    await third.banks.list();
    expect(simulator.tokenRequests).toHaveLength(3);
  });

  redisIt('whoever holds the lock dies: the others go on when it ends', async () => {
    const all = [await start(), await start()];
    await all[0].auth.getApiToken();
    const [key] = await stored(1);
    await clients[0].del(key);
    await clients[0].set(`${key}:lock`, 'of-one-that-died', { PX: 800 });
    simulator.clearRequests();
    const third = await start();
    const fourth = await start();
    await Promise.all([third.banks.list(), fourth.banks.list()]);
    expect(simulator.tokenRequests).toHaveLength(1);
    expect((await stored(1))[0]).toBe(key);
  });
});

/** A store that anybody can write to. */
class OpenStore implements TokenStore {
  readonly entries = new Map<string, string>();

  async get(key: string): Promise<string | undefined> {
    return this.entries.get(key);
  }

  async set(key: string, value: string): Promise<void> {
    this.entries.set(key, value);
  }

  async delete(key: string): Promise<void> {
    this.entries.delete(key);
  }
}

/** An entry of a store never gives a browser the token of somebody else. */
describe('connectParameters with a shared store', () => {
  let simulator: ServiceSimulator;
  let store: OpenStore;
  let modules: StartedModule[];

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterAll(() => simulator.stop());
  beforeEach(() => {
    store = new OpenStore();
    modules = [];
    simulator.clearRequests();
  });
  afterEach(() => Promise.all(modules.map(({ module }) => module.close())));

  async function start(): Promise<StartedModule> {
    const options = simulator.moduleOptions({ authentication: 'oauth' });
    const started = await startModule({ ...options, tokenStore: store });
    modules.push(started);
    return started;
  }
  const connect = async (customer_id: string, { module }: StartedModule): Promise<string> => {
    const request = { customer_id, permissions: ['identity'] };
    return (await module.get(LinkSdkService).connectParameters(request)).access_token ?? '';
  };
  const scopes = () => simulator.tokenRequests.map(({ form }) => form?.scope);

  it('an entry as it was written is handed out by another process', async () => {
    const token = await connect('b', await start());
    expect(await connect('b', await start())).toBe(token);
    expect(scopes()).toEqual(['customer.b']);
  });

  it("one that was moved to another customer's key is not", async () => {
    const first = await start();
    const others = [(await first.auth.getApiToken()).accessToken, await connect('a', first)];
    const values = [...store.entries.values()];
    const b = await connect('b', first);
    const [key] = [...store.entries.keys()].slice(-1);
    for (const value of values) {
      store.entries.set(key, value);
      expect([...others, b]).not.toContain(await connect('b', await start()));
    }
    expect(scopes()).toEqual(['api', 'customer.a', 'customer.b', 'customer.b', 'customer.b']);
  });

  it('nor one whose own scope is another, even if who wrote it knows the client secret', async () => {
    const b = await connect('b', await start());
    const { clientId, clientSecret } = simulator;
    const tokenUrl = `${simulator.moduleOptions({ authentication: 'oauth' }).urls.authUrl}/oauth2/token`;
    const entry = new StoredToken(new StoreKeys(new Secret(clientSecret)), 'customer.b', {
      tokenUrl,
      clientId,
    });
    expect([...store.entries.keys()]).toEqual([entry.key]);
    const { value } = entry.write({ accessToken: b, expiresIn: 600, scope: 'customer.a' }, Date.now());
    store.entries.set(entry.key, value);
    expect(await connect('b', await start())).not.toBe(b);
    expect(scopes()).toEqual(['customer.b', 'customer.b']);
  });
});
