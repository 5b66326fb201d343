import { describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { types } from 'node:util';
import { type AccessToken } from '../../../lib/auth/access-token.js';
import { type TokenCache } from '../../../lib/auth/cache/token-cache.js';
import { ServiceConnectionError, ServiceTokenError, type TokenErrorCode } from '../../../lib/errors/index.js';
import { SILENT } from '../../../lib/exchange/io.js';
import { momentOf, systemClock } from '../../../lib/time/clock.js';
import { sleep } from '../../../lib/time/timers.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { FakeSource, makeCache } from './fakes.js';
import { replayHistories } from './histories.js';

const reset = (): Error => new ServiceConnectionError({ kind: 'reset', message: 'reset' });
const refusal = (code: TokenErrorCode, status: number, retryAfter?: number): Error =>
  new ServiceTokenError({ code, status, retryAfter, message: code });

function setUp(options: Partial<Parameters<typeof makeCache>[0]> = {}) {
  const clock = new FakeClock();
  const source = new FakeSource();
  const random = () => 0;
  const settings = { maxEntries: 10_000, customerReserveMs: 600_000 };
  const cache = makeCache({ source, clock, random, ...settings, ...options });
  /** Gets a token; that of the api, 60 s from now, is `token-1`: usable for 54 s, due after 40.5 s. */
  const filled = async (expiresIn = 60, scope = 'api'): Promise<AccessToken> => {
    const waiting = cache.get(scope);
    await settle();
    source.last.grant(expiresIn);
    return waiting;
  };
  const scopes = () => source.requests.map(({ scope }) => scope);
  return { clock, source, cache, filled, scopes };
}

/** The token, or the code of the error, of each. */
async function outcomes(promises: Promise<AccessToken>[]): Promise<string[]> {
  const settled = await Promise.allSettled(promises);
  return settled.map((outcome) =>
    outcome.status === 'fulfilled'
      ? outcome.value.accessToken
      : String((outcome.reason as { code?: string }).code ?? outcome.reason),
  );
}

describe('one request per scope', () => {
  it.each(['api', 'customer.c1'])('%s: 1,000 callers make one, and share its token', async (scope) => {
    const { cache, source } = setUp();
    const callers = Array.from({ length: 500 }, () => cache.get(scope));
    await settle();
    callers.push(...Array.from({ length: 500 }, () => cache.get(scope)));
    await settle();
    expect(source.requests).toHaveLength(1);
    source.last.grant(3600);
    expect(new Set(await Promise.all(callers)).size).toBe(1);
    expect(cache.getCached(scope)?.accessToken).toBe('token-1');
  });

  it('another scope is another request', async () => {
    const { cache, source, scopes } = setUp();
    const both = [cache.get('api'), cache.get('customer.c1')];
    await settle();
    expect(scopes()).toEqual(['api', 'customer.c1']);
    source.requests.forEach((request) => request.grant(3600));
    expect(await outcomes(both)).toEqual(['token-1', 'token-2']);
  });

  it('a rejection is shared by all who wait, and leaves nothing in the cache', async () => {
    const { cache, source, clock, filled } = setUp();
    const callers = [cache.get('api'), cache.get('api')];
    await settle();
    source.last.fail(refusal('token_refused', 400));
    expect(await outcomes(callers)).toEqual(['token_refused', 'token_refused']);
    expect(cache.getCached('api')).toBeUndefined();
    await clock.advance(1_000);
    expect((await filled()).accessToken).toBe('token-2');
  });

  it('each caller gets an error of its own: what one host writes into it, no other caller sees', async () => {
    const { cache, source } = setUp();
    const details = { code: 'token_refused', message: 'no', status: 400, scope: 'api' } as const;
    const reason = new ServiceTokenError(details);
    const waiting = Promise.allSettled([cache.get('api'), cache.get('api'), cache.get('api')]);
    await settle();
    source.last.fail(reason);
    const errors = (await waiting).map((outcome) => (outcome as { reason?: ServiceTokenError }).reason!);
    expect(new Set([...errors, reason]).size).toBe(4);
    for (const error of errors) {
      expect(error).toBeInstanceOf(ServiceTokenError);
      expect(types.isNativeError(error)).toBe(true);
      expect([{ ...error }, error.toJSON()]).toEqual([{ ...reason }, reason.toJSON()]);
      expect([String(error), error.stack]).toEqual([String(reason), reason.stack]);
    }
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

  it('a caller whose deadline comes is rejected alone, at once if it has no time left', async () => {
    const { cache, source, clock } = setUp();
    const hasty = [-5, 500].map((timeoutMs) => outcomes([cache.get('api', { timeoutMs })]));
    const patient = cache.get('api');
    await clock.advance(0);
    expect(await hasty[0]).toEqual(['connection_timeout']);
    await clock.advance(500);
    expect(await hasty[1]).toEqual(['connection_timeout']);
    source.last.grant(60);
    expect((await patient).accessToken).toBe('token-1');
    expect(source.requests).toHaveLength(1);
  });

  it('a caller that waits holds the process, and no longer than that', async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    const { cache, source } = setUp({ clock: systemClock });
    const waiting = [cache.get('api'), cache.get('api')];
    await settle();
    expect(timers()).toBeGreaterThanOrEqual(before + 2);
    source.last.grant(60);
    expect(await outcomes(waiting)).toEqual(['token-1', 'token-1']);
    expect(timers()).toBe(before);
  });
});

describe('a request that callers wait for', () => {
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
    expect(await waiting).toEqual(['connection_reset', 'connection_reset']);
    expect(clock.timers).toBe(0);
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
    // With the one before, they are three failures in a row.
    expect(source.requests).toHaveLength(3);
  });

  it('ends after 10 s, and the next caller starts anew', async () => {
    const { cache, source, clock, filled } = setUp();
    const waiting = outcomes([cache.get('api')]);
    await clock.advance(10_000);
    expect(await waiting).toEqual(['connection_timeout']);
    expect(source.requests).toHaveLength(1);
    expect(source.last.context.signal.aborted).toBe(true);
    expect((await filled()).accessToken).toBe('token-2');
  });

  it('asks again where the client secret could not be read, and says so at the end', async () => {
    const unreadable = refusal('client_secret_unavailable', 0);
    for (const [faults, end] of [
      [[unreadable], 'client_secret_unavailable'],
      [[unreadable, reset()], 'connection_timeout'],
    ] as const) {
      const { cache, source, clock } = setUp();
      const waiting = outcomes([cache.get('api')]);
      await settle();
      for (const fault of faults) {
        source.last.fail(fault);
        await clock.advance(200);
      }
      await clock.advance(10_000);
      expect(await waiting).toEqual([end]);
      expect(source.requests).toHaveLength(faults.length + 1);
    }
  });

  it.each([
    ['an attempt that failed', reset()],
    ['a Retry-After', refusal('token_rate_limited', 429, 5)],
  ])('is not made again after %s when nobody waits any longer', async (_name, fault) => {
    const { cache, source, clock } = setUp({ random: () => 0.5 });
    const controller = new AbortController();
    const waiting = outcomes([cache.get('api', { signal: controller.signal })]);
    await settle();
    source.last.fail(fault);
    await settle();
    controller.abort(new Error('gone'));
    await waiting;
    await clock.advance(60_000);
    expect(source.requests).toHaveLength(1);
    expect(cache.getCached('api')).toBeUndefined();
  });
});

