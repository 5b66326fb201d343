import { describe, expect, it } from '@jest/globals';
import { SILENT } from '../../../../lib/exchange/io.js';
import { ServiceConnectionError } from '../../../../lib/errors/index.js';
import { settle } from '../../../helpers/fake-clock.js';
import { type FakeSource } from '../fakes.js';
import { outcomes, refusal, reset, setUp } from './set-up.js';

describe('one request per scope', () => {
  it('1,000 callers without a token make one request and share its token', async () => {
    const { cache, source } = setUp();
    const callers = Array.from({ length: 1_000 }, () => cache.get('api'));
    await settle();
    expect(source.requests).toHaveLength(1);
    source.last.grant(60);
    expect(new Set(await Promise.all(callers)).size).toBe(1);
    expect(cache.use('api')?.accessToken).toBe('token-1');
  });

  it('another scope is another request', async () => {
    const { cache, source } = setUp();
    const both = [cache.get('api'), cache.get('customer.c1')];
    await settle();
    expect(source.requests.map(({ scope }) => scope)).toEqual(['api', 'customer.c1']);
    source.requests.forEach((request) => request.grant(3600));
    await Promise.all(both);
  });

  it('a rejection is shared by all who wait, and never cached', async () => {
    const { cache, source } = setUp();
    const callers = [cache.get('api'), cache.get('api')];
    await settle();
    source.last.fail(refusal('token_refused', 400));
    expect(await outcomes(callers)).toEqual(['token_refused', 'token_refused']);
    expect(cache.use('api')).toBeUndefined();
    const next = cache.get('api');
    await settle();
    source.last.grant(60);
    expect((await next).accessToken).toBe('token-2');
  });

  it('a caller that aborts leaves the others their request', async () => {
    const { cache, source } = setUp();
    const controller = new AbortController();
    const leaves = cache.get('api', { signal: controller.signal });
    const stays = cache.get('api');
    await settle();
    const reason = new Error('changed my mind');
    controller.abort(reason);
    await expect(leaves).rejects.toBe(reason);
    await expect(cache.get('api', { signal: controller.signal })).rejects.toBe(reason);
    source.last.grant(60);
    expect((await stays).accessToken).toBe('token-1');
    expect(source.requests).toHaveLength(1);
  });

  it('a caller whose deadline comes is rejected alone', async () => {
    const { cache, source, clock } = setUp();
    const hasty = cache.get('api', { timeoutMs: 500 });
    const patient = cache.get('api');
    const rejected = expect(hasty).rejects.toMatchObject({ code: 'connection_timeout' });
    await clock.advance(500);
    await rejected;
    source.last.grant(60);
    expect((await patient).accessToken).toBe('token-1');
  });
});

it('a look whether there is a token begins no renewal', async () => {
  const { cache, source, clock, filled } = setUp();
  expect(cache.status('api')).toBeUndefined();
  await filled(60);
  await clock.advance(50_000);
  expect(cache.status('api')).toMatchObject({ issuedAt: expect.any(Date) });
  await settle();
  expect(source.requests).toHaveLength(1);
  await clock.advance(5_000);
  expect(cache.status('api')).toBeUndefined();
  expect(source.requests).toHaveLength(1);
});

