import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LinkSdkService, type TokenStore } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { StoreCipher } from '../../lib/auth/store/store-cipher.js';
import { Secret } from '../../lib/config/secret.js';
import { startModule, type StartedModule } from '../helpers/start-module.js';

type Entry = Record<string, unknown>;

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

  /** The entry of this scope, changed by somebody who knows the client secret. */
  spoil(scope: string, secret: string, change: (entry: Entry) => Entry): void {
    const cipher = new StoreCipher(new Secret(secret));
    for (const [key, value] of this.entries) {
      const entry = JSON.parse(cipher.open(value, key) ?? '{}') as Entry;
      if (entry.scope === scope) this.entries.set(key, cipher.seal(JSON.stringify(change(entry)), key));
    }
  }
}

/** An entry of a store never gives a browser a token that the endpoint would not have given it. */
describe('connectParameters with a shared store', () => {
  let simulator: ServiceSimulator;
  let store: OpenStore;
  let modules: StartedModule[];

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
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
  const claimsOf = (token: string): Entry =>
    JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString()) as Entry;

  it('an entry as it was written is handed out by another process', async () => {
    const token = await connect('b', await start());
    expect(await connect('b', await start())).toBe(token);
    expect(simulator.tokenRequests).toHaveLength(1);
  });

  it("an entry for one customer that holds another's token, or the api token, is not", async () => {
    const first = await start();
    const api = (await first.auth.getApiToken()).accessToken;
    const ofA = await connect('a', first);
    await connect('b', first);
    for (const accessToken of [ofA, api]) {
      store.spoil('customer.b', simulator.clientSecret, (entry) => ({ ...entry, accessToken }));
      expect(claimsOf(await connect('b', await start()))).toMatchObject({ customer_id: 'b' });
    }
    expect(simulator.tokenRequests.map(({ body }) => new URLSearchParams(body).get('scope'))).toEqual([
      'api',
      'customer.a',
      'customer.b',
      'customer.b',
      'customer.b',
    ]);
  });

  it('nor one that gives a token a longer life than its own exp', async () => {
    simulator.tokenLifetime = 2;
    const short = await connect('b', await start());
    simulator.tokenLifetime = 3_600;
    const ended = Number(claimsOf(short).exp) * 1_000;
    while (Date.now() < ended) await new Promise((resolve) => setImmediate(resolve));
    store.spoil('customer.b', simulator.clientSecret, (entry) => ({
      ...entry,
      issuedAt: Date.now(),
      lifetimeS: 3_600,
    }));
    const next = await connect('b', await start());
    expect(next).not.toBe(short);
    expect(Number(claimsOf(next).exp) * 1_000).toBeGreaterThan(Date.now());
  });
});
