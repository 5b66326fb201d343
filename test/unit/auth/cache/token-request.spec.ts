import { describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { types } from 'node:util';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { SILENT } from '../../../../lib/exchange/io.js';
import { systemClock } from '../../../../lib/time/clock.js';
import { settle } from '../../../helpers/fake-clock.js';
import { outcomes, reset, setUp } from './set-up.js';

const error = new ServiceTokenError({
  code: 'token_refused',
  message: 'It is down.',
  hint: 'Check urls.authUrl.',
  options: ['urls.authUrl'],
  scope: 'api',
});

it('logs failures that no caller gets, and no others', async () => {
  const lines: string[] = [];
  const log = { ...SILENT, warn: (line: string) => void lines.push(line) };
  const { cache, source, clock, filled } = setUp({ log });
  const waiting = cache.get('api');
  await settle();
  source.last.fail(error);
  await expect(waiting).rejects.toMatchObject({ code: 'token_refused' });
  expect(lines).toEqual([]);
  await filled();
  await clock.advance(43_000);
  for (const reason of [error, new Error('not ours, so it may hold anything')]) {
    cache.use('api');
    await settle();
    source.last.fail(reason);
    await settle();
    await clock.advance(3_000);
  }
  expect(source.requests).toHaveLength(4);
  expect(lines).toEqual([
    'A token request that no caller waits for failed: token_refused: It is down. Check urls.authUrl.',
  ]);
});

it('tells its source whether a caller waits', async () => {
  const { cache, source, clock, filled } = setUp();
  await filled();
  expect(source.last.context.isAwaited()).toBe(false);
  await clock.advance(45_000);
  cache.use('api');
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

it('a caller that joins a renewal at its end has all the time of a request', async () => {
  const { cache, source, clock, filled } = setUp();
  await filled();
  await clock.advance(45_000);
  cache.use('api');
  await clock.advance(9_500);
  const waiting = cache.get('api');
  await clock.advance(9_500);
  expect(source.requests).toHaveLength(3);
  source.last.grant(60, 'late');
  expect((await waiting).accessToken).toBe('late');
});

/** Timers that keep the process alive. */
const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

it('a caller that waits holds the process, and no longer than that', async () => {
  const before = timers();
  const { cache, source } = setUp({ clock: systemClock });
  const waiting = [cache.get('api'), cache.get('api')];
  await settle();
  expect(timers()).toBeGreaterThanOrEqual(before + 2);
  source.last.grant(60);
  expect(await outcomes(waiting)).toEqual(['token-1', 'token-1']);
  expect(timers()).toBe(before);
});

it('each caller gets an error of its own: what one host writes into it, no other caller sees', async () => {
  const { cache, source } = setUp();
  const details = { code: 'token_refused', message: 'no', status: 400, scope: 'api' } as const;
  const reason = new ServiceTokenError(details);
  const waiting = Promise.allSettled([cache.get('api'), cache.get('api'), cache.get('api')]);
  await settle();
  source.last.fail(reason);
  const errors = (await waiting).map(
    (outcome) => (outcome as PromiseRejectedResult).reason as ServiceTokenError,
  );
  expect(new Set([...errors, reason]).size).toBe(4);
  for (const error of errors) {
    expect(error).toBeInstanceOf(ServiceTokenError);
    expect(types.isNativeError(error)).toBe(true);
    expect({ ...error }).toEqual({ ...reason });
    expect(error.toJSON()).toEqual(reason.toJSON());
    expect([String(error), error.stack, Object.keys(error)]).toEqual([
      String(reason),
      reason.stack,
      Object.keys(reason),
    ]);
  }
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
    const waiting = [
      storage.run('first', () => cache.get('api')),
      storage.run('second', () => cache.get('api')),
    ];
    await settle();
    source.last.fail(reset());
    await storage.run('of the clock', () => clock.advance(1_000));
    source.last.grant(60);
    await Promise.all(waiting);
    expect(seen).toEqual(['first', 'first']);
  });

  it('of a renewal that nobody waits for is that of the start, whoever called', async () => {
    const { cache, source, clock, filled, seen } = setUpContexts();
    await storage.run('first', () => filled());
    await clock.advance(45_000);
    storage.run('a call', () => cache.use('api'));
    await settle();
    source.last.grant(60);
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
