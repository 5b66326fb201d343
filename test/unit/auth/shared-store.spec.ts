import { describe, expect, it } from '@jest/globals';
import { pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import {
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from '../../../lib/auth/access-token.js';
import { ClientSecret } from '../../../lib/auth/endpoint/client-secret.js';
import { GuardedStore } from '../../../lib/auth/store/guarded-store.js';
import { SharedStore } from '../../../lib/auth/store/shared-store.js';
import { StoredToken, StoreKeys } from '../../../lib/auth/store/stored-token.js';
import { Secret } from '../../../lib/config/secret.js';
import { type TokenStore } from '../../../lib/config/token-cache.options.js';
import { ServiceConnectionError, ServiceTokenError } from '../../../lib/errors/index.js';
import { SILENT } from '../../../lib/exchange/io.js';
import { momentOf, systemClock } from '../../../lib/time/clock.js';
import { nextTurn } from '../../../lib/time/clock.js';
import { sleep } from '../../../lib/time/timers.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { inSoak } from '../../helpers/in-soak.js';
import { readDocument } from '../../helpers/readme.js';
import { standStill } from '../../helpers/stand-still.js';
import { FakeSource, makeCache } from './fakes.js';

const OWNER = { tokenUrl: 'https://auth.example/oauth2/token', clientId: 'client-1' };
const hang = (): Promise<never> => new Promise(() => undefined);
const down = (): Promise<never> => Promise.reject(new Error('ECONNREFUSED'));
const broken = (fault: () => Promise<never>): TokenStore => ({
  get: fault,
  set: fault,
  delete: fault,
  lock: fault,
});

/** The secret of a client, of a source that may change. */
function clientSecret(
  clock: FakeClock,
  read: () => string | Promise<string> = () => 'secret-1',
): ClientSecret {
  return new ClientSecret(async () => new Secret(await read()), clock, String);
}

/** In [0, 1), the same in each run. */
function randomNumbers(): () => number {
  let seed = 1;
  return () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
}

/** A store in memory, by the same clock. */
class MemoryStore implements TokenStore {
  readonly entries = new Map<string, { value: string; until: number }>();
  readonly locks = new Map<string, number>();
  /** How often an entry was looked for. */
  reads = 0;

  constructor(readonly clock: FakeClock) {}

  async get(key: string): Promise<string | undefined> {
    this.reads += 1;
    const entry = this.entries.get(key);
    return entry && entry.until > this.clock.monotonic() ? entry.value : undefined;
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    this.entries.set(key, { value, until: this.clock.monotonic() + ttlMs });
  }

  async delete(key: string, ifValue?: string): Promise<void> {
    if (ifValue === undefined || this.entries.get(key)?.value === ifValue) this.entries.delete(key);
  }

  async lock(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined> {
    if ((this.locks.get(key) ?? 0) > this.clock.monotonic()) return undefined;
    this.locks.set(key, this.clock.monotonic() + ttlMs);
    return async () => void this.locks.delete(key);
  }
}

interface StoreSetUp {
  source: Pick<TokenSource, 'request'>;
  store: TokenStore;
  clock: FakeClock;
  secret?: ClientSecret;
  random?: () => number;
  certificate?: () => string | undefined;
}

function makeStore({ source, store, clock, certificate, random = () => 0, ...more }: StoreSetUp) {
  const secret = more.secret ?? clientSecret(clock);
  const owner = () => ({ ...OWNER, fingerprint256: certificate?.() });
  // As the endpoint: the certificate of its beginning, and the secret that it has read by its end.
  const endpoint: TokenSource = {
    request: async (scope, context) => {
      const before = owner();
      const grant = await source.request(scope, context);
      return { ...grant, requestedWith: { ...before, secret: secret.last ?? (await secret.read()) } };
    },
  };
  return new SharedStore(endpoint, store, owner, secret, {
    clock,
    random,
    log: SILENT,
    describeOption: String,
  });
}

/** Processes that share a store and a clock. */
function setUp() {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  const start = (options: Partial<StoreSetUp> = {}) => {
    const source = new FakeSource();
    const shared = makeStore({ source, store, clock, ...options });
    const request = (scope = 'api', context: Partial<TokenRequestContext> = {}): Promise<TokenGrant> =>
      shared.request(scope, {
        signal: new AbortController().signal,
        timeoutMs: 10_000,
        accepts: () => true,
        isAwaited: () => true,
        ...context,
      });
    /** The endpoint answers at once, if it is asked. */
    const fill = async (expiresIn = 600, accessToken?: string): Promise<TokenGrant> => {
      const waiting = request();
      await settle();
      source.requests.at(-1)?.grant(expiresIn, accessToken);
      const grant = await waiting;
      await settle();
      return grant;
    };
    return { source, shared, request, fill };
  };
  /** Some that all want a token, and what they asked the endpoint together. */
  const startMany = (count: number, options: Partial<StoreSetUp> = {}) => {
    const all = Array.from({ length: count }, () => start(options));
    const asked = () => all.flatMap(({ source }) => source.requests);
    const requestAll = (context?: Partial<TokenRequestContext>) =>
      Promise.all(all.map(({ request }) => request('api', context)));
    return { asked, requestAll };
  };
  /** One that has the lock, and never does anything again. */
  const startAndDie = async (): Promise<void> => {
    void start({ clock: new FakeClock() }).request();
    await settle();
  };
  return { clock, store, start, startMany, startAndDie };
}

const tokensOf = (grants: TokenGrant[]): string[] => [
  ...new Set(grants.map(({ accessToken }) => accessToken)),
];

describe('a token of another process', () => {
  it('is found with its age, without a request, and nothing is left', async () => {
    const { clock, store, start } = setUp();
    await start().fill();
    await clock.advance(60_000);
    const other = start();
    expect(await other.request()).toEqual({
      accessToken: 'token-1',
      scope: 'api',
      expiresIn: 600,
      ageMs: 60_000,
      requestedAt: momentOf(clock),
    });
    expect([other.source.requests.length, store.locks.size, clock.timers]).toEqual([0, 0, 0]);
  });

  it('is not taken if it will not do', async () => {
    const { start } = setUp();
    await start().fill();
    const other = start();
    const waiting = other.request('api', { accepts: ({ accessToken }) => accessToken !== 'token-1' });
    await settle();
    other.source.last.grant(600, 'token-2');
    expect((await waiting).accessToken).toBe('token-2');
  });

  it('is taken out where it does not work, if it is still the one there', async () => {
    const { store, start } = setUp();
    const first = start();
    await first.fill();
    first.shared.dropped('api', 'another');
    await settle();
    expect(store.entries.size).toBe(1);
    first.shared.dropped('api', 'token-1');
    await settle();
    expect(store.entries.size).toBe(0);

    await first.fill(600, 'token-2');
    const get = store.get.bind(store);
    store.get = async (key) => {
      const value = await get(key);
      await store.set(key, 'of another process, just now', 600_000);
      return value;
    };
    first.shared.dropped('api', 'token-2');
    await settle();
    expect(store.entries.size).toBe(1);
  });

  it('is not older for the wait before it, nor is one of its own', async () => {
    const { clock, start, startAndDie } = setUp();
    await startAndDie();
    const [holder, other] = [start({ random: () => 0.4 }), start()];
    const [first, waiting] = [holder.request(), other.request()];
    await clock.advance(4_300);
    const asked = [holder, other].flatMap(({ source }) => source.requests);
    expect(asked).toHaveLength(1);
    const askedAt = clock.monotonic();
    await clock.advance(500);
    asked[0].grant(600);
    await clock.advance(300);
    const grants = await Promise.all([first, waiting]);
    for (const { requestedAt, ageMs = 0 } of grants) {
      const issuedAt = (requestedAt?.monotonic ?? 0) - ageMs;
      expect(Math.abs(issuedAt - askedAt)).toBeLessThanOrEqual(300);
    }
    expect(grants.map(({ ageMs }) => ageMs === undefined).sort()).toEqual([false, true]);
  });

  it('is not there if it ended on its way, because the process that asked was suspended', async () => {
    const { clock, store, start } = setUp();
    const { request, source } = start();
    const waiting = request();
    await settle();
    clock.jump(600_000);
    source.last.grant(600);
    await waiting;
    await settle();
    expect([store.entries.size, store.locks.size]).toEqual([0, 0]);
  });

  it('is under the certificate that it was requested with', async () => {
    const { start } = setUp();
    const used = { certificate: 'AA' };
    const a = start({ certificate: () => used.certificate });
    const waiting = a.request();
    await settle();
    used.certificate = 'BB';
    a.source.last.grant(600, 'of-AA');
    await waiting;
    await settle();
    const [before, after] = ['AA', 'BB'].map((of) => start({ certificate: () => of }));
    expect(await before.request()).toMatchObject({ accessToken: 'of-AA' });
    void after.request();
    await settle();
    expect([before, after].map(({ source }) => source.requests.length)).toEqual([0, 1]);
  });

  it('without a life is there for a second: one request of 24 replicas, each of whom waits for it', async () => {
    const { store, clock, startMany } = setUp();
    const { asked, requestAll } = startMany(24);
    const waiting = requestAll();
    await clock.advance(2_000);
    asked()[0].grant(0);
    await clock.advance(200);
    const grants = await waiting;
    expect(new Set(grants.map(({ accessToken, expiresIn }) => `${accessToken} ${expiresIn}`)).size).toBe(1);
    expect([asked().length, store.locks.size]).toEqual([1, 0]);
    await clock.advance(1_000);
    const key = [...store.entries.keys()].find((name) => !name.endsWith(':sign')) as string;
    expect([store.entries.has(key), await store.get(key)]).toEqual([true, undefined]);
  });

  it('without a life is found by a replica whose clock differs too', async () => {
    const { clock, start } = setUp();
    for (const jump of [-3_600_000, 3_600_000]) {
      await start().fill(0);
      clock.jump(jump);
      const other = start();
      expect((await other.request()).expiresIn).toBe(0);
      expect(other.source.requests).toHaveLength(0);
      await clock.advance(5_000);
    }
  });
});

describe('who asks the endpoint', () => {
  it.each([
    [2_000, 1],
    [3_900, 1],
    [7_900, 2],
    [9_500, 3],
  ])('an endpoint that takes %s ms gets %s requests of 40 processes', async (ms, count) => {
    const { clock, startMany } = setUp();
    const { asked, requestAll } = startMany(40);
    const waiting = requestAll();
    await settle();
    const [first] = asked();
    await clock.advance(ms);
    expect(asked()).toHaveLength(count);
    first.grant(600, 'slow');
    await clock.advance(200);
    // Those that asked too, and got no answer in time, find it as well.
    for (const late of asked()) late.fail(new Error('no answer'));
    expect(tokensOf(await waiting)).toEqual(['slow']);
  });

  it('a holder that dies holds others up for 4 s at most, and then one of them asks for all', async () => {
    const { clock, startMany, startAndDie } = setUp();
    await startAndDie();
    await clock.advance(100);
    const { asked, requestAll } = startMany(7);
    const waiting = requestAll();
    await clock.advance(3_800);
    expect(asked()).toHaveLength(0);
    await clock.advance(300);
    expect(asked()).toHaveLength(1);
    // An endpoint that is slow then too, and has the rest of the time, but for a last look.
    await clock.advance(1_500);
    expect(asked()[0].context.timeoutMs).toBeLessThanOrEqual(10_000 - 3_900 - 300);
    asked()[0].grant(600);
    await clock.advance(200);
    expect(tokensOf(await waiting)).toHaveLength(1);
    expect(asked()).toHaveLength(1);
  });

  it.each([1, 24])(
    'a lock that never ends holds %s processes up for 5 s at most, and one asks for all',
    async (count) => {
      const { clock, store, startMany } = setUp();
      // As well: a store of JavaScript that says whether it has the lock.
      store.lock = async () => (count === 1 ? (true as never) : undefined);
      const { asked, requestAll } = startMany(count);
      const waiting = requestAll();
      await clock.advance(3_900);
      expect(asked()).toHaveLength(0);
      await clock.advance(1_100);
      expect(asked()).toHaveLength(1);
      asked()[0].grant(600, 'one');
      await clock.advance(200);
      expect(tokensOf(await waiting)).toEqual(['one']);
      expect(asked()).toHaveLength(1);
    },
  );

  it('nor does a sign of a request that somebody left there for ever', async () => {
    const { clock, store, start } = setUp();
    const get = store.get.bind(store);
    const set = store.set.bind(store);
    let sign = 'lie';
    store.lock = async () => undefined;
    store.get = async (key) => (key.endsWith(':sign') ? sign : get(key));
    store.set = async (key, value, ttlMs) =>
      key.endsWith(':sign') ? void (sign = value) : set(key, value, ttlMs);
    const one = start();
    const waiting = one.request();
    await clock.advance(5_000);
    one.source.last.grant(600, 'one');
    expect((await waiting).accessToken).toBe('one');
  });

  it('whoever gets the lock looks once more, as the one before may have just written', async () => {
    const { store, start } = setUp();
    const lock = store.lock.bind(store);
    store.lock = async (key, ttlMs) => {
      store.lock = lock;
      await start().fill(600, 'just now');
      return lock(key, ttlMs);
    };
    const one = start();
    expect([await one.request(), one.source.requests]).toMatchObject([{ accessToken: 'just now' }, []]);
  });

  it('nobody gets the lock before the token is in a store that is slow', async () => {
    const { clock, store, startMany } = setUp();
    const set = store.set.bind(store);
    store.set = async (key, value, ttlMs) => {
      await sleep(clock, 240);
      await set(key, value, ttlMs);
    };
    const { asked, requestAll } = startMany(3);
    const waiting = requestAll();
    await settle();
    asked()[0].grant(600);
    await clock.advance(500);
    expect(tokensOf(await waiting)).toEqual(['token-1']);
    expect(asked()).toHaveLength(1);
  });

  it('an endpoint that never answers gets at most 4 requests in 12 s, whenever callers come', async () => {
    const { clock, start } = setUp();
    const random = randomNumbers();
    const at: number[] = [];
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
      const { request } = start({ source, random });
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
});

describe('an endpoint that fails while callers wait', () => {
  const unavailable = (): ServiceTokenError =>
    new ServiceTokenError({
      code: 'token_unavailable',
      status: 503,
      message: 'It is out of order.',
      hint: 'Check urls.authUrl.',
      options: ['urls.authUrl'],
      scope: 'api',
      retryAfter: 2,
    });

  it('is asked once a second by all processes, and each gets the error of its answer', async () => {
    const { clock, startMany } = setUp();
    let requests = 0;
    const source = { request: () => ((requests += 1), Promise.reject(unavailable())) };
    const { requestAll } = startMany(20, { source, random: randomNumbers() });
    const errors: unknown[] = [];
    const end = clock.monotonic() + 10_000;
    while (clock.monotonic() < end) {
      void requestAll().catch((error: unknown) => errors.push(error));
      await clock.advance(250);
    }
    await clock.advance(1_000);
    expect(requests).toBeGreaterThanOrEqual(8);
    expect(requests).toBeLessThanOrEqual(11);
    expect(errors).toHaveLength(40);
    for (const error of errors) {
      expect(error).toBeInstanceOf(ServiceTokenError);
      expect({ ...(error as object) }).toEqual({ ...unavailable() });
      expect((error as Error).message).toBe('It is out of order.');
    }
  });

  it('is asked by the next process at once after a connection fault, which may be of one process alone', async () => {
    const { start } = setUp();
    const faulty = start();
    const waiting = faulty.request().catch((error: unknown) => error);
    await settle();
    faulty.source.last.fail(new ServiceConnectionError({ kind: 'refused', message: 'refused' }));
    expect(await waiting).toMatchObject({ kind: 'refused' });
    await settle();
    expect((await start().fill()).accessToken).toBe('token-1');
  });

  it('is waited for by no caller of another process if a renewal failed, whose lock stays to its end', async () => {
    const { clock, start } = setUp();
    const renewal = start();
    const failed = renewal.request('api', { isAwaited: () => false }).catch((error: unknown) => error);
    await settle();
    renewal.source.last.fail(unavailable());
    expect(await failed).toMatchObject({ status: 503 });
    const caller = start();
    await clock.advance(3_000);
    await expect(caller.request()).rejects.toMatchObject({ status: 503 });
    await clock.advance(1_100);
    expect((await caller.fill()).accessToken).toBe('token-1');
  });

  it('is asked again within 5 s, though the store keeps the failure and the lock for ever', async () => {
    const { clock, store, start } = setUp();
    const set = store.set.bind(store);
    store.set = (key, value) => set(key, value, Infinity);
    const lock = store.lock.bind(store);
    store.lock = (key) => lock(key, Infinity);
    const one = start();
    const failed = one.request('api', { isAwaited: () => false }).catch((error: unknown) => error);
    await settle();
    one.source.last.fail(unavailable());
    await failed;
    await clock.advance(5_001);
    const other = start();
    const waiting = other.request();
    await clock.advance(4_200);
    other.source.last.grant(600);
    expect((await waiting).accessToken).toBe('token-1');
  });

  it('gives no lock back after the module has closed, and leaves no timer', async () => {
    const { clock, store, start } = setUp();
    const closing = new AbortController();
    const one = start();
    const failed = one.request('api', { closed: closing.signal }).catch((error: unknown) => error);
    await settle();
    one.source.last.fail(unavailable());
    await failed;
    closing.abort();
    await settle();
    expect(clock.timers).toBe(0);
    await clock.advance(1_500);
    expect([...store.locks.values()]).toEqual([expect.any(Number)]);
  });
});

describe('where no caller waits', () => {
  const isAwaited = (): boolean => false;

  it('looks for the token of another process once a second', async () => {
    const { clock, store, start, startMany } = setUp();
    const first = start();
    const asked = first.request();
    await settle();
    const waiting = startMany(10).requestAll({ isAwaited });
    await settle();
    store.reads = 0;
    await clock.advance(3_000);
    // With a caller each it would be 120, as random() is 0.
    expect(store.reads / 10).toBeLessThan(30);
    first.source.last.grant(600);
    await asked;
    await clock.advance(1_500);
    expect(tokensOf(await waiting)).toEqual(['token-1']);
  });

  it('an endpoint that fails at once gets one request in 4 s of all processes', async () => {
    const { clock, startMany } = setUp();
    let requests = 0;
    const source = { request: () => ((requests += 1), Promise.reject(new Error('down'))) };
    const waiting = startMany(40, { source, random: randomNumbers() }).requestAll({ isAwaited });
    waiting.catch(() => undefined);
    await clock.advance(8_500);
    expect(requests).toBeGreaterThan(1);
    expect(requests).toBeLessThanOrEqual(3);
  });

  it('a failed request keeps its lock until that ends; of callers, the next one asks at once', async () => {
    const { clock, start } = setUp();
    const failed = async (context: Partial<TokenRequestContext>): Promise<void> => {
      const { request, source } = start();
      const waiting = request('api', context).catch(() => 'failed');
      await settle();
      source.last.fail(new Error('down'));
      expect(await waiting).toBe('failed');
    };
    await failed({});
    await failed({ isAwaited });
    const next = start();
    void next.request();
    await clock.advance(3_900);
    expect(next.source.requests).toHaveLength(0);
    await clock.advance(200);
    expect(next.source.requests).toHaveLength(1);
  });

  it('a store that does not work has 5 s to come back', async () => {
    const { clock, store, start } = setUp();
    await start().fill();
    const get = store.get.bind(store);
    store.get = down;
    const [background, called] = [start(), start()];
    const waiting = background.request('api', { isAwaited });
    void called.request();
    await clock.advance(900);
    expect([background.source.requests.length, called.source.requests.length]).toEqual([0, 1]);
    store.get = get;
    await clock.advance(5_000);
    expect((await waiting).accessToken).toBe('token-1');

    store.get = down;
    const alone = start();
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
    for (const customer of customers) expect(cache.getCached(customer)).toBeDefined();
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

describe('the client secret', () => {
  it('is read once for the store and the request that follows, and for a second', async () => {
    const clock = new FakeClock();
    let reads = 0;
    const secret = clientSecret(clock, () => `secret-${(reads += 1)}`);
    expect([(await secret.read()).reveal(), (await secret.read()).reveal()]).toEqual([
      'secret-1',
      'secret-1',
    ]);
    await clock.advance(999);
    expect((await secret.read()).reveal()).toBe('secret-1');
    await clock.advance(1);
    expect([(await secret.read()).reveal(), secret.last?.reveal(), reads]).toEqual([
      'secret-2',
      'secret-2',
      2,
    ]);
  });

  it('replicas with the old and the new one do not overwrite the entries of each other', async () => {
    const { clock, store, start } = setUp();
    let current = 'secret-1';
    const changing = start({ secret: clientSecret(clock, () => current) });
    await changing.fill(600, 'with the old');
    current = 'secret-2';
    const other = start({ secret: clientSecret(clock, () => current) });
    await other.fill(600, 'with the new');
    expect([other.source.requests.length, store.entries.size]).toEqual([1, 2]);
    // It learns of the new one with its next request, and most others have not yet.
    await clock.advance(10_000);
    expect((await changing.request()).accessToken).toBe('with the old');
    const third = start({ secret: clientSecret(clock, () => current) });
    expect((await third.request()).accessToken).toBe('with the new');
  });

  it('after a rotation one process requests the token, and none with the old secret', async () => {
    const { clock, start } = setUp();
    let current = 'secret-1';
    const sent: (string | undefined)[] = [];
    const all = Array.from({ length: 5 }, () => {
      const secret = clientSecret(clock, () => current);
      const request = async (scope: string): Promise<TokenGrant> => {
        sent.push(secret.last?.reveal());
        return { accessToken: `token-${sent.length}`, scope, expiresIn: 600 };
      };
      return start({ source: { request }, secret });
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

  it('that takes long to read anew delays a token of another process by 1 s at most', async () => {
    const { clock, start } = setUp();
    let reads = 0;
    const secret = clientSecret(clock, () => ((reads += 1) === 1 ? 'secret-1' : hang()));
    await secret.read();
    await clock.advance(2_000);
    const holder = start();
    void holder.request();
    const waiting = start({ secret }).request();
    await clock.advance(100);
    holder.source.last.grant(600);
    let token: string | undefined;
    void waiting.then(({ accessToken }) => (token = accessToken));
    await clock.advance(1_000);
    expect([reads, token]).toEqual([2, 'token-1']);
  });

  it('that is never read ends with the request', async () => {
    const { clock, start } = setUp();
    const { request } = start({ secret: clientSecret(clock, hang) });
    const closing = new AbortController();
    const asked = request('api', { signal: closing.signal });
    await settle();
    closing.abort(new Error('closed'));
    await expect(asked).rejects.toThrow('closed');
  });

  it('cannot be read: that is the outcome, and the store is not asked', async () => {
    const { clock, store, start } = setUp();
    const sealed = () => Promise.reject(new Error('vault'));
    const { request, source } = start({ secret: clientSecret(clock, sealed) });
    await expect(request()).rejects.toMatchObject({ code: 'client_secret_unavailable' });
    expect([source.requests.length, store.reads]).toEqual([0, 0]);
  });
});

describe('the entry of a token', () => {
  const NOW = Date.UTC(2030, 0, 1);
  const keys = new StoreKeys(new Secret('secret-1'));
  const otherKeys = new StoreKeys(new Secret('secret-2'));
  const grant = { accessToken: 'token-1', scope: 'customer.b', expiresIn: 600 };
  const entry = (scope = 'customer.b', owner: object = OWNER, by = keys): StoredToken =>
    new StoredToken(by, scope, owner as typeof OWNER);
  const written = (): string => entry().write(grant, NOW).value;

  it('is read as it was written, with its age, and ends before its token', () => {
    const { value, ttlMs } = entry().write(grant, NOW);
    expect(ttlMs).toBe(570_000);
    expect(entry().read(value, NOW + 60_000)).toEqual({ ...grant, ageMs: 60_000 });
    // A reader whose clock is behind takes it as new.
    expect(entry().read(value, NOW - 60_000)).toEqual({ ...grant, ageMs: 0 });
  });

  it('is there only for the time that its token has left when it arrives', () => {
    expect(entry().write(grant, NOW, 60_000).ttlMs).toBe(510_000);
    expect(entry().read(entry().write(grant, NOW, 60_000).value, NOW)).toEqual({ ...grant, ageMs: 60_000 });
  });

  it('shows no token, scope or client, in any encoding, and is another one each time', () => {
    const encoded = [entry().key.slice('token:v1:{'.length), written()];
    const texts = [...encoded, ...encoded.map((text) => Buffer.from(text, 'base64url').toString('latin1'))];
    for (const secret of ['token-1', 'customer', 'client-1', 'secret-1'])
      expect(texts.join()).not.toContain(secret);
    expect(written()).not.toBe(written());
  });

  it('is found and read by replicas of another version of the package', () => {
    const key = 'token:v1:{zJgpw_qReFObxX6mMbUVi6g3KC1f7vgcadPqn-16IbY}';
    const value =
      'v1.LUkTrLGgvwATdw1vWJd88QpSLr1EWWc9UsM3emJqGFiJAB-3QCESrKus2nrLlpb7Hz8tR44zmObBFBayvWgjdQ3uK024stF_dX7mfswxEglHourAFKQwYw0nhA4KMj8y7pzHP341Xx0F7BwbkbOgVAAYzg';
    expect([entry().key, entry().read(value, NOW)]).toEqual([key, { ...grant, ageMs: 0 }]);
  });

  it('has a key of its own for each endpoint, client, scope, certificate and secret', () => {
    const others = [
      entry('customer.b', { ...OWNER, tokenUrl: 'https://other.example/oauth2/token' }),
      entry('customer.b', { ...OWNER, clientId: 'client-2' }),
      entry('customer.c'),
      entry('customer.b', { ...OWNER, fingerprint256: 'AA:BB' }),
      entry('customer.b', OWNER, otherKeys),
    ];
    expect(new Set([entry(), ...others].map(({ key }) => key)).size).toBe(6);
    // Redis Cluster: the part in braces chooses the slot.
    expect(entry().key).toMatch(/^token:v1:\{[\w-]{43}\}$/);
    expect(entry().lockKey).toBe(`${entry().key}:lock`);
  });

  it('is not read after its end, though somebody puts it back', () => {
    expect(entry().read(written(), NOW + 599_999)).toBeDefined();
    expect(entry().read(written(), NOW + 600_000)).toBeUndefined();
  });

  const atOwnKey = Object.assign(entry('customer.b', OWNER, otherKeys), { key: entry().key });
  it.each<[string, StoredToken, string | undefined]>([
    ['nothing', entry(), undefined],
    ['empty', entry(), ''],
    ['in clear', entry(), JSON.stringify({ ...grant, issuedAt: NOW, lifetimeS: 600 })],
    ['of another format', entry(), written().replace('v1.', 'v2.')],
    ['too long to be one', entry(), `v1.${'A'.repeat(70_000)}`],
    ['moved to another key', entry('customer.c'), written()],
    ['of another secret, at the same key', atOwnKey, written()],
    // Who wrote it knows the secret.
    ['of another scope', entry(), entry().write({ ...grant, scope: 'api' }, NOW).value],
  ])('is ignored if it is not to be trusted: %s', (_name, reader, value) => {
    expect(reader.read(value, NOW)).toBeUndefined();
  });

  it('is no failure, and a failure is no token; neither is read with another secret', () => {
    const error = new ServiceTokenError({
      code: 'token_refused',
      message: 'no',
      status: 400,
      scope: 'customer.b',
    });
    const failure = entry().writeFailure(error, NOW);
    expect(entry().readFailure(failure, NOW)).toEqual(error);
    expect(entry().read(failure, NOW)).toBeUndefined();
    for (const [reader, value] of [
      [entry(), written()],
      [entry('customer.c'), failure],
      [entry('customer.b', OWNER, otherKeys), failure],
    ] as const)
      expect(reader.readFailure(value, NOW)).toBeUndefined();
    for (const now of [NOW - 5_001, NOW + 5_001]) expect(entry().readFailure(failure, now)).toBeUndefined();
  });

  it('is ignored if it was truncated or changed, anywhere', () => {
    const value = written();
    for (let end = 0; end < value.length; end += 1)
      expect(entry().read(value.slice(0, end), NOW)).toBeUndefined();
    const bytes = Buffer.from(value.slice(3), 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
      const changed = Buffer.from(bytes);
      changed[index] ^= 1;
      expect(entry().read(`v1.${changed.toString('base64url')}`, NOW)).toBeUndefined();
    }
  });
});

describe('a store in trouble', () => {
  /** A store whose behaviour the test sets; it counts what it is asked. */
  class SetStore implements TokenStore {
    asked: string[] = [];
    reads: () => Promise<string | undefined> = async () => 'value';
    writes: () => Promise<void> = async () => undefined;
    timeout?: number;

    get(key: string): Promise<string | undefined> {
      this.asked.push(`get ${key}`);
      return this.reads();
    }
    set(): Promise<void> {
      this.asked.push('set');
      return this.writes();
    }
    delete(): Promise<void> {
      this.asked.push('delete');
      return this.writes();
    }
    async lock(): Promise<(() => Promise<void>) | undefined> {
      this.asked.push('lock');
      await this.writes();
      return async () => void this.asked.push('unlock');
    }
  }

  function setUpGuarded(change: Partial<SetStore> = {}) {
    const clock = new FakeClock();
    const store = Object.assign(new SetStore(), change);
    const lines: string[] = [];
    const note = (level: string) => (line: string) => void lines.push(`${level} ${line}`);
    const log = { ...SILENT, warn: note('warn'), log: note('log') };
    const guarded = new GuardedStore(store, { clock, log });
    const asked = () => store.asked.splice(0);
    return { clock, store, guarded, lines, asked };
  }

  it.each<[string, () => Promise<never>, number]>([
    ['is down', down, 0],
    [
      'throws',
      () => {
        throw new Error('not connected');
      },
      0,
    ],
    ['hangs', hang, 250],
  ])('that %s: a token is there nevertheless', async (_name, fault, afterMs) => {
    const { clock, start } = setUp();
    const { request, source, shared } = start({ store: broken(fault) });
    const waiting = request();
    if (afterMs > 0) await clock.advance(afterMs - 1);
    expect(source.requests).toHaveLength(0);
    await clock.advance(afterMs > 0 ? 1 : 0);
    await settle();
    source.last.grant(600);
    expect((await waiting).accessToken).toBe('token-1');
    shared.dropped('api', 'token-1');
    await settle();
  });

  it.each([
    ['250 ms', 250, undefined],
    ['the time that it names itself', 40, 40],
  ])('that does not answer is waited for %s, and then left alone for 1 s', async (_name, ms, timeout) => {
    const { clock, guarded, asked, store } = setUpGuarded({ timeout, reads: hang });
    let isOver = false;
    void guarded.get('a').then(() => (isOver = true));
    await clock.advance(ms - 1);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await settle();
    expect([isOver, guarded.isAvailable, asked()]).toEqual([true, false, ['get a']]);
    for (let times = 0; times < 2; times += 1) {
      await clock.advance(999);
      expect([await guarded.get('a'), await guarded.lock('a', 1)]).toEqual([undefined, 'none']);
      await guarded.set('a', 'b', 1);
      await guarded.delete('a', 'b');
      expect(asked()).toEqual([]);
      await clock.advance(1);
      void guarded.get('a');
      await clock.advance(ms);
      expect(asked()).toEqual(['get a']);
    }
    store.reads = async () => 'value';
    await clock.advance(1_000);
    expect([guarded.isAvailable, await guarded.get('a'), asked()]).toEqual([true, 'value', ['get a']]);
    expect(clock.timers).toBe(0);
  });

  it('is not meant if the process stood still: the answer has its time once more', async () => {
    // A client may send its commands in the next turn of the event loop only.
    const reads = async (): Promise<string> => {
      await nextTurn();
      await nextTurn();
      await promisify(pbkdf2)('', '', 1, 8, 'sha256');
      return 'value';
    };
    const { store } = setUpGuarded({ reads, timeout: 100 });
    const guarded = new GuardedStore(store, { clock: systemClock, log: SILENT });
    const answer = guarded.get('a');
    standStill(200);
    expect(await answer).toBe('value');
    expect(guarded.isAvailable).toBe(true);
  });

  /** As that of node-redis, which has no code. */
  class ClientClosedError extends Error {}

  it.each([
    ['OOM command not allowed when used memory > maxmemory', 'OOM'],
    ["READONLY You can't write against a read only replica.", 'READONLY'],
    [Object.assign(new Error('x'), { code: 'ETIMEDOUT' }), 'ETIMEDOUT'],
    ['anything else, with redis://user:password@host', 'error'],
    [new ClientClosedError('redis://user:password@host'), 'ClientClosedError'],
    [null, 'error'],
  ])('that refuses (%p) is named in one warning a minute, and again when it works', async (error, cause) => {
    const { clock, store, guarded, lines, asked } = setUpGuarded();
    store.writes = async () => {
      throw (typeof error === 'string' ? new Error(error) : error) as Error;
    };
    for (let call = 0; call < 11; call += 1) {
      await guarded.set('a', 'b', 1);
      await clock.advance(5_000);
    }
    expect(asked()).toHaveLength(11);
    expect(lines).toEqual([
      `warn The token store has failed (${cause}). Until it works again, this process requests tokens of its own.`,
    ]);
    await clock.advance(5_000);
    await guarded.set('a', 'b', 1);
    expect(lines).toHaveLength(2);
    store.writes = async () => undefined;
    await clock.advance(5_000);
    await guarded.set('a', 'b', 1);
    await guarded.set('a', 'b', 1);
    expect(lines.slice(2)).toEqual(['log The token store works again.']);
  });

  it('gets its lock back from its holder, but not after its time: it may be that of another by then', async () => {
    const { clock, guarded, asked } = setUpGuarded();
    const [first, second] = [await guarded.lock('a', 100), await guarded.lock('b', 100)];
    if (typeof first !== 'function' || typeof second !== 'function') throw new Error('no lock');
    asked();
    await clock.advance(99);
    await first();
    expect(asked()).toEqual(['unlock']);
    await clock.advance(1);
    await second();
    await settle();
    expect(asked()).toEqual([]);
  });

  it('a lock that another process has is taken; of a store that has none, there is none', async () => {
    const { store, guarded } = setUpGuarded();
    store.lock = async () => undefined;
    expect(await guarded.lock('a', 100)).toBe('taken');
    Object.assign(store, { lock: undefined });
    expect([await guarded.lock('a', 100), guarded.isAvailable]).toEqual(['none', true]);
  });
});

describe('the requests of a fleet', () => {
  const HOUR_MS = 3_600_000;
  const LIFETIME_S = 3_600;

  /** Those for one token in this time, of replicas that start together. */
  async function requestsOf(replicas: number, ms: number, { isShared = true } = {}): Promise<number> {
    const clock = new FakeClock();
    const store = new MemoryStore(clock);
    const secret = clientSecret(clock);
    const random = randomNumbers();
    let requests = 0;
    const source = {
      request: async (scope: string) => {
        requests += 1;
        const accessToken = `token-${requests}`;
        await sleep(clock, 80);
        return { accessToken, scope, expiresIn: LIFETIME_S };
      },
    };
    const caches = Array.from({ length: replicas }, () =>
      makeCache({
        source: isShared ? makeStore({ source, store, clock, secret, random }) : source,
        refresh: 'scheduled',
        clock,
        random,
      }),
    );
    for (const cache of caches) cache.start();
    await clock.advance(ms);
    for (const cache of caches) expect(cache.getCached('api')).toBeDefined();
    for (const cache of caches) cache.close();
    return requests;
  }

  it('in a day are those of docs/fleet.md: 33 of one replica alone, and of eight over a store', async () => {
    const { text } = await readDocument('docs/fleet.md');
    const told = [...text.matchAll(/requests? (\d+)\b/g)].map(([, number]) => Number(number));
    const day = 24 * HOUR_MS;
    expect([await requestsOf(1, day, { isShared: false }), await requestsOf(8, day)]).toEqual(told);
  });

  inSoak(() => {
    it('of 1,000 replicas are as many over a store as of one', async () => {
      // Three points of renewal, as a day of a thousand takes its time.
      expect(await requestsOf(1_000, 2.3 * HOUR_MS)).toBe(4);
    }, 120_000);
  });
});
