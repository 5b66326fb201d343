import { describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { types } from 'node:util';
import { type AccessToken, type TokenRequestContext } from '../../../lib/auth/access-token.js';
import { type TokenCache } from '../../../lib/auth/token-cache.js';
import { ServiceConnectionError, ServiceTokenError, type TokenErrorCode } from '../../../lib/errors/index.js';
import { SILENT } from '../../../lib/telemetry/telemetry.js';
import { momentOf, systemClock, sleep } from '../../../lib/time/time.js';
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
  /** Gets a token. The default API token lasts 60 s: it is due for renewal after 40.5 s and usable for 54 s. */
  const fillCache = async (expiresIn = 60, scope = 'api'): Promise<AccessToken> => {
    const waiting = cache.scope(scope).get();
    await settle();
    source.last.grant(expiresIn);
    return waiting;
  };
  const scopes = () => source.requests.map(({ scope }) => scope);
  return { clock, source, cache, fillCache, scopes };
}

/** For each promise, the token or the error code. */
async function outcomes(promises: Promise<AccessToken>[]): Promise<string[]> {
  const settled = await Promise.allSettled(promises);
  return settled.map((outcome) =>
    outcome.status === 'fulfilled'
      ? outcome.value.accessToken
      : String((outcome.reason as { code?: string }).code ?? outcome.reason),
  );
}

describe('Token cache: concurrent callers', () => {
  it.each(['api', 'customer.c1'])(
    'sends a single request for scope %s when 1,000 callers need a token, and gives all of them the same token',
    async (scope) => {
      const { cache, source } = setUp();
      const callers = Array.from({ length: 500 }, () => cache.scope(scope).get());
      await settle();
      callers.push(...Array.from({ length: 500 }, () => cache.scope(scope).get()));
      await settle();
      expect(source.requests).toHaveLength(1);
      source.last.grant(3600);
      expect(new Set(await Promise.all(callers)).size).toBe(1);
      expect(cache.scope(scope).getCached()?.accessToken).toBe('token-1');
    },
  );

  it('requests a token of its own for each scope', async () => {
    const { cache, source, scopes } = setUp();
    const both = [cache.scope('api').get(), cache.scope('customer.c1').get()];
    await settle();
    expect(scopes()).toEqual(['api', 'customer.c1']);
    source.requests.forEach((request) => request.grant(3600));
    expect(await outcomes(both)).toEqual(['token-1', 'token-2']);
  });

  it('gives a rejection to every waiting caller, and does not cache the rejection', async () => {
    const { cache, source, clock, fillCache } = setUp();
    const callers = [cache.scope('api').get(), cache.scope('api').get()];
    await settle();
    source.last.fail(refusal('token_refused', 400));
    expect(await outcomes(callers)).toEqual(['token_refused', 'token_refused']);
    expect(cache.scope('api').getCached()).toBeUndefined();
    await clock.advance(1_000);
    expect((await fillCache()).accessToken).toBe('token-2');
  });

  it('gives each caller its own copy of the error, so that changes to the copy do not reach other callers', async () => {
    const { cache, source } = setUp();
    const details = { code: 'token_refused', message: 'no', status: 400, scope: 'api' } as const;
    const reason = new ServiceTokenError(details);
    const waiting = Promise.allSettled([
      cache.scope('api').get(),
      cache.scope('api').get(),
      cache.scope('api').get(),
    ]);
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

  it('rejects a caller that aborts, and keeps the request running for the other callers', async () => {
    const { cache, source } = setUp();
    const controller = new AbortController();
    const leaves = cache.scope('api').get({ signal: controller.signal });
    const stays = cache.scope('api').get();
    await settle();
    const reason = new Error('changed my mind');
    controller.abort(reason);
    await expect(leaves).rejects.toBe(reason);
    await expect(cache.scope('api').get({ signal: controller.signal })).rejects.toBe(reason);
    source.last.grant(60);
    expect((await stays).accessToken).toBe('token-1');
    expect(source.requests).toHaveLength(1);
  });

  it('rejects only the caller whose timeout ends, and rejects a caller at once whose timeout is already over', async () => {
    const { cache, source, clock } = setUp();
    const hasty = [-5, 500].map((timeoutMs) => outcomes([cache.scope('api').get({ timeoutMs })]));
    const patient = cache.scope('api').get();
    await clock.advance(0);
    expect(await hasty[0]).toEqual(['connection_timeout']);
    await clock.advance(500);
    expect(await hasty[1]).toEqual(['connection_timeout']);
    source.last.grant(60);
    expect((await patient).accessToken).toBe('token-1');
    expect(source.requests).toHaveLength(1);
  });

  it('keeps the process alive while a caller waits, and holds no timer afterwards', async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    const { cache, source } = setUp({ clock: systemClock });
    const waiting = [cache.scope('api').get(), cache.scope('api').get()];
    await settle();
    expect(timers()).toBeGreaterThanOrEqual(before + 2);
    source.last.grant(60);
    expect(await outcomes(waiting)).toEqual(['token-1', 'token-1']);
    expect(timers()).toBe(before);
  });
});

describe('Token cache: attempts of a token request', () => {
  it('makes at most 3 attempts with increasing pauses after connection faults and 5xx responses', async () => {
    const { cache, source, clock } = setUp({ random: () => 0.999 });
    const waiting = outcomes([cache.scope('api').get(), cache.scope('api').get()]);
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
    ['an invalid token response', refusal('invalid_token_response', 200)],
    ['a TLS fault', new ServiceConnectionError({ kind: 'tls', message: 'wrong host name' })],
    ['a redirect', new ServiceConnectionError({ kind: 'redirect', message: 'elsewhere' })],
    [
      'a response that is too large',
      new ServiceConnectionError({ kind: 'too_large', message: 'over the cap' }),
    ],
  ])('does not retry a token request that fails with %s', async (_name, error) => {
    const { cache, source, clock } = setUp();
    const waiting = outcomes([cache.scope('api').get()]);
    await settle();
    source.last.fail(error);
    await clock.advance(1_000);
    await waiting;
    expect(source.requests).toHaveLength(1);
  });

  it('makes a single attempt for a caller with once: true, but up to 3 attempts when another caller waits too', async () => {
    const { cache, source, clock } = setUp();
    const alone = outcomes([cache.scope('api').get({ once: true })]);
    await settle();
    expect(source.last.context.isProbe).toBe(true);
    source.last.fail(reset());
    await clock.advance(1_000);
    expect(await alone).toEqual(['connection_reset']);
    expect(source.requests).toHaveLength(1);

    const both = outcomes([cache.scope('api').get({ once: true }), cache.scope('api').get()]);
    await settle();
    expect(source.last.context.isProbe).toBe(false);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      source.last.fail(reset());
      await clock.advance(1_000);
    }
    expect(await both).toEqual(['connection_reset', 'connection_reset']);
    // Together with the failure of the first call these are three failures in a row.
    expect(source.requests).toHaveLength(3);
  });

  it('gives up a token request after 10 s, and starts a new one for the next caller', async () => {
    const { cache, source, clock, fillCache } = setUp();
    const waiting = outcomes([cache.scope('api').get({ timeoutMs: 20_000 })]);
    await clock.advance(10_050);
    expect(await waiting).toEqual(['connection_timeout']);
    expect(source.requests).toHaveLength(1);
    expect(source.last.context.signal.aborted).toBe(true);
    expect((await fillCache()).accessToken).toBe('token-2');
  });

  it('sends a single request of 10 s for callers that come one after the other while the endpoint does not respond', async () => {
    const { cache, source, clock } = setUp();
    const callers: Promise<string[]>[] = [];
    for (let ms = 0; ms < 10_000; ms += 100) {
      callers.push(outcomes([cache.scope('api').get()]));
      await clock.advance(100);
    }
    await clock.advance(50);
    expect(new Set((await Promise.all(callers)).flat())).toEqual(new Set(['connection_timeout']));
    expect(source.requests).toHaveLength(1);
  });

  it('reports the time-out of the token source, which names the endpoint', async () => {
    const { cache, source, clock } = setUp();
    const waiting = outcomes([cache.scope('api').get({ timeoutMs: 20_000 })]);
    await settle();
    const { last } = source;
    clock.schedule(() => last.fail(refusal('token_unavailable', 0)), last.context.timeoutMs);
    await clock.advance(10_000);
    expect(await waiting).toEqual(['token_unavailable']);
  });

  it('retries when the client secret cannot be read, and reports that when the time runs out, unless another fault came last', async () => {
    const unreadable = refusal('client_secret_unavailable', 0);
    for (const [faults, end] of [
      [[unreadable], 'client_secret_unavailable'],
      [[unreadable, reset()], 'connection_timeout'],
    ] as const) {
      const { cache, source, clock } = setUp();
      const waiting = outcomes([cache.scope('api').get()]);
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
    ['a failed attempt', reset()],
    ['a Retry-After', refusal('token_rate_limited', 429, 5)],
  ])('does not retry after %s when no caller waits any longer', async (_name, fault) => {
    const { cache, source, clock } = setUp({ random: () => 0.5 });
    const controller = new AbortController();
    const waiting = outcomes([cache.scope('api').get({ signal: controller.signal })]);
    await settle();
    source.last.fail(fault);
    await settle();
    controller.abort(new Error('gone'));
    await waiting;
    await clock.advance(60_000);
    expect(source.requests).toHaveLength(1);
    expect(cache.scope('api').getCached()).toBeUndefined();
  });
});

describe('Token cache: token lifetime', () => {
  it.each([
    [1, 'api', 500],
    [3, 'api', 2_000],
    [60, 'api', 54_000],
    [300, 'api', 270_000],
    [3_600, 'api', 3_570_000],
    // customerReserveMs is 600 s, but at most half of the lifetime.
    [3_600, 'customer.c1', 3_000_000],
    [600, 'customer.c1', 300_000],
  ])(
    'hands out a token of %d s for scope %s for %d ms, and not afterwards',
    async (expiresIn, scope, usableMs) => {
      const { cache, clock, fillCache } = setUp({ refresh: 'on-expiry' });
      await fillCache(expiresIn, scope);
      await clock.advance(usableMs - 1);
      expect(cache.scope(scope).getCached()).toBeDefined();
      await clock.advance(1);
      expect(cache.scope(scope).getCached()).toBeUndefined();
    },
  );

  it.each(['api', 'customer.c1'])(
    'uses a token of scope %s without a lifetime for 1 s after its arrival, and does not renew it early',
    async (scope) => {
      const { cache, source, clock } = setUp();
      for (let round = 1; round <= 2; round += 1) {
        const waiting = cache.scope(scope).get();
        await clock.advance(1_500);
        source.last.grant(0);
        const { expiresAt } = await waiting;
        expect(expiresAt.getTime()).toBe(clock.now() + 1_000);
        await clock.advance(999);
        for (let call = 0; call < 50; call += 1)
          expect(cache.scope(scope).getCached()?.accessToken).toBe(`token-${round}`);
        await clock.advance(1);
        expect(cache.scope(scope).getCached()).toBeUndefined();
        expect(source.requests).toHaveLength(round);
      }
    },
  );

  it('counts the lifetime from the time of the token request, not from the response or from earlier work of the token source', async () => {
    const { cache, source, clock } = setUp({ refresh: 'on-expiry' });
    const sent = clock.now();
    const slow = cache.scope('api').get();
    await clock.advance(5_000);
    source.last.grant(60);
    expect((await slow).expiresAt.getTime()).toBe(sent + 60_000);
    await clock.advance(49_000);
    expect(cache.scope('api').getCached()).toBeUndefined();

    const request = async (scope: string) => {
      await clock.advance(5_000);
      return { accessToken: 'token', scope, expiresIn: 600, requestedAt: momentOf(clock) };
    };
    const late = setUp({ source: { request }, clock });
    expect((await late.cache.scope('api').get()).expiresAt.getTime()).toBe(clock.now() + 600_000);
  });

  it('expires a token as soon as the wall clock or the monotonic clock says so, so that setting the wall clock back does not extend it', async () => {
    const { cache, clock, fillCache } = setUp({ refresh: 'on-expiry' });
    await fillCache();
    clock.jump(54_000);
    expect(cache.scope('api').getCached()).toBeUndefined();
    clock.jump(-24 * 3_600_000);
    expect(cache.scope('api').getCached()).toBeDefined();
    await clock.advance(54_000);
    expect(cache.scope('api').getCached()).toBeUndefined();
  });

  it('requests a new token after the wall clock jumps a day ahead, and once more when the clock jumps during that request', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache();
    clock.jump(24 * 3_600_000);
    expect(cache.scope('api').getCached()).toBeUndefined();
    const waiting = cache.scope('api').get();
    await settle();
    // The process cannot tell this jump from a machine that was suspended for a day.
    clock.jump(24 * 3_600_000);
    source.last.grant(60);
    await clock.advance(0);
    source.last.grant(60);
    expect((await waiting).expiresAt.getTime()).toBe(clock.now() + 60_000);
    for (let call = 0; call < 20; call += 1)
      expect((await cache.scope('api').get()).accessToken).toBe('token-3');
    expect(source.requests).toHaveLength(3);
  });

  it('does not extend the lifetime when the wall clock is set back while the token request is in flight', async () => {
    const { cache, source, clock } = setUp({ refresh: 'on-expiry' });
    const waiting = cache.scope('api').get();
    await clock.advance(5_000);
    clock.jump(-24 * 3_600_000);
    source.last.grant(60);
    await waiting;
    await clock.advance(48_999);
    expect(cache.scope('api').getCached()).toBeDefined();
    await clock.advance(1);
    expect(cache.scope('api').getCached()).toBeUndefined();
  });
});

