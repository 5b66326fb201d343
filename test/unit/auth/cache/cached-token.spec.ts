import { describe, expect, it } from '@jest/globals';
import { expiryMargin } from '../../../../lib/auth/access-token.js';
import { CachedToken } from '../../../../lib/auth/cache/cached-token.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';
import { refusal, setUp } from './set-up.js';

describe('expiryMargin', () => {
  it.each([
    [3_600_000, 30_000],
    [300_000, 30_000],
    [60_000, 6_000],
    [3_000, 1_000],
    [1_000, 500],
    [0, 0],
  ])('of %d ms is %d ms', (lifetime, margin) => expect(expiryMargin(lifetime)).toBe(margin));
});

describe('A token', () => {
  const tokenOf = (expiresIn: number, { random = 0, reserveMs = 0 } = {}) => {
    const clock = new FakeClock();
    const grant = { accessToken: 'a', scope: 'api', expiresIn } as const;
    return { clock, token: new CachedToken(grant, clock, random, reserveMs) };
  };

  it.each([
    [3, 0, 2_000],
    [3_600, 600_000, 3_000_000],
    [600, 600_000, 300_000],
    [3_600, 1_000, 3_570_000],
  ])('of %d s with %d ms in reserve is handed out for %d ms', async (expiresIn, reserveMs, usableMs) => {
    const { clock, token } = tokenOf(expiresIn, { reserveMs });
    await clock.advance(usableMs - 1);
    expect(token.need(clock)).not.toBe('token');
    await clock.advance(1);
    expect(token.need(clock)).toBe('token');
  });

  it.each([
    [3, 0, 1_500],
    [3, 1, 1_460],
    [1_030, 1, 740_000],
  ])('of %d s with a random %d is renewed after %d ms', async (expiresIn, random, dueMs) => {
    const { clock, token } = tokenOf(expiresIn, { random });
    expect(token.dueInMs(clock)).toBe(dueMs);
    await clock.advance(dueMs - 1);
    expect(token.need(clock)).toBe('nothing');
    await clock.advance(1);
    expect(token.need(clock)).not.toBe('nothing');
  });
});

it('needs what its worked example says', async () => {
  const clock = new FakeClock();
  const token = new CachedToken({ accessToken: 'a', scope: 'api', expiresIn: 3_600 }, clock, 0, 0);
  const needs: [number, string][] = [];
  for (const at of [0, 2_677_499, 2_677_500, 3_567_999, 3_568_000, 3_569_999, 3_570_000]) {
    await clock.advance(at - (needs.at(-1)?.[0] ?? 0));
    needs.push([at, token.need(clock)]);
  }
  expect(needs.map(([, need]) => need)).toEqual([
    ...['nothing', 'nothing', 'renewal', 'renewal', 'hurry', 'hurry', 'token'],
  ]);
});

