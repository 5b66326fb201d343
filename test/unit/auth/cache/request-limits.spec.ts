import { describe, expect, it } from '@jest/globals';
import {
  ForcedRefreshLimit,
  Lane,
  renewalDelay,
  RetryAfterGate,
} from '../../../../lib/auth/cache/request-limits.js';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { sleep } from '../../../../lib/time/timers.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';
import { makeCache } from '../fakes.js';

const refused = (status: number, retryAfter?: number): ServiceTokenError =>
  new ServiceTokenError({
    code: status === 429 ? 'token_rate_limited' : status === 400 ? 'token_refused' : 'token_unavailable',
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
    [refused(400, 5), 0],
  ])('is closed after %s for %d ms', (error, closedMs) => {
    const gate = new RetryAfterGate(new FakeClock());
    gate.failed(error);
    expect(gate.remainingMs).toBe(closedMs);
  });

  it.each([
    [refused(429, 0), 'failed', [3_000, 6_000, 12_000, 24_000, 30_000, 30_000]],
    [refused(403), 'ended', [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]],
  ] as const)('doubles to 30 s while %s goes on, until a token comes', async (error, what, times) => {
    const clock = new FakeClock();
    const gate = new RetryAfterGate(clock);
    const closed: number[] = [];
    for (const _ of times) {
      gate[what](error);
      closed.push(gate.remainingMs);
      await clock.advance(gate.remainingMs);
    }
    expect(closed).toEqual(times);
    gate.succeeded();
    gate[what](error);
    expect(gate.remainingMs).toBe(times[0]);
  });

  it('stays open after a 401 or 403 that another attempt follows; several that end together count once', () => {
    const gate = new RetryAfterGate(new FakeClock());
    gate.failed(refused(401));
    expect(gate.remainingMs).toBe(0);
    for (let scope = 0; scope < 50; scope += 1) gate.ended(refused(401));
    expect(gate.remainingMs).toBe(1_000);
  });
});

it("the gate's error is what closed it, with the time until it opens", async () => {
  const clock = new FakeClock();
  const gate = new RetryAfterGate(clock);
  gate.failed(refused(503, 10));
  await clock.advance(1_500);
  expect(gate.error('api')).toMatchObject({
    code: 'token_unavailable',
    status: 503,
    scope: 'api',
    retryAfter: 9,
    message: '503 The endpoint is not asked again for 9 s.',
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

it('Lane lets so many run, and the others in their order as places become free', async () => {
  const lane = new Lane(2);
  const running: { number: number; end: () => void; fail: () => void }[] = [];
  const run = (number: number): Promise<void> =>
    lane.run(
      () => new Promise((end, reject) => running.push({ number, end, fail: () => reject(new Error()) })),
    );
  const all = [1, 2, 3, 4].map(run).map((each) => each.catch(() => undefined));
  const begun = (): number[] => running.map(({ number }) => number);
  expect([begun(), lane.isWaitedFor]).toEqual([[1, 2], true]);
  running[0].fail();
  await settle();
  expect(begun()).toEqual([1, 2, 3]);
  for (const { end } of running) end();
  await settle();
  expect([begun(), lane.isWaitedFor]).toEqual([[1, 2, 3, 4], false]);
  running[3].end();
  await Promise.all(all);
  expect(await lane.run(async () => 'free')).toBe('free');
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
