import { expect, it } from '@jest/globals';
import { WaitingCallers } from '../../../../lib/auth/cache/waiting-callers.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

/** Timers that keep the process alive. */
const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

it('a caller that waits holds the process, once for all, and no longer than that', async () => {
  const before = timers();
  const callers = new WaitingCallers<string>(new FakeClock());
  const waiting = [callers.join({}), callers.join({})];
  expect(timers()).toBe(before + 1);
  callers.resolve('token');
  expect(await Promise.all(waiting)).toEqual(['token', 'token']);
  expect(timers()).toBe(before);
});
