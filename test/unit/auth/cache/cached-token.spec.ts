import { describe, expect, it } from '@jest/globals';
import { expiryMargin } from '../../../../lib/auth/access-token.js';
import { CachedToken } from '../../../../lib/auth/cache/cached-token.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

/** What a scope needs of its token. */
const needOf = (token: CachedToken, clock: FakeClock): string => {
  const ageMs = token.ageMs(clock);
  if (ageMs >= token.usableMs) return 'token';
  return ageMs >= token.refreshAfterMs ? 'renewal' : 'nothing';
};
const dueInMs = (token: CachedToken, clock: FakeClock): number => token.refreshAfterMs - token.ageMs(clock);

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
    expect(needOf(token, clock)).not.toBe('token');
    await clock.advance(1);
    expect(needOf(token, clock)).toBe('token');
  });

  it.each([
    [3, 0, 1_500],
    [3, 1, 1_460],
    [1_030, 1, 740_000],
  ])('of %d s with a random %d is renewed after %d ms', async (expiresIn, random, dueMs) => {
    const { clock, token } = tokenOf(expiresIn, { random });
    expect(dueInMs(token, clock)).toBe(dueMs);
    await clock.advance(dueMs - 1);
    expect(needOf(token, clock)).toBe('nothing');
    await clock.advance(1);
    expect(needOf(token, clock)).not.toBe('nothing');
  });
});

it('needs what its worked example says', async () => {
  const clock = new FakeClock();
  const token = new CachedToken({ accessToken: 'a', scope: 'api', expiresIn: 3_600 }, clock, 0, 0);
  const needs: [number, string][] = [];
  for (const at of [0, 2_677_499, 2_677_500, 3_567_999, 3_568_000, 3_569_999, 3_570_000]) {
    await clock.advance(at - (needs.at(-1)?.[0] ?? 0));
    needs.push([at, needOf(token, clock)]);
  }
  expect(needs.map(([, need]) => need)).toEqual([
    ...['nothing', 'nothing', 'renewal', 'renewal', 'renewal', 'renewal', 'token'],
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
    expect(needOf(token, clock)).not.toBe('token');
    await clock.advance(1);
    expect(needOf(token, clock)).toBe('token');
  });

  it('has expired as soon as either clock says so', async () => {
    const clock = new FakeClock();
    const token = place(clock);
    clock.jump(54_000);
    expect(needOf(token, clock)).toBe('token');
    clock.jump(-24 * 3_600_000);
    expect(needOf(token, clock)).not.toBe('token');
    await clock.advance(54_000);
    expect(needOf(token, clock)).toBe('token');
  });

  it('does not take a jump during the request for age', async () => {
    const clock = new FakeClock();
    const requestedAt = clock.monotonic();
    clock.jump(24 * 3_600_000);
    await clock.advance(100);
    const token = new CachedToken({ ...grant, requestedAt }, clock, 0, 0);
    expect(needOf(token, clock)).not.toBe('token');
    expect(token.token.expiresAt.getTime()).toBe(clock.now() - 100 + 60_000);
  });

  it('is due at 75 % of its usable life less its jitter, by either clock', async () => {
    const clock = new FakeClock();
    const [early, late] = [new CachedToken(grant, clock, 1, 0), place(clock)];
    expect([dueInMs(early, clock), dueInMs(late, clock)]).toEqual([39_420, 40_500]);
    await clock.advance(39_420);
    expect([needOf(early, clock) !== 'nothing', needOf(late, clock) !== 'nothing']).toEqual([true, false]);
    clock.jump(1_079);
    expect([needOf(late, clock) !== 'nothing', dueInMs(late, clock)]).toEqual([false, 1]);
    clock.jump(1);
    expect([needOf(late, clock) !== 'nothing', dueInMs(late, clock)]).toEqual([true, 0]);
    clock.jump(-10_000);
    expect(dueInMs(late, clock)).toBe(1_080);
  });

  it('of another process is due up to a tenth later, as that process renews it', () => {
    const clock = new FakeClock();
    const dueOf = (random: number): number =>
      dueInMs(new CachedToken({ ...grant, ageMs: 0 }, clock, random, 0), clock);
    expect([dueOf(0), dueOf(1)]).toEqual([40_500, 45_900]);
  });

  it('keeps half of its life for callers where more is asked for in reserve', () => {
    const clock = new FakeClock();
    const token = new CachedToken(grant, clock, 0, 600_000);
    clock.jump(29_999);
    expect(needOf(token, clock)).not.toBe('token');
    clock.jump(1);
    expect(needOf(token, clock)).toBe('token');
  });

  it('is as old as its store says', () => {
    const clock = new FakeClock();
    expect(needOf(place(clock, 40_499), clock)).toBe('nothing');
    expect(needOf(place(clock, 40_500), clock)).not.toBe('nothing');
    expect(needOf(place(clock, 54_000), clock)).toBe('token');
  });
});