describe('an acquisition that callers wait for', () => {
  it('makes at most 3 attempts after connection faults and 5xx', async () => {
    const { cache, source, clock } = setUp({ random: () => 0.999 });
    const waiting = outcomes([cache.get('api'), cache.get('api')]);
    await settle();
    source.last.fail(reset());
    await clock.advance(99);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    expect(source.requests).toHaveLength(2);
    source.last.fail(refusal('token_unavailable', 503));
    await clock.advance(199);
    expect(source.requests).toHaveLength(2);
    await clock.advance(1);
    expect(source.requests).toHaveLength(3);
    source.last.fail(reset());
    await settle();
    expect(await waiting).toEqual(['connection_reset', 'connection_reset']);
    expect(clock.timers).toBe(0);
    // All of them have 10 s together, with the waits between.
    const times = source.requests.map(({ context }) => Math.round(context.timeoutMs));
    expect(times).toEqual([10_000, 9_900, 9_700]);
  });

  it.each([
    ['a refusal', refusal('token_refused', 400)],
    ['an answer out of order', refusal('invalid_token_response', 200)],
    ['a TLS fault', new ServiceConnectionError({ kind: 'tls', message: 'wrong host name' })],
    ['a redirect', new ServiceConnectionError({ kind: 'redirect', message: 'elsewhere' })],
    ['too much', new ServiceConnectionError({ kind: 'too_large', message: 'over the cap' })],
  ])('makes one after %s', async (_name, error) => {
    const { cache, source, clock } = setUp();
    const waiting = outcomes([cache.get('api')]);
    await settle();
    source.last.fail(error);
    await clock.advance(1_000);
    await waiting;
    expect(source.requests).toHaveLength(1);
  });

  it('makes one for who wants no more, and three as soon as another caller waits', async () => {
    const { cache, source, clock } = setUp();
    const alone = outcomes([cache.get('api', { once: true })]);
    await settle();
    expect(source.last.context.isProbe).toBe(true);
    source.last.fail(reset());
    await clock.advance(1_000);
    expect(await alone).toEqual(['connection_reset']);
    expect(source.requests).toHaveLength(1);

    const both = outcomes([cache.get('api', { once: true }), cache.get('api')]);
    await settle();
    expect(source.last.context.isProbe).toBe(false);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      source.last.fail(reset());
      await clock.advance(1_000);
    }
    expect(await both).toEqual(['connection_reset', 'connection_reset']);
    expect(source.requests).toHaveLength(4);
  });

  it('ends after 10 s, and the next caller starts anew', async () => {
    const { cache, source, clock } = setUp();
    const waiting = outcomes([cache.get('api')]);
    await clock.advance(10_000);
    expect(await waiting).toEqual(['connection_timeout']);
    expect(source.requests).toHaveLength(1);
    expect(source.last.context.signal.aborted).toBe(true);
    const next = cache.get('api');
    await settle();
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await next;
  });

  it('asks again where the client secret could not be read, and says so at the end', async () => {
    const { cache, source, clock } = setUp();
    const waiting = outcomes([cache.get('api')]);
    await settle();
    source.last.fail(refusal('client_secret_unavailable', 0));
    await clock.advance(100);
    expect(source.requests).toHaveLength(2);
    await clock.advance(10_000);
    expect(await waiting).toEqual(['client_secret_unavailable']);
    const next = outcomes([cache.get('api')]);
    await settle();
    source.last.fail(refusal('client_secret_unavailable', 0));
    await clock.advance(100);
    source.last.fail(reset());
    await clock.advance(200);
    await clock.advance(10_000);
    expect(await next).toEqual(['connection_timeout']);
  });

  it('stops trying when nobody waits any longer', async () => {
    const { cache, source, clock } = setUp({ random: () => 0.5 });
    const controller = new AbortController();
    const waiting = outcomes([cache.get('api', { signal: controller.signal })]);
    await settle();
    source.last.fail(reset());
    await settle();
    controller.abort(new Error('gone'));
    await clock.advance(5_000);
    await waiting;
    expect(source.requests).toHaveLength(1);
    expect(cache.use('api')).toBeUndefined();
  });
});

