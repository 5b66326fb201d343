import { describe, expect, it } from '@jest/globals';
import { type TokenSource } from '../../../../lib/auth/access-token.js';
import {
  ForcedRefreshLimit,
  Limit,
  renewalDelay,
  RetryAfterGate,
} from '../../../../lib/auth/cache/request-limits.js';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { sleep } from '../../../../lib/time/timers.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';
import { FakeSource, makeCache } from '../fakes.js';
import { setUp } from './set-up.js';

const refused = (status: number, retryAfter?: number): ServiceTokenError =>
  new ServiceTokenError({
    code: status === 429 ? 'token_rate_limited' : status >= 500 ? 'token_unavailable' : 'token_refused',
    status,
    retryAfter,
    message: String(status),
  });

describe('RetryAfterGate', () => {
  it.each([
    [refused(429), 3_000],
    [refused(429, 0), 3_000],
    [refused(429, 60), 60_000],
    [refused(503, 5), 5_000],
    [refused(503), 0],
    [refused(403, 5), 0],
  ])('is closed after %s for %d ms', (error, closedMs) => {
    const gate = new RetryAfterGate(new FakeClock());
    gate.failed(error);
    expect(gate.remainingMs).toBe(closedMs);
  });

  it('doubles to 30 s while 429 goes on, whatever its Retry-After says, until a token comes', async () => {
    const clock = new FakeClock();
    const gate = new RetryAfterGate(clock);
    const closed: number[] = [];
    for (let times = 0; times < 6; times++) {
      gate.failed(refused(429, 0));
      closed.push(gate.remainingMs);
      await clock.advance(gate.remainingMs);
    }
    expect(closed).toEqual([3_000, 6_000, 12_000, 24_000, 30_000, 30_000]);
    gate.succeeded();
    gate.failed(refused(429));
    expect(gate.remainingMs).toBe(3_000);
  });
});

it("the gate's error names what closed it and when it opens", async () => {
  const clock = new FakeClock();
  const gate = new RetryAfterGate(clock);
  gate.failed(refused(503, 10));
  await clock.advance(1_500);
  expect(gate.error('api')).toMatchObject({
    code: 'token_unavailable',
    status: 503,
    scope: 'api',
    retryAfter: 9,
    message: expect.stringContaining('another 9 s (HTTP 503)'),
  });
  // A shorter time that comes later does not open it earlier.
  gate.failed(refused(503, 1));
  expect(gate.remainingMs).toBe(8_500);
  gate.failed(new Error('another one'));
  expect(gate.remainingMs).toBe(8_500);
});

describe('ForcedRefreshLimit', () => {
  it('lets a burst of 3 pass, then one in 30 s', () => {
    const limit = new ForcedRefreshLimit();
    const taken = [0, 1, 2, 3, 29_999, 30_000, 30_001, 59_999, 60_000].map((at) => limit.take(at));
    expect(taken).toEqual([true, true, true, false, false, true, false, false, true]);
  });

  it('has its burst again after a while', () => {
    const limit = new ForcedRefreshLimit();
    [0, 1, 2].forEach((at) => limit.take(at));
    expect([1e6, 1e6, 1e6, 1e6].map((at) => limit.take(at))).toEqual([true, true, true, false]);
  });
});

it('Limit lets so many run, and the others in their order as places become free', async () => {
  const limit = new Limit(2);
  const running: { number: number; end: () => void; fail: () => void }[] = [];
  const run = (number: number): Promise<void> =>
    limit.run(
      () => new Promise((end, reject) => running.push({ number, end, fail: () => reject(new Error()) })),
    );
  const all = [1, 2, 3, 4].map(run).map((each) => each.catch(() => undefined));
  const begun = (): number[] => running.map(({ number }) => number);
  expect([begun(), limit.isWaitedFor]).toEqual([[1, 2], true]);
  running[0].fail();
  await settle();
  expect(begun()).toEqual([1, 2, 3]);
  for (const { end } of running) end();
  await settle();
  expect([begun(), limit.isWaitedFor]).toEqual([[1, 2, 3, 4], false]);
  running[3].end();
  await Promise.all(all);
  expect(await limit.run(async () => 'free')).toBe('free');
});

it('renewals that fail wait 3 s, doubling to 30 s', () => {
  expect([1, 2, 3, 4, 5, 6, 2_000].map(renewalDelay)).toEqual([
    3_000, 6_000, 12_000, 24_000, 30_000, 30_000, 30_000,
  ]);
});