describe('Token cache: process suspended during a token request', () => {
  it.each(['api', 'customer.c1'])(
    'requests again instead of handing out a token of scope %s that expired while the process was suspended',
    async (scope) => {
      const { cache, source, clock } = setUp();
      const waiting = [cache.scope(scope).get(), cache.scope(scope).get()];
      await settle();
      clock.jump(4_200);
      source.last.grant(2);
      await clock.advance(100);
      expect(source.requests).toHaveLength(2);
      source.last.grant(2);
      for (const token of await Promise.all(waiting))
        expect(token.expiresAt.getTime()).toBeGreaterThan(clock.now());
    },
  );

  it('gives up after 3 tokens that had expired when they arrived, and says so in the error', async () => {
    const { cache, source, clock } = setUp();
    const waiting = cache.scope('api').get();
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
    expect(cache.scope('api').getCached()).toBeUndefined();
  });

  it('requests once more when a token arrives with too little time left, and caches the next token', async () => {
    const { cache, source, clock } = setUp();
    const waiting = cache.scope('api').get();
    await settle();
    // A token of 60 s is usable for 54 s.
    clock.jump(54_000);
    source.last.grant(60);
    await settle();
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    expect((await waiting).accessToken).toBe('token-2');
    expect(cache.scope('api').getCached()?.accessToken).toBe('token-2');
  });

  it('hands out the second of two tokens with too little time left, or the first if the second request fails, and caches neither', async () => {
    const { cache, source, clock } = setUp();
    const outcomeOf = async (respondToSecond: () => unknown): Promise<string[]> => {
      const waiting = outcomes([cache.scope('api').get()]);
      await settle();
      clock.jump(54_000);
      source.last.grant(60, 'first');
      await settle();
      respondToSecond();
      return waiting;
    };
    const second = await outcomeOf(() => {
      clock.jump(54_000);
      source.last.grant(60, 'second');
    });
    expect(second).toEqual(['second']);
    expect(await outcomeOf(() => source.last.fail(reset()))).toEqual(['first']);
    expect(source.requests).toHaveLength(4);
    expect(cache.scope('api').getCached()).toBeUndefined();
  });

  it('keeps the current token when a renewal brings an expired one, and renews again after 3 s', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache(3_600);
    await clock.advance(2_700_000);
    cache.scope('api').getCached();
    await settle();
    clock.jump(5_000);
    source.last.grant(5, 'expired');
    await settle();
    expect(cache.scope('api').getCached()?.accessToken).toBe('token-1');
    await clock.advance(2_999);
    cache.scope('api').getCached();
    await settle();
    expect(source.requests).toHaveLength(2);
    await clock.advance(1);
    cache.scope('api').getCached();
    await settle();
    expect(source.requests).toHaveLength(3);
    cache.close();
  });

  it('requests again instead of using a token from the shared store that expired while the process was suspended', async () => {
    const { cache, source, clock } = setUp();
    const waiting = cache.scope('api').get();
    await settle();
    clock.jump(4_200);
    source.last.grant(5, 'of-the-store', 1_000);
    await clock.advance(100);
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    expect((await waiting).accessToken).toBe('token-2');
  });
});