describe('the life of a token', () => {
  it.each([
    [1, 'api', 500],
    [3, 'api', 2_000],
    [60, 'api', 54_000],
    [300, 'api', 270_000],
    [3_600, 'api', 3_570_000],
    // With 600 s left, or half of its life.
    [3_600, 'customer.c1', 3_000_000],
    [600, 'customer.c1', 300_000],
  ])('of %d s for %s: it is handed out for %d ms, and not after that', async (expiresIn, scope, usableMs) => {
    const { cache, clock, filled } = setUp({ refresh: 'on-expiry' });
    await filled(expiresIn, scope);
    await clock.advance(usableMs - 1);
    expect(cache.getCached(scope)).toBeDefined();
    await clock.advance(1);
    expect(cache.getCached(scope)).toBeUndefined();
  });

  it.each(['api', 'customer.c1'])(
    'none: of %s it is used for 1 s from its arrival, and not renewed ahead',
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
          expect(cache.getCached(scope)?.accessToken).toBe(`token-${round}`);
        await clock.advance(1);
        expect(cache.getCached(scope)).toBeUndefined();
        expect(source.requests).toHaveLength(round);
      }
    },
  );

  it('counts from the request, not from the answer, nor from what its source did before', async () => {
    const { cache, source, clock } = setUp({ refresh: 'on-expiry' });
    const sent = clock.now();
    const slow = cache.get('api');
    await clock.advance(5_000);
    source.last.grant(60);
    expect((await slow).expiresAt.getTime()).toBe(sent + 60_000);
    await clock.advance(49_000);
    expect(cache.getCached('api')).toBeUndefined();

    const request = async (scope: string) => {
      await clock.advance(5_000);
      return { accessToken: 'token', scope, expiresIn: 600, requestedAt: momentOf(clock) };
    };
    const late = setUp({ source: { request }, clock });
    expect((await late.cache.get('api')).expiresAt.getTime()).toBe(clock.now() + 600_000);
  });

  it('ends as soon as either clock says so: a wall clock set back lengthens none', async () => {
    const { cache, clock, filled } = setUp({ refresh: 'on-expiry' });
    await filled();
    clock.jump(54_000);
    expect(cache.getCached('api')).toBeUndefined();
    clock.jump(-24 * 3_600_000);
    expect(cache.getCached('api')).toBeDefined();
    await clock.advance(54_000);
    expect(cache.getCached('api')).toBeUndefined();
  });

  it('is not ended by a wall clock that jumps before its request; a jump before its answer costs one more request', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    clock.jump(24 * 3_600_000);
    expect(cache.getCached('api')).toBeUndefined();
    const waiting = cache.get('api');
    await settle();
    // The process cannot tell this from a machine that was suspended for a day.
    clock.jump(24 * 3_600_000);
    source.last.grant(60);
    await clock.advance(0);
    source.last.grant(60);
    expect((await waiting).expiresAt.getTime()).toBe(clock.now() + 60_000);
    for (let call = 0; call < 20; call += 1) expect((await cache.get('api')).accessToken).toBe('token-3');
    expect(source.requests).toHaveLength(3);
  });

  it('is not lengthened by a wall clock that is set back before its answer comes', async () => {
    const { cache, source, clock } = setUp({ refresh: 'on-expiry' });
    const waiting = cache.get('api');
    await clock.advance(5_000);
    clock.jump(-24 * 3_600_000);
    source.last.grant(60);
    await waiting;
    await clock.advance(48_999);
    expect(cache.getCached('api')).toBeDefined();
    await clock.advance(1);
    expect(cache.getCached('api')).toBeUndefined();
  });
});

describe('a process that is suspended while callers wait for a token', () => {
  it.each(['api', 'customer.c1'])('hands out no expired token of %s, but asks again', async (scope) => {
    const { cache, source, clock } = setUp();
    const waiting = [cache.get(scope), cache.get(scope)];
    await settle();
    clock.jump(4_200);
    source.last.grant(2);
    await clock.advance(100);
    expect(source.requests).toHaveLength(2);
    source.last.grant(2);
    for (const token of await Promise.all(waiting))
      expect(token.expiresAt.getTime()).toBeGreaterThan(clock.now());
  });

  it('counts expired tokens as failed attempts, and says so', async () => {
    const { cache, source, clock } = setUp();
    const waiting = cache.get('api');
    waiting.catch(() => undefined);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await clock.advance(200);
      expect(source.requests).toHaveLength(attempt);
      clock.jump(2_000);
      source.last.grant(2);
    }
    await expect(waiting).rejects.toMatchObject({
      code: 'token_unavailable',
      message: 'The token had expired when it arrived.',
    });
    await clock.advance(1_000);
    expect(source.requests).toHaveLength(3);
    expect(cache.getCached('api')).toBeUndefined();
  });

  it('asks once more for a token that has too little time left, and keeps the next', async () => {
    const { cache, source, clock } = setUp();
    const waiting = cache.get('api');
    await settle();
    // Of 60 s, 54 are usable.
    clock.jump(54_000);
    source.last.grant(60);
    await settle();
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    expect((await waiting).accessToken).toBe('token-2');
    expect(cache.getCached('api')?.accessToken).toBe('token-2');
  });

  it('hands out a second token that is no better, or the first one if the second request fails, and keeps neither', async () => {
    const { cache, source, clock } = setUp();
    const outcomeOf = async (answer: () => unknown): Promise<string[]> => {
      const waiting = outcomes([cache.get('api')]);
      await settle();
      clock.jump(54_000);
      source.last.grant(60, 'first');
      await settle();
      answer();
      return waiting;
    };
    const second = await outcomeOf(() => {
      clock.jump(54_000);
      source.last.grant(60, 'second');
    });
    expect(second).toEqual(['second']);
    expect(await outcomeOf(() => source.last.fail(reset()))).toEqual(['first']);
    expect(source.requests).toHaveLength(4);
    expect(cache.getCached('api')).toBeUndefined();
  });

  it('keeps the current token if the one of a renewal is expired, and renews again after 3 s', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled(3_600);
    await clock.advance(2_700_000);
    cache.getCached('api');
    await settle();
    clock.jump(5_000);
    source.last.grant(5, 'expired');
    await settle();
    expect(cache.getCached('api')?.accessToken).toBe('token-1');
    await clock.advance(2_999);
    cache.getCached('api');
    await settle();
    expect(source.requests).toHaveLength(2);
    await clock.advance(1);
    cache.getCached('api');
    await settle();
    expect(source.requests).toHaveLength(3);
    cache.close();
  });

  it('takes no expired token of a shared store, whose age was right when it was read', async () => {
    const { cache, source, clock } = setUp();
    const waiting = cache.get('api');
    await settle();
    clock.jump(4_200);
    source.last.grant(5, 'of-the-store', 1_000);
    await clock.advance(100);
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    expect((await waiting).accessToken).toBe('token-2');
  });
});