describe('refresh ahead', () => {
  it('serves the current token at once while one request runs behind it', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    await clock.advance(40_499);
    expect(cache.use('api')?.accessToken).toBe('token-1');
    await settle();
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    for (let call = 0; call < 100; call += 1) expect(cache.use('api')?.accessToken).toBe('token-1');
    await settle();
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await settle();
    expect(cache.use('api')?.accessToken).toBe('token-2');
  });

  it('tries again after 3 s, doubling to 30 s, and the old token serves until it expires', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled(3600);
    await clock.advance(0.75 * 3_570_000);
    const begun = clock.monotonic();
    const at: number[] = [];
    for (let second = 0; second < 100; second += 1) {
      expect(cache.use('api')?.accessToken).toBe('token-1');
      await settle();
      if (source.requests.length > at.length + 1) {
        at.push(clock.monotonic() - begun);
        source.last.fail(reset());
        await settle();
      }
      await clock.advance(1_000);
    }
    expect(at).toEqual([0, 3_000, 9_000, 21_000, 45_000, 75_000]);
    await clock.advance(0.25 * 3_570_000);
    expect(cache.use('api')).toBeUndefined();
  });

  it('a caller that finds the token expired joins the renewal, which then tries up to 3 times', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    await clock.advance(53_000);
    cache.use('api');
    await clock.advance(1_500);
    const waiting = cache.get('api');
    expect(source.requests).toHaveLength(2);
    source.last.fail(reset());
    await clock.advance(100);
    source.last.grant(60);
    expect((await waiting).accessToken).toBe('token-3');
  });

  it('an idle process makes no request and keeps no timer', async () => {
    const { source, clock, filled } = setUp();
    await filled();
    expect(clock.timers).toBe(0);
    await clock.advance(3_600_000);
    expect(source.requests).toHaveLength(1);
  });

  it('an endpoint that hands out the same token again is not asked ever more often', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    await clock.advance(40_500);
    cache.use('api');
    await settle();
    source.last.grant(1, 'token-1');
    await settle();
    await clock.advance(400);
    cache.use('api');
    await settle();
    expect(source.requests).toHaveLength(2);
  });
});

describe('lifetimes', () => {
  describe('none', () => {
    it.each(['api', 'customer.c1'])(
      '%s: used for 1 s from its arrival, and not renewed ahead',
      async (scope) => {
        const { cache, source, clock } = setUp();
        for (let round = 1; round <= 2; round += 1) {
          const waiting = cache.get(scope);
          await clock.advance(1_500);
          source.last.grant(0);
          const { expiresAt } = await waiting;
          expect(expiresAt.getTime()).toBe(clock.now() + 1_000);
          await clock.advance(999);
          for (let call = 0; call < 50; call += 1)
            expect(cache.use(scope)?.accessToken).toBe(`token-${round}`);
          await clock.advance(1);
          expect(cache.use(scope)).toBeUndefined();
          expect(source.requests).toHaveLength(round);
        }
      },
    );
  });

  it('1 s is still cached for half of it', async () => {
    const { cache, clock, filled } = setUp();
    await filled(1);
    await clock.advance(499);
    expect(cache.use('api')).toBeDefined();
    await clock.advance(1);
    expect(cache.use('api')).toBeUndefined();
  });

  it('a wall clock that jumps ahead kills the token once, not every new one', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    clock.jump(24 * 3_600_000);
    expect(cache.use('api')).toBeUndefined();
    await filled();
    for (let call = 0; call < 20; call += 1) expect((await cache.get('api')).accessToken).toBe('token-2');
    expect(source.requests).toHaveLength(2);
  });

  it('a wall clock that jumps back lengthens no life', async () => {
    const { cache, clock, filled } = setUp();
    await filled();
    clock.jump(-24 * 3_600_000);
    expect(cache.use('api')).toBeDefined();
    await clock.advance(54_000);
    expect(cache.use('api')).toBeUndefined();
  });
});

describe('on-expiry', () => {
  it('asks when there is none, and not before', async () => {
    const { cache, source, clock, filled } = setUp({ refresh: 'on-expiry' });
    await filled();
    await clock.advance(53_999);
    expect(cache.use('api')).toBeDefined();
    await settle();
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    expect(cache.use('api')).toBeUndefined();
  });
});