describe('Token cache: renewals before expiry', () => {
  it.each([
    [3, 0, undefined, 1_500],
    [3, 1, undefined, 1_460],
    [60, 0, undefined, 40_500],
    [60, 1, undefined, 39_420],
    [1_030, 1, undefined, 740_000],
    [3_600, 0, undefined, 2_677_500],
    // A stored token has an age. The process that wrote it to the store should be the first to renew it.
    [60, 0, 0, 40_500],
    [60, 1, 0, 45_900],
    [60, 0, 10_000, 30_500],
  ])(
    'renews a token of %d s (random number: %d, age in the shared store: %p) after %d ms',
    async (expiresIn, random, ageMs, dueMs) => {
      const { cache, source, clock } = setUp({ random: () => random });
      const waiting = cache.scope('api').get();
      await settle();
      source.last.grant(expiresIn, 'token', ageMs);
      await waiting;
      await clock.advance(dueMs - 1);
      cache.scope('api').getCached();
      await settle();
      expect(source.requests).toHaveLength(1);
      clock.jump(1);
      expect(cache.scope('api').getCached()?.accessToken).toBe('token');
      await settle();
      expect(source.requests).toHaveLength(2);
    },
  );

  it('does not renew before expiry with refresh: on-expiry', async () => {
    const { cache, source, clock, fillCache } = setUp({ refresh: 'on-expiry' });
    await fillCache();
    await clock.advance(53_999);
    expect(cache.scope('api').getCached()).toBeDefined();
    await settle();
    expect(source.requests).toHaveLength(1);
  });

  it('serves the current token without waiting while a single renewal runs in the background', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache();
    await clock.advance(40_500);
    for (let call = 0; call < 100; call += 1)
      expect(cache.scope('api').getCached()?.accessToken).toBe('token-1');
    await settle();
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await settle();
    expect(cache.scope('api').getCached()?.accessToken).toBe('token-2');
  });

  it('retries a failed renewal after 3 s, doubling to 30 s, and serves the old token until it expires', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache(3600);
    await clock.advance(0.75 * 3_570_000);
    const begun = clock.monotonic();
    const at: number[] = [];
    for (let second = 0; second < 100; second += 1) {
      expect(cache.scope('api').getCached()?.accessToken).toBe('token-1');
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
    expect(cache.scope('api').getCached()).toBeUndefined();
  });

  it('lets a caller that finds the token expired join the running renewal, which then makes up to 3 attempts with a full time limit', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache();
    await clock.advance(45_000);
    cache.scope('api').getCached();
    await clock.advance(9_500);
    const waiting = cache.scope('api').get();
    expect(source.requests).toHaveLength(2);
    await clock.advance(9_500);
    source.last.fail(reset());
    await clock.advance(100);
    expect(source.requests).toHaveLength(4);
    source.last.grant(60, 'late');
    expect((await waiting).accessToken).toBe('late');
  });

  it('does not renew and keeps no timer while no caller asks for a token', async () => {
    const { source, clock, fillCache } = setUp();
    await fillCache();
    expect(clock.timers).toBe(0);
    await clock.advance(3_600_000);
    expect(source.requests).toHaveLength(1);
  });

  it('does not renew sooner when the token endpoint returns the same token again with a shorter lifetime', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache();
    await clock.advance(40_500);
    cache.scope('api').getCached();
    await settle();
    source.last.grant(1, 'token-1');
    await settle();
    await clock.advance(400);
    cache.scope('api').getCached();
    await settle();
    expect(source.requests).toHaveLength(2);
  });

  it.each([
    [60, 1.5],
    [600, 1.42],
    [3_600, 1.36],
  ])(
    'renews a token of %d s with at most %d requests per lifetime, so that no call has to wait',
    async (lifetime, most) => {
      let requests = 0;
      const request = async (scope: string) => {
        return { accessToken: `token-${(requests += 1)}`, scope, expiresIn: lifetime };
      };
      const { cache, clock } = setUp({ source: { request }, random: () => 0.5 });
      await cache.scope('api').get();
      const lifetimes = 20;
      for (let call = 0; call < lifetimes * 100; call++) {
        await clock.advance(lifetime * 10);
        expect(cache.scope('api').getCached()).toBeDefined();
      }
      // The first token request is not a renewal.
      expect((requests - 1) / lifetimes).toBeLessThanOrEqual(most);
    },
  );

  it('logs the ServiceError of a renewal that no caller waits for, but neither other errors nor the abort by close()', async () => {
    const error = new ServiceTokenError({
      code: 'token_refused',
      message: 'It is down.',
      hint: 'Check urls.authUrl.',
      options: ['urls.authUrl'],
      scope: 'api',
    });
    const lines: string[] = [];
    const log = { ...SILENT, warn: (line: string) => void lines.push(line) };
    const { cache, source, clock, fillCache } = setUp({ log });
    const waiting = outcomes([cache.scope('api').get()]);
    await settle();
    source.last.fail(error);
    expect(await waiting).toEqual(['token_refused']);
    expect(lines).toEqual([]);
    await clock.advance(1_000);
    await fillCache();
    await clock.advance(43_000);
    for (const reason of [error, new Error('not ours, so it may hold anything')]) {
      cache.scope('api').getCached();
      await settle();
      source.last.fail(reason);
      await settle();
      await clock.advance(3_000);
    }
    expect(source.requests).toHaveLength(4);
    cache.scope('api').getCached();
    await settle();
    cache.close();
    await settle();
    expect(lines).toEqual([
      'A token request that no caller waits for failed: token_refused: It is down. Check urls.authUrl.',
    ]);
  });

  it('tells the token source whether a caller waits for the token', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache();
    expect(source.last.context.isAwaited()).toBe(false);
    await clock.advance(45_000);
    cache.scope('api').getCached();
    await settle();
    const { isAwaited } = source.last.context;
    expect([source.requests.length, isAwaited()]).toEqual([2, false]);
    // Shortly before the token expires, its renewal counts as awaited. After expiry it is awaited only if a caller waits.
    await clock.advance(7_500);
    expect(isAwaited()).toBe(true);
    await clock.advance(2_000);
    expect(isAwaited()).toBe(false);
    const waiting = cache.scope('api').get();
    await settle();
    expect([source.requests.length, isAwaited()]).toEqual([2, true]);
    source.last.grant(60);
    await waiting;
  });
});

