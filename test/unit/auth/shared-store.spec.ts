import { describe, expect, it } from '@jest/globals';
import { pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import {
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from '../../../lib/auth/access-token.js';
import { rotatingClientSecret } from '../../../lib/auth/endpoint/token-endpoint.js';
import { GuardedStore } from '../../../lib/auth/store/guarded-store.js';
import { SharedStore } from '../../../lib/auth/store/shared-store.js';
import { StoredToken, StoreKeys } from '../../../lib/auth/store/stored-token.js';
import { type Rotating } from '../../../lib/config/rotating.js';
import { Secret } from '../../../lib/config/secret.js';
import { type TokenStore } from '../../../lib/config/options.js';
import { ServiceConnectionError, ServiceTokenError } from '../../../lib/errors/index.js';
import { SILENT } from '../../../lib/telemetry/telemetry.js';
import { momentOf, systemClock, nextTurn, sleep } from '../../../lib/time/time.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { inSoak } from '../../helpers/in-soak.js';
import { readDocument } from '../../helpers/readme.js';
import { blockEventLoop } from '../../helpers/block-event-loop.js';
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

/** A client secret whose source may return another value each time. */
function clientSecret(
  clock: FakeClock,
  read: () => string | Promise<string> = () => 'secret-1',
): Rotating<Secret> {
  const source = async () => new Secret(await read());
  return rotatingClientSecret({ clientSecret: source, clientSecretIn: 'file' }, clock, String);
}

/** Returns a generator of pseudo-random numbers in [0, 1) that are the same in each run. */
function randomNumbers(): () => number {
  let seed = 1;
  return () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
}

/** A token store in memory that uses the fake clock. */
class MemoryStore implements TokenStore {
  readonly entries = new Map<string, { value: string; until: number }>();
  readonly locks = new Map<string, number>();
  /** How often get() was called. */
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
  secret?: Rotating<Secret>;
  random?: () => number;
  certificate?: () => string | undefined;
}

function makeStore({ source, store, clock, certificate, random = () => 0, ...more }: StoreSetUp) {
  const secret = more.secret ?? clientSecret(clock);
  // Like TokenEndpoint: the certificate in use when the request starts, and the secret last read when it ends.
  const endpoint = {
    get owner() {
      return { ...OWNER, fingerprint256: certificate?.() };
    },
    request: async (scope: string, context: TokenRequestContext) => {
      const before = endpoint.owner;
      const grant = await source.request(scope, context);
      return { ...grant, requestedWith: { ...before, secret: secret.last ?? (await secret.get()) } };
    },
  };
  return new SharedStore(endpoint, store, secret, {
    clock,
    random,
    log: SILENT,
    describeOption: String,
  });
}

/** Simulates processes that share a store and a clock. */
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
    /** Gets a token. If the endpoint receives a request, it grants a token at once. */
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
  /** Starts several processes that all want a token, and collects the token requests of all of them. */
  const startMany = (count: number, options: Partial<StoreSetUp> = {}) => {
    const all = Array.from({ length: count }, () => start(options));
    const tokenRequests = () => all.flatMap(({ source }) => source.requests);
    const requestAll = (context?: Partial<TokenRequestContext>) =>
      Promise.all(all.map(({ request }) => request('api', context)));
    const insistAll = () => Promise.all(all.map(({ request }) => insist(request)));
    return { tokenRequests, requestAll, insistAll };
  };
  /** A process that takes the lock and crashes: its clock never runs. */
  const startAndDie = async (): Promise<void> => {
    void start({ clock: new FakeClock() }).request();
    await settle();
  };
  return { clock, store, start, startMany, startAndDie };
}

const GAVE_UP = /^Another process requests this token/;
/** As the callers of a token cache do: requests again after the process has given up, because another one has the lock. */
async function insist(request: () => Promise<TokenGrant>): Promise<TokenGrant> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await request();
    } catch (error) {
      if (attempt === 3 || !GAVE_UP.test((error as Error).message)) throw error;
    }
  }
}

const tokensOf = (grants: TokenGrant[]): string[] => [
  ...new Set(grants.map(({ accessToken }) => accessToken)),
];

