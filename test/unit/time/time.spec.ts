import { describe, expect, it } from '@jest/globals';
import { getEventListeners } from 'node:events';
import {
  delayAfterRetryAfter,
  retryDelay,
  systemClock,
  timerDelay,
  watching,
  sleep,
  within,
} from '../../../lib/time/time.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { blockEventLoop } from '../../helpers/block-event-loop.js';

const hang = (): Promise<never> => new Promise(() => undefined);

describe('System clock', () => {
  it.each(['schedule', 'watch'] as const)(
    '%s calls back once, even for a time in the past, and not after it was cancelled',
    async (kind) => {
      const called: string[] = [];
      systemClock[kind](() => called.push('kept'), 10);
      systemClock[kind](() => called.push('over'), -5);
      systemClock[kind](() => called.push('cancelled early'), 10)();
      systemClock[kind](() => called.push('far'), 2 ** 40)();
      await new Promise<void>((resolve) => systemClock.schedule(resolve, 20));
      expect(called).toEqual(['over', 'kept']);
      expect(timerDelay(2 ** 40)).toBe(2 ** 31 - 1);
    },
  );

  it('does not call back if the timer is cancelled after it fired but before its turn of the event loop', async () => {
    const called: string[] = [];
    const cancel = systemClock.schedule(() => called.push('late'), 10);
    setTimeout(cancel, 10);
    blockEventLoop(20);
    await new Promise<void>((resolve) => systemClock.schedule(resolve, 10));
    expect(called).toEqual([]);
  });

  it('schedule() keeps the process running, and watch() does not', () => {
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

describe('Waiting', () => {
  it('retryDelay() is between 0 and 100 ms * 2^n, at most 20 s', () => {
    expect([0, 1, 2, 20].map((retry) => retryDelay(retry, 1))).toEqual([100, 200, 400, 20_000]);
    expect(retryDelay(5, 0)).toBe(0);
  });

  it.each([
    ['in the past: as without it, but for the spread', 0, 0, 0, Infinity, 100],
    ['in the past, the second time', 0, 1, 0, Infinity, 200],
    ['spread by up to the pause, where that is longer than a tenth', 500, 1, 1, Infinity, 700],
    ['spread by up to a tenth', 10_000, 1, 0.5, Infinity, 10_500],
    ['spread by up to 5 s', 3_600_000, 0, 1, Infinity, 3_605_000],
    ['the spread fits', 1_000, 0, 1, 1_100, 1_100],
    ['the spread does not fit', 1_000, 0, 1, 1_099, 1_000],
    ['nothing fits', 1_000, 0, 1, 999, 1_000],
  ])(
    'delayAfterRetryAfter() waits for the time of Retry-After: %s',
    (_, asked, retry, random, left, wait) => {
      expect(delayAfterRetryAfter(asked, retry, random, left)).toBe(wait);
    },
  );

  it('sleep() resolves after its time, and leaves no timer and no listener', async () => {
    const clock = new FakeClock();
    const { signal } = new AbortController();
    let woke = false;
    void sleep(clock, 100, undefined, signal).then(() => (woke = true));
    await clock.advance(99);
    expect(woke).toBe(false);
    await clock.advance(1);
    expect([woke, clock.timers, getEventListeners(signal, 'abort').length]).toEqual([true, 0, 0]);
  });

  it.each(['before', 'meanwhile'])(
    'sleep() rejects with the reason of a signal that is aborted %s',
    async (when) => {
      const clock = new FakeClock();
      const [first, second] = [new AbortController(), new AbortController()];
      const reason = new Error('enough');
      if (when === 'before') second.abort(reason);
      const sleeping = sleep(clock, 100, first.signal, second.signal);
      second.abort(reason);
      first.abort(new Error('later'));
      await expect(sleeping).rejects.toBe(reason);
      expect(clock.timers).toBe(0);
    },
  );
});

describe('Work with a time limit', () => {
  const expired = () => new Error('too late');

  it('resolves with the result of the work, and leaves no timer', async () => {
    const clock = new FakeClock();
    const limit = { clock, timeoutMs: 10, expired };
    await expect(within(limit, async () => 'value')).resolves.toBe('value');
    await expect(within(limit, () => Promise.reject(new Error('its own')))).rejects.toThrow('its own');
    const throws = () => {
      throw new Error('at once');
    };
    await expect(within(limit, throws)).rejects.toThrow('at once');
    expect(clock.timers).toBe(0);
  });

  it('rejects at the deadline, and aborts the work', async () => {
    const clock = new FakeClock();
    let stop: AbortSignal | undefined;
    const limited = within({ clock, timeoutMs: 10, expired }, (signal) => {
      stop = signal;
      return hang();
    });
    const rejected = expect(limited).rejects.toThrow('too late');
    await clock.advance(9);
    expect(stop?.aborted).toBe(false);
    await clock.advance(1);
    await rejected;
    expect(stop?.reason).toEqual(new Error('too late'));
  });

  it('rejects when a signal aborts, and does not start the work if the signal was aborted before', async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const reason = new Error('enough');
    let begun = 0;
    const work = () => ((begun += 1), hang());
    const limit = { clock, timeoutMs: 10, expired, signals: [undefined, controller.signal] };
    const rejected = expect(within(limit, work)).rejects.toBe(reason);
    await settle();
    controller.abort(reason);
    await rejected;
    await expect(within(limit, work)).rejects.toBe(reason);
    expect([begun, clock.timers]).toEqual([1, 0]);
  });
});