it.each([
  [60, 1.5],
  [600, 1.42],
  [3_600, 1.36],
])('a token of %d s costs at most %d requests per lifetime, and no call waits', async (lifetime, most) => {
  const clock = new FakeClock();
  let requests = 0;
  const cache = makeCache({
    source: {
      request: async (scope) => {
        requests += 1;
        return { accessToken: `token-${requests}`, scope, expiresIn: lifetime };
      },
    },
    clock,
    random: () => 0.5,
  });
  await cache.get('api');
  const lifetimes = 20;
  for (let call = 0; call < lifetimes * 100; call++) {
    await clock.advance(lifetime * 10);
    expect(cache.use('api')).toBeDefined();
  }
  // Less the first one, which no lifetime has to pay for.
  expect((requests - 1) / lifetimes).toBeLessThanOrEqual(most);
  cache.close();
});

it('a token counts from when its source says that the request left', async () => {
  const clock = new FakeClock();
  const cache = makeCache({
    source: {
      request: async (scope) => {
        await sleep(clock, 5_000);
        const requestedAt = clock.monotonic();
        return { accessToken: 'token', scope, expiresIn: 600, requestedAt };
      },
    },
    refresh: 'on-expiry',
    clock,
  });
  const waiting = cache.get('api');
  await clock.advance(5_000);
  expect((await waiting).expiresAt.getTime()).toBe(clock.now() + 600_000);
  cache.close();
});

describe('a look where the burst of forced refreshes is spent', () => {
  const spent = async (look?: TokenSource['look']) => {
    const source = Object.assign(new FakeSource(), look && { look });
    const { cache, clock } = setUp({ source });
    let refused = '';
    const renewed = async () => {
      const waiting = cache.renew('api', refused);
      await settle();
      source.last.grant(600);
      refused = (await waiting)?.token.accessToken ?? '';
    };
    const first = cache.get('api');
    await settle();
    refused = source.last.grant(600).accessToken;
    await first;
    for (let time = 0; time < 3; time += 1) await renewed();
    await clock.advance(1_000);
    return { cache, clock, source, refused };
  };
  const shared = { accessToken: 'shared', scope: 'api', expiresIn: 600, ageMs: 10 };

  it('finds the token of another process, once for all, and keeps it', async () => {
    let looks = 0;
    const { cache, source, refused } = await spent(async (_scope, { accepts }) => {
      looks += 1;
      await settle();
      return accepts(shared) ? shared : undefined;
    });
    const found = await Promise.all(Array.from({ length: 60 }, () => cache.renew('api', refused)));
    expect(found.every((each) => each?.token.accessToken === 'shared' && each.isFromStore)).toBe(true);
    expect([looks, source.requests.length, source.droppedTokens.length]).toEqual([1, 4, 3]);
    expect(cache.use('api')?.accessToken).toBe('shared');
  });

  it('without one, or without a store, the token stays, and the caller gets its 401', async () => {
    let looks = 0;
    for (const look of [undefined, async () => void (looks += 1)]) {
      const { cache, refused } = await spent(look);
      expect(await cache.renew('api', refused)).toBeUndefined();
      expect(await cache.renew('api', refused)).toBeUndefined();
      expect(cache.use('api')?.accessToken).toBe(refused);
    }
    // One that ended at once is not the answer for ever.
    expect(looks).toBe(2);
  });

  it('another client certificate outdates it: it is done once more', async () => {
    const looks: ((token: object) => void)[] = [];
    const { cache, refused } = await spent(() => new Promise((resolve) => looks.push(resolve as never)));
    const waiting = cache.renew('api', refused);
    await settle();
    cache.invalidateAll();
    looks[0]({ ...shared, accessToken: 'of-the-old-certificate' });
    await settle();
    looks[1](shared);
    expect((await waiting)?.token.accessToken).toBe('shared');
    expect(cache.use('api')?.accessToken).toBe('shared');
  });

  it('is left by a caller that aborts, and ended by the end', async () => {
    const { cache, refused } = await spent(() => new Promise(() => undefined));
    const abort = new AbortController();
    const waiting = cache.renew('api', refused, { signal: abort.signal });
    await settle();
    abort.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    const late = cache.renew('api', refused).catch((error: { code?: string }) => error.code);
    await settle();
    cache.close();
    expect(await late).toBe('connection_closed');
  });
});