/** A token of 600 s is due after 427.5 s, one of 60 s after 40.5 s. The schedule checks every 5 s. */
describe('Token cache: scheduled renewals', () => {
  it('requests the API token at the start and renews it without any call until the cache is closed', async () => {
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

  it.each([2, 5, 20])(
    'renews a token of %d s before it expires, with fewer than 3 requests per lifetime',
    async (expiresIn) => {
      let requests = 0;
      const request = async (scope: string) => ({ accessToken: `t-${(requests += 1)}`, scope, expiresIn });
      const { cache, clock } = setUp({ refresh: 'scheduled', source: { request } });
      cache.start();
      // Wait for the first check after the token has arrived: from then on the lifetime sets the interval.
      await clock.advance(2_000);
      const begun = requests;
      let checksWithoutToken = 0;
      for (let ms = 0; ms < 60_000; ms += 20) {
        await clock.advance(20);
        if (!cache.scope('api').status) checksWithoutToken += 1;
      }
      expect(checksWithoutToken).toBe(0);
      expect((requests - begun) / (60 / expiresIn)).toBeLessThan(3);
      cache.close();
    },
  );

  it('goes on renewing after a failure and after a Retry-After', async () => {
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

  it('does not renew a token without a lifetime, and renews customer tokens only when a call uses them', async () => {
    const { cache, source, clock, fillCache, scopes } = setUp({ refresh: 'scheduled' });
    await fillCache(3600, 'customer.c1');
    expect(clock.timers).toBe(0);
    cache.start();
    await settle();
    source.last.grant(0);
    await clock.advance(2_250_000);
    expect(scopes()).toEqual(['customer.c1', 'api']);
    expect(cache.scope('customer.c1').getCached()).toBeDefined();
    await settle();
    expect(scopes()).toEqual(['customer.c1', 'api', 'customer.c1']);
    cache.close();
  });

  it('does not start a renewal while a request for a caller is in flight', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    const waiting = outcomes([cache.scope('api').get()]);
    cache.start();
    await clock.advance(5_000);
    expect(source.requests).toHaveLength(1);
    source.last.grant(60);
    await waiting;
    cache.close();
  });

  it('requests again when a new client certificate makes the token in flight outdated', async () => {
    const { cache, source, clock } = setUp({ refresh: 'scheduled' });
    cache.start();
    await settle();
    cache.dropAllForNewCertificate();
    source.last.grant(60);
    await settle();
    expect(cache.scope('api').getCached()).toBeUndefined();
    await clock.advance(5_000);
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    await settle();
    expect(cache.scope('api').getCached()?.accessToken).toBe('token-2');
    cache.close();
  });
});

describe('Token cache: pauses after failures, 429 and Retry-After', () => {
  it.each(['api', 'customer.c1'])(
    'pauses longer before the next request for scope %s after each failure in a row, and starts over after a success',
    async (scope) => {
      const unavailable = (status: number, retryAfter?: number) =>
        refusal('token_unavailable', status, retryAfter);
      for (const [fault, seconds] of [
        [refusal('token_rate_limited', 429), [3, 6, 12, 24, 30, 30]],
        [refusal('token_rate_limited', 429, 0), [3, 6, 12, 24, 30, 30]],
        [refusal('token_rate_limited', 429, 60), [60, 60, 60]],
        [unavailable(503, 5), [5, 5, 5]],
        // random() is 0.5, so half of the jitter is added.
        [unavailable(503), [0.05, 0.1, 0.3, 0.6, 1.2, 2.4, 3.75, 3.75]],
        [reset(), [0.05, 0.1, 0.3, 0.6, 1.2, 2.4, 3.75, 3.75]],
        [unavailable(401), [0.05, 0.1, 1, 2, 4, 8, 16, 30, 30]],
        [refusal('token_refused', 400), [1, 2, 4, 8, 16, 30, 30]],
        [refusal('invalid_token_response', 200), [1, 2, 4, 8, 16, 30, 30]],
        // TokenEndpoint itself remembers a refused client secret (token-endpoint.ts).
        [new ServiceTokenError({ code: 'token_refused', error: 'invalid_client', message: '' }), [0, 0]],
      ] as const) {
        const { cache, source, clock, fillCache } = setUp({ random: () => 0.5 });
        const waits = async (count: number): Promise<number[]> => {
          const times: number[] = [];
          for (let last = clock.monotonic(); times.length < count; last = clock.monotonic()) {
            const number = source.requests.length;
            while (source.requests.length === number) {
              void outcomes([cache.scope(scope).get({ timeoutMs: 100_000 })]);
              await clock.advance(0);
              // Use short steps while the expected pauses are short.
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
        await fillCache(1, scope);
        await clock.advance(1_000);
        expect(await waits(3)).toEqual([0, ...seconds.slice(0, 2)]);
        cache.close();
      }
    },
  );

  it('holds back all scopes during a Retry-After, and rejects callers whose timeout ends before it does', async () => {
    const { cache, source, clock, scopes } = setUp();
    const hasty = outcomes([cache.scope('api').get({ timeoutMs: 5_000 })]);
    const patient = cache.scope('api').get({ timeoutMs: 60_000 });
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 20));
    await settle();
    await expect(cache.scope('customer.c1').get({ timeoutMs: 19_000 })).rejects.toMatchObject({
      code: 'token_rate_limited',
      message: 'token_rate_limited The endpoint is not asked again for 20 s.',
      status: 429,
      scope: 'customer.{}',
      retryAfter: 20,
    });
    const other = cache.scope('customer.c1').get({ timeoutMs: 21_000 });
    await clock.advance(5_000);
    expect(await hasty).toEqual(['token_rate_limited']);
    await clock.advance(14_999);
    expect(source.requests).toHaveLength(1);
    await clock.advance(1);
    expect(scopes()).toEqual(['api', 'api', 'customer.c1']);
    source.requests.forEach((request) => request.grant(3600));
    await Promise.all([patient, other]);
  });

  it('delays only the scope itself, for at most 5 s, after a Retry-After without a 429', async () => {
    for (const fault of [
      refusal('token_unavailable', 503, 3_600),
      refusal('token_unavailable', 403, 3_600),
      refusal('token_refused', 400, 3_600),
    ]) {
      const { cache, source, clock, fillCache } = setUp();
      const waiting = outcomes([cache.scope('customer.c1').get()]);
      await settle();
      source.last.fail(fault);
      expect(await waiting).toEqual([(fault as ServiceTokenError).code]);
      for (const scope of ['api', 'customer.c2']) expect((await fillCache(60, scope)).scope).toBe(scope);
      await expect(cache.scope('customer.c1').get()).rejects.toMatchObject({ retryAfter: 5 });
      await clock.advance(5_000);
      expect((await fillCache(60, 'customer.c1')).scope).toBe('customer.c1');
      cache.close();
    }
  });

  it('keeps serving the valid token while a Retry-After delays its renewal, for at most 5 s', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache();
    await clock.advance(40_500);
    cache.scope('api').getCached();
    await settle();
    source.last.fail(refusal('token_unavailable', 503, 3_600));
    for (let second = 0; second < 4; second += 1) {
      await clock.advance(1_000);
      expect(cache.scope('api').getCached()?.accessToken).toBe('token-1');
    }
    expect(source.requests).toHaveLength(2);
    await clock.advance(1_000);
    cache.scope('api').getCached();
    await settle();
    expect(source.requests).toHaveLength(3);
  });

  it('measures a Retry-After with the monotonic clock, so that a jump of the wall clock does not change it', async () => {
    const { cache, source, clock, fillCache } = setUp();
    const waiting = outcomes([cache.scope('api').get()]);
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 50));
    clock.jump(-7_200_000);
    await clock.advance(49_000);
    expect(await waiting).toEqual(['token_rate_limited']);
    await expect(cache.scope('api').get({ timeoutMs: 500 })).rejects.toMatchObject({ retryAfter: 1 });
    await clock.advance(1_000);
    expect((await fillCache()).accessToken).toBe('token-2');
  });

  it('sends one request a minute during a 429 of an hour, the API token first, for callers that wait without a token', async () => {
    const { cache, source, clock, fillCache, scopes } = setUp();
    await fillCache(60, 'customer.old');
    const wait = { timeoutMs: 300_000 };
    const customer = outcomes([cache.scope('customer.c1').get(wait)]);
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 3_600));
    await clock.advance(30_000);
    const other = outcomes([cache.scope('customer.c2').get(wait)]);
    const api = outcomes([cache.scope('api').get(wait)]);
    await clock.advance(29_999);
    expect(scopes()).toEqual(['customer.old', 'customer.c1']);
    await clock.advance(1);
    expect(scopes().slice(2)).toEqual(['api']);
    // The minute starts again.
    source.last.fail(refusal('token_rate_limited', 429, 3_600));
    await clock.advance(59_999);
    expect(scopes().slice(3)).toEqual([]);
    await clock.advance(1);
    expect(scopes().slice(3)).toEqual(['api']);
    source.last.grant(7_200);
    expect(await api).toEqual(['token-4']);
    // A granted token does not end the pause: the next request follows after another minute.
    await clock.advance(59_999);
    expect(scopes().slice(4)).toEqual([]);
    await clock.advance(1);
    expect(scopes().slice(4)).toEqual(['customer.c1']);
    source.last.grant(7_200);
    await clock.advance(60_000);
    expect(scopes().slice(5)).toEqual(['customer.c2']);
    source.last.grant(7_200);
    expect([await customer, await other]).toEqual([['token-5'], ['token-6']]);
    cache.close();
  });

  it('makes no request during a 429 for a renewal, or for a caller that has gone', async () => {
    const { cache, source, clock, fillCache, scopes } = setUp();
    await fillCache(200);
    const gone = [outcomes([cache.scope('customer.c1').get({ timeoutMs: 61_000 })])];
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 3_600));
    await clock.advance(10_000);
    gone.push(outcomes([cache.scope('customer.c2').get({ timeoutMs: 55_000 })]));
    await clock.advance(50_000);
    expect(scopes()).toEqual(['api', 'customer.c1', 'customer.c1']);
    source.last.fail(refusal('token_rate_limited', 429, 3_600));
    await clock.advance(30_000);
    expect(await Promise.all(gone)).toEqual([['token_rate_limited'], ['token_rate_limited']]);
    for (let second = 0; second < 60; second += 1) {
      expect(cache.scope('api').getCached()?.accessToken).toBe('token-1');
      await clock.advance(1_000);
    }
    expect(scopes()).toHaveLength(3);
    // A minute after the last request, a new caller need not wait.
    void outcomes([cache.scope('customer.c3').get({ timeoutMs: 1 })]);
    await settle();
    expect(scopes().slice(3)).toEqual(['customer.c3']);
    cache.close();
  });

  it('rejects a caller with once: true at once during a 429', async () => {
    const { cache, source, fillCache, clock } = setUp();
    const waiting = cache.scope('api').get({ once: true });
    await settle();
    source.last.fail(refusal('token_rate_limited', 429, 4));
    await expect(waiting).rejects.toMatchObject({ code: 'token_rate_limited' });
    await expect(cache.scope('api').get({ once: true })).rejects.toMatchObject({ retryAfter: 4 });
    await clock.advance(4_000);
    expect((await fillCache()).accessToken).toBe('token-2');
  });
});