describe('429 and Retry-After', () => {
  it('hold every scope back; who cannot wait that long is rejected, at once if he comes then', async () => {
    const { cache, source, clock } = setUp();
    const hasty = outcomes([cache.get('api', { timeoutMs: 5_000 })]);
    const patient = cache.get('api', { timeoutMs: 60_000 });
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 20));
    await settle();
    await expect(cache.get('customer.c1', { timeoutMs: 19_000 })).rejects.toMatchObject({
      code: 'token_rate_limited',
      status: 429,
      retryAfter: 20,
    });
    const other = cache.get('customer.c1', { timeoutMs: 21_000 });
    await clock.advance(5_000);
    expect(await hasty).toEqual(['token_rate_limited']);
    await clock.advance(14_999);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    expect(source.requests.map(({ scope }) => scope)).toEqual(['api', 'api', 'customer.c1']);
    source.requests.forEach((request) => request.grant(3600));
    await Promise.all([patient, other]);
  });

  it('as after the 401 or 403 of a gateway: once all attempts have failed, the next wait 1 s, then 2 s', async () => {
    const { cache, source, clock } = setUp();
    for (const [count, heldMs] of [
      [3, 0],
      [6, 1_000],
      [9, 2_000],
    ]) {
      const waiting = outcomes([cache.get('api')]);
      await clock.advance(Math.max(0, heldMs - 1));
      if (heldMs > 0) {
        expect(source.requests).toHaveLength(count - 3);
        const hasty = cache.get('customer.c1', { timeoutMs: 0 });
        await expect(hasty).rejects.toMatchObject({ code: 'token_unavailable', status: 401, retryAfter: 1 });
        await clock.advance(1);
      }
      for (let number = count - 2; number <= count; number += 1) {
        await clock.advance(0);
        expect(source.requests).toHaveLength(number);
        source.last.fail(refusal('token_unavailable', 401));
      }
      expect(await waiting).toEqual(['token_unavailable']);
    }
  });

  it('but what a gateway refuses to a customer does not hold the api token up', async () => {
    const { cache, source, clock } = setUp();
    const refused = outcomes([cache.get('customer.c1')]);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await clock.advance(0);
      source.last.fail(refusal('token_unavailable', 403));
    }
    expect(await refused).toEqual(['token_unavailable']);
    const [customer, api] = [outcomes([cache.get('customer.c2', { timeoutMs: 0 })]), cache.get('api')];
    await clock.advance(0);
    expect(source.requests.at(-1)?.scope).toBe('api');
    source.last.grant(3600);
    await api;
    expect(await customer).toEqual(['token_unavailable']);
  });

  it('leave the valid token alone', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    await clock.advance(40_500);
    cache.use('api');
    await settle();
    source.last.fail(refusal('token_unavailable', 503, 10));
    for (let second = 0; second < 9; second += 1) {
      await clock.advance(1_000);
      expect(cache.use('api')?.accessToken).toBe('token-1');
    }
    expect(source.requests).toHaveLength(2);
    await clock.advance(1_000);
    cache.use('api');
    await settle();
    expect(source.requests).toHaveLength(3);
  });

  it('without a time it is 3 s, doubling', async () => {
    const { cache, source, clock } = setUp();
    const waiting = outcomes([cache.get('api')]);
    await settle();
    source.last.fail(refusal('token_rate_limited', 429));
    await clock.advance(2_999);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    source.last.fail(refusal('token_rate_limited', 429));
    await clock.advance(5_999);
    expect(source.requests).toHaveLength(2);
    await clock.advance(1);
    expect(source.requests).toHaveLength(3);
    source.last.grant(60);
    expect(await waiting).toEqual(['token-3']);
  });

  it('end by the monotonic clock: a jump of the wall clock does not matter', async () => {
    const { cache, source, clock } = setUp();
    const waiting = outcomes([cache.get('api')]);
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 3_600));
    clock.jump(-7_200_000);
    await clock.advance(3_599_000);
    expect(await waiting).toEqual(['token_rate_limited']);
    await expect(cache.get('api', { timeoutMs: 500 })).rejects.toMatchObject({ retryAfter: 1 });
    await clock.advance(1_000);
    const next = outcomes([cache.get('api', { timeoutMs: 500 })]);
    await settle();
    source.last.grant(60);
    expect(await next).toEqual(['token-2']);
  });

  it('nobody left to wait: no request when the time is over', async () => {
    const { cache, source, clock } = setUp();
    const controller = new AbortController();
    const waiting = outcomes([cache.get('api', { signal: controller.signal })]);
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 5));
    await settle();
    controller.abort(new Error('gone'));
    await waiting;
    await clock.advance(60_000);
    expect(source.requests).toHaveLength(1);
    expect(cache.use('api')).toBeUndefined();
  });
});

