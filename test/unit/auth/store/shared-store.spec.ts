import { describe, expect, it } from '@jest/globals';
import { type TokenGrant, type TokenRequestContext } from '../../../../lib/auth/access-token.js';
import { ServiceConnectionError } from '../../../../lib/errors/index.js';
import { sleep } from '../../../../lib/time/timers.js';
import { type TokenStore } from '../../../../lib/config/token-cache.options.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';
import { makeCache } from '../fakes.js';
import { clientSecret, makeStore, MemoryStore, setUp } from './set-up.js';

const broken = (fault: () => Promise<never>): TokenStore => ({
  get: fault,
  set: fault,
  delete: fault,
  lock: fault,
});
const down = (): Promise<never> => Promise.reject(new Error('ECONNREFUSED'));

describe('a shared store', () => {
  it('hands one process the token of another, with its age', async () => {
    const { clock, store, process } = setUp();
    await process().fill();
    await clock.advance(60_000);
    const other = process();
    expect(await other.request()).toEqual({
      accessToken: 'token-1',
      scope: 'api',
      expiresIn: 600,
      ageMs: 60_000,
      requestedAt: clock.monotonic(),
    });
    expect(other.source.requests).toHaveLength(0);
    expect(store.locks.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('shows neither secret, client nor customer in its keys', async () => {
    const { store, process } = setUp();
    await process().fill('customer.c1');
    expect([...store.entries.keys()]).toEqual([expect.stringMatching(/^token:v1:\{[\w-]{43}\}$/)]);
  });

  it('several processes make one request', async () => {
    const { clock, process } = setUp();
    const all = Array.from({ length: 10 }, () => process());
    const waiting = all.map(({ request }) => request());
    await clock.advance(1_000);
    const asked = all.flatMap(({ source }) => source.requests);
    expect(asked).toHaveLength(1);
    asked[0].grant(600);
    await clock.advance(200);
    expect((await Promise.all(waiting)).map(({ accessToken }) => accessToken)).toEqual(
      Array(10).fill('token-1'),
    );
    expect(all.flatMap(({ source }) => source.requests)).toHaveLength(1);
  });

  it('a holder that fails lets the next one try', async () => {
    const { clock, process } = setUp();
    const [first, second] = [process(), process()];
    const failed = expect(first.request()).rejects.toThrow('down');
    const waiting = second.request();
    await settle();
    first.source.last.fail(new Error('down'));
    await failed;
    await clock.advance(150);
    second.source.last.grant(600);
    expect((await waiting).accessToken).toBe('token-1');
  });

  it('a holder that dies holds others up for 4 s at most, and then one of them asks for all', async () => {
    const { clock, process } = setUp();
    void process({ clock: new FakeClock() }).request();
    await clock.advance(100);
    const others = Array.from({ length: 7 }, () => process());
    const waiting = others.map((other) => other.request());
    const asked = () => others.flatMap(({ source }) => source.requests);
    await clock.advance(3_800);
    expect(asked()).toHaveLength(0);
    await clock.advance(300);
    expect(asked()).toHaveLength(1);
    // An endpoint that is slow then too.
    await clock.advance(1_500);
    asked()[0].grant(600);
    await clock.advance(200);
    expect(new Set((await Promise.all(waiting)).map(({ accessToken }) => accessToken)).size).toBe(1);
    expect(asked()).toHaveLength(1);
  });

  it.each([1, 24])(
    'a lock that never ends holds %s processes up for 5 s at most, and one asks for all',
    async (count) => {
      const { clock, store, process } = setUp();
      // As well: a store of JavaScript that says whether it has the lock.
      store.lock = async () => (count === 1 ? (true as never) : undefined);
      const all = Array.from({ length: count }, () => process());
      const waiting = all.map(({ request }) => request());
      await clock.advance(3_900);
      const asked = () => all.flatMap(({ source }) => source.requests);
      expect(asked()).toHaveLength(0);
      await clock.advance(1_100);
      expect(asked()).toHaveLength(1);
      asked()[0].grant(600, 'one');
      await clock.advance(200);
      const tokens = (await Promise.all(waiting)).map(({ accessToken }) => accessToken);
      expect(new Set(tokens)).toEqual(new Set(['one']));
      expect(asked()).toHaveLength(1);
    },
  );

  it('nor does a sign of a request that somebody left there for ever', async () => {
    const { clock, store, process } = setUp();
    const get = store.get.bind(store);
    const set = store.set.bind(store);
    let sign = 'lie';
    store.lock = async () => undefined;
    store.get = async (key) => (key.endsWith(':sign') ? sign : get(key));
    store.set = async (key, value, ttlMs) =>
      key.endsWith(':sign') ? void (sign = value) : set(key, value, ttlMs);
    const one = process();
    const waiting = one.request();
    await clock.advance(5_000);
    one.source.last.grant(600, 'one');
    expect((await waiting).accessToken).toBe('one');
  });

  it('a token is not older for the wait before its request', async () => {
    const { clock, process } = setUp();
    void process({ clock: new FakeClock() }).request();
    await settle();
    const other = process({ random: () => 0.4 });
    const waiting = other.request();
    await clock.advance(4_300);
    const asked = clock.monotonic();
    await clock.advance(500);
    other.source.last.grant(600);
    const { requestedAt = 0, ageMs } = await waiting;
    expect(ageMs).toBeUndefined();
    expect(asked - requestedAt).toBeLessThanOrEqual(300);
  });

  it('a token from the store is not older for the wait before it', async () => {
    const { clock, process } = setUp();
    const [holder, other] = [process(), process()];
    const first = holder.request();
    const waiting = other.request();
    await clock.advance(1_000);
    const issuedAt = clock.monotonic() - 1_000;
    holder.source.last.grant(600);
    await first;
    await clock.advance(200);
    const { requestedAt = 0, ageMs = 0 } = await waiting;
    expect(requestedAt - ageMs).toBeCloseTo(issuedAt);
  });

  it.each([
    [2_000, 1],
    [3_900, 1],
    [7_900, 2],
    [9_500, 3],
  ])('an endpoint that takes %s ms gets %s requests of 40 processes', async (ms, count) => {
    const { clock, process } = setUp();
    const all = Array.from({ length: 40 }, () => process());
    const waiting = all.map(({ request }) => request());
    await settle();
    const asked = () => all.flatMap(({ source }) => source.requests);
    const [first] = asked();
    await clock.advance(ms);
    expect(asked()).toHaveLength(count);
    first.grant(600, 'slow');
    await clock.advance(200);
    // Those that asked too, and got no answer in time, find it as well.
    for (const late of asked()) late.fail(new Error('no answer'));
    expect((await Promise.all(waiting)).map(({ accessToken }) => accessToken)).toEqual(
      Array(40).fill('slow'),
    );
  });

  it('an endpoint that never answers gets at most 4 requests in 12 s, whenever callers come', async () => {
    const { clock, process } = setUp();
    const at: number[] = [];
    let seed = 1;
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
    const source = {
      request: (_scope: string, { signal, timeoutMs }: TokenRequestContext) => {
        at.push(clock.monotonic());
        return sleep(clock, timeoutMs, signal).then((): never => {
          throw new ServiceConnectionError({ kind: 'timeout', message: 'never' });
        });
      },
    };
    const end = clock.monotonic() + 60_000;
    for (let number = 0; number < 24; number += 1) {
      const { request } = process({ source, random });
      void (async () => {
        await sleep(clock, ((number * 7) % 24) * 400);
        while (clock.monotonic() < end) {
          const over = new AbortController();
          clock.schedule(() => over.abort(new Error('over')), 10_000);
          await request('api', { signal: over.signal }).catch(() => undefined);
        }
      })();
    }
    await clock.advance(70_000);
    const counts = at.map((from) => at.filter((ms) => ms >= from && ms < from + 12_000).length);
    expect(at.length).toBeGreaterThan(10);
    expect(Math.max(...counts)).toBeLessThanOrEqual(4);
  });

  it('the holder finds the token of one that asked after it, if it gets none itself', async () => {
    const { clock, process } = setUp();
    const [holder, other] = [process(), process()];
    const first = holder.request();
    const waiting = other.request();
    await clock.advance(4_100);
    other.source.last.grant(600, 'quick');
    await waiting;
    await settle();
    holder.source.last.fail(new Error('no answer'));
    expect((await first).accessToken).toBe('quick');
  });

  it('after a wait in vain, a failure of its own request is the outcome, and the store is left alone', async () => {
    const { clock, store, process } = setUp();
    void process({ clock: new FakeClock() }).request();
    await settle();
    const other = process();
    const waiting = other.request();
    const failed = expect(waiting).rejects.toThrow('no');
    await clock.advance(4_100);
    other.source.last.fail(new Error('no'));
    await failed;
    const get = store.get.bind(store);
    let reads = 0;
    store.get = (key) => ((reads += 1), get(key));
    await clock.advance(1_000);
    expect(reads).toBe(0);
    expect(clock.timers).toBe(0);
  });

  describe('where no caller waits', () => {
    const isAwaited = (): boolean => false;

    it('looks for the token of another process once a second', async () => {
      const { clock, store, process } = setUp();
      const first = process();
      const asked = first.request();
      await settle();
      const others = Array.from({ length: 10 }, () => process());
      const waiting = others.map(({ request }) => request('api', { isAwaited }));
      await settle();
      const get = store.get.bind(store);
      let reads = 0;
      store.get = (key) => ((reads += 1), get(key));
      await clock.advance(3_000);
      // With a caller each it would be 120, as random() is 0.
      expect(reads / others.length).toBeLessThan(30);
      first.source.last.grant(600);
      await asked;
      await clock.advance(1_500);
      await Promise.all(waiting);
    });

    it('an endpoint that fails at once gets one request in 4 s of all processes', async () => {
      const { clock, process } = setUp();
      let requests = 0;
      const source = {
        request: () => ((requests += 1), Promise.reject(new Error('down'))),
      };
      const all = Array.from({ length: 40 }, (_, index) => process({ source, random: () => index / 40 }));
      const waiting = all.map(({ request }) => request('api', { isAwaited }).catch(() => undefined));
      await clock.advance(8_500);
      expect(requests).toBeGreaterThan(1);
      expect(requests).toBeLessThanOrEqual(3);
      await clock.advance(5_000);
      void waiting;
    });

    it('a failed request keeps its lock until that ends; of callers, the next one asks at once', async () => {
      const { clock, process } = setUp();
      const failed = async (context: Partial<TokenRequestContext>): Promise<void> => {
        const { request, source } = process();
        const waiting = request('api', context).catch(() => 'failed');
        await settle();
        source.last.fail(new Error('down'));
        expect(await waiting).toBe('failed');
      };
      await failed({});
      await failed({ isAwaited });
      const next = process();
      void next.request();
      await clock.advance(3_900);
      expect(next.source.requests).toHaveLength(0);
      await clock.advance(200);
      expect(next.source.requests).toHaveLength(1);
    });

    it('a store that does not work has 5 s to come back', async () => {
      const { clock, store, process } = setUp();
      await process().fill();
      const get = store.get.bind(store);
      store.get = () => Promise.reject(new Error('down'));
      const [background, called] = [process(), process()];
      const waiting = background.request('api', { isAwaited });
      void called.request();
      await clock.advance(900);
      expect([background.source.requests.length, called.source.requests.length]).toEqual([0, 1]);
      store.get = get;
      await clock.advance(5_000);
      expect((await waiting).accessToken).toBe('token-1');

      store.get = () => Promise.reject(new Error('down'));
      const alone = process();
      void alone.request('api', { isAwaited });
      await clock.advance(4_900);
      expect(alone.source.requests).toHaveLength(0);
      await clock.advance(1_000);
      expect(alone.source.requests).toHaveLength(1);
    });
  });

  describe('a renewal by a cache', () => {
    /** @param endpointMs the time of each token request */
    function setUpCache(
      makeTokenStore: (clock: FakeClock) => TokenStore,
      expiresIn: number,
      endpointMs: number,
    ) {
      const clock = new FakeClock();
      const request = async (scope: string): Promise<TokenGrant> => {
        await sleep(clock, endpointMs);
        return { accessToken: `${scope}-${clock.monotonic()}`, scope, expiresIn };
      };
      const random = () => 0.9;
      const source = makeStore({ source: { request }, store: makeTokenStore(clock), clock, random });
      const cache = makeCache({ source, clock, random, maxEntries: 100, customerRequests: 10 });
      /** Milliseconds that each call waited for its token. */
      const waits: number[] = [];
      const get = async (scope: string): Promise<void> => {
        const begun = clock.monotonic();
        await cache.get(scope);
        waits.push(clock.monotonic() - begun);
      };
      return { clock, cache, get, waits };
    }

    it('waits for a store no longer than 1.5 s while a caller waits for its place', async () => {
      const { clock, cache, get, waits } = setUpCache(() => broken(down), 300, 10);
      const customers = Array.from({ length: 20 }, (_, index) => `customer.${index}`);
      const all = Promise.all(customers.map(get));
      await clock.advance(1_000);
      await all;
      waits.length = 0;
      await clock.advance(210_000);
      for (const customer of customers) expect(cache.use(customer)).toBeDefined();
      await clock.advance(10);
      void get('customer.new');
      await clock.advance(1_500);
      expect(waits).toHaveLength(1);
      cache.close();
    });

    it.each<[string, (clock: FakeClock) => TokenStore]>([
      ['a store that is down', () => broken(down)],
      ['a lock', (clock) => new MemoryStore(clock)],
    ])('does not wait for %s where the token soon ends', async (_name, makeTokenStore) => {
      const { clock, cache, get, waits } = setUpCache(makeTokenStore, 5, 200);
      for (let ms = 0; ms < 20_000; ms += 50) {
        void get('api');
        await clock.advance(50);
      }
      expect(waits.length).toBeGreaterThan(390);
      expect(Math.max(...waits)).toBeLessThanOrEqual(200);
      cache.close();
    });
  });

  it('a dropped token is taken out, if it is still the one there', async () => {
    const { store, process } = setUp();
    const first = process();
    await first.fill();
    first.shared.dropped('api', 'another');
    await settle();
    expect(store.entries.size).toBe(1);
    first.shared.dropped('api', 'token-1');
    await settle();
    expect(store.entries.size).toBe(0);
  });

  it('a token that will not do is not taken', async () => {
    const { process } = setUp();
    await process().fill();
    const other = process();
    const waiting = other.request('api', { accepts: ({ accessToken }) => accessToken !== 'token-1' });
    await settle();
    other.source.last.grant(600, 'token-2');
    expect((await waiting).accessToken).toBe('token-2');
  });

  it('a token without a life is there for a second: one request of 24 replicas, each of whom waits for it', async () => {
    const { store, clock, process } = setUp();
    const all = Array.from({ length: 24 }, () => process());
    const waiting = all.map(({ request }) => request());
    await settle();
    const asked = () => all.filter(({ source }) => source.requests.length > 0);
    expect(asked()).toHaveLength(1);
    await clock.advance(2_000);
    asked()[0].source.last.grant(0);
    await clock.advance(200);
    const grants = await Promise.all(waiting);
    expect(new Set(grants.map(({ accessToken, expiresIn }) => `${accessToken} ${expiresIn}`)).size).toBe(1);
    expect([asked().length, store.locks.size]).toEqual([1, 0]);
    await clock.advance(1_000);
    const key = [...store.entries.keys()].find((name) => !name.endsWith(':sign')) as string;
    expect([store.entries.has(key), await store.get(key)]).toEqual([true, undefined]);
  });

  it('a replica whose clock differs finds a token without a life too', async () => {
    const { clock, process } = setUp();
    for (const jump of [-3_600_000, 3_600_000]) {
      await process().fill('api', 0);
      clock.jump(jump);
      const other = process();
      expect((await other.request()).expiresIn).toBe(0);
      expect(other.source.requests).toHaveLength(0);
      await clock.advance(5_000);
    }
  });

  it('has a token under the certificate that it was requested with', async () => {
    const { process } = setUp();
    const used = { certificate: 'AA' };
    const a = process({ certificateThumbprint: () => used.certificate });
    const waiting = a.request();
    await settle();
    used.certificate = 'BB';
    a.source.last.grant(600, 'of-AA');
    await waiting;
    await settle();
    const [before, after] = ['AA', 'BB'].map((of) => process({ certificateThumbprint: () => of }));
    expect(await before.request()).toMatchObject({ accessToken: 'of-AA' });
    void after.request();
    await settle();
    expect([before, after].map(({ source }) => source.requests.length)).toEqual([0, 1]);
  });

  it('tells apart endpoints, clients, scopes and certificates', async () => {
    const { process } = setUp();
    await process().fill();
    for (const other of [
      process({ tokenUrl: 'https://other.example/oauth2/token' }),
      process({ clientId: 'client-2' }),
      process({ certificateThumbprint: () => 'AA:BB' }),
    ]) {
      await other.fill();
      expect(other.source.requests).toHaveLength(1);
    }
  });
});

it('replicas with the old and the new client secret do not overwrite the entries of each other', async () => {
  const { clock, store, process } = setUp();
  let secret = 'secret-1';
  const changing = process({ clientSecret: clientSecret(clock, () => secret) });
  await changing.fill();
  expect(store.entries.size).toBe(1);
  secret = 'secret-2';
  const other = process({ clientSecret: clientSecret(clock, () => secret) });
  await other.fill();
  expect(other.source.requests).toHaveLength(1);
  expect(store.entries.size).toBe(2);
  expect((await changing.request()).accessToken).toBe('token-1');
  expect((await process({ clientSecret: clientSecret(clock, () => secret) }).request()).accessToken).toBe(
    'token-1',
  );
});

it('after a rotation of the client secret one process requests the token, and none with the old secret', async () => {
  const { clock, process } = setUp();
  let current = 'secret-1';
  const sent: (string | undefined)[] = [];
  const all = Array.from({ length: 5 }, () => {
    const secret = clientSecret(clock, () => current);
    const request = async (scope: string): Promise<TokenGrant> => {
      sent.push(secret.last?.reveal());
      return { accessToken: `token-${sent.length}`, scope, expiresIn: 600 };
    };
    return process({ source: { request }, clientSecret: secret });
  });
  for (const { request } of all) await request();
  current = 'secret-2';
  await clock.advance(10_000);
  const accepts = ({ accessToken }: TokenGrant): boolean => accessToken !== 'token-1';
  for (const { request } of all) {
    expect((await request('api', { accepts })).accessToken).toBe('token-2');
    await settle();
  }
  expect(sent).toEqual(['secret-1', 'secret-2']);
});

describe('the client secret', () => {
  /** A source of tokens that reads the secret as the endpoint does. */
  const setUpVault = () => {
    const all = setUp();
    let reads = 0;
    const secret = clientSecret(all.clock, () => `secret-${(reads += 1)}`);
    return { ...all, secret, reads: () => reads };
  };

  it('is read once for the store and the request that follows, and for a second', async () => {
    const { secret, reads, clock } = setUpVault();
    expect([(await secret.read()).reveal(), (await secret.read()).reveal(), reads()]).toEqual([
      'secret-1',
      'secret-1',
      1,
    ]);
    await clock.advance(999);
    expect([(await secret.read()).reveal(), reads()]).toEqual(['secret-1', 1]);
    await clock.advance(1);
    expect([(await secret.read()).reveal(), secret.last?.reveal(), reads()]).toEqual([
      'secret-2',
      'secret-2',
      2,
    ]);
  });

  it('that was refused is read anew, also where it was read just now', async () => {
    const { secret, reads } = setUpVault();
    const first = await secret.read();
    expect([(await secret.readAfter(first)).reveal(), reads()]).toEqual(['secret-2', 2]);
    // Another request that the first one was refused to.
    expect([(await secret.readAfter(first)).reveal(), reads()]).toEqual(['secret-2', 2]);
  });

  it('that takes long to read anew delays a token of another process by 1 s at most', async () => {
    const { clock, process } = setUp();
    let reads = 0;
    const hangs = clientSecret(clock, () => ((reads += 1) === 1 ? 'secret-1' : new Promise(() => undefined)));
    await hangs.read();
    await clock.advance(2_000);
    const holder = process();
    void holder.request();
    const waiting = process({ clientSecret: hangs }).request();
    await clock.advance(100);
    holder.source.last.grant(600);
    let token: string | undefined;
    void waiting.then(({ accessToken }) => (token = accessToken));
    await clock.advance(1_000);
    expect([reads, token]).toEqual([2, 'token-1']);
  });

  it('that is never read ends with the request', async () => {
    const { clock, process } = setUp();
    const hangs = clientSecret(clock, () => new Promise(() => undefined));
    const { request } = process({ clientSecret: hangs });
    const closing = new AbortController();
    const asked = request('api', { signal: closing.signal });
    await settle();
    closing.abort(new Error('closed'));
    await expect(asked).rejects.toThrow('closed');
  });

  it('cannot be read: that is the outcome, and the store is not asked', async () => {
    const { clock, store, process } = setUp();
    const { request, source } = process({
      clientSecret: clientSecret(clock, () => {
        throw new Error('vault');
      }),
    });
    store.get = () => Promise.reject(new Error('asked'));
    await expect(request()).rejects.toMatchObject({ code: 'client_secret_unavailable' });
    expect(source.requests).toHaveLength(0);
  });
});

describe('a store that', () => {
  it.each<[string, () => Promise<never>]>([
    ['is down', down],
    [
      'throws',
      () => {
        throw new Error('not connected');
      },
    ],
  ])('%s costs nothing', async (_name, fault) => {
    const { process } = setUp();
    const { fill, shared } = process({ store: broken(fault) });
    expect((await fill()).accessToken).toBe('token-1');
    shared.dropped('api', 'token-1');
    await settle();
  });

  it('hangs costs 250 ms', async () => {
    const { clock, process } = setUp();
    const { request, source } = process({ store: broken(() => new Promise(() => undefined)) });
    const waiting = request();
    await clock.advance(249);
    expect(source.requests).toHaveLength(0);
    await clock.advance(1);
    await settle();
    source.last.grant(600);
    expect((await waiting).accessToken).toBe('token-1');
  });
});
