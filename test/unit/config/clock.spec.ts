import { expect, it } from '@jest/globals';
import { systemClock } from '../../../lib/config/clock.js';
import { standStill } from '../../helpers/stand-still.js';

it.each(['schedule', 'watch'] as const)(
  'a timer of %s calls back once, or not where it is cancelled',
  async (kind) => {
    const called: string[] = [];
    systemClock[kind](() => called.push('kept'), 10);
    const cancelEarly = systemClock[kind](() => called.push('cancelled early'), 10);
    cancelEarly();
    await new Promise<void>((resolve) => systemClock.schedule(resolve, 20));
    expect(called).toEqual(['kept']);
  },
);

it('what is cancelled between its time and its turn is not called', async () => {
  const called: string[] = [];
  const cancel = systemClock.schedule(() => called.push('late'), 10);
  setTimeout(cancel, 10);
  standStill(20);
  await new Promise<void>((resolve) => systemClock.schedule(resolve, 10));
  expect(called).toEqual([]);
});