describe('Token cache: failing token endpoint', () => {
  const down = (): Error => refusal('token_unavailable', 503);
  /** Returns a generator of pseudo-random numbers in [0, 1) that are the same in each run. */
  const randomNumbers = () => {
    let seed = 1;
    return () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
  };
  /** `failAll` fails the requests in flight, lets the next ones start and returns the scopes that failed. */
  function setUpFailing(options: Parameters<typeof setUp>[0] = {}) {
    const parts = setUp({ random: () => 0.5, ...options });
    const { source, clock } = parts;
    const failAll = async (error = down): Promise<string[]> => {
      await clock.advance(0);
      const pending = source.requests.splice(0);
      for (const { fail } of pending) fail(error());
      await clock.advance(0);
      return pending.map(({ scope }) => scope);
    };
    const requestedScopes = () => source.requests.map(({ scope }) => scope);
    return { ...parts, failAll, requestedScopes };
  }

  it.each([
    ['the API token', () => 'api'],
    ['a new customer in each call', (call: number) => `customer.c${call}`],
    ['the API token and a new customer by turns', (call: number) => (call % 2 ? 'api' : `customer.c${call}`)],
    ['two customers by turns', (call: number) => `customer.c${call % 2}`],
  ])(
    'sends at most 12 of 150 calls in 10 s to the endpoint for %s, ends every call within 3 s, and has a token 6 s after recovery',
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
          void outcomes([cache.scope(scopeOf(call)).get()]).then(() =>
            waited.push(clock.monotonic() - begun),
          );
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
        expect(cache.scope(scopeOf(call - 1)).getCached()).toBeDefined();
        expect(waited.length).toBeGreaterThan(lastCall);
        isDown = true;
        cache.dropAllForNewCertificate();
      }
      expect(Math.max(...waited)).toBeLessThan(3_000);
    },
  );

  it.each([
    ['the API token', () => 'api'],
    ['a new customer in each call', (call: number) => `customer.c${call}`],
    ['the API token and a new customer by turns', (call: number) => (call % 2 ? 'api' : `customer.c${call}`)],
    ['two customers by turns', (call: number) => `customer.c${call % 2}`],
  ])(
    'sends at most 12 of 150 calls in 10 s to an endpoint that has failed for two scopes and then never responds, for %s',
    async (_name, scopeOf) => {
      const { cache, source, clock, failAll } = setUpFailing({ random: randomNumbers() });
      void outcomes(['customer.one', 'customer.two'].map((scope) => cache.scope(scope).get({ once: true })));
      await failAll();
      for (let call = 0; call < 150; call += 1) {
        void outcomes([cache.scope(scopeOf(call)).get()]);
        await clock.advance(10_000 / 150);
      }
      expect(source.requests.length).toBeGreaterThan(0);
      expect(source.requests.length).toBeLessThanOrEqual(12);
      cache.close();
    },
  );

  it('lets the next customer follow if a request gets no response for 500 ms, doubling to 5 s, until a token is granted', async () => {
    const { cache, source, clock, failAll } = setUpFailing();
    const startTimes = async (prefix: string, requests: number): Promise<number[]> => {
      const times: number[] = [];
      void outcomes(
        Array.from({ length: requests }, (_, n) =>
          cache.scope(`customer.${prefix}${n}`).get({ timeoutMs: 60_000 }),
        ),
      );
      const begun = clock.monotonic();
      source.requests.length = 0;
      await settle();
      for (let ms = 0; times.length < requests && ms < 30_000; ms += 50) {
        while (times.length < source.requests.length) times.push(clock.monotonic() - begun);
        await clock.advance(50);
      }
      return times;
    };
    void outcomes(['customer.1', 'customer.2'].map((scope) => cache.scope(scope).get({ once: true })));
    await failAll();
    await clock.advance(100);
    expect(await startTimes('a', 4)).toEqual([0, 500, 1_500, 3_500]);
    source.last.grant(60);
    await settle();
    void outcomes(['customer.3', 'customer.4'].map((scope) => cache.scope(scope).get({ once: true })));
    await settle();
    for (const { fail } of source.requests.slice(-2)) fail(down());
    await clock.advance(500);
    expect(await startTimes('b', 3)).toEqual([0, 500, 1_500]);
    cache.close();
  });

  it('lets 20 customers wait for less than 1 s (p95) while two others never get a response', async () => {
    const clock = new FakeClock();
    const request = async (scope: string, { signal, timeoutMs }: TokenRequestContext) => {
      const isHanging = scope.startsWith('customer.hanging');
      await sleep(clock, isHanging ? timeoutMs : 20, signal);
      if (isHanging) throw new ServiceConnectionError({ kind: 'timeout', message: 'never' });
      return { accessToken: 'token', scope, expiresIn: 1 };
    };
    const { cache } = setUp({ source: { request }, clock, random: randomNumbers(), customerReserveMs: 0 });
    const waits: number[] = [];
    for (let ms = 0; ms < 40_000; ms += 100) {
      const hanging = ms % 1_000 === 0 ? ['customer.hanging-1', 'customer.hanging-2'] : [];
      void outcomes(hanging.map((scope) => cache.scope(scope).get()));
      for (let n = 0; n < 20; n += 1) {
        const begun = clock.monotonic();
        void cache
          .scope(`customer.${n}`)
          .get()
          .then(() => waits.push(clock.monotonic() - begun));
      }
      await clock.advance(100);
    }
    await clock.advance(1_000);
    expect(waits).toHaveLength(20 * 400);
    expect(waits.sort((one, other) => one - other)[waits.length * 0.95]).toBeLessThan(1_000);
    cache.close();
  });

  it('requests again within 200 ms after a single lost request', async () => {
    const { cache, source, clock, failAll } = setUpFailing({ random: () => 0.999 });
    const waiting = cache.scope('api').get();
    await failAll(reset);
    await clock.advance(100);
    source.last.grant(60);
    expect((await waiting).scope).toBe('api');
  });

  it('sends one request at a time, the API token first, and gives all waiting callers the error of the third failure', async () => {
    const { cache, clock, failAll, requestedScopes } = setUpFailing();
    const all = ['api', ...Array.from({ length: 20 }, (_, n) => `customer.${n}`)];
    const waiting = outcomes(all.map((scope) => cache.scope(scope).get()));
    // These requests were in flight together, so they count as one failure.
    expect(await failAll()).toEqual(all);
    await clock.advance(50);
    expect(requestedScopes()).toEqual(['api']);
    const later = outcomes([cache.scope('customer.later').get()]);
    expect(await failAll()).toEqual(['api']);
    await clock.advance(100);
    expect(await failAll()).toEqual(['api']);
    expect(new Set([...(await waiting), ...(await later)])).toEqual(new Set(['token_unavailable']));
    expect(requestedScopes()).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it('rejects callers at once, each with an error for its own scope, when the next request is more than 1 s away', async () => {
    const { cache, clock, failAll, requestedScopes } = setUpFailing();
    for (let failure = 1; failure <= 5; failure += 1) {
      void outcomes([cache.scope('api').get(), cache.scope('customer.c1').get()]);
      await failAll();
      await clock.advance(1_000);
    }
    // After the fifth failure the pause is 1.2 s, and 1 s of it has passed.
    void outcomes([cache.scope('api').get()]);
    await clock.advance(200);
    await failAll();
    for (const scope of ['api', 'customer.c1', 'customer.new']) {
      await expect(cache.scope(scope).get()).rejects.toMatchObject({
        code: 'token_unavailable',
        message: expect.stringMatching(/The endpoint is not asked again for [23] s\.$/),
        scope: scope.replace(/\..*/, '.{}'),
        status: 503,
      });
    }
    expect(requestedScopes()).toEqual([]);
  });

  it('rejects a caller with once: true at once while the back-off after a failure lasts', async () => {
    const { cache, clock, failAll, requestedScopes } = setUpFailing();
    const probe = () => outcomes([cache.scope('api').get({ once: true })]);
    void probe();
    await failAll();
    expect(await probe()).toEqual(['token_unavailable']);
    expect(requestedScopes()).toEqual([]);
    await clock.advance(50);
    void probe();
    await settle();
    expect(requestedScopes()).toEqual(['api']);
    cache.close();
  });

  it('does not hold up other scopes when requests fail for one customer only', async () => {
    const { cache, source, clock, failAll } = setUpFailing();
    for (let failure = 1; failure <= 6; failure += 1) {
      void outcomes([cache.scope('customer.bad').get()]);
      await failAll(failure % 2 ? down : reset);
      await clock.advance(5_000);
    }
    void outcomes([cache.scope('customer.bad').get()]);
    await failAll();
    const waiting = ['api', 'customer.1', 'customer.2'].map((scope) => cache.scope(scope).get());
    await settle();
    source.requests.forEach((request) => request.grant(60));
    expect((await Promise.all(waiting)).map(({ scope }) => scope)).toEqual([
      'api',
      'customer.1',
      'customer.2',
    ]);
    await expect(cache.scope('customer.bad').get()).rejects.toMatchObject({ status: 503 });
  });

  it('requests scopes that have not failed yet before scopes that have', async () => {
    const { cache, clock, failAll, requestedScopes } = setUpFailing();
    void outcomes(['customer.1', 'customer.2'].map((scope) => cache.scope(scope).get()));
    await failAll();
    await clock.advance(40);
    void outcomes([cache.scope('customer.3').get()]);
    await clock.advance(10);
    expect(requestedScopes()).toEqual(['customer.3']);
    cache.close();
  });

  it('sends all waiting requests at once after the first success', async () => {
    const { cache, source, clock, failAll, requestedScopes } = setUpFailing();
    const scopes = ['customer.1', 'customer.2', 'customer.3'];
    const waiting = scopes.map((scope) => cache.scope(scope).get());
    await failAll();
    await clock.advance(50);
    expect(requestedScopes()).toEqual(['customer.1']);
    source.last.grant(60);
    await settle();
    expect(requestedScopes().slice(1).sort()).toEqual(['customer.2', 'customer.3']);
    source.requests.forEach((request) => request.grant(60));
    await Promise.all(waiting);
  });

  it('does not take a token from the shared store as proof that the endpoint has recovered', async () => {
    const { cache, source, clock, failAll, requestedScopes } = setUpFailing();
    void outcomes(['customer.1', 'customer.2'].map((scope) => cache.scope(scope).get()));
    await failAll();
    await clock.advance(50);
    void outcomes(['customer.3', 'customer.4'].map((scope) => cache.scope(scope).get()));
    await settle();
    expect(requestedScopes()).toEqual(['customer.1']);
    source.last.grant(60, 'of-the-store', 1_000);
    await settle();
    expect(requestedScopes()).toEqual(['customer.1', 'customer.3']);
    source.last.grant(60);
    await settle();
    expect(requestedScopes().slice(2).sort()).toEqual(['customer.2', 'customer.4']);
    cache.close();
  });
});