describe('forced refresh', () => {
  it('drops only the token that was used, and is shared', async () => {
    const { cache, source, filled } = setUp();
    await filled();
    const forced = Array.from({ length: 50 }, () => cache.replace('api', 'token-1'));
    expect(cache.use('api')).toBeUndefined();
    expect(source.droppedTokens).toEqual(['token-1']);
    await settle();
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    expect(new Set((await Promise.all(forced)).map((renewed) => renewed?.accessToken))).toEqual(
      new Set(['token-2']),
    );
    expect((await cache.replace('api', 'token-1'))?.accessToken).toBe('token-2');
    expect(source.requests).toHaveLength(2);
  });

  it('is bounded: a burst of 3, then one in 30 s; beyond that the token stays cached', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled(3600);
    const force = async (): Promise<string | undefined> => {
      const count = source.requests.length;
      const forced = cache.replace('api', cache.use('api')?.accessToken ?? '');
      await settle();
      if (source.requests.length > count) source.last.grant(3600);
      return (await forced)?.accessToken;
    };
    expect([await force(), await force(), await force()]).toEqual(['token-2', 'token-3', 'token-4']);
    for (let call = 0; call < 10; call += 1) expect(await force()).toBeUndefined();
    expect(cache.use('api')?.accessToken).toBe('token-4');
    await clock.advance(30_000);
    expect([await force(), await force()]).toEqual(['token-5', undefined]);
  });

  it('joins a renewal that is under way, without counting', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    for (let round = 1; round <= 5; round += 1) {
      await clock.advance(40_500);
      cache.use('api');
      const forced = cache.replace('api', `token-${round}`);
      await settle();
      expect(source.requests).toHaveLength(round + 1);
      source.last.grant(60);
      expect((await forced)?.accessToken).toBe(`token-${round + 1}`);
    }
  });

  it('an endpoint that hands out the same token again: none to replay with', async () => {
    const { cache, source, filled } = setUp();
    await filled();
    const forced = cache.replace('api', 'token-1');
    await settle();
    source.last.grant(60, 'token-1');
    expect(await forced).toBeUndefined();
  });

  it('a dropped token is not taken from elsewhere again', async () => {
    const { cache, clock, source, filled } = setUp();
    await filled();
    await clock.advance(10_000);
    const forced = cache.replace('api', 'token-1');
    await settle();
    const { accepts } = source.last.context;
    const stored = { scope: 'api', expiresIn: 60 } as const;
    expect(accepts({ ...stored, accessToken: 'token-1', ageMs: 1_000 })).toBe(false);
    expect(accepts({ ...stored, expiresIn: 10, accessToken: 'ended', ageMs: 9_000 })).toBe(false);
    // As old as the dropped one, and older: an entry that somebody put back.
    expect(accepts({ ...stored, accessToken: 'other', ageMs: 10_000 })).toBe(false);
    expect(accepts({ ...stored, accessToken: 'other', ageMs: 11_000 })).toBe(false);
    expect(accepts({ ...stored, accessToken: 'other', ageMs: 9_999 })).toBe(true);
    source.last.grant(60);
    await forced;
  });

  it('takes a token that is due from elsewhere only where it has none', async () => {
    const { cache, clock, source } = setUp();
    const due = { scope: 'api', accessToken: 'due', expiresIn: 60 } as const;
    const waiting = cache.get('api');
    await settle();
    expect(source.last.context.accepts({ ...due, ageMs: 50_000 })).toBe(true);
    source.last.grant(60);
    await waiting;
    await clock.advance(50_000);
    cache.use('api');
    await settle();
    expect(source.requests).toHaveLength(2);
    expect(source.last.context.accepts({ ...due, ageMs: 49_000 })).toBe(false);
    expect(source.last.context.accepts({ ...due, ageMs: 40_000 })).toBe(true);
    cache.close();
  });
});