describe('renewal ahead', () => {
  it.each([
    [3, 0, undefined, 1_500],
    [3, 1, undefined, 1_460],
    [60, 0, undefined, 40_500],
    [60, 1, undefined, 39_420],
    [1_030, 1, undefined, 740_000],
    [3_600, 0, undefined, 2_677_500],
    // Of a store: the process that wrote it renews it first.
    [60, 0, 0, 40_500],
    [60, 1, 0, 45_900],
    [60, 0, 10_000, 30_500],
  ])('of %d s, at random %d, %p ms old: begins after %d ms', async (expiresIn, random, ageMs, dueMs) => {
    const { cache, source, clock } = setUp({ random: () => random });
    const waiting = cache.get('api');
    await settle();
    source.last.grant(expiresIn, 'token', ageMs);
    await waiting;
    await clock.advance(dueMs - 1);
    cache.getCached('api');
    await settle();
    expect(source.requests).toHaveLength(1);
    clock.jump(1);
    expect(cache.getCached('api')?.accessToken).toBe('token');
    await settle();
    expect(source.requests).toHaveLength(2);
  });

  it('on-expiry is none', async () => {
    const { cache, source, clock, filled } = setUp({ refresh: 'on-expiry' });
    await filled();
    await clock.advance(53_999);
    expect(cache.getCached('api')).toBeDefined();
    await settle();
    expect(source.requests).toHaveLength(1);
  });

  it('serves the current token at once while one request runs behind it', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    await clock.advance(40_500);
    for (let call = 0; call < 100; call += 1) expect(cache.getCached('api')?.accessToken).toBe('token-1');
    await settle();
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await settle();
    expect(cache.getCached('api')?.accessToken).toBe('token-2');
  });

  it('tries again after 3 s, doubling to 30 s, and the old token serves until it expires', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled(3600);
    await clock.advance(0.75 * 3_570_000);
    const begun = clock.monotonic();
    const at: number[] = [];
    for (let second = 0; second < 100; second += 1) {
      expect(cache.getCached('api')?.accessToken).toBe('token-1');
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
    expect(cache.getCached('api')).toBeUndefined();
  });

  it('a caller that finds the token expired joins it: up to 3 attempts, and all the time of a request', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    await clock.advance(45_000);
    cache.getCached('api');
    await clock.advance(9_500);
    const waiting = cache.get('api');
    expect(source.requests).toHaveLength(2);
    await clock.advance(9_500);
    source.last.fail(reset());
    await clock.advance(100);
    expect(source.requests).toHaveLength(4);
    source.last.grant(60, 'late');
    expect((await waiting).accessToken).toBe('late');
  });

  it('is no work of an idle process, which keeps no timer', async () => {
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
    cache.getCached('api');
    await settle();
    source.last.grant(1, 'token-1');
    await settle();
    await clock.advance(400);
    cache.getCached('api');
    await settle();
    expect(source.requests).toHaveLength(2);
  });

  it.each([
    [60, 1.5],
    [600, 1.42],
    [3_600, 1.36],
  ])('a token of %d s costs at most %d requests per lifetime, and no call waits', async (lifetime, most) => {
    let requests = 0;
    const request = async (scope: string) => {
      return { accessToken: `token-${(requests += 1)}`, scope, expiresIn: lifetime };
    };
    const { cache, clock } = setUp({ source: { request }, random: () => 0.5 });
    await cache.get('api');
    const lifetimes = 20;
    for (let call = 0; call < lifetimes * 100; call++) {
      await clock.advance(lifetime * 10);
      expect(cache.getCached('api')).toBeDefined();
    }
    // Less the first one, which no lifetime has to pay for.
    expect((requests - 1) / lifetimes).toBeLessThanOrEqual(most);
  });

  it('failures that no caller gets are logged, and no others', async () => {
    const error = new ServiceTokenError({
      code: 'token_refused',
      message: 'It is down.',
      hint: 'Check urls.authUrl.',
      options: ['urls.authUrl'],
      scope: 'api',
    });
    const lines: string[] = [];
    const log = { ...SILENT, warn: (line: string) => void lines.push(line) };
    const { cache, source, clock, filled } = setUp({ log });
    const waiting = outcomes([cache.get('api')]);
    await settle();
    source.last.fail(error);
    expect(await waiting).toEqual(['token_refused']);
    expect(lines).toEqual([]);
    await clock.advance(1_000);
    await filled();
    await clock.advance(43_000);
    for (const reason of [error, new Error('not ours, so it may hold anything')]) {
      cache.getCached('api');
      await settle();
      source.last.fail(reason);
      await settle();
      await clock.advance(3_000);
    }
    expect(source.requests).toHaveLength(4);
    cache.getCached('api');
    await settle();
    cache.close();
    await settle();
    expect(lines).toEqual([
      'A token request that no caller waits for failed: token_refused: It is down. Check urls.authUrl.',
    ]);
  });

  it('tells its source whether a caller waits', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    expect(source.last.context.isAwaited()).toBe(false);
    await clock.advance(45_000);
    cache.getCached('api');
    await settle();
    const { isAwaited } = source.last.context;
    expect([source.requests.length, isAwaited()]).toEqual([2, false]);
    // A token that soon ends is asked for as if a caller waited; of one that has ended, the next caller says so.
    await clock.advance(7_500);
    expect(isAwaited()).toBe(true);
    await clock.advance(2_000);
    expect(isAwaited()).toBe(false);
    const waiting = cache.get('api');
    await settle();
    expect([source.requests.length, isAwaited()]).toEqual([2, true]);
    source.last.grant(60);
    await waiting;
  });
});

