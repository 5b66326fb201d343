import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ExpiryWatch } from '../../../../lib/tls/reload/expiry-watch.js';
import { FileMarks } from '../../../../lib/tls/reload/file-marks.js';
import { Polling } from '../../../../lib/tls/reload/polling.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

describe('looking at files', () => {
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
});

describe('the marks of files', () => {
  let folder: string;
  let path: string;
  let marks: FileMarks;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'file-marks-'));
    await mkdir(join(folder, 'one'));
    await mkdir(join(folder, 'two'));
    for (const each of ['one', 'two']) await writeFile(join(folder, each, 'pem'), each);
    // As Kubernetes does it: the file is below a link.
    await symlink(join(folder, 'one'), join(folder, 'data'));
    path = join(folder, 'data', 'pem');
    marks = new FileMarks([path]);
  });
  afterEach(() => rm(folder, { recursive: true }));

  const look = () => marks.areUnchanged();

  it('is certain of a file that was the same twice', async () => {
    expect([await look(), await look(), await look(), await look()]).toEqual([false, false, true, true]);
  });

  it.each<[string, () => Promise<void>]>([
    ['a write in place, of the same length', () => writeFile(path, 'ONE')],
    [
      'a rename',
      async () => {
        await writeFile(join(folder, 'new'), 'one');
        await rename(join(folder, 'new'), path);
      },
    ],
    [
      'a new link to a folder',
      async () => {
        await symlink(join(folder, 'two'), join(folder, 'new'));
        await rename(join(folder, 'new'), join(folder, 'data'));
      },
    ],
    ['the times of another file', () => utimes(path, 1, 1)],
  ])('notices %s', async (_, change) => {
    for (let times = 0; times < 3; times++) await look();
    await change();
    expect([await look(), await look(), await look()]).toEqual([false, false, true]);
  });

  it('is never certain of a file that is not there, nor without files', async () => {
    for (let times = 0; times < 3; times++) await look();
    await rm(path);
    expect([await look(), await look(), await look()]).toEqual([false, false, false]);
    await writeFile(path, 'one');
    expect([await look(), await look(), await look()]).toEqual([false, false, true]);
    marks = new FileMarks([]);
    expect([await look(), await look(), await look()]).toEqual([false, false, false]);
  });
});

describe('the end of a certificate', () => {
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
});