describe('Token cache: refused token requests', () => {
  const no = (): Error => refusal('token_refused', 400);
  function setUpRefusing(options: Parameters<typeof setUp>[0] = {}) {
    const parts = setUp(options);
    const refuse = async (scope: string): Promise<void> => {
      const waiting = outcomes([parts.cache.scope(scope).get()]);
      await settle();
      parts.source.last.fail(no());
      await waiting;
    };
    return { ...parts, refuse };
  }

  it('does not request a refused scope again for 1 s, and rejects its callers at once', async () => {
    const { cache, clock, fillCache, refuse, scopes } = setUpRefusing();
    await refuse('customer.c1');
    for (let call = 0; call < 100; call += 1)
      await expect(cache.scope('customer.c1').get()).rejects.toMatchObject({
        code: 'token_refused',
        message: 'token_refused The endpoint is not asked again for 1 s.',
        scope: 'customer.{}',
        retryAfter: 1,
      });
    expect((await fillCache(60, 'customer.c2')).scope).toBe('customer.c2');
    await clock.advance(1_000);
    expect((await fillCache(60, 'customer.c1')).scope).toBe('customer.c1');
    expect(scopes()).toEqual(['customer.c1', 'customer.c2', 'customer.c1']);
  });

  it('gives a refusal to the callers of its own scope only, and requests the tokens of others after any number of refusals', async () => {
    const { cache, source, clock, scopes } = setUpRefusing();
    const strangers = new Set([10, 11, 12, 13, 250]);
    const customers = Array.from({ length: 500 }, (_, n) => outcomes([cache.scope(`customer.${n}`).get()]));
    for (let answered = 0; answered < 500; answered += 1) {
      await settle();
      const { scope, grant, fail } = source.requests[answered];
      if (strangers.has(Number(scope.slice('customer.'.length)))) fail(no());
      else grant(60);
    }
    const ends = (await Promise.all(customers)).flat();
    ends.forEach((end, n) => expect(end).toMatch(strangers.has(n) ? 'token_refused' : /^token-\d+$/));
    expect([scopes().length, clock.timers]).toEqual([500, 0]);
  });

  it('sends the requests of customers one at a time, without a pause, after refusals of three scopes, until a token is granted', async () => {
    const { cache, source, scopes, refuse, fillCache } = setUpRefusing();
    for (const scope of ['customer.1', 'customer.2']) await refuse(scope);
    await fillCache(60, 'customer.good');
    for (const scope of ['customer.3', 'customer.4', 'customer.5']) await refuse(scope);
    source.requests.length = 0;
    const waiting = outcomes(
      ['customer.6', 'customer.7', 'customer.8', 'api'].map((scope) => cache.scope(scope).get()),
    );
    await settle();
    expect(scopes()).toEqual(['customer.6', 'api']);
    source.requests[0].fail(no());
    await settle();
    // The request for the API token does not wait, but the customers wait for it.
    expect(scopes()).toEqual(['customer.6', 'api']);
    source.requests[1].fail(no());
    await settle();
    expect(scopes()).toEqual(['customer.6', 'api', 'customer.7']);
    source.last.grant(60);
    await settle();
    expect(scopes().slice(3)).toEqual(['customer.8']);
    source.last.grant(60);
    expect(await waiting).toEqual(['token_refused', 'token-3', 'token-4', 'token_refused']);
  });

  it.each<
    [string, (cache: TokenCache, fillCache: (s: number, scope: string) => Promise<unknown>) => unknown]
  >([
    [
      'another token pushes the entry of its scope out of the cache',
      (_, fillCache) => fillCache(60, 'customer.other'),
    ],
    ['another client certificate comes into use', (cache) => cache.dropAllForNewCertificate()],
  ])('forgets a refusal when %s', async (_name, forget) => {
    const { cache, fillCache, refuse } = setUpRefusing({ maxEntries: 1 });
    await refuse('customer.c1');
    await forget(cache, fillCache);
    expect((await fillCache(60, 'customer.c1')).scope).toBe('customer.c1');
  });

  it('keeps the valid token when its renewal is refused', async () => {
    const { cache, source, clock, fillCache } = setUpRefusing();
    await fillCache(60);
    await clock.advance(45_000);
    cache.scope('api').getCached();
    await settle();
    source.last.fail(no());
    await settle();
    expect((await cache.scope('api').get()).accessToken).toBe('token-1');
    expect(source.requests).toHaveLength(2);
  });
});

