import { beforeEach, describe, expect, it } from '@jest/globals';
import { ExpiryWatch } from '../../../../lib/tls/reload/expiry-watch.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let clock: FakeClock;
let lines: string[];
let watch: ExpiryWatch;
beforeEach(() => {
  clock = new FakeClock();
  lines = [];
  const note = (level: string) => (message: string) => {
    const text = / (expired on|expires within \d+ days?),? /.exec(message)?.[1];
    lines.push(`${level} ${/"(.*?)"/.exec(message)?.[1]} ${text}`);
  };
  const log = { debug: note('debug'), log: note('log'), warn: note('warn'), error: note('error') };
  watch = new ExpiryWatch(clock, log);
});

const ending = (inMs: number, name = 'app') => ({
  subject: `CN=${name}`,
  issuer: 'CN=issuer',
  fingerprint256: name,
  validFrom: new Date(clock.now() - DAY),
  validTo: new Date(clock.now() + inMs),
});

it('a wall clock that jumps, or a machine that slept: warned within the hour', async () => {
  watch.watch(ending(300 * DAY));
  await clock.advance(HOUR);
  expect(lines).toEqual([]);
  clock.jump(294 * DAY);
  await clock.advance(HOUR);
  expect(lines).toEqual(['warn CN=app expires within 7 days']);
  watch.stop();
  expect(clock.timers).toBe(0);
});

describe('At the millisecond', () => {
  it.each([
    [30, 'warn CN=app expires within 30 days'],
    [7, 'warn CN=app expires within 7 days'],
    [1, 'warn CN=app expires within 1 day'],
    [0, 'error CN=app expired on'],
  ])('at which %d days are left', async (days, line) => {
    watch.watch(ending(days * DAY + 1_500));
    lines.length = 0;
    await clock.advance(1_499);
    expect(lines).toEqual([]);
    await clock.advance(1);
    expect(lines).toEqual([line]);
    expect(clock.timers).toBe(days === 0 ? 0 : 1);
  });
});

it('another certificate is warned of anew; the same one is not', () => {
  const first = ending(5 * DAY, 'first');
  watch.watch(first);
  watch.watch({ ...first });
  watch.watch(ending(5 * DAY, 'second'));
  expect(lines).toEqual(['warn CN=first expires within 7 days', 'warn CN=second expires within 7 days']);
  expect(clock.timers).toBe(1);
  watch.watch(undefined);
  expect(clock.timers).toBe(0);
});