/** A token of 600 s is due after 427.5 s, one of 60 s after 40.5 s; a look comes every 5 s. */
describe('scheduled', () => {
  it('gets the api token at the start and renews it without calls, until it is closed', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    source.last.grant(600);
    await clock.advance(427_499);
    expect(source.requests).toHaveLength(1);
    await clock.advance(5_001);
    expect(source.requests).toHaveLength(2);
    source.last.grant(600);
    await clock.advance(432_500);
    expect(source.requests).toHaveLength(3);
    source.last.grant(600);
    await settle();
    expect(clock.timers).toBe(1);
    cache.close();
    expect(clock.timers).toBe(0);
    cache.start();
    await clock.advance(1_000_000);
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

  it('asks for no token without a life, and for those of customers only with their calls, ahead too', async () => {
    const { cache, source, clock, filled, scopes } = setUp({ refresh: 'scheduled' });
    await filled(3600, 'customer.c1');
    expect(clock.timers).toBe(0);
    cache.start();
    await settle();
    source.last.grant(0);
    await clock.advance(2_250_000);
    expect(scopes()).toEqual(['customer.c1', 'api']);
    expect(cache.getCached('customer.c1')).toBeDefined();
    await settle();
    expect(scopes()).toEqual(['customer.c1', 'api', 'customer.c1']);
    cache.close();
  });

  it('begins none while a request of a caller runs', async () => {
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
    cache.dropAllForNewCertificate();
    source.last.grant(60);
    await settle();
    expect(cache.getCached('api')).toBeUndefined();
    await clock.advance(5_000);
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await settle();
    expect(cache.getCached('api')?.accessToken).toBe('token-2');
    cache.close();
  });
});

describe('429 and Retry-After', () => {
  it.each(['api', 'customer.c1'])(
    'after each failure in a row the next request for %s waits longer',
    async (scope) => {
      const unavailable = (status: number, retryAfter?: number) =>
        refusal('token_unavailable', status, retryAfter);
      for (const [fault, seconds] of [
        [refusal('token_rate_limited', 429), [3, 6, 12, 24, 30, 30]],
        [refusal('token_rate_limited', 429, 0), [3, 6, 12, 24, 30, 30]],
        [refusal('token_rate_limited', 429, 60), [60, 60, 60]],
        [unavailable(503, 5), [5, 5, 5]],
        // With half of the random part.
        [unavailable(503), [0.05, 0.1, 0.3, 0.6, 1.2, 2.4, 3.75, 3.75]],
        [reset(), [0.05, 0.1, 0.3, 0.6, 1.2, 2.4, 3.75, 3.75]],
        [unavailable(401), [0.05, 0.1, 1, 2, 4, 8, 16, 30, 30]],
        [refusal('token_refused', 400), [1, 2, 4, 8, 16, 30, 30]],
        [refusal('invalid_token_response', 200), [1, 2, 4, 8, 16, 30, 30]],
        // The endpoint itself remembers it (token-endpoint.ts).
        [new ServiceTokenError({ code: 'token_refused', error: 'invalid_client', message: '' }), [0, 0]],
      ] as const) {
        const { cache, source, clock, filled } = setUp({ random: () => 0.5 });
        const waits = async (count: number): Promise<number[]> => {
          const times: number[] = [];
          for (let last = clock.monotonic(); times.length < count; last = clock.monotonic()) {
            const number = source.requests.length;
            while (source.requests.length === number) {
              void outcomes([cache.get(scope, { timeoutMs: 100_000 })]);
              await clock.advance(0);
              // Short steps where the waits are short.
              const stepMs = seconds[times.length - 1] < 5 ? 50 : 500;
              if (source.requests.length === number) await clock.advance(stepMs);
            }
            source.last.fail(fault);
            times.push(Math.round(clock.monotonic() - last) / 1_000);
            await settle();
          }
          return times;
        };
        expect(await waits(seconds.length + 1)).toEqual([0, ...seconds]);
        await clock.advance(60_000);
        await filled(1, scope);
        await clock.advance(1_000);
        expect(await waits(3)).toEqual([0, ...seconds.slice(0, 2)]);
        cache.close();
      }
    },
  );

  it('hold every scope back; who cannot wait that long is rejected, at once if he comes then', async () => {
    const { cache, source, clock, scopes } = setUp();
    const hasty = outcomes([cache.get('api', { timeoutMs: 5_000 })]);
    const patient = cache.get('api', { timeoutMs: 60_000 });
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 20));
    await settle();
    await expect(cache.get('customer.c1', { timeoutMs: 19_000 })).rejects.toMatchObject({
      code: 'token_rate_limited',
      message: 'token_rate_limited The endpoint is not asked again for 20 s.',
      status: 429,
      scope: 'customer.{}',
      retryAfter: 20,
    });
    const other = cache.get('customer.c1', { timeoutMs: 21_000 });
    await clock.advance(5_000);
    expect(await hasty).toEqual(['token_rate_limited']);
    await clock.advance(14_999);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    expect(scopes()).toEqual(['api', 'api', 'customer.c1']);
    source.requests.forEach((request) => request.grant(3600));
    await Promise.all([patient, other]);
  });

  it('of a customer hold the api token back too, and a shorter time that comes later ends no longer one', async () => {
    const { cache, source, clock } = setUp();
    void outcomes([cache.get('customer.c1'), cache.get('customer.c2')]);
    await settle();
    source.requests[0].fail(refusal('token_unavailable', 503, 10));
    source.requests[1].fail(refusal('token_unavailable', 503, 1));
    await clock.advance(1_500);
    await expect(cache.get('api')).rejects.toMatchObject({ status: 503, retryAfter: 9 });
  });

  it('leave the valid token alone', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    await clock.advance(40_500);
    cache.getCached('api');
    await settle();
    source.last.fail(refusal('token_unavailable', 503, 10));
    for (let second = 0; second < 9; second += 1) {
      await clock.advance(1_000);
      expect(cache.getCached('api')?.accessToken).toBe('token-1');
    }
    expect(source.requests).toHaveLength(2);
    await clock.advance(1_000);
    cache.getCached('api');
    await settle();
    expect(source.requests).toHaveLength(3);
  });

  it('end by the monotonic clock: a jump of the wall clock does not matter', async () => {
    const { cache, source, clock, filled } = setUp();
    const waiting = outcomes([cache.get('api')]);
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 3_600));
    clock.jump(-7_200_000);
    await clock.advance(3_599_000);
    expect(await waiting).toEqual(['token_rate_limited']);
    await expect(cache.get('api', { timeoutMs: 500 })).rejects.toMatchObject({ retryAfter: 1 });
    await clock.advance(1_000);
    expect((await filled()).accessToken).toBe('token-2');
  });
});

