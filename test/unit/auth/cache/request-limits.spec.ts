import { describe, expect, it } from '@jest/globals';
import {
  ForcedRefreshLimit,
  Limit,
  renewalDelay,
  RetryAfterGate,
} from '../../../../lib/auth/cache/request-limits.js';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';

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