describe('invalidate', () => {
  it('drops the token if it is still the cached one', async () => {
    const { cache, source, filled } = setUp();
    await filled();
    cache.invalidate('another');
    expect(cache.use('api')).toBeDefined();
    expect(source.droppedTokens).toEqual([]);
    cache.invalidate('token-1');
    expect(cache.use('api')).toBeUndefined();
    expect(source.droppedTokens).toEqual(['token-1']);
  });

  it('finds customers too', async () => {
    const { cache, source } = setUp();
    const waiting = cache.get('customer.c1');
    await settle();
    source.last.grant(3600);
    cache.invalidate((await waiting).accessToken);
    expect(cache.use('customer.c1')).toBeUndefined();
  });

  it('of all drops what is under way as well', async () => {
    const { cache, source, filled } = setUp();
    await filled();
    const customer = cache.get('customer.c1');
    await settle();
    cache.outdateAll();
    source.last.grant(3600);
    await customer;
    expect(cache.use('api')).toBeUndefined();
    expect(cache.use('customer.c1')).toBeUndefined();
  });
});

describe('customers', () => {
  const fill = async ({ cache, source }: ReturnType<typeof setUp>, scope: string, expiresIn = 3600) => {
    const waiting = cache.get(scope);
    await settle();
    source.last.grant(expiresIn);
    return waiting;
  };

  it('a token is handed out again only while it has 600 s left', async () => {
    const parts = setUp();
    await fill(parts, 'customer.c1');
    await parts.clock.advance(2_999_999);
    expect(parts.cache.use('customer.c1')).toBeDefined();
    await parts.clock.advance(1);
    expect(parts.cache.use('customer.c1')).toBeUndefined();
  });

  it('at most half of its lifetime counts', async () => {
    const parts = setUp();
    await fill(parts, 'customer.c1', 600);
    await parts.clock.advance(299_999);
    expect(parts.cache.use('customer.c1')).toBeDefined();
    await parts.clock.advance(1);
    expect(parts.cache.use('customer.c1')).toBeUndefined();
  });

  it('the least recently used makes room; the api token stays', async () => {
    const parts = setUp({ maxEntries: 2 });
    const { cache } = parts;
    await fill(parts, 'api');
    await fill(parts, 'customer.c1');
    await fill(parts, 'customer.c2');
    cache.use('customer.c1');
    await fill(parts, 'customer.c3');
    const left = ['api', 'customer.c1', 'customer.c2', 'customer.c3'].filter((scope) => cache.use(scope));
    expect(left).toEqual(['api', 'customer.c1', 'customer.c3']);
  });

  it('20,000 of them stay within the bound', async () => {
    const request = async (scope: string) => ({ accessToken: `t-${scope}`, scope, expiresIn: 3600 }) as const;
    const { cache } = setUp({ source: { request }, maxEntries: 100 });
    const scopes = Array.from({ length: 20_000 }, (_, n) => `customer.${n}`);
    for (let n = 0; n < scopes.length; n += 100) {
      await Promise.all(scopes.slice(n, n + 100).map((scope) => cache.get(scope)));
    }
    expect(scopes.filter((scope) => cache.use(scope))).toEqual(scopes.slice(-100));
  });
});

