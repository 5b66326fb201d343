import { describe, expect, it } from '@jest/globals';
import { settle } from '../../../helpers/fake-clock.js';
import { outcomes, refusal, reset, setUp } from './set-up.js';

describe('scheduled', () => {
  it('gets the api token at the start and renews it without calls, until it is closed', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    source.last.grant(60);
    await clock.advance(40_499);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await clock.advance(40_500);
    expect(source.requests).toHaveLength(3);
    source.last.grant(60);
    await settle();
    expect(clock.timers).toBe(1);
    cache.close();
    expect(clock.timers).toBe(0);
  });

  it('goes on after failures and a Retry-After', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    source.last.fail(reset());
    await clock.advance(3_000);
    expect(source.requests).toHaveLength(2);
    source.last.fail(refusal('token_rate_limited', 429, 100));
    await clock.advance(99_999);
    expect(source.requests).toHaveLength(2);
    await clock.advance(2);
    expect(source.requests).toHaveLength(3);
  });

  it('goes on after a token that has expired on its way', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await clock.advance(2_000);
    source.last.grant(1);
    await clock.advance(2_999);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    expect(source.requests).toHaveLength(2);
    cache.close();
  });

  it('started after the end, plans nothing', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.close();
    cache.start();
    await settle();
    expect([source.requests.length, clock.timers]).toEqual([0, 0]);
  });

  it('does not schedule customers, nor tokens that cannot be kept', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    const customer = cache.get('customer.c1');
    await settle();
    source.last.grant(3600);
    await customer;
    expect(clock.timers).toBe(0);
    cache.start();
    await settle();
    source.last.grant(undefined);
    await clock.advance(3_600_000);
    expect(source.requests).toHaveLength(2);
  });

  it('while a request of a caller runs, begins none: the next is planned at its end', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    source.last.grant(60);
    await clock.advance(40_000);
    cache.invalidate('token-1');
    const waiting = cache.get('api');
    await clock.advance(5_000);
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await waiting;
    expect(clock.timers).toBe(1);
    // 40.5 s from the second request, which began 5 s ago.
    await clock.advance(35_499);
    expect(source.requests).toHaveLength(2);
    await clock.advance(1);
    expect(source.requests).toHaveLength(3);
    cache.close();
  });

  it('after failures waits 3 s, then 6 s, also for calls, while the token lives', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    source.last.grant(600);
    await clock.advance(427_500);
    for (const [count, waitMs] of [
      [2, 3_000],
      [3, 6_000],
    ]) {
      expect(source.requests).toHaveLength(count);
      source.last.fail(reset());
      await clock.advance(waitMs - 1);
      expect(cache.use('api')?.accessToken).toBe('token-1');
      await settle();
      expect(source.requests).toHaveLength(count);
      await clock.advance(1);
      expect(source.requests).toHaveLength(count + 1);
    }
    cache.close();
  });

  it('after a Retry-After that is shorter than its own wait, waits its own', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    source.last.fail(refusal('token_unavailable', 503, 1));
    await clock.advance(2_999);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    expect(source.requests).toHaveLength(2);
    cache.close();
  });

  it.each([
    ['with a life: when that is due', 60, 40_500],
    ['about to end: after 3 s', 2, 3_000],
  ])('where the endpoint hands out the same token again, %s', async (_name, expiresIn, nextMs) => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    source.last.grant(60);
    await clock.advance(40_500);
    source.last.grant(expiresIn, 'token-1');
    await settle();
    await clock.advance(nextMs - 1);
    expect(source.requests).toHaveLength(2);
    await clock.advance(1);
    expect(source.requests).toHaveLength(3);
    cache.close();
  });

  it('started while a request runs or is postponed, begins none of its own', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    const waiting = outcomes([cache.get('api')]);
    cache.start();
    await settle();
    expect(source.requests).toHaveLength(1);
    source.last.fail(refusal('token_refused', 400));
    await waiting;
    cache.start();
    await clock.advance(2_999);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    expect(source.requests).toHaveLength(2);
    cache.close();
  });

  it('goes on where the token under way is outdated by another certificate', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    cache.invalidateAll();
    source.last.grant(60);
    await settle();
    expect(cache.use('api')).toBeUndefined();
    await clock.advance(2_999);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await settle();
    expect(cache.use('api')?.accessToken).toBe('token-2');
    cache.close();
  });

  it('is of the api token alone: what customers get plans nothing', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    source.last.grant(60);
    await clock.advance(30_000);
    const customer = cache.get('customer.c1');
    await settle();
    source.last.grant(3_600);
    await customer;
    await clock.advance(10_499);
    expect(source.requests).toHaveLength(2);
    await clock.advance(1);
    expect(source.requests.map(({ scope }) => scope)).toEqual(['api', 'customer.c1', 'api']);
    cache.close();
  });
});
