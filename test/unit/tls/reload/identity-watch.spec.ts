import { beforeEach, describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { type IdentitySnapshot } from '../../../../lib/tls/material/read-identity.js';
import { IdentityWatch, type WatchSettings } from '../../../../lib/tls/reload/identity-watch.js';
import { FakeClock } from '../../../helpers/fake-clock.js';
import { locate } from '../tls-settings.js';

let clock: FakeClock;
/** What the next reading finds. */
let now: string;
let applied: string[];
let readings: number;
beforeEach(() => {
  clock = new FakeClock();
  now = 'a';
  applied = [];
  readings = 0;
});

function watch(settings: Partial<WatchSettings> = {}): IdentityWatch {
  return new IdentityWatch(
    {
      periodMs: 2_000,
      twice: true,
      clock,
      read: async () => {
        readings += 1;
        return { digest: now, locate };
      },
      apply: ({ digest }) => void (applied.at(-1) === digest || applied.push(digest)),
      ...settings,
    },
    'a',
  );
}

/** Readings that end when the test says so. */
function heldReadings() {
  const answers: ((digest: string) => void)[] = [];
  const read = () =>
    new Promise<IdentitySnapshot>((resolve) => answers.push((digest) => resolve({ digest, locate })));
  return { answers, read };
}

describe('At intervals', () => {
  it('applies a change once it was read twice', async () => {
    watch().start();
    await clock.advance(3_000);
    now = 'b';
    await clock.advance(1_000);
    expect([readings, applied]).toEqual([2, ['a']]);
    await clock.advance(1_999);
    expect(applied).toEqual(['a']);
    await clock.advance(1);
    expect([readings, applied]).toEqual([3, ['a', 'b']]);
  });

  it('waits as long as the content goes on changing, and a change that is taken back is none', async () => {
    watch().start();
    for (const version of ['b', 'c', 'd', 'a', 'e']) {
      now = version;
      await clock.advance(2_000);
    }
    expect(applied).toEqual([]);
    await clock.advance(2_000);
    expect(applied).toEqual(['e']);
  });

  it('of a function, applies at once', async () => {
    watch({ twice: false }).start();
    now = 'b';
    await clock.advance(2_000);
    expect(applied).toEqual(['b']);
  });

  it('begins no reading before the last one has ended', async () => {
    const { answers, read } = heldReadings();
    watch({ read }).start();
    await clock.advance(20_000);
    expect(answers).toHaveLength(1);
    answers[0]('a');
    await clock.advance(2_000);
    expect(answers).toHaveLength(2);
  });

  it('runs in the async context of the start, whoever asks in between', async () => {
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    // Timers call back in the context that set them.
    const { watch: plan } = clock;
    clock.watch = (callback, delayMs) => plan.call(clock, AsyncResource.bind(callback), delayMs);
    const each = watch({
      read: async () => {
        seen.push(context.getStore());
        return { digest: now, locate };
      },
    });
    context.run('start', () => each.start());
    await context.run('call', () => each.readNow());
    await clock.advance(2_000);
    const reading = context.run('call', () => each.readNow());
    await clock.advance(4_000);
    await reading;
    expect(seen).toEqual(['call', 'start', 'call', 'start', 'start']);
  });
});

it('a reading or an application that fails ends neither the following nor the process', async () => {
  const fail = (): never => {
    throw new Error('nobody foresaw it');
  };
  let isBroken = true;
  const each = watch({
    twice: false,
    read: async () => (isBroken && now === 'b' ? fail() : { digest: now, locate }),
    apply: ({ digest }) => (isBroken ? fail() : void applied.push(digest)),
  });
  each.start();
  now = 'b';
  await clock.advance(2_000);
  await each.readNow();
  now = 'c';
  await clock.advance(2_000);
  isBroken = false;
  now = 'd';
  await clock.advance(2_000);
  expect(applied).toEqual(['d']);
});

describe('On request', () => {
  it('applies at once what has just changed; reads at intervals only once started', async () => {
    const each = watch();
    now = 'b';
    await each.readNow();
    expect([applied, clock.timers]).toEqual([['b'], 0]);
    each.start();
    await clock.advance(10_000);
    expect([applied, clock.timers]).toEqual([['b'], 1]);
  });

  it('requests during a reading share one more, which begins after it', async () => {
    const { answers, read } = heldReadings();
    const each = watch({ read });
    each.start();
    await clock.advance(2_000);
    const all = Promise.all([each.readNow(), each.readNow()]);
    answers[0]('b');
    await clock.advance(0);
    expect([answers.length, applied]).toEqual([2, []]);
    answers[1]('b');
    await all;
    expect([answers.length, applied]).toEqual([2, ['b']]);
  });
});

it('stopped, it sets no timer, and a reading that is under way is not applied', async () => {
  const { answers, read } = heldReadings();
  const each = watch({ read, twice: false });
  each.start();
  await clock.advance(2_000);
  each.stop();
  answers[0]('b');
  await clock.advance(0);
  expect([applied, clock.timers]).toEqual([[], 0]);
  const idle = watch();
  idle.start();
  idle.stop();
  expect(clock.timers).toBe(0);
});
