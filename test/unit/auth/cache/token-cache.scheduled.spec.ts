import { describe, expect, it } from '@jest/globals';
import { settle } from '../../../helpers/fake-clock.js';
import { outcomes, refusal, reset, setUp } from './set-up.js';

/** A token of 60 s is usable for 54 s and due after 40.5 s; a look comes every 5 s. */
describe('scheduled', () => {
  it('gets the api token at the start and renews it without calls, until it is closed', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    source.last.grant(60);
    await clock.advance(40_499);
    expect(source.requests).toHaveLength(1);
    await clock.advance(5_001);
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await clock.advance(45_500);
    expect(source.requests).toHaveLength(3);
    source.last.grant(60);
    await settle();
    expect(clock.timers).toBe(1);
    cache.close();
    expect(clock.timers).toBe(0);
    cache.start();
    await clock.advance(100_000);
    expect([source.requests.length, clock.timers]).toEqual([3, 0]);
  });

  it.each([2, 5, 20])('renews a token of %d s before it ends', async (expiresIn) => {
    let requests = 0;
    const request = async (scope: string) => ({ accessToken: `t-${(requests += 1)}`, scope, expiresIn });
    const { cache, clock } = setUp({ refresh: 'scheduled', source: { request } });
    cache.start();
    // Until the first look that knows the life of the token.
    await clock.advance(2_000);
    const begun = requests;
    let without = 0;
    for (let ms = 0; ms < 60_000; ms += 20) {
      await clock.advance(20);
      if (!cache.status('api')) without += 1;
    }
    expect(without).toBe(0);
    expect((requests - begun) / (60 / expiresIn)).toBeLessThan(3);
    cache.close();
  });

  it('goes on after failures and a Retry-After', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    source.last.fail(reset());
    await clock.advance(2_999);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1_001);
    expect(source.requests).toHaveLength(2);
    source.last.fail(refusal('token_rate_limited', 429, 100));
    await clock.advance(99_999);
    expect(source.requests).toHaveLength(2);
    await clock.advance(5_001);
    expect(source.requests).toHaveLength(3);
    cache.close();
  });

  it('asks for no customers, and for no token without a life', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    const customer = cache.get('customer.c1');
    await settle();
    source.last.grant(3600);
    await customer;
    expect(clock.timers).toBe(0);
    cache.start();
    await settle();
    source.last.grant(0);
    await clock.advance(3_600_000);
    expect(source.requests).toHaveLength(2);
    cache.close();
  });

  it('while a request of a caller runs, begins none', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    const waiting = outcomes([cache.get('api')]);
    cache.start();
    await clock.advance(5_000);
    expect(source.requests).toHaveLength(1);
    source.last.grant(60);
    await waiting;
    cache.close();
  });

  it('goes on where the token under way is outdated by another certificate', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    cache.outdateAll();
    source.last.grant(60);
    await settle();
    expect(cache.use('api')).toBeUndefined();
    await clock.advance(5_000);
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await settle();
    expect(cache.use('api')?.accessToken).toBe('token-2');
    cache.close();
  });
});
