import { beforeEach, describe, expect, it } from '@jest/globals';
import { type IdentitySnapshot } from '../../../../lib/tls/material/read-identity.js';
import { IdentityWatch, type WatchSettings } from '../../../../lib/tls/reload/identity-watch.js';
import { Polling } from '../../../../lib/tls/reload/polling.js';
import { FakeClock } from '../../../helpers/fake-clock.js';
import { locate } from '../tls-settings.js';

let clock: FakeClock;
/** What the next reading finds. */
let now: string;
let applied: string[];
let bad: Set<string>;
let readings: number;
beforeEach(() => {
  clock = new FakeClock();
  now = 'a';
  applied = [];
  bad = new Set();
  readings = 0;
});

function watch({
  pollMs = 1_000,
  ...settings
}: Partial<WatchSettings> & { pollMs?: number } = {}): IdentityWatch {
  return new IdentityWatch(
    {
      polling: new Polling(clock, pollMs),
      quietMs: 300,
      clock,
      read: async () => {
        readings += 1;
        return { digest: now, locate };
      },
      apply: ({ digest }) => {
        applied.push(digest);
        return !bad.has(digest);
      },
      ...settings,
    },
    'a',
  );
}

describe('At intervals', () => {
  it('applies a change once, after it has stayed the same for the quiet time', async () => {
    watch().start();
    await clock.advance(1_500);
    now = 'b';
    await clock.advance(500);
    expect([readings, applied]).toEqual([2, []]);
    await clock.advance(299);
    expect(applied).toEqual([]);
    await clock.advance(1);
    expect([readings, applied]).toEqual([3, ['b']]);
    await clock.advance(10_000);
    expect([readings, applied]).toEqual([13, ['b']]);
  });

  it('waits as long as the content goes on changing', async () => {
    watch().start();
    for (let version = 0; version < 5; version++) {
      now = `b${version}`;
      await clock.advance(version === 0 ? 1_000 : 300);
    }
    expect(applied).toEqual([]);
    await clock.advance(300);
    expect(applied).toEqual(['b4']);
  });

  it('a change that is taken back is none', async () => {
    watch().start();
    now = 'b';
    await clock.advance(1_000);
    now = 'a';
    await clock.advance(300);
    now = 'b';
    await clock.advance(999);
    expect(applied).toEqual([]);
    await clock.advance(1);
    expect(applied).toEqual(['b']);
  });

  it('without a quiet time, applies at once', async () => {
    watch({ quietMs: 0 }).start();
    now = 'b';
    await clock.advance(1_000);
    expect(applied).toEqual(['b']);
  });

  it('applies what is not usable again after most of a minute; what is usable, never', async () => {
    bad.add('b');
    watch({ quietMs: 0 }).start();
    now = 'b';
    await clock.advance(55_000);
    expect(applied).toEqual(['b']);
    await clock.advance(1_000);
    expect(applied).toEqual(['b', 'b']);
    bad.clear();
    await clock.advance(55_000);
    expect(applied).toEqual(['b', 'b', 'b']);
    await clock.advance(300_000);
    expect(applied).toEqual(['b', 'b', 'b']);
  });

  it('content read every minute is applied again at each reading while it is not usable', async () => {
    bad.add('b');
    watch({ pollMs: 60_000, quietMs: 0 }).start();
    now = 'b';
    await clock.advance(180_000);
    expect(applied).toEqual(['b', 'b', 'b']);
  });
});

it('a reading or an application that fails ends neither the following nor the process', async () => {
  const fail = (): never => {
    throw new Error('nobody foresaw it');
  };
  let isBroken = true;
  const each = watch({
    quietMs: 0,
    read: async () => (isBroken && now === 'b' ? fail() : { digest: now, locate }),
    apply: ({ digest }) => (isBroken ? fail() : applied.push(digest) > 0),
  });
  each.start();
  now = 'b';
  await clock.advance(2_000);
  await each.readNow();
  now = 'c';
  await clock.advance(2_000);
  isBroken = false;
  now = 'd';
  await clock.advance(1_000);
  expect(applied).toEqual(['d']);
});

it('a reading says whether it is needed: after a change, while the newest is unusable, and on request', async () => {
  const needed: boolean[] = [];
  const each = watch({
    read: async (_, isNeeded) => {
      needed.push(isNeeded);
      return isNeeded || now !== 'a' ? { digest: now, locate } : undefined;
    },
  });
  bad.add('b');
  each.start();
  await clock.advance(2_000);
  expect(needed.splice(0)).toEqual([false, false]);
  now = 'b';
  await clock.advance(1_300);
  expect(needed.splice(0)).toEqual([false, true]);
  await clock.advance(1_000);
  expect([needed.splice(0), applied]).toEqual([[true], ['b']]);
  now = 'c';
  await clock.advance(1_300);
  await clock.advance(1_000);
  expect([needed.splice(0), applied]).toEqual([
    [true, true, false],
    ['b', 'c'],
  ]);
  await each.readNow();
  expect(needed).toEqual([true]);
});

describe('On request', () => {
  it('applies at once, also what is known and what has just changed; reads at intervals only once started', async () => {
    const each = watch();
    await each.readNow();
    now = 'b';
    await each.readNow();
    expect([applied, clock.timers]).toEqual([['a', 'b'], 0]);
    each.start();
    await each.readNow();
    expect([applied, clock.timers]).toEqual([['a', 'b', 'b'], 1]);
  });

  it('it is not applied again at the next interval', async () => {
    const each = watch({ quietMs: 0 });
    each.start();
    now = 'b';
    await each.readNow();
    await clock.advance(10_000);
    expect(applied).toEqual(['b']);
  });

  it('requests during a reading share one more, which begins after it', async () => {
    const answers: ((content: IdentitySnapshot) => void)[] = [];
    const each = watch({ read: () => new Promise((resolve) => answers.push(resolve)) });
    each.start();
    await clock.advance(1_000);
    expect(answers).toHaveLength(1);
    const all = Promise.all([each.readNow(), each.readNow()]);
    answers[0]({ digest: 'b', locate });
    await clock.advance(0);
    expect([answers.length, applied]).toEqual([2, []]);
    answers[1]({ digest: 'b', locate });
    await all;
    expect(applied).toEqual(['b']);
    expect(clock.timers).toBe(1);
  });
});

it('stopped, it sets no timer, and a reading that is under way is not applied', async () => {
  let answer: (content: IdentitySnapshot) => void = () => undefined;
  const each = watch({ read: () => new Promise((resolve) => (answer = resolve)), quietMs: 0 });
  each.start();
  await clock.advance(1_000);
  each.stop();
  answer({ digest: 'b', locate });
  await clock.advance(0);
  expect([applied, clock.timers]).toEqual([[], 0]);
  const idle = watch();
  idle.start();
  expect(clock.timers).toBe(1);
  idle.stop();
  expect(clock.timers).toBe(0);
});
