import { describe, expect, it } from '@jest/globals';
import { systemClock, timerDelay, watching } from '../../../lib/time/clock.js';
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

describe('the clock of the system', () => {
  it('calls back once, and not at all once cancelled', async () => {
    const called: string[] = [];
    await new Promise<void>((resolve) => {
      systemClock.schedule(() => called.push('cancelled'), 0)();
      systemClock.schedule(() => called.push('far'), 2 ** 40)();
      systemClock.schedule(() => called.push('called'), -5);
      systemClock.schedule(resolve, 1);
    });
    expect(called).toEqual(['called']);
    expect(timerDelay(2 ** 40)).toBe(2 ** 31 - 1);
  });

  it('has timers that keep the process running, for who waits, and timers that do not, for what watches', () => {
    const held = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = held();
    const nothing = (): void => undefined;
    const watches = [systemClock.watch(nothing, 60_000), watching(systemClock).schedule(nothing, 60_000)];
    expect(held()).toBe(before);
    const cancel = systemClock.schedule(nothing, 60_000);
    expect(held()).toBe(before + 1);
    for (const each of [cancel, ...watches]) each();
    expect(held()).toBe(before);
  });
});
