import { expect, it } from '@jest/globals';
import { types } from 'node:util';
import { WaitingCallers } from '../../../../lib/auth/cache/waiting-callers.js';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { SILENT } from '../../../../lib/exchange/io.js';
import { systemClock } from '../../../../lib/time/clock.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';
import { setUp } from './set-up.js';

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
  await clock.advance(9_500);
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
  const callers = new WaitingCallers<string>(systemClock, String);
  const waiting = [callers.join(30_000), callers.join(30_000)];
  expect(timers()).toBe(before + 2);
  callers.resolve('token');
  expect(await Promise.all(waiting)).toEqual(['token', 'token']);
  expect(timers()).toBe(before);
});

it('each caller gets an error of its own: what one host writes into it, no other caller sees', async () => {
  const callers = new WaitingCallers<string>(new FakeClock(), String);
  const details = { code: 'token_refused', message: 'no', status: 400, scope: 'api' } as const;
  const reason = new ServiceTokenError(details);
  const waiting = Promise.allSettled([callers.join(30_000), callers.join(30_000), callers.join(30_000)]);
  callers.reject(reason);
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

it('those whose deadline comes earlier than an answer can are rejected, and no others', async () => {
  const callers = new WaitingCallers<string>(new FakeClock(), String);
  const outcomes = Promise.allSettled([99, 100, 101].map((timeoutMs) => callers.join(timeoutMs)));
  callers.reject(new Error('later'), 100);
  callers.resolve('token');
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
});