describe('Token cache: replacing a rejected token', () => {
  it('drops only the token that the API rejected, and shares one new request among all callers', async () => {
    const { cache, source, fillCache } = setUp();
    await fillCache();
    const forced = Array.from({ length: 50 }, () => cache.scope('api').replace('token-1'));
    expect(cache.scope('api').getCached()).toBeUndefined();
    expect(source.droppedTokens).toEqual(['token-1']);
    await settle();
    expect(source.requests).toHaveLength(2);
    source.last.grant(60);
    const renewed = (await Promise.all(forced)).map((token) => token?.accessToken);
    expect(new Set(renewed)).toEqual(new Set(['token-2']));
    expect((await cache.scope('api').replace('token-1'))?.accessToken).toBe('token-2');
    expect(source.requests).toHaveLength(2);
  });

  it('replaces at most 3 tokens in a burst and then one in 30 s, and beyond that keeps the token cached', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache(36_000);
    const force = async (): Promise<string | undefined> => {
      const count = source.requests.length;
      const forced = cache.scope('api').replace(cache.scope('api').getCached()?.accessToken ?? '');
      await settle();
      if (source.requests.length > count) source.last.grant(36_000);
      return (await forced)?.accessToken;
    };
    expect([await force(), await force(), await force()]).toEqual(['token-2', 'token-3', 'token-4']);
    for (let call = 0; call < 10; call += 1) expect(await force()).toBeUndefined();
    expect(cache.scope('api').getCached()?.accessToken).toBe('token-4');
    await clock.advance(29_999);
    expect(await force()).toBeUndefined();
    await clock.advance(1);
    expect([await force(), await force()]).toEqual(['token-5', undefined]);
    // After a while a full burst is allowed again.
    await clock.advance(1_000_000);
    const burst = [await force(), await force(), await force(), await force()];
    expect(burst).toEqual(['token-6', 'token-7', 'token-8', undefined]);
  });

  it('joins a renewal in flight without counting it against the limit', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache();
    for (let round = 1; round <= 5; round += 1) {
      await clock.advance(40_500);
      cache.scope('api').getCached();
      const forced = cache.scope('api').replace(`token-${round}`);
      // Nobody receives the rejected token meanwhile.
      expect(cache.scope('api').getCached()).toBeUndefined();
      await settle();
      expect(source.requests).toHaveLength(round + 1);
      source.last.grant(60);
      expect((await forced)?.accessToken).toBe(`token-${round + 1}`);
    }
  });

  it('replace() resolves to undefined when the token endpoint returns the rejected token again', async () => {
    const { cache, source, fillCache } = setUp();
    await fillCache();
    const forced = cache.scope('api').replace('token-1');
    await settle();
    source.last.grant(60, 'token-1');
    expect(await forced).toBeUndefined();
  });
});