describe('Shared token store: tokens of other processes', () => {
  it('takes a token that another process stored, with its age and without a token request, and leaves no lock or timer', async () => {
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

  it('requests a new token if the caller does not accept the stored token', async () => {
    const { start } = setUp();
    await start().fill();
    const other = start();
    const waiting = other.request('api', { accepts: ({ accessToken }) => accessToken !== 'token-1' });
    await settle();
    other.source.last.grant(600, 'token-2');
    expect((await waiting).accessToken).toBe('token-2');
  });

  it('deletes a stored token that does not work, but not another token that is stored by now', async () => {
    const { store, start } = setUp();
    const first = start();
    await first.fill();
    first.shared.drop('api', 'another');
    await settle();
    expect(store.entries.size).toBe(1);
    first.shared.drop('api', 'token-1');
    await settle();
    expect(store.entries.size).toBe(0);

    await first.fill(600, 'token-2');
    const get = store.get.bind(store);
    store.get = async (key) => {
      const value = await get(key);
      await store.set(key, 'of another process, just now', 600_000);
      return value;
    };
    first.shared.drop('api', 'token-2');
    await settle();
    expect(store.entries.size).toBe(1);
  });

  it('does not add the time that a process waited for the lock to the age of a token, whether requested or found in the store', async () => {
    const { clock, start, startAndDie } = setUp();
    await startAndDie();
    const [holder, other] = [start({ random: () => 0.4 }), start()];
    const [first, waiting] = [holder.request(), other.request()];
    await clock.advance(4_300);
    const tokenRequests = [holder, other].flatMap(({ source }) => source.requests);
    expect(tokenRequests).toHaveLength(1);
    const askedAt = clock.monotonic();
    await clock.advance(500);
    tokenRequests[0].grant(600);
    await clock.advance(300);
    const grants = await Promise.all([first, waiting]);
    for (const { requestedAt, ageMs = 0 } of grants) {
      const issuedAt = (requestedAt?.monotonic ?? 0) - ageMs;
      expect(Math.abs(issuedAt - askedAt)).toBeLessThanOrEqual(300);
    }
    expect(grants.map(({ ageMs }) => ageMs === undefined).sort()).toEqual([false, true]);
  });

  it('does not store a token that expired during the request because the process was suspended', async () => {
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

  it('stores a token under the client certificate that it was requested with, even if the certificate changes during the request', async () => {
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

  it('lets 24 replicas share one token without a lifetime, which stays in the store for 1 s', async () => {
    const { store, clock, startMany } = setUp();
    const { tokenRequests, requestAll } = startMany(24);
    const waiting = requestAll();
    await clock.advance(2_000);
    tokenRequests()[0].grant(0);
    await clock.advance(200);
    const grants = await waiting;
    expect(new Set(grants.map(({ accessToken, expiresIn }) => `${accessToken} ${expiresIn}`)).size).toBe(1);
    expect([tokenRequests().length, store.locks.size]).toEqual([1, 0]);
    await clock.advance(1_000);
    const [key] = store.entries.keys();
    expect([store.entries.has(key), await store.get(key)]).toEqual([true, undefined]);
  });

  it('takes a token without a lifetime although the clocks of the replicas differ by an hour', async () => {
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

describe('Shared token store: lock and number of requests', () => {
  it.each([
    [2_000, 1],
    [3_900, 1],
    [7_900, 2],
    [9_500, 3],
  ])('an endpoint that takes %s ms to respond gets %s requests from 40 processes', async (ms, count) => {
    const { clock, startMany } = setUp();
    const { tokenRequests, insistAll } = startMany(40);
    const waiting = insistAll();
    await settle();
    const [first] = tokenRequests();
    await clock.advance(ms);
    expect(tokenRequests()).toHaveLength(count);
    first.grant(600, 'slow');
    await clock.advance(200);
    // The processes whose own requests got no response in time find the token in the store too.
    for (const late of tokenRequests()) late.fail(new Error('no response'));
    expect(tokensOf(await waiting)).toEqual(['slow']);
  });

  it('takes over the lock of a crashed process after 4 s, and then one process requests the token for all', async () => {
    const { clock, startMany, startAndDie } = setUp();
    await startAndDie();
    await clock.advance(100);
    const { tokenRequests, insistAll } = startMany(7);
    const waiting = insistAll();
    await clock.advance(3_800);
    expect(tokenRequests()).toHaveLength(0);
    await clock.advance(300);
    expect(tokenRequests()).toHaveLength(1);
    // The endpoint is slow this time too. It gets the remaining time, except for a last look into the store.
    await clock.advance(1_500);
    expect(tokenRequests()[0].context.timeoutMs).toBeLessThanOrEqual(10_000 - 3_900 - 300);
    tokenRequests()[0].grant(600);
    await clock.advance(200);
    expect(tokensOf(await waiting)).toHaveLength(1);
    expect(tokenRequests()).toHaveLength(1);
  });

  it.each([1, 24])(
    'gives up with a retryable error after 5 s if the lock never ends, when %s processes want a token',
    async (count) => {
      const { clock, store, startMany } = setUp();
      // With one process, also cover a store written in JavaScript whose lock() returns true instead of a function.
      store.lock = async () => (count === 1 ? (true as never) : undefined);
      const { tokenRequests, requestAll } = startMany(count);
      const waiting = requestAll();
      let failure: unknown;
      waiting.catch((error: unknown) => (failure = error));
      await clock.advance(4_999);
      expect(failure).toBeUndefined();
      await clock.advance(1);
      await expect(waiting).rejects.toMatchObject({
        code: 'token_unavailable',
        retryable: true,
        message: 'Another process requests this token, and has stored none within 5000 ms.',
      });
      expect([tokenRequests().length, clock.timers]).toEqual([0, 0]);
    },
  );

  it.each([2_000, 3_000, 4_000])(
    'at most 3 of 24 replicas request a token from an endpoint that takes %s ms, and no caller gets an error',
    async (ms) => {
      const { clock, store } = setUp();
      const random = randomNumbers();
      let requests = 0;
      const request = async (scope: string): Promise<TokenGrant> => {
        requests += 1;
        await sleep(clock, ms);
        return { accessToken: 'slow', scope, expiresIn: 600 };
      };
      const caches = Array.from({ length: 24 }, () =>
        makeCache({ source: makeStore({ source: { request }, store, clock, random }), clock, random }),
      );
      const waiting = Promise.all(caches.map((cache) => cache.scope('api').get()));
      await clock.advance(10_000);
      expect(new Set((await waiting).map(({ accessToken }) => accessToken))).toEqual(new Set(['slow']));
      expect(requests).toBeLessThanOrEqual(3);
    },
  );

  it('looks into the store once more after getting the lock, and finds the token that the previous holder has just written', async () => {
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

  it('keeps the lock until a slow store has written the token, so that no other process requests one', async () => {
    const { clock, store, startMany } = setUp();
    const set = store.set.bind(store);
    store.set = async (key, value, ttlMs) => {
      await sleep(clock, 240);
      await set(key, value, ttlMs);
    };
    const { tokenRequests, requestAll } = startMany(3);
    const waiting = requestAll();
    await settle();
    tokenRequests()[0].grant(600);
    await clock.advance(500);
    expect(tokensOf(await waiting)).toEqual(['token-1']);
    expect(tokenRequests()).toHaveLength(1);
  });

  it('sends at most 4 requests in any 12 s from 24 processes to an endpoint that never responds', async () => {
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

describe('Shared token store: failed requests while callers wait', () => {
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

  it('sends about one request a second from 20 processes to a failing endpoint, and all get a retryable error', async () => {
    const { clock, start } = setUp();
    let requests = 0;
    const source = { request: () => ((requests += 1), Promise.reject(unavailable())) };
    const random = randomNumbers();
    const all = Array.from({ length: 20 }, () => start({ source, random }));
    const errors: ServiceTokenError[] = [];
    const end = clock.monotonic() + 10_000;
    while (clock.monotonic() < end) {
      for (const { request } of all) request().catch((error: ServiceTokenError) => errors.push(error));
      await clock.advance(250);
    }
    expect(requests).toBeGreaterThanOrEqual(8);
    expect(requests).toBeLessThanOrEqual(11);
    await clock.advance(5_000);
    expect(errors).toHaveLength(20 * 40);
    for (const error of errors) {
      expect(error).toBeInstanceOf(ServiceTokenError);
      expect(error).toMatchObject({ code: 'token_unavailable', scope: 'api', retryable: true });
      if (error.status === undefined) expect(error.message).toMatch(GAVE_UP);
      else expect({ ...error }).toEqual({ ...unavailable() });
    }
  });

  it('lets the next process request 1 s after the endpoint has responded with an error', async () => {
    const { clock, start } = setUp();
    const one = start();
    const failed = one.request().catch((error: unknown) => error);
    await settle();
    one.source.last.fail(unavailable());
    expect(await failed).toMatchObject({ status: 503 });
    const next = start();
    const waiting = next.request();
    await clock.advance(999);
    expect(next.source.requests).toHaveLength(0);
    await clock.advance(101);
    next.source.last.grant(600);
    expect((await waiting).accessToken).toBe('token-1');
  });

  it('lets the next process request at once after a connection fault, which may affect one process only', async () => {
    const { start } = setUp();
    const faulty = start();
    const waiting = faulty.request().catch((error: unknown) => error);
    await settle();
    faulty.source.last.fail(new ServiceConnectionError({ kind: 'refused', message: 'refused' }));
    expect(await waiting).toMatchObject({ kind: 'refused' });
    await settle();
    expect((await start().fill()).accessToken).toBe('token-1');
  });

  it('lets a caller in another process request the token when the lock of a failed renewal ends after 4 s', async () => {
    const { clock, start } = setUp();
    const renewal = start();
    const failed = renewal.request('api', { isAwaited: () => false }).catch((error: unknown) => error);
    await settle();
    renewal.source.last.fail(unavailable());
    expect(await failed).toMatchObject({ status: 503 });
    const caller = start();
    const waiting = caller.request();
    await clock.advance(3_900);
    expect(caller.source.requests).toHaveLength(0);
    await clock.advance(200);
    caller.source.last.grant(600);
    expect((await waiting).accessToken).toBe('token-1');
  });

  it('does not release the lock and leaves no timer after the module has closed', async () => {
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

describe('Shared token store: requests that no caller waits for', () => {
  const isAwaited = (): boolean => false;

  it('looks for the token of another process less often while no caller waits', async () => {
    const { clock, store, start, startMany } = setUp();
    const first = start();
    const firstRequest = first.request();
    await settle();
    const waiting = startMany(10).requestAll({ isAwaited });
    await settle();
    store.reads = 0;
    await clock.advance(3_000);
    // Each process reads 12 times in 3 s. If a caller waited it would read 60 times, because random() is 0.
    expect(store.reads / 10).toBeLessThan(30);
    first.source.last.grant(600);
    await firstRequest;
    await clock.advance(1_500);
    expect(tokensOf(await waiting)).toEqual(['token-1']);
  });

  it('sends at most 3 requests in 8.5 s from 40 processes to an endpoint that fails at once', async () => {
    const { clock, startMany } = setUp();
    let requests = 0;
    const source = { request: () => ((requests += 1), Promise.reject(new Error('down'))) };
    const waiting = startMany(40, { source, random: randomNumbers() }).requestAll({ isAwaited });
    waiting.catch(() => undefined);
    await clock.advance(8_500);
    expect(requests).toBeGreaterThan(1);
    expect(requests).toBeLessThanOrEqual(3);
  });

  it('keeps the lock of a failed renewal until it ends after 4 s, but releases the lock of a failed request that a caller waited for', async () => {
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

  it('waits 5 s for a failing store to recover before it requests a token that no caller waits for', async () => {
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

describe('Shared token store: renewals by the token cache', () => {
  /** @param endpointMs how long each token request takes */
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
    /** How many milliseconds each call waited for its token. */
    const waits: number[] = [];
    const get = async (scope: string): Promise<void> => {
      const begun = clock.monotonic();
      await cache.scope(scope).get();
      waits.push(clock.monotonic() - begun);
    };
    return { clock, cache, get, waits };
  }

  it('waits at most 1.5 s for a failing store while a caller waits for a free place', async () => {
    const { clock, cache, get, waits } = setUpCache(() => broken(down), 300, 10);
    const customers = Array.from({ length: 20 }, (_, index) => `customer.${index}`);
    const all = Promise.all(customers.map(get));
    await clock.advance(1_000);
    await all;
    waits.length = 0;
    await clock.advance(210_000);
    for (const customer of customers) expect(cache.scope(customer).getCached()).toBeDefined();
    await clock.advance(10);
    void get('customer.new');
    await clock.advance(1_500);
    expect(waits).toHaveLength(1);
    cache.close();
  });

  it.each<[string, (clock: FakeClock) => TokenStore]>([
    ['a store that is down', () => broken(down)],
    ['a lock', (clock) => new MemoryStore(clock)],
  ])(
    'does not let a call wait for %s longer than for one token request when the token expires soon',
    async (_name, makeTokenStore) => {
      const { clock, cache, get, waits } = setUpCache(makeTokenStore, 5, 200);
      for (let ms = 0; ms < 20_000; ms += 50) {
        void get('api');
        await clock.advance(50);
      }
      expect(waits.length).toBeGreaterThan(390);
      expect(Math.max(...waits)).toBeLessThanOrEqual(200);
      cache.close();
    },
  );
});

describe('Shared token store: client secret', () => {
  it('reads the client secret once per second, so that the store and the token request share one reading', async () => {
    const clock = new FakeClock();
    let reads = 0;
    const secret = clientSecret(clock, () => `secret-${(reads += 1)}`);
    expect([(await secret.get()).reveal(), (await secret.get()).reveal()]).toEqual(['secret-1', 'secret-1']);
    await clock.advance(999);
    expect((await secret.get()).reveal()).toBe('secret-1');
    await clock.advance(1);
    expect([(await secret.get()).reveal(), secret.last?.reveal(), reads]).toEqual([
      'secret-2',
      'secret-2',
      2,
    ]);
  });

  it('keeps separate entries for the old and the new secret, so that replicas do not overwrite each other', async () => {
    const { clock, store, start } = setUp();
    let current = 'secret-1';
    const changing = start({ secret: clientSecret(clock, () => current) });
    await changing.fill(600, 'with the old');
    current = 'secret-2';
    const other = start({ secret: clientSecret(clock, () => current) });
    await other.fill(600, 'with the new');
    expect([other.source.requests.length, store.entries.size]).toEqual([1, 2]);
    // A process notices the new secret only with its next request, so the two secrets are used side by side for a while.
    await clock.advance(10_000);
    expect((await changing.request()).accessToken).toBe('with the old');
    const third = start({ secret: clientSecret(clock, () => current) });
    expect((await third.request()).accessToken).toBe('with the new');
  });

  it('requests a token from one process only after a secret rotation, and never with the old secret', async () => {
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

  it('hands over a token of another process after 1 s at the latest while the new secret is still being read', async () => {
    const { clock, start } = setUp();
    let reads = 0;
    const secret = clientSecret(clock, () => ((reads += 1) === 1 ? 'secret-1' : hang()));
    await secret.get();
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

  it('stops waiting for a secret that never arrives when the request is aborted', async () => {
    const { clock, start } = setUp();
    const { request } = start({ secret: clientSecret(clock, hang) });
    const closing = new AbortController();
    const rejected = request('api', { signal: closing.signal });
    await settle();
    closing.abort(new Error('closed'));
    await expect(rejected).rejects.toThrow('closed');
  });

  it('rejects with client_secret_unavailable without using the store or the endpoint if the secret cannot be read', async () => {
    const { clock, store, start } = setUp();
    const sealed = () => Promise.reject(new Error('vault'));
    const { request, source } = start({ secret: clientSecret(clock, sealed) });
    await expect(request()).rejects.toMatchObject({ code: 'client_secret_unavailable' });
    expect([source.requests.length, store.reads]).toEqual([0, 0]);
  });
});

describe('Shared token store: format of an entry', () => {
  const NOW = Date.UTC(2030, 0, 1);
  const keys = new StoreKeys(new Secret('secret-1'));
  const otherKeys = new StoreKeys(new Secret('secret-2'));
  const grant = { accessToken: 'token-1', scope: 'customer.b', expiresIn: 600 };
  const entry = (scope = 'customer.b', owner: object = OWNER, withKeys = keys): StoredToken =>
    new StoredToken(withKeys, scope, owner as typeof OWNER);
  const writeEntry = (): string => entry().encode(grant, NOW).value;

  it('reads an entry with the age of its token, and gives the entry a shorter TTL than the token', () => {
    const { value, ttlMs } = entry().encode(grant, NOW);
    expect(ttlMs).toBe(570_000);
    expect(entry().decode(value, NOW + 60_000)).toEqual({ ...grant, ageMs: 60_000 });
    // A reader whose clock is behind treats the token as new.
    expect(entry().decode(value, NOW - 60_000)).toEqual({ ...grant, ageMs: 0 });
  });

  it('shortens the TTL of an entry by the age of its token', () => {
    expect(entry().encode(grant, NOW, 60_000).ttlMs).toBe(510_000);
    expect(entry().decode(entry().encode(grant, NOW, 60_000).value, NOW)).toEqual({
      ...grant,
      ageMs: 60_000,
    });
  });

  it('shows no token, scope, client or secret in key and value, and encrypts the same token differently each time', () => {
    const encoded = [entry().key.slice('token:v1:{'.length), writeEntry()];
    const texts = [...encoded, ...encoded.map((text) => Buffer.from(text, 'base64url').toString('latin1'))];
    for (const secret of ['token-1', 'customer', 'client-1', 'secret-1'])
      expect(texts.join()).not.toContain(secret);
    expect(writeEntry()).not.toBe(writeEntry());
  });

  it('reads the key and value that other versions of the package write', () => {
    const key = 'token:v1:{zJgpw_qReFObxX6mMbUVi6g3KC1f7vgcadPqn-16IbY}';
    const value =
      'v1.LUkTrLGgvwATdw1vWJd88QpSLr1EWWc9UsM3emJqGFiJAB-3QCESrKus2nrLlpb7Hz8tR44zmObBFBayvWgjdQ3uK024stF_dX7mfswxEglHourAFKQwYw0nhA4KMj8y7pzHP341Xx0F7BwbkbOgVAAYzg';
    expect([entry().key, entry().decode(value, NOW)]).toEqual([key, { ...grant, ageMs: 0 }]);
  });

  it('uses a different key for each endpoint, client, scope, certificate and secret', () => {
    const others = [
      entry('customer.b', { ...OWNER, tokenUrl: 'https://other.example/oauth2/token' }),
      entry('customer.b', { ...OWNER, clientId: 'client-2' }),
      entry('customer.c'),
      entry('customer.b', { ...OWNER, fingerprint256: 'AA:BB' }),
      entry('customer.b', OWNER, otherKeys),
    ];
    expect(new Set([entry(), ...others].map(({ key }) => key)).size).toBe(6);
    // In Redis Cluster the part in braces chooses the hash slot, so the entry and its lock share one.
    expect(entry().key).toMatch(/^token:v1:\{[\w-]{43}\}$/);
    expect(entry().lockKey).toBe(`${entry().key}:lock`);
  });

  it('does not read an entry after its token has expired, even if it is still in the store', () => {
    expect(entry().decode(writeEntry(), NOW + 599_999)).toBeDefined();
    expect(entry().decode(writeEntry(), NOW + 600_000)).toBeUndefined();
  });

  const atOwnKey = Object.assign(entry('customer.b', OWNER, otherKeys), { key: entry().key });
  it.each<[string, StoredToken, string | undefined]>([
    ['missing', entry(), undefined],
    ['empty', entry(), ''],
    ['not encrypted', entry(), JSON.stringify({ ...grant, issuedAt: NOW, lifetimeS: 600 })],
    ['of another format', entry(), writeEntry().replace('v1.', 'v2.')],
    ['longer than any entry', entry(), `v1.${'A'.repeat(70_000)}`],
    ['moved to another key', entry('customer.c'), writeEntry()],
    ['encrypted with another secret, at the same key', atOwnKey, writeEntry()],
    // The writer knows the secret, but the scope inside the entry does not match its key.
    ['of another scope', entry(), entry().encode({ ...grant, scope: 'api' }, NOW).value],
  ])('ignores an entry that is %s', (_name, reader, value) => {
    expect(reader.decode(value, NOW)).toBeUndefined();
  });

  it('ignores an entry that was truncated or changed at any position', () => {
    const value = writeEntry();
    for (let end = 0; end < value.length; end += 1)
      expect(entry().decode(value.slice(0, end), NOW)).toBeUndefined();
    const bytes = Buffer.from(value.slice(3), 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
      const changed = Buffer.from(bytes);
      changed[index] ^= 1;
      expect(entry().decode(`v1.${changed.toString('base64url')}`, NOW)).toBeUndefined();
    }
  });
});

describe('Shared token store: store failures', () => {
  /** A store whose behaviour the test sets. It records the calls that it receives. */
  class SetStore implements TokenStore {
    calls: string[] = [];
    reads: () => Promise<string | undefined> = async () => 'value';
    writes: () => Promise<void> = async () => undefined;
    timeout?: number;

    get(key: string): Promise<string | undefined> {
      this.calls.push(`get ${key}`);
      return this.reads();
    }
    set(): Promise<void> {
      this.calls.push('set');
      return this.writes();
    }
    delete(): Promise<void> {
      this.calls.push('delete');
      return this.writes();
    }
    async lock(): Promise<(() => Promise<void>) | undefined> {
      this.calls.push('lock');
      await this.writes();
      return async () => void this.calls.push('unlock');
    }
  }

  function setUpGuarded(change: Partial<SetStore> = {}) {
    const clock = new FakeClock();
    const store = Object.assign(new SetStore(), change);
    const lines: string[] = [];
    const note = (level: string) => (line: string) => void lines.push(`${level} ${line}`);
    const log = { ...SILENT, warn: note('warn'), log: note('log') };
    const guarded = new GuardedStore(store, { clock, log });
    const storeCalls = () => store.calls.splice(0);
    return { clock, store, guarded, lines, storeCalls };
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
  ])('requests a token from the endpoint if the store %s', async (_name, fault, afterMs) => {
    const { clock, start } = setUp();
    const { request, source, shared } = start({ store: broken(fault) });
    const waiting = request();
    if (afterMs > 0) await clock.advance(afterMs - 1);
    expect(source.requests).toHaveLength(0);
    await clock.advance(afterMs > 0 ? 1 : 0);
    await settle();
    source.last.grant(600);
    expect((await waiting).accessToken).toBe('token-1');
    shared.drop('api', 'token-1');
    await settle();
  });

  it.each([
    ['250 ms by default', 250, undefined],
    ['the timeout that the store sets', 40, 40],
  ])(
    'gives up on a store that does not respond after %s, and then leaves it alone for 1 s',
    async (_name, ms, timeout) => {
      const { clock, guarded, storeCalls, store } = setUpGuarded({ timeout, reads: hang });
      let isOver = false;
      void guarded.get('a').then(() => (isOver = true));
      await clock.advance(ms - 1);
      expect(isOver).toBe(false);
      await clock.advance(1);
      await settle();
      expect([isOver, guarded.isAvailable, storeCalls()]).toEqual([true, false, ['get a']]);
      for (let times = 0; times < 2; times += 1) {
        await clock.advance(999);
        expect([await guarded.get('a'), await guarded.lock('a', 1)]).toEqual([undefined, 'none']);
        await guarded.set('a', 'b', 1);
        await guarded.delete('a', 'b');
        expect(storeCalls()).toEqual([]);
        await clock.advance(1);
        void guarded.get('a');
        await clock.advance(ms);
        expect(storeCalls()).toEqual(['get a']);
      }
      store.reads = async () => 'value';
      await clock.advance(1_000);
      expect([guarded.isAvailable, await guarded.get('a'), storeCalls()]).toEqual([true, 'value', ['get a']]);
      expect(clock.timers).toBe(0);
    },
  );

  it('gives a store another timeout period when the event loop was blocked during the first', async () => {
    // A Redis client may send its commands only in the next turn of the event loop.
    const reads = async (): Promise<string> => {
      await nextTurn();
      await nextTurn();
      await promisify(pbkdf2)('', '', 1, 8, 'sha256');
      return 'value';
    };
    const { store } = setUpGuarded({ reads, timeout: 100 });
    const guarded = new GuardedStore(store, { clock: systemClock, log: SILENT });
    const value = guarded.get('a');
    blockEventLoop(200);
    expect(await value).toBe('value');
    expect(guarded.isAvailable).toBe(true);
  });

  /** Like the error of node-redis, which has no code. */
  class ClientClosedError extends Error {}

  it.each([
    ['OOM command not allowed when used memory > maxmemory', 'OOM'],
    ["READONLY You can't write against a read only replica.", 'READONLY'],
    [Object.assign(new Error('x'), { code: 'ETIMEDOUT' }), 'ETIMEDOUT'],
    ['anything else, with redis://user:password@host', 'error'],
    [new ClientClosedError('redis://user:password@host'), 'ClientClosedError'],
    [null, 'error'],
  ])(
    'logs one warning about a store that fails (%p) with the cause %s, and logs once when it works again',
    async (error, cause) => {
      const { clock, store, guarded, lines, storeCalls } = setUpGuarded();
      store.writes = async () => {
        throw (typeof error === 'string' ? new Error(error) : error) as Error;
      };
      for (let call = 0; call < 11; call += 1) {
        await guarded.set('a', 'b', 1);
        await clock.advance(5_000);
      }
      expect(storeCalls()).toHaveLength(11);
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
    },
  );

  it('releases a lock before its TTL ends, but not afterwards, because another process may hold it by then', async () => {
    const { clock, guarded, storeCalls } = setUpGuarded();
    const [first, second] = [await guarded.lock('a', 100), await guarded.lock('b', 100)];
    if (typeof first !== 'function' || typeof second !== 'function') throw new Error('no lock');
    storeCalls();
    await clock.advance(99);
    await first();
    expect(storeCalls()).toEqual(['unlock']);
    await clock.advance(1);
    await second();
    await settle();
    expect(storeCalls()).toEqual([]);
  });

  it('reports a lock that another process holds as taken, and a store without locks as none', async () => {
    const { store, guarded } = setUpGuarded();
    store.lock = async () => undefined;
    expect(await guarded.lock('a', 100)).toBe('held');
    Object.assign(store, { lock: undefined });
    expect([await guarded.lock('a', 100), guarded.isAvailable]).toEqual(['none', true]);
  });
});

describe('Shared token store: requests of many replicas', () => {
  const HOUR_MS = 3_600_000;
  const LIFETIME_S = 3_600;

  /** Counts the requests for one token that replicas which start together send in this time. */
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
    for (const cache of caches) expect(cache.scope('api').getCached()).toBeDefined();
    for (const cache of caches) cache.close();
    return requests;
  }

  it('sends as many requests in a day as docs/fleet.md says, for one replica alone and for eight with a store', async () => {
    const { text } = await readDocument('docs/fleet.md');
    const documented = [...text.matchAll(/requests? (\d+)\b/g)].map(([, number]) => Number(number));
    const day = 24 * HOUR_MS;
    expect([await requestsOf(1, day, { isShared: false }), await requestsOf(8, day)]).toEqual(documented);
  });

  inSoak(() => {
    it('sends 4 token requests in 2.3 hours from 1,000 replicas with a store', async () => {
      // Only three renewals: simulating a whole day of 1,000 replicas takes too long.
      expect(await requestsOf(1_000, 2.3 * HOUR_MS)).toBe(4);
    }, 120_000);
  });
});
