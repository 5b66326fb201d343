import { expect, it } from '@jest/globals';
import { types } from 'node:util';
import { systemClock } from '../../../../lib/time/clock.js';
import { WaitingCallers } from '../../../../lib/auth/cache/waiting-callers.js';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

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