describe("the lane of customers' requests", () => {
  const scopes = ({ requests }: FakeSource): string[] => requests.map(({ scope }) => scope);

  it('lets so many go at a time, in their order, and the api token past them', async () => {
    const { cache, source } = setUp({ customerRequests: 2 });
    const customers = Array.from({ length: 5 }, (_, n) => cache.get(`customer.${n}`));
    const ended = outcomes([...customers, cache.get('api')]);
    await settle();
    const of = (scope: string) => source.requests.filter((request) => request.scope === scope)[0];
    expect(scopes(source).sort()).toEqual(['api', 'customer.0', 'customer.1']);
    of('customer.1').grant(3600, 'of-1');
    await settle();
    of('customer.0').fail(refusal('token_refused', 403));
    await settle();
    expect(scopes(source).slice(3)).toEqual(['customer.2', 'customer.3']);
    source.requests.forEach((request) => request.grant(3600, `of-${request.scope}`));
    await settle();
    source.last.grant(3600, 'of-4');
    const expected = ['token_refused', 'of-1', 'of-customer.2', 'of-customer.3', 'of-4', 'of-api'];
    expect(await ended).toEqual(expected);
  });

  it('a caller in it keeps its deadline and its abort; what nobody waits for is not asked', async () => {
    const { cache, source, clock } = setUp({ customerRequests: 1 });
    const first = cache.get('customer.0');
    const controller = new AbortController();
    const late = outcomes([cache.get('customer.late', { timeoutMs: 100 })]);
    const aborted = cache.get('customer.aborted', { signal: controller.signal });
    const patient = cache.get('customer.patient');
    await settle();
    const reason = new Error('changed my mind');
    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    await clock.advance(100);
    expect(await late).toEqual(['connection_timeout']);
    source.last.grant(3600);
    await settle();
    expect(scopes(source)).toEqual(['customer.0', 'customer.patient']);
    source.last.grant(3600);
    await Promise.all([first, patient]);
    expect(clock.timers).toBe(0);
  });

  it('a caller that comes just after the last one has left gets its token', async () => {
    for (let turns = 0; turns < 20; turns += 1) {
      const { cache, source } = setUp({ customerRequests: 1 });
      const first = cache.get('customer.0');
      const controller = new AbortController();
      const leaves = cache.get('customer.1', { signal: controller.signal });
      await settle();
      controller.abort(new Error('gone'));
      await expect(leaves).rejects.toThrow('gone');
      source.last.grant(3600);
      // The place of the one that left is given up in one of these.
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      const comes = cache.get('customer.1');
      await settle();
      source.last.grant(3600);
      expect(scopes(source)).toEqual(['customer.0', 'customer.1']);
      expect(await outcomes([first, comes])).toEqual(['token-1', 'token-2']);
    }
  });

  it('a renewal in the background does not stand in it: those without a token go first', async () => {
    const { cache, source, clock } = setUp({ customerRequests: 1, customerReserveMs: 0 });
    const old = cache.get('customer.old');
    await settle();
    source.last.grant(60);
    await old;
    await clock.advance(45_000);
    const other = cache.get('customer.other');
    await settle();
    expect(cache.use('customer.old')?.accessToken).toBe('token-1');
    source.last.grant(3600);
    await other;
    expect(scopes(source)).toEqual(['customer.old', 'customer.other']);
    expect(cache.use('customer.old')?.accessToken).toBe('token-1');
    await settle();
    expect(scopes(source)).toEqual(['customer.old', 'customer.other', 'customer.old']);
    cache.close();
  });

  it('renewals of one tick take no more places than there are, and no queue', async () => {
    const { cache, source, clock } = setUp({ customerRequests: 2, customerReserveMs: 0 });
    const all = Array.from({ length: 6 }, (_, n) => `customer.${n}`);
    for (const scope of all) {
      const waiting = cache.get(scope);
      await settle();
      source.last.grant(60);
      await waiting;
    }
    await clock.advance(45_000);
    source.requests.length = 0;
    const api = cache.get('api');
    for (const scope of all) cache.use(scope);
    const newcomer = cache.get('customer.new');
    await settle();
    expect(scopes(source)).toEqual(['api', 'customer.0', 'customer.1']);
    source.requests[1].grant(60);
    await settle();
    expect(scopes(source)[3]).toBe('customer.new');
    source.last.grant(3600);
    source.requests[0].grant(60);
    await Promise.all([newcomer, api]);
    cache.close();
  });

  it('a 429 holds those in it too, and tells the hasty ones why at their deadline', async () => {
    const { cache, source, clock } = setUp({ customerRequests: 1 });
    const patient = cache.get('customer.0', { timeoutMs: 60_000 });
    const hasty = outcomes([cache.get('customer.1', { timeoutMs: 5_000 })]);
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 20));
    await clock.advance(5_000);
    expect(await hasty).toEqual(['token_rate_limited']);
    expect(source.requests).toHaveLength(1);
    await clock.advance(15_000);
    source.last.grant(3600);
    await patient;
    expect(scopes(source)).toEqual(['customer.0', 'customer.0']);
  });

  it('closing rejects those in it, and none of them is asked for afterwards', async () => {
    const { cache, source, clock } = setUp({ customerRequests: 1 });
    const both = outcomes([cache.get('customer.0'), cache.get('customer.1')]);
    await settle();
    cache.close();
    expect(await both).toEqual(['connection_closed', 'connection_closed']);
    await settle();
    expect([source.requests.length, clock.timers]).toEqual([1, 0]);
  });
});