describe('Token cache: tokens from a shared store', () => {
  it('does not accept a stored token that was dropped, has expired or is not newer than the dropped token', async () => {
    const { cache, clock, source, fillCache } = setUp();
    await fillCache();
    await clock.advance(10_000);
    void outcomes([cache.scope('api').replace('token-1') as Promise<AccessToken>]);
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

  it('accepts a stored token that is already due for renewal only if the cache has no token itself', async () => {
    const { cache, clock, source } = setUp();
    const due = { scope: 'api', accessToken: 'due', expiresIn: 60 } as const;
    const waiting = cache.scope('api').get();
    await settle();
    expect(source.last.context.accepts({ ...due, ageMs: 50_000 })).toBe(true);
    source.last.grant(60);
    await waiting;
    await clock.advance(50_000);
    cache.scope('api').getCached();
    await settle();
    expect(source.requests).toHaveLength(2);
    expect(source.last.context.accepts({ ...due, ageMs: 49_000 })).toBe(false);
    expect(source.last.context.accepts({ ...due, ageMs: 40_000 })).toBe(true);
    cache.close();
  });
});

describe('Token cache: dropped tokens', () => {
  it('invalidate() drops a token only if that token is still the cached one', async () => {
    const { cache, source, fillCache } = setUp();
    for (const [scope, token] of [
      ['api', 'token-1'],
      ['customer.c1', 'token-2'],
    ] as const) {
      await fillCache(3600, scope);
      cache.invalidate('another');
      expect(cache.scope(scope).getCached()).toBeDefined();
      cache.invalidate(token);
      expect(cache.scope(scope).getCached()).toBeUndefined();
    }
    expect(source.droppedTokens).toEqual(['token-1', 'token-2']);
  });

  it('dropAllForNewCertificate() drops all tokens, and gives a token in flight to its caller without caching it', async () => {
    const { cache, source, fillCache } = setUp();
    await fillCache();
    const customer = cache.scope('customer.c1').get();
    await settle();
    cache.dropAllForNewCertificate();
    source.last.grant(3600);
    expect((await customer).accessToken).toBe('token-2');
    expect(cache.scope('api').getCached()).toBeUndefined();
    expect(cache.scope('customer.c1').getCached()).toBeUndefined();
  });

  it('drops the least recently used customer token above maxEntries, but never the API token', async () => {
    const { cache, fillCache } = setUp({ maxEntries: 2 });
    for (const scope of ['api', 'customer.c1', 'customer.c2']) await fillCache(3600, scope);
    cache.scope('customer.c1').getCached();
    await fillCache(3600, 'customer.c3');
    // The dropped one comes last, because looking for it makes a new entry, which drops another one.
    const left = ['api', 'customer.c1', 'customer.c3', 'customer.c2'].filter((scope) =>
      cache.scope(scope).getCached(),
    );
    expect(left).toEqual(['api', 'customer.c1', 'customer.c3']);
  });
});

describe('Token cache: limit of concurrent customer requests', () => {
  it('sends at most customerRequests customer requests at a time, in order, and lets the API token pass them', async () => {
    const { cache, source, scopes } = setUp({ customerRequests: 2 });
    const customers = Array.from({ length: 5 }, (_, n) => cache.scope(`customer.${n}`).get());
    const ended = outcomes([...customers, cache.scope('api').get()]);
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

  it('applies the timeout and the abort signal of a queued caller, and sends no request that nobody waits for any more', async () => {
    const { cache, source, clock, scopes } = setUp({ customerRequests: 1 });
    const first = cache.scope('customer.0').get();
    const controller = new AbortController();
    const late = outcomes([cache.scope('customer.late').get({ timeoutMs: 100 })]);
    const aborted = cache.scope('customer.aborted').get({ signal: controller.signal });
    const patient = cache.scope('customer.patient').get();
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

  it('requests a token for a caller that arrives just after the last queued caller for its scope has left', async () => {
    for (let turns = 0; turns < 20; turns += 1) {
      const { cache, source, scopes } = setUp({ customerRequests: 1 });
      const first = cache.scope('customer.0').get();
      const controller = new AbortController();
      const leaves = cache.scope('customer.1').get({ signal: controller.signal });
      await settle();
      controller.abort(new Error('gone'));
      await expect(leaves).rejects.toThrow('gone');
      source.last.grant(3600);
      // The queue gives up the place of the caller that left in one of these microtasks.
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      const comes = cache.scope('customer.1').get();
      await settle();
      source.last.grant(3600);
      expect(scopes()).toEqual(['customer.0', 'customer.1']);
      expect(await outcomes([first, comes])).toEqual(['token-1', 'token-2']);
    }
  });

  it('starts renewals only for free places and does not queue them, so that scopes without a token go first', async () => {
    const { cache, source, clock, fillCache, scopes } = setUp({ customerRequests: 2, customerReserveMs: 0 });
    const all = Array.from({ length: 6 }, (_, n) => `customer.${n}`);
    for (const scope of all) await fillCache(60, scope);
    await clock.advance(45_000);
    source.requests.length = 0;
    const api = cache.scope('api').get();
    for (const scope of all) expect(cache.scope(scope).getCached()).toBeDefined();
    const newcomer = cache.scope('customer.new').get();
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

  it('starts a renewal that found no free place with the first later call that finds one', async () => {
    const { cache, source, clock, fillCache, scopes } = setUp({ customerRequests: 1, customerReserveMs: 0 });
    await fillCache(60, 'customer.old');
    await clock.advance(45_000);
    const other = cache.scope('customer.other').get();
    await settle();
    cache.scope('customer.old').getCached();
    source.last.grant(3600);
    await other;
    expect(scopes()).toEqual(['customer.old', 'customer.other']);
    expect(cache.scope('customer.old').getCached()?.accessToken).toBe('token-1');
    await settle();
    expect(scopes()).toEqual(['customer.old', 'customer.other', 'customer.old']);
    cache.close();
  });

  it('counts several 429 responses at the same moment as one failure, and sends the next request after 3 s', async () => {
    const { cache, source, clock, scopes } = setUp();
    const customers = Array.from({ length: 5 }, (_, index) => cache.scope(`customer.${index}`).get());
    const calls = outcomes([cache.scope('api').get(), ...customers]);
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

  it('holds back queued requests during a 429, and rejects a queued caller with token_rate_limited when its timeout ends', async () => {
    const { cache, source, clock, scopes } = setUp({ customerRequests: 1 });
    const patient = cache.scope('customer.0').get({ timeoutMs: 60_000 });
    const hasty = outcomes([cache.scope('customer.1').get({ timeoutMs: 5_000 })]);
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

describe('Token cache: evicted scopes', () => {
  it('sends one request at a time for each of three scopes that are asked for in turn, with room for two', async () => {
    const clock = new FakeClock();
    const inFlight = new Map<string, number>();
    let requests = 0;
    let most = 0;
    const request = async (scope: string) => {
      requests += 1;
      inFlight.set(scope, (inFlight.get(scope) ?? 0) + 1);
      most = Math.max(most, ...inFlight.values());
      await sleep(clock, 100);
      inFlight.set(scope, inFlight.get(scope)! - 1);
      return { accessToken: `token-${requests}`, scope, expiresIn: 3_600 };
    };
    const { cache } = setUp({ source: { request }, clock, maxEntries: 2 });
    const callers: Promise<AccessToken>[] = [];
    for (let call = 0; call < 15; call += 1) callers.push(cache.scope(`customer.${call % 3}`).get());
    await clock.advance(100);
    expect((await Promise.all(callers)).map(({ scope }) => scope)).toHaveLength(15);
    expect([requests, most]).toEqual([3, 1]);
  });

  it('finds an evicted scope while a caller waits for another attempt, and not afterwards', async () => {
    const { cache, source, clock } = setUp({ maxEntries: 1, random: () => 0.5 });
    const first = cache.scope('customer.1').get();
    await settle();
    void outcomes([cache.scope('customer.2').get()]);
    await settle();
    source.requests[0].fail(reset());
    await clock.advance(20);
    expect(cache.scope('customer.1')).toBe(cache.scope('customer.1'));
    const evicted = cache.scope('customer.1');
    cache.scope('customer.2');
    expect(cache.scope('customer.1')).toBe(evicted);
    cache.scope('customer.2');
    await clock.advance(30);
    source.last.grant(3_600);
    expect((await first).accessToken).toBe('token-3');
    await settle();
    expect(cache.scope('customer.1')).not.toBe(evicted);
    cache.close();
  });
});

describe('Token cache: async context of requests', () => {
  const storage = new AsyncLocalStorage<string>();
  /** Creates a cache in the async context `start`. Its source records the async context of each request. */
  function setUpContexts(refresh: 'ahead' | 'scheduled' = 'ahead') {
    return storage.run('start', () => {
      const seen: (string | undefined)[] = [];
      const parts = setUp({ refresh });
      const request = parts.source.request.bind(parts.source);
      parts.source.request = (scope, context) => (seen.push(storage.getStore()), request(scope, context));
      return { ...parts, seen };
    });
  }

  it('sends a request and its retry in the async context of the first caller', async () => {
    const { cache, source, clock, seen } = setUpContexts();
    const waiting = ['first', 'second'].map((name) => storage.run(name, () => cache.scope('api').get()));
    await settle();
    source.last.fail(reset());
    await storage.run('the clock', () => clock.advance(1_000));
    source.last.grant(60);
    await Promise.all(waiting);
    expect(seen).toEqual(['first', 'first']);
  });

  it('renews in the background in the async context of the start, whoever called', async () => {
    const { cache, clock, fillCache, seen } = setUpContexts();
    await storage.run('first', () => fillCache());
    await clock.advance(45_000);
    storage.run('a call', () => cache.scope('api').getCached());
    await settle();
    expect(seen).toEqual(['first', 'start']);
  });

  it('renews by schedule in the async context of the start', async () => {
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

describe('Token cache: close()', () => {
  it('close() rejects all waiting callers, queued ones too, aborts the requests in flight and leaves no timer', async () => {
    const { cache, source, clock, scopes } = setUp({ customerRequests: 1 });
    const all = ['api', 'customer.c1', 'customer.c2'].map((scope) =>
      cache.scope(scope).get({ timeoutMs: 100 }),
    );
    const waiting = outcomes(all);
    await settle();
    cache.close();
    expect(await waiting).toEqual(Array(3).fill('connection_closed'));
    expect(source.requests.map(({ context }) => context.signal.aborted)).toEqual([true, true]);
    const [one, other] = await Promise.all(
      [cache.scope('api').get(), cache.scope('api').get()].map((late) =>
        late.catch((error: unknown) => error),
      ),
    );
    expect(one).toMatchObject({ code: 'connection_closed' });
    expect(one).not.toBe(other);
    await expect(cache.scope('api').replace('x')).rejects.toMatchObject({ code: 'connection_closed' });
    await settle();
    expect([scopes(), clock.timers]).toEqual([['api', 'customer.c1'], 0]);
  });

  it('close() does not cache a token that arrives at the same moment', async () => {
    for (let turns = 0; turns < 20; turns += 1) {
      const { cache, source, clock } = setUp({ refresh: 'scheduled' });
      const waiting = outcomes([cache.scope('api').get()]);
      await settle();
      source.last.grant(60);
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      const isThere = cache.scope('api').getCached() !== undefined;
      cache.close();
      await settle();
      expect(await waiting).toEqual([isThere ? 'token-1' : 'connection_closed']);
      expect([cache.scope('api').getCached() !== undefined, clock.timers]).toEqual([isThere, 0]);
    }
  });

  it('close() ends the pause after a failure and a Retry-After', async () => {
    const { cache, source, clock } = setUp({ random: () => 0.9 });
    const waiting = outcomes([cache.scope('api').get(), cache.scope('customer.c1').get()]);
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

  it('close() leaves a valid token usable for calls in flight, but does not renew it', async () => {
    const { cache, source, clock, fillCache } = setUp();
    await fillCache();
    cache.close();
    await clock.advance(50_000);
    expect(cache.scope('api').getCached()?.accessToken).toBe('token-1');
    await settle();
    expect(source.requests).toHaveLength(1);
  });
});

describe('Token cache: 2,000 random histories', () => {
  it(
    'never sends two requests at a time or too early, hands out an expired token, caches a rejection or leaves a timer',
    () => replayHistories(2_000),
    600_000,
  );

  it('keeps these rules when the wall clock is set back while a 429 holds back a caller', () =>
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