describe('CachedToken', () => {
  const grant = { accessToken: 'a', scope: 'api', expiresIn: 60 } as const;
  const place = (clock: FakeClock, ageMs = 0): CachedToken =>
    new CachedToken({ ...grant, ageMs }, clock, 0, 0);

  it('counts from the request, not from the answer', async () => {
    const clock = new FakeClock();
    const requestedAt = clock.monotonic();
    const sent = clock.now();
    await clock.advance(5_000);
    const token = new CachedToken({ ...grant, requestedAt }, clock, 0, 0);
    expect(token.token.expiresAt.getTime()).toBe(sent + 60_000);
    await clock.advance(48_999);
    expect(token.need(clock)).not.toBe('token');
    await clock.advance(1);
    expect(token.need(clock)).toBe('token');
  });

  it('has expired as soon as either clock says so', async () => {
    const clock = new FakeClock();
    const token = place(clock);
    clock.jump(54_000);
    expect(token.need(clock)).toBe('token');
    clock.jump(-24 * 3_600_000);
    expect(token.need(clock)).not.toBe('token');
    await clock.advance(54_000);
    expect(token.need(clock)).toBe('token');
  });

  it('does not take a jump during the request for age', async () => {
    const clock = new FakeClock();
    const requestedAt = clock.monotonic();
    clock.jump(24 * 3_600_000);
    await clock.advance(100);
    const token = new CachedToken({ ...grant, requestedAt }, clock, 0, 0);
    expect(token.need(clock)).not.toBe('token');
    expect(token.token.expiresAt.getTime()).toBe(clock.now() - 100 + 60_000);
  });

  it('is due at 75 % of its usable life less its jitter, by either clock', async () => {
    const clock = new FakeClock();
    const [early, late] = [new CachedToken(grant, clock, 1, 0), place(clock)];
    expect([early.dueInMs(clock), late.dueInMs(clock)]).toEqual([39_420, 40_500]);
    await clock.advance(39_420);
    expect([early.need(clock) !== 'nothing', late.need(clock) !== 'nothing']).toEqual([true, false]);
    clock.jump(1_079);
    expect([late.need(clock) !== 'nothing', late.dueInMs(clock)]).toEqual([false, 1]);
    clock.jump(1);
    expect([late.need(clock) !== 'nothing', late.dueInMs(clock)]).toEqual([true, 0]);
    clock.jump(-10_000);
    expect(late.dueInMs(clock)).toBe(1_080);
  });

  it('of another process is due up to a tenth later, as that process renews it', () => {
    const clock = new FakeClock();
    const dueOf = (random: number): number =>
      new CachedToken({ ...grant, ageMs: 0 }, clock, random, 0).dueInMs(clock);
    expect([dueOf(0), dueOf(1)]).toEqual([40_500, 45_900]);
  });

  it('keeps half of its life for callers where more is asked for in reserve', () => {
    const clock = new FakeClock();
    const token = new CachedToken(grant, clock, 0, 600_000);
    clock.jump(29_999);
    expect(token.need(clock)).not.toBe('token');
    clock.jump(1);
    expect(token.need(clock)).toBe('token');
  });

  it('is as old as its store says', () => {
    const clock = new FakeClock();
    expect(place(clock, 40_499).need(clock)).toBe('nothing');
    expect(place(clock, 40_500).need(clock)).not.toBe('nothing');
    expect(place(clock, 54_000).need(clock)).toBe('token');
  });
});

const scheduled = () => setUp({ refresh: 'scheduled' });

it('where no request could begin, plans the next try itself', async () => {
  const { cache, source, clock } = scheduled();
  const customer = expect(cache.get('customer.c1', { once: true })).rejects.toThrow();
  await settle();
  source.last.fail(refusal('token_rate_limited', 429, 10));
  await customer;
  cache.start();
  await clock.advance(9_999);
  expect(source.requests).toHaveLength(1);
  await clock.advance(1);
  expect(source.requests).toHaveLength(2);
  cache.close();
});

it("where one has begun, leaves the next to the request's end: one plan at a time", async () => {
  const { cache, source, clock } = scheduled();
  cache.start();
  await clock.advance(9_000);
  expect(source.requests).toHaveLength(1);
  source.last.grant(60);
  await settle();
  expect(clock.timers).toBe(1);
  cache.close();
});

it('never fires more often than each 250 ms', async () => {
  const { cache, source, clock } = scheduled();
  cache.start();
  await settle();
  // Usable for 200 ms, and due after 150.
  source.last.grant(0.4);
  await clock.advance(249);
  expect(source.requests).toHaveLength(1);
  await clock.advance(1);
  expect(source.requests).toHaveLength(2);
  cache.close();
});

it('closed, plans nothing more', async () => {
  const { cache, source, clock } = scheduled();
  cache.start();
  await settle();
  source.last.grant(60);
  await settle();
  cache.close();
  cache.start();
  expect(clock.timers).toBe(0);
  await clock.advance(100_000);
  expect(source.requests).toHaveLength(1);
});