it('a caller without any time left is late; the endpoint asked for nothing', async () => {
  const { cache, clock } = setUp();
  const late = outcomes([cache.get('api', { timeoutMs: -5 })]);
  await clock.advance(0);
  expect(await late).toEqual(['connection_timeout']);
  cache.close();
});

it('a scope is found by its request before it has a token', async () => {
  const { cache, source } = setUp();
  const first = cache.get('customer.c1');
  await settle();
  const second = cache.get('customer.c1');
  await settle();
  expect(source.requests).toHaveLength(1);
  source.last.grant(600);
  expect(await outcomes([first, second])).toEqual(['token-1', 'token-1']);
});

it('after the end no renewal begins, though a token is still handed out', async () => {
  const { cache, source, clock, filled } = setUp();
  await filled();
  await clock.advance(45_000);
  cache.close();
  expect(cache.use('api')?.accessToken).toBe('token-1');
  await settle();
  expect(source.requests).toHaveLength(1);
});

describe('close', () => {
  it('rejects all who wait, ends what is under way, and nothing is left', async () => {
    const { cache, source, clock } = setUp();
    const waiting = outcomes([cache.get('api'), cache.get('customer.c1', { timeoutMs: 100 })]);
    await settle();
    cache.close();
    expect(await waiting).toEqual(['connection_closed', 'connection_closed']);
    expect(source.requests.map(({ context }) => context.signal.aborted)).toEqual([true, true]);
    await expect(cache.get('api')).rejects.toMatchObject({ code: 'connection_closed' });
    const [one, other] = await Promise.all(
      [cache.get('api'), cache.get('api')].map((late) => late.catch((error: unknown) => error)),
    );
    expect(one).not.toBe(other);
    await expect(cache.replace('api', 'x')).rejects.toMatchObject({ code: 'connection_closed' });
    await settle();
    expect(clock.timers).toBe(0);
  });

  it('keeps no token that comes at the same moment', async () => {
    for (let turns = 0; turns < 20; turns += 1) {
      const { cache, source, clock } = setUp({ refresh: 'scheduled' });
      const waiting = outcomes([cache.get('api')]);
      await settle();
      source.last.grant(60);
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      const isThere = cache.use('api') !== undefined;
      cache.close();
      await settle();
      expect(await waiting).toEqual([isThere ? 'token-1' : 'connection_closed']);
      expect([cache.use('api') !== undefined, clock.timers]).toEqual([isThere, 0]);
    }
  });

  it('is no failure that anybody has to be told of', async () => {
    const told: string[] = [];
    const warn = (message: string): void => void told.push(message);
    const { cache, source, clock, filled } = setUp({ log: { ...SILENT, warn } });
    await filled();
    await clock.advance(45_000);
    cache.use('api');
    await settle();
    expect(source.requests).toHaveLength(2);
    cache.close();
    await settle();
    expect(told).toEqual([]);
  });

  it('ends a back-off and a hold', async () => {
    const { cache, source, clock } = setUp({ random: () => 0.9 });
    const waiting = outcomes([cache.get('api'), cache.get('customer.c1')]);
    await settle();
    source.requests[0].fail(reset());
    source.requests[1].fail(refusal('token_rate_limited', 429, 10));
    await settle();
    cache.close();
    await waiting;
    await settle();
    expect(clock.timers).toBe(0);
    expect(source.requests).toHaveLength(2);
  });

  it('a valid token still serves calls that come to their end, without being renewed', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    cache.close();
    await clock.advance(50_000);
    expect(cache.use('api')?.accessToken).toBe('token-1');
    await settle();
    expect(source.requests).toHaveLength(1);
  });
});
