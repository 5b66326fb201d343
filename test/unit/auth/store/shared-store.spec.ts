import { describe, expect, it } from '@jest/globals';
import { type TokenGrant, type TokenRequestContext } from '../../../../lib/auth/access-token.js';
import { SharedStore, type SharedStoreOptions } from '../../../../lib/auth/store/shared-store.js';
import { type TokenStore } from '../../../../lib/config/token-cache.options.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';
import { FakeSource, jwt } from '../fakes.js';

/** A store in memory, by the same clock. */
class MemoryStore implements TokenStore {
  readonly entries = new Map<string, { value: string; until: number }>();
  readonly locks = new Map<string, number>();

  constructor(readonly clock: FakeClock) {}

  async get(key: string): Promise<string | undefined> {
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

function setUp() {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  /** One process. */
  const process = (options: Partial<SharedStoreOptions> = {}) => {
    const source = new FakeSource();
    const shared = new SharedStore({
      source,
      store,
      clock,
      tokenUrl: 'https://auth.example/oauth2/token',
      clientId: 'client-1',
      ...options,
    });
    const request = (scope = 'api', context: Partial<TokenRequestContext> = {}): Promise<TokenGrant> =>
      shared.request(scope, {
        signal: new AbortController().signal,
        timeoutMs: 10_000,
        accepts: () => true,
        ...context,
      });
    const fill = async (scope = 'api', expiresIn: number | undefined = 600): Promise<TokenGrant> => {
      const waiting = request(scope);
      await settle();
      source.last.grant(expiresIn);
      const grant = await waiting;
      await settle();
      return grant;
    };
    return { source, shared, request, fill };
  };
  return { clock, store, process };
}

describe('a shared store', () => {
  it('hands one process the token of another, with its age', async () => {
    const { clock, store, process } = setUp();
    await process().fill();
    await clock.advance(60_000);
    const other = process();
    expect(await other.request()).toEqual({
      accessToken: 'token-1',
      tokenType: 'bearer',
      scope: 'api',
      expiresIn: 600,
      ageMs: 60_000,
    });
    expect(other.source.requests).toHaveLength(0);
    expect(store.locks.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('shows neither secret, client nor customer in its keys', async () => {
    const { store, process } = setUp();
    await process().fill('customer.c1');
    expect([...store.entries.keys()]).toEqual([expect.stringMatching(/^token:[\w-]{43}$/)]);
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
    await clock.advance(100);
    second.source.last.grant(600);
    expect((await waiting).accessToken).toBe('token-1');
  });

  it('a holder that dies holds others up for 5 s at most', async () => {
    const { clock, process } = setUp();
    void process().request();
    await settle();
    const other = process();
    const waiting = other.request('api', { timeoutMs: 20_000 });
    await clock.advance(4_999);
    expect(other.source.requests).toHaveLength(0);
    await clock.advance(2);
    expect(other.source.requests).toHaveLength(1);
    other.source.last.grant(600);
    await waiting;
  });

  it('takes the token of a slow holder, though it has begun to ask itself', async () => {
    const { clock, process } = setUp();
    const holder = process();
    const first = holder.request();
    await settle();
    const others = [process(), process()];
    const waiting = others.map((other) => other.request());
    await clock.advance(5_200);
    expect(others.map(({ source }) => source.requests.length)).toEqual([1, 1]);
    holder.source.last.grant(600, 'slow');
    await first;
    await clock.advance(200);
    expect((await Promise.all(waiting)).map(({ accessToken }) => accessToken)).toEqual(['slow', 'slow']);
    // Nobody wants what they asked for themselves.
    expect(others.map(({ source }) => source.last.context.signal.aborted)).toEqual([true, true]);
  });

  it('after a wait in vain, a failure of its own request is the outcome, and the store is left alone', async () => {
    const { clock, store, process } = setUp();
    void process().request();
    await settle();
    const other = process();
    const waiting = other.request();
    const failed = expect(waiting).rejects.toThrow('no');
    await clock.advance(5_200);
    other.source.last.fail(new Error('no'));
    await failed;
    const get = store.get.bind(store);
    let reads = 0;
    store.get = (key) => ((reads += 1), get(key));
    await clock.advance(1_000);
    expect(reads).toBe(0);
  });

  it('leaves half of the time for the request itself', async () => {
    const { clock, process } = setUp();
    void process().request();
    await settle();
    const other = process();
    const waiting = other.request('api', { timeoutMs: 2_000 });
    await clock.advance(1_000);
    expect(other.source.last.context.timeoutMs).toBe(1_000);
    other.source.last.grant(600);
    await waiting;
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

  it.each([undefined, 0])('keeps no token of %p s', async (expiresIn) => {
    const { store, process } = setUp();
    const { request, source } = process();
    const waiting = request();
    await settle();
    source.last.grant(expiresIn);
    await waiting;
    await settle();
    expect([store.entries.size, store.locks.size]).toEqual([0, 0]);
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

describe('an entry that is not to be trusted is ignored', () => {
  const change = (fields: object) => (value: string) =>
    JSON.stringify({ ...(JSON.parse(value) as object), ...fields });

  it.each<[string, (value: string) => string]>([
    ['no JSON', () => '{'],
    ['null', () => 'null'],
    ['a list', () => '[]'],
    ['of another scope', change({ scope: 'customer.c1' })],
    ['of another client', change({ key: 'token:other' })],
    ['with a line break in the token', change({ accessToken: 'a\r\nb' })],
    ['without a lifetime', change({ lifetimeS: undefined })],
    ['with an endless lifetime', change({ lifetimeS: 1e12 })],
    ['without a time', change({ issuedAt: '2030' })],
    ['from the future', change({ issuedAt: Date.UTC(2031, 0, 1) })],
  ])('%s', async (_name, spoil) => {
    const { store, process } = setUp();
    await process().fill();
    for (const entry of store.entries.values()) entry.value = spoil(entry.value);
    const other = process();
    expect((await other.fill()).ageMs).toBeUndefined();
    expect(other.source.requests).toHaveLength(1);
  });

  const customer = (claims: object): string => jwt({ customer_id: 'b', scope: 'customer.b', ...claims });

  it.each<[string, string]>([
    ["another customer's", customer({ customer_id: 'a', scope: 'customer.a' })],
    ["another customer's, which names no scope", jwt({ customer_id: 'a' })],
    ['the api token', jwt({ scope: 'api' })],
    ['one of both scopes', jwt({ scope: ['api', 'customer.b'] })],
    ['one that has ended by its own exp', customer({ exp: Date.UTC(2030, 0, 1) / 1000 })],
  ])("that holds, for a customer, %s, as the endpoint's answers are", async (_name, accessToken) => {
    const { store, process } = setUp();
    await process().fill('customer.b');
    for (const entry of store.entries.values()) entry.value = change({ accessToken })(entry.value);
    const other = process();
    expect((await other.fill('customer.b')).accessToken).toBe('token-1');
    expect(other.source.requests).toHaveLength(1);
  });

  it('and a token lives no longer than it says itself, whatever the entry says', async () => {
    const { clock, store, process } = setUp();
    await process().fill('customer.b');
    const accessToken = customer({ exp: clock.now() / 1000 + 100 });
    for (const entry of store.entries.values()) entry.value = change({ accessToken })(entry.value);
    await clock.advance(40_000);
    const other = process();
    expect(await other.request('customer.b')).toMatchObject({ accessToken, expiresIn: 100, ageMs: 40_000 });
    expect(other.source.requests).toHaveLength(0);
  });
});

describe('a store that', () => {
  const broken = (fault: () => Promise<never>): TokenStore => ({
    get: fault,
    set: fault,
    delete: fault,
    lock: fault,
  });

  it.each<[string, () => Promise<never>]>([
    ['is down', () => Promise.reject(new Error('ECONNREFUSED'))],
    [
      'throws',
      () => {
        throw new Error('not connected');
      },
    ],
  ])('%s costs nothing', async (_name, fault) => {
    const { process } = setUp();
    const { fill, shared, source } = process({ store: broken(fault) });
    expect((await fill()).accessToken).toBe('token-1');
    shared.dropped('api', 'token-1');
    await settle();
    expect(source.droppedTokens).toEqual(['token-1']);
  });

  it('hangs costs 250 ms', async () => {
    const { clock, process } = setUp();
    const { request, source } = process({ store: broken(() => new Promise(() => undefined)) });
    const waiting = request();
    await clock.advance(249);
    expect(source.requests).toHaveLength(0);
    await clock.advance(1);
    source.last.grant(600);
    expect((await waiting).accessToken).toBe('token-1');
  });

  it('is full still gives its lock back', async () => {
    const { store, process } = setUp();
    store.set = () => Promise.reject(new Error('OOM command not allowed'));
    await process().fill();
    expect(store.locks.size).toBe(0);
  });

  it('grants a lock too late gets it back', async () => {
    const { clock, store, process } = setUp();
    const lock = store.lock.bind(store);
    store.lock = async (key, ttlMs) => {
      await new Promise<void>((resolve) => clock.schedule(resolve, 300));
      return lock(key, ttlMs);
    };
    const { request, source } = process();
    const waiting = request();
    await clock.advance(400);
    expect(store.locks.size).toBe(0);
    source.last.grant(600);
    await waiting;
  });
});

it('nothing is written once the caller has ended it', async () => {
  const { store, process } = setUp();
  const { request, source } = process();
  const controller = new AbortController();
  const waiting = request('api', { signal: controller.signal });
  await settle();
  source.last.grant(600);
  controller.abort(new Error('closed'));
  await waiting.catch(() => undefined);
  await settle();
  expect([store.entries.size, store.locks.size]).toEqual([0, 0]);
});
