import { beforeEach, describe, expect, it } from '@jest/globals';
import { Polling } from '../../../../lib/tls/reload/polling.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

let clock: FakeClock;
let polling: Polling;
let looks: number[];
let ends: (() => void)[];
beforeEach(() => {
  clock = new FakeClock();
  polling = new Polling(clock);
  looks = [];
});

function follow(count: number): void {
  ends = Array.from({ length: count }, (_, index) => polling.follow(() => void looks.push(index)));
}

describe('one timer for all', () => {
  it.each([
    [1, 1, 1],
    [100, 1, 100],
    [101, 2, 51],
    [600, 6, 100],
    [800, 8, 100],
    [1_000, 8, 125],
    [5_000, 8, 625],
  ])('of %d, each looks once in %d s, at most %d in a second', async (count, seconds, inSecond) => {
    follow(count);
    expect(clock.timers).toBe(1);
    for (let second = 1; second <= seconds; second++) {
      const before = looks.length;
      await clock.advance(1_000);
      expect(looks.length - before).toBeLessThanOrEqual(inSecond);
      expect(clock.timers).toBe(1);
    }
    const all = Array.from({ length: count }, (_, index) => index);
    expect(looks.slice(0, count).sort((a, b) => a - b)).toEqual(all);
  });

  it('ends with the last of them, and begins anew', async () => {
    follow(2);
    ends[0]();
    await clock.advance(1_000);
    expect(looks).toEqual([1]);
    ends[1]();
    expect(clock.timers).toBe(0);
    ends[1]();
    follow(1);
    await clock.advance(1_000);
    expect([looks, clock.timers]).toEqual([[1, 0], 1]);
  });

  it('goes on where some end while others look', async () => {
    polling.follow(() => ends.forEach((end) => end()));
    follow(3);
    await clock.advance(1_000);
    await clock.advance(1_000);
    expect([looks, clock.timers]).toEqual([[], 1]);
  });
});