describe('an endpoint that fails', () => {
  const down = (): Error => refusal('token_unavailable', 503);
  /** In [0, 1), the same in each run. */
  const randomNumbers = () => {
    let seed = 1;
    return () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
  };
  /** Answers what is asked now, and lets the next requests begin. */
  function setUpFailing(options: Parameters<typeof setUp>[0] = {}) {
    const parts = setUp({ random: () => 0.5, ...options });
    const { source, clock } = parts;
    const failAll = async (error = down): Promise<string[]> => {
      await clock.advance(0);
      const asked = source.requests.splice(0);
      for (const { fail } of asked) fail(error());
      await clock.advance(0);
      return asked.map(({ scope }) => scope);
    };
    const asked = () => source.requests.map(({ scope }) => scope);
    return { ...parts, failAll, asked };
  }

  it.each([
    ['the api token', () => 'api'],
    ['customers that are new each time', (call: number) => `customer.c${call}`],
    ['both', (call: number) => (call % 2 ? 'api' : `customer.c${call}`)],
    ['two customers', (call: number) => `customer.c${call % 2}`],
  ])(
    'gets at most 12 requests of 150 calls in 10 s for %s, calls end within 3 s, and a token comes 6 s after it is back',
    async (_name, scopeOf) => {
      let isDown = true;
      let requests = 0;
      const clock = new FakeClock();
      const request = async (scope: string) => {
        requests += 1;
        await sleep(clock, 5);
        if (isDown) throw down();
        return { accessToken: `token-${requests}`, scope, expiresIn: 3_600 };
      };
      const { cache } = setUp({ source: { request }, clock, random: randomNumbers() });
      const waited: number[] = [];
      let call = 0;
      const callFor = async (ms: number): Promise<void> => {
        for (const end = clock.monotonic() + ms; clock.monotonic() < end; call += 1) {
          const begun = clock.monotonic();
          void outcomes([cache.get(scopeOf(call))]).then(() => waited.push(clock.monotonic() - begun));
          await clock.advance(10_000 / 150);
        }
      };
      for (const ms of [10_000, 3_000, 700]) {
        requests = 0;
        await callFor(ms);
        expect(requests).toBeLessThanOrEqual(12);
        isDown = false;
        const lastCall = call;
        await callFor(6_000);
        expect(cache.getCached(scopeOf(call - 1))).toBeDefined();
        expect(waited.length).toBeGreaterThan(lastCall);
        isDown = true;
        cache.dropAllForNewCertificate();
      }
      expect(Math.max(...waited)).toBeLessThan(3_000);
    },
  );

  it('is asked again within 200 ms after a single request was lost', async () => {
    const { cache, source, clock, failAll } = setUpFailing({ random: () => 0.999 });
    const waiting = cache.get('api');
    await failAll(reset);
    await clock.advance(100);
    source.last.grant(60);
    expect((await waiting).scope).toBe('api');
  });

  it('has one request at a time, of the api token first, and all who wait get the error of the third', async () => {
    const { cache, clock, failAll, asked } = setUpFailing();
    const all = ['api', ...Array.from({ length: 20 }, (_, n) => `customer.${n}`)];
    const waiting = outcomes(all.map((scope) => cache.get(scope)));
    // They were in flight together, and count once.
    expect(await failAll()).toEqual(all);
    await clock.advance(50);
    expect(asked()).toEqual(['api']);
    const later = outcomes([cache.get('customer.later')]);
    expect(await failAll()).toEqual(['api']);
    await clock.advance(100);
    expect(await failAll()).toEqual(['api']);
    expect(new Set([...(await waiting), ...(await later)])).toEqual(new Set(['token_unavailable']));
    expect(asked()).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it('answers callers at once whose next request is more than 1 s away, each for its own scope', async () => {
    const { cache, clock, failAll, asked } = setUpFailing();
    for (let failure = 1; failure <= 5; failure += 1) {
      void outcomes([cache.get('api'), cache.get('customer.c1')]);
      await failAll();
      await clock.advance(1_000);
    }
    // The fifth failure has to wait 1.2 s, of which 1 s has passed.
    void outcomes([cache.get('api')]);
    await clock.advance(200);
    await failAll();
    for (const scope of ['api', 'customer.c1', 'customer.new']) {
      await expect(cache.get(scope)).rejects.toMatchObject({
        code: 'token_unavailable',
        message: expect.stringMatching(/The endpoint is not asked again for [23] s\.$/),
        scope: scope.replace(/\..*/, '.{}'),
        status: 503,
      });
    }
    expect(asked()).toEqual([]);
  });

  it('answers a caller that needs one attempt only at once, as long as it would have to wait', async () => {
    const { cache, clock, failAll, asked } = setUpFailing();
    const probe = () => outcomes([cache.get('api', { once: true })]);
    void probe();
    await failAll();
    expect(await probe()).toEqual(['token_unavailable']);
    expect(asked()).toEqual([]);
    await clock.advance(50);
    void probe();
    await settle();
    expect(asked()).toEqual(['api']);
    cache.close();
  });

  it('whose answers fail for one customer alone holds no other up', async () => {
    const { cache, source, clock, failAll } = setUpFailing();
    for (let failure = 1; failure <= 6; failure += 1) {
      void outcomes([cache.get('customer.bad')]);
      await failAll(failure % 2 ? down : reset);
      await clock.advance(5_000);
    }
    void outcomes([cache.get('customer.bad')]);
    await failAll();
    const waiting = ['api', 'customer.1', 'customer.2'].map((scope) => cache.get(scope));
    await settle();
    source.requests.forEach((request) => request.grant(60));
    expect((await Promise.all(waiting)).map(({ scope }) => scope)).toEqual([
      'api',
      'customer.1',
      'customer.2',
    ]);
    await expect(cache.get('customer.bad')).rejects.toMatchObject({ status: 503 });
  });

  it('asks for scopes that have failed after the others', async () => {
    const { cache, clock, failAll, asked } = setUpFailing();
    void outcomes(['customer.1', 'customer.2'].map((scope) => cache.get(scope)));
    await failAll();
    await clock.advance(40);
    void outcomes([cache.get('customer.3')]);
    await clock.advance(10);
    expect(asked()).toEqual(['customer.3']);
    cache.close();
  });

  it('and is back: those who wait go on together', async () => {
    const { cache, source, clock, failAll, asked } = setUpFailing();
    const scopes = ['customer.1', 'customer.2', 'customer.3'];
    const waiting = scopes.map((scope) => cache.get(scope));
    await failAll();
    await clock.advance(50);
    expect(asked()).toEqual(['customer.1']);
    source.last.grant(60);
    await settle();
    expect(asked().slice(1).sort()).toEqual(['customer.2', 'customer.3']);
    source.requests.forEach((request) => request.grant(60));
    await Promise.all(waiting);
  });

  it('is not back because a shared store has a token', async () => {
    const { cache, source, clock, failAll, asked } = setUpFailing();
    void outcomes(['customer.1', 'customer.2'].map((scope) => cache.get(scope)));
    await failAll();
    await clock.advance(50);
    void outcomes(['customer.3', 'customer.4'].map((scope) => cache.get(scope)));
    await settle();
    expect(asked()).toEqual(['customer.1']);
    source.last.grant(60, 'of-the-store', 1_000);
    await settle();
    expect(asked()).toEqual(['customer.1', 'customer.3']);
    source.last.grant(60);
    await settle();
    expect(asked().slice(2).sort()).toEqual(['customer.2', 'customer.4']);
    cache.close();
  });
});

describe('an endpoint that refuses', () => {
  const no = (): Error => refusal('token_refused', 400);
  function setUpRefusing(options: Parameters<typeof setUp>[0] = {}) {
    const parts = setUp(options);
    const refuse = async (scope: string): Promise<void> => {
      const waiting = outcomes([parts.cache.get(scope)]);
      await settle();
      parts.source.last.fail(no());
      await waiting;
    };
    return { ...parts, refuse };
  }

  it('is not asked for that scope again for 1 s, and its callers get the error at once', async () => {
    const { cache, clock, filled, refuse, scopes } = setUpRefusing();
    await refuse('customer.c1');
    for (let call = 0; call < 100; call += 1)
      await expect(cache.get('customer.c1')).rejects.toMatchObject({
        code: 'token_refused',
        message: 'token_refused The endpoint is not asked again for 1 s.',
        scope: 'customer.{}',
        retryAfter: 1,
      });
    expect((await filled(60, 'customer.c2')).scope).toBe('customer.c2');
    await clock.advance(1_000);
    expect((await filled(60, 'customer.c1')).scope).toBe('customer.c1');
    expect(scopes()).toEqual(['customer.c1', 'customer.c2', 'customer.c1']);
  });

  it('three different customers in a row is not asked for others either, but for the api token', async () => {
    const { cache, clock, filled, refuse, scopes } = setUpRefusing();
    await refuse('customer.1');
    await refuse('customer.2');
    await filled(60, 'customer.good');
    for (const scope of ['customer.3', 'customer.4', 'customer.5']) await refuse(scope);
    await expect(cache.get('customer.6')).rejects.toMatchObject({
      code: 'token_refused',
      scope: 'customer.{}',
      retryAfter: 1,
    });
    await clock.advance(1_000);
    await refuse('customer.6');
    await expect(cache.get('customer.7')).rejects.toMatchObject({ scope: 'customer.{}', retryAfter: 2 });
    // Its success says that the credentials are right.
    await filled(60, 'api');
    await filled(60, 'customer.7');
    expect(scopes()).toHaveLength(9);
  });

  it.each<[string, (cache: TokenCache, filled: (s: number, scope: string) => Promise<unknown>) => unknown]>([
    ['the entry of its scope leaves the cache', (_, filled) => filled(60, 'customer.other')],
    ['another client certificate is in use', (cache) => cache.dropAllForNewCertificate()],
  ])('is forgotten when %s', async (_name, forget) => {
    const { cache, filled, refuse } = setUpRefusing({ maxEntries: 1 });
    await refuse('customer.c1');
    await forget(cache, filled);
    expect((await filled(60, 'customer.c1')).scope).toBe('customer.c1');
  });

  it('a renewal leaves the token that lives alone', async () => {
    const { cache, source, clock, filled } = setUpRefusing();
    await filled(60);
    await clock.advance(45_000);
    cache.getCached('api');
    await settle();
    source.last.fail(no());
    await settle();
    expect((await cache.get('api')).accessToken).toBe('token-1');
    expect(source.requests).toHaveLength(2);
  });
});

describe('forced refresh', () => {
  it('drops only the token that was used, and is shared', async () => {
    const { cache, source, filled } = setUp();
    await filled();
    const forced = Array.from({ length: 50 }, () => cache.replace('api', 'token-1'));
    expect(cache.getCached('api')).toBeUndefined();
    expect(source.droppedTokens).toEqual(['token-1']);
    await settle();
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    const renewed = (await Promise.all(forced)).map((token) => token?.accessToken);
    expect(new Set(renewed)).toEqual(new Set(['token-2']));
    expect((await cache.replace('api', 'token-1'))?.accessToken).toBe('token-2');
    expect(source.requests).toHaveLength(2);
  });

  it('is bounded: a burst of 3, then one in 30 s; beyond that the token stays cached', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled(36_000);
    const force = async (): Promise<string | undefined> => {
      const count = source.requests.length;
      const forced = cache.replace('api', cache.getCached('api')?.accessToken ?? '');
      await settle();
      if (source.requests.length > count) source.last.grant(36_000);
      return (await forced)?.accessToken;
    };
    expect([await force(), await force(), await force()]).toEqual(['token-2', 'token-3', 'token-4']);
    for (let call = 0; call < 10; call += 1) expect(await force()).toBeUndefined();
    expect(cache.getCached('api')?.accessToken).toBe('token-4');
    await clock.advance(29_999);
    expect(await force()).toBeUndefined();
    await clock.advance(1);
    expect([await force(), await force()]).toEqual(['token-5', undefined]);
    // The burst is there again after a while.
    await clock.advance(1_000_000);
    const burst = [await force(), await force(), await force(), await force()];
    expect(burst).toEqual(['token-6', 'token-7', 'token-8', undefined]);
  });

  it('joins a renewal that is under way, without counting', async () => {
    const { cache, source, clock, filled } = setUp();
    await filled();
    for (let round = 1; round <= 5; round += 1) {
      await clock.advance(40_500);
      cache.getCached('api');
      const forced = cache.replace('api', `token-${round}`);
      // Nobody is given the refused one meanwhile.
      expect(cache.getCached('api')).toBeUndefined();
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
});

describe('what a store offers', () => {
  it('is not taken if it was dropped, or is no newer than what was: an entry that somebody put back', async () => {
    const { cache, clock, source, filled } = setUp();
    await filled();
    await clock.advance(10_000);
    void outcomes([cache.replace('api', 'token-1') as Promise<AccessToken>]);
    await settle();
    const { accepts } = source.last.context;
    const stored = { scope: 'api', expiresIn: 60 } as const;
    expect(accepts({ ...stored, accessToken: 'token-1', ageMs: 1_000 })).toBe(false);
    expect(accepts({ ...stored, expiresIn: 10, accessToken: 'ended', ageMs: 9_000 })).toBe(false);
    expect(accepts({ ...stored, accessToken: 'other', ageMs: 10_000 })).toBe(false);
    expect(accepts({ ...stored, accessToken: 'other', ageMs: 11_000 })).toBe(false);
    expect(accepts({ ...stored, accessToken: 'other', ageMs: 9_999 })).toBe(true);
    cache.close();
  });

  it('is taken though it is due only where there is none', async () => {
    const { cache, clock, source } = setUp();
    const due = { scope: 'api', accessToken: 'due', expiresIn: 60 } as const;
    const waiting = cache.get('api');
    await settle();
    expect(source.last.context.accepts({ ...due, ageMs: 50_000 })).toBe(true);
    source.last.grant(60);
    await waiting;
    await clock.advance(50_000);
    cache.getCached('api');
    await settle();
    expect(source.requests).toHaveLength(2);
    expect(source.last.context.accepts({ ...due, ageMs: 49_000 })).toBe(false);
    expect(source.last.context.accepts({ ...due, ageMs: 40_000 })).toBe(true);
    cache.close();
  });
});

describe('what is dropped', () => {
  it('is the token that does not work, if it is still the cached one', async () => {
    const { cache, source, filled } = setUp();
    for (const [scope, token] of [
      ['api', 'token-1'],
      ['customer.c1', 'token-2'],
    ] as const) {
      await filled(3600, scope);
      cache.invalidate('another');
      expect(cache.getCached(scope)).toBeDefined();
      cache.invalidate(token);
      expect(cache.getCached(scope)).toBeUndefined();
    }
    expect(source.droppedTokens).toEqual(['token-1', 'token-2']);
  });

  it('with another certificate is all, and what is under way as well', async () => {
    const { cache, source, filled } = setUp();
    await filled();
    const customer = cache.get('customer.c1');
    await settle();
    cache.dropAllForNewCertificate();
    source.last.grant(3600);
    expect((await customer).accessToken).toBe('token-2');
    expect(cache.getCached('api')).toBeUndefined();
    expect(cache.getCached('customer.c1')).toBeUndefined();
  });

  it('is the least recently used customer, if there are too many; the api token stays', async () => {
    const { cache, filled } = setUp({ maxEntries: 2 });
    for (const scope of ['api', 'customer.c1', 'customer.c2']) await filled(3600, scope);
    cache.getCached('customer.c1');
    await filled(3600, 'customer.c3');
    const left = ['api', 'customer.c1', 'customer.c2', 'customer.c3'].filter((scope) =>
      cache.getCached(scope),
    );
    expect(left).toEqual(['api', 'customer.c1', 'customer.c3']);
  });
});

describe("the lane of customers' requests", () => {
  it('lets so many go at a time, in their order, and the api token past them', async () => {
    const { cache, source, scopes } = setUp({ customerRequests: 2 });
    const customers = Array.from({ length: 5 }, (_, n) => cache.get(`customer.${n}`));
    const ended = outcomes([...customers, cache.get('api')]);
    await settle();
    const of = (scope: string) => source.requests.filter((request) => request.scope === scope)[0];
    expect(scopes().sort()).toEqual(['api', 'customer.0', 'customer.1']);
    of('customer.1').grant(3600, 'of-1');
    await settle();
    of('customer.0').fail(refusal('token_refused', 403));
    await settle();
    expect(scopes().slice(3)).toEqual(['customer.2', 'customer.3']);
    source.requests.forEach((request) => request.grant(3600, `of-${request.scope}`));
    await settle();
    source.last.grant(3600, 'of-4');
    const expected = ['token_refused', 'of-1', 'of-customer.2', 'of-customer.3', 'of-4', 'of-api'];
    expect(await ended).toEqual(expected);
  });

  it('a caller in it keeps its deadline and its abort; what nobody waits for is not asked', async () => {
    const { cache, source, clock, scopes } = setUp({ customerRequests: 1 });
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
    expect(scopes()).toEqual(['customer.0', 'customer.patient']);
    source.last.grant(3600);
    await Promise.all([first, patient]);
    expect(clock.timers).toBe(0);
  });

  it('a caller that comes just after the last one has left gets its token', async () => {
    for (let turns = 0; turns < 20; turns += 1) {
      const { cache, source, scopes } = setUp({ customerRequests: 1 });
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
      expect(scopes()).toEqual(['customer.0', 'customer.1']);
      expect(await outcomes([first, comes])).toEqual(['token-1', 'token-2']);
    }
  });

  it('renewals of one tick take no more places than there are, and no queue: those without a token go first', async () => {
    const { cache, source, clock, filled, scopes } = setUp({ customerRequests: 2, customerReserveMs: 0 });
    const all = Array.from({ length: 6 }, (_, n) => `customer.${n}`);
    for (const scope of all) await filled(60, scope);
    await clock.advance(45_000);
    source.requests.length = 0;
    const api = cache.get('api');
    for (const scope of all) expect(cache.getCached(scope)).toBeDefined();
    const newcomer = cache.get('customer.new');
    await settle();
    expect(scopes()).toEqual(['api', 'customer.0', 'customer.1']);
    source.requests[1].grant(60);
    await settle();
    expect(scopes()[3]).toBe('customer.new');
    source.last.grant(3600);
    source.requests[0].grant(60);
    await Promise.all([newcomer, api]);
    cache.close();
  });

  it('a renewal that found no place begins with the first call that finds one', async () => {
    const { cache, source, clock, filled, scopes } = setUp({ customerRequests: 1, customerReserveMs: 0 });
    await filled(60, 'customer.old');
    await clock.advance(45_000);
    const other = cache.get('customer.other');
    await settle();
    cache.getCached('customer.old');
    source.last.grant(3600);
    await other;
    expect(scopes()).toEqual(['customer.old', 'customer.other']);
    expect(cache.getCached('customer.old')?.accessToken).toBe('token-1');
    await settle();
    expect(scopes()).toEqual(['customer.old', 'customer.other', 'customer.old']);
    cache.close();
  });

  it('several that get a 429 at the same moment count once: the next request follows after 3 s', async () => {
    const { cache, source, clock, scopes } = setUp();
    const customers = Array.from({ length: 5 }, (_, index) => cache.get(`customer.${index}`));
    const calls = outcomes([cache.get('api'), ...customers]);
    await settle();
    expect(scopes()).toHaveLength(6);
    for (const request of source.requests) request.fail(refusal('token_rate_limited', 429, 1));
    await clock.advance(2_999);
    expect(scopes()).toHaveLength(6);
    await clock.advance(1);
    expect(scopes().slice(6)).toContain('api');
    for (const request of source.requests.slice(6)) request.grant(3600);
    await calls;
    cache.close();
  });

  it('a 429 holds those in it too, and tells the hasty ones why at their deadline', async () => {
    const { cache, source, clock, scopes } = setUp({ customerRequests: 1 });
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
    expect(scopes()).toEqual(['customer.0', 'customer.0']);
  });
});

describe('the async context', () => {
  const storage = new AsyncLocalStorage<string>();
  /** A cache made in the context `start`, whose source notes the context of each request and its timers. */
  function setUpContexts(refresh: 'ahead' | 'scheduled' = 'ahead') {
    return storage.run('start', () => {
      const seen: (string | undefined)[] = [];
      const parts = setUp({ refresh });
      const request = parts.source.request.bind(parts.source);
      parts.source.request = (scope, context) => (seen.push(storage.getStore()), request(scope, context));
      return { ...parts, seen };
    });
  }

  it('of a request that callers wait for is that of the first one, and of its second attempt too', async () => {
    const { cache, source, clock, seen } = setUpContexts();
    const waiting = ['first', 'second'].map((name) => storage.run(name, () => cache.get('api')));
    await settle();
    source.last.fail(reset());
    await storage.run('of the clock', () => clock.advance(1_000));
    source.last.grant(60);
    await Promise.all(waiting);
    expect(seen).toEqual(['first', 'first']);
  });

  it('of a renewal that nobody waits for is that of the start, whoever called', async () => {
    const { cache, clock, filled, seen } = setUpContexts();
    await storage.run('first', () => filled());
    await clock.advance(45_000);
    storage.run('a call', () => cache.getCached('api'));
    await settle();
    expect(seen).toEqual(['first', 'start']);
  });

  it('of a renewal by schedule is that of the start too', async () => {
    const { cache, source, clock, seen } = setUpContexts('scheduled');
    cache.start();
    await settle();
    source.last.grant(60);
    await settle();
    await storage.run('a call', async () => {
      cache.invalidate('token-1');
      await clock.advance(5_000);
    });
    expect(seen).toEqual(['start', 'start']);
    cache.close();
  });
});

describe('close', () => {
  it('rejects all who wait, in the lane too, ends what is under way, and nothing is left', async () => {
    const { cache, source, clock, scopes } = setUp({ customerRequests: 1 });
    const all = ['api', 'customer.c1', 'customer.c2'].map((scope) => cache.get(scope, { timeoutMs: 100 }));
    const waiting = outcomes(all);
    await settle();
    cache.close();
    expect(await waiting).toEqual(Array(3).fill('connection_closed'));
    expect(source.requests.map(({ context }) => context.signal.aborted)).toEqual([true, true]);
    const [one, other] = await Promise.all(
      [cache.get('api'), cache.get('api')].map((late) => late.catch((error: unknown) => error)),
    );
    expect(one).toMatchObject({ code: 'connection_closed' });
    expect(one).not.toBe(other);
    await expect(cache.replace('api', 'x')).rejects.toMatchObject({ code: 'connection_closed' });
    await settle();
    expect([scopes(), clock.timers]).toEqual([['api', 'customer.c1'], 0]);
  });

  it('keeps no token that comes at the same moment', async () => {
    for (let turns = 0; turns < 20; turns += 1) {
      const { cache, source, clock } = setUp({ refresh: 'scheduled' });
      const waiting = outcomes([cache.get('api')]);
      await settle();
      source.last.grant(60);
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      const isThere = cache.getCached('api') !== undefined;
      cache.close();
      await settle();
      expect(await waiting).toEqual([isThere ? 'token-1' : 'connection_closed']);
      expect([cache.getCached('api') !== undefined, clock.timers]).toEqual([isThere, 0]);
    }
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
    expect(cache.getCached('api')?.accessToken).toBe('token-1');
    await settle();
    expect(source.requests).toHaveLength(1);
  });
});

describe('2,000 random histories', () => {
  it(
    'never ask twice at a time or too early, hand out an expired token, cache a rejection, or leave a trace',
    () => replayHistories(2_000),
    600_000,
  );

  it('nor does that of a wall clock that is set back while a 429 holds a caller', () =>
    replayHistories(1, [
      [
        'ahead',
        [
          { kind: 'token', lifetime: 7, delay: 0 },
          { kind: 'limited', delay: 0 },
          { kind: 'reset', delay: 1 },
        ],
        [
          { kind: 'get', scope: 'api', callers: 1, timeoutMs: 1 },
          { kind: 'advance', ms: 0 },
          { kind: 'get', scope: 'customer.c2', callers: 1, timeoutMs: 1 },
          { kind: 'jump', ms: 5_914 },
          { kind: 'advance', ms: 86 },
          { kind: 'get', scope: 'api', callers: 1, timeoutMs: 3_915 },
          { kind: 'jump', ms: -5_535 },
          { kind: 'advance', ms: 3_914 },
        ],
      ],
    ]));
});
