import { describe, expect, it } from '@jest/globals';
import { GuardedStore, UNAVAILABLE } from '../../../../lib/auth/store/guarded-store.js';
import { StoreObserver } from '../../../../lib/auth/store/store-observer.js';
import { type Clock, systemClock } from '../../../../lib/time/clock.js';
import { type TokenStore } from '../../../../lib/config/token-cache.options.js';
import { SILENT } from '../../../../lib/exchange/io.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';

const HANG = (): Promise<never> => new Promise(() => undefined);

/** A store whose behaviour the test sets; it counts what it is asked. */
class SetStore implements TokenStore {
  asked: string[] = [];
  reads: () => Promise<string | undefined> = async () => 'value';
  writes: () => Promise<void> = async () => undefined;
  opens: () => Promise<void> = async () => undefined;
  closes: () => Promise<void> = async () => undefined;
  timeout?: number;

  get(key: string): Promise<string | undefined> {
    this.asked.push(`get ${key}`);
    return this.reads();
  }
  set(): Promise<void> {
    this.asked.push('set');
    return this.writes();
  }
  delete(): Promise<void> {
    this.asked.push('delete');
    return this.writes();
  }
  async lock(): Promise<() => Promise<void>> {
    this.asked.push('lock');
    await this.writes();
    return async () => void this.asked.push('unlock');
  }
  open(): Promise<void> {
    this.asked.push('open');
    return this.opens();
  }
  close(): Promise<void> {
    this.asked.push('close');
    return this.closes();
  }
}

function setUp(change: (store: SetStore) => void = () => undefined) {
  const clock = new FakeClock();
  const store = new SetStore();
  change(store);
  const lines: string[] = [];
  const note = (level: string) => (line: string) => void lines.push(`${level} ${line}`);
  const log = { ...SILENT, warn: note('warn'), log: note('log') };
  const observer = new StoreObserver({ log, clock });
  const guarded = new GuardedStore(store, clock, observer);
  /** What comes of a call that does not have to wait; else undefined. */
  const atOnce = async <T>(call: Promise<T>): Promise<T | undefined> => {
    let answer: T | undefined;
    void call.then((value) => (answer = value));
    await settle();
    return answer;
  };
  const asked = () => store.asked.splice(0);
  return { clock, store, guarded, lines, atOnce, asked };
}

describe('a store that does not answer', () => {
  it('is waited for 250 ms, once, and then not asked at all', async () => {
    const { clock, store, guarded, atOnce, asked } = setUp();
    store.reads = HANG;
    const first = guarded.get('a');
    await clock.advance(249);
    expect(await atOnce(first)).toBeUndefined();
    await clock.advance(1);
    expect(await atOnce(first)).toBe(UNAVAILABLE);
    asked();
    for (let call = 0; call < 100; call += 1) {
      expect(await atOnce(guarded.get('a'))).toBe(UNAVAILABLE);
      expect(await atOnce(guarded.lock('a', 1))).toBe('none');
      await guarded.set('a', 'b', 1);
      await guarded.delete('a', 'b');
    }
    expect(asked()).toEqual([]);
  });

  it('is tried by itself after 1 s, doubling to 30 s; no call waits for that, and it works again when it answers', async () => {
    const { clock, store, guarded, lines, atOnce, asked } = setUp();
    store.reads = HANG;
    void guarded.get('a');
    await clock.advance(250);
    asked();
    const tries: number[] = [];
    const begun = clock.monotonic();
    for (let ms = 0; ms < 120_000; ms += 250) {
      await clock.advance(250);
      if (asked().length > 0) tries.push(Math.round((clock.monotonic() - begun) / 1_000));
      expect(await atOnce(guarded.get('a'))).toBe(UNAVAILABLE);
    }
    expect(tries).toEqual([1, 3, 8, 16, 32, 62, 93]);
    store.reads = async () => undefined;
    await clock.advance(30_000);
    expect(asked()).toEqual(['get a']);
    expect(await atOnce(guarded.get('a').then(() => 'asked'))).toBe('asked');
    expect(asked()).toEqual(['get a']);
    expect(clock.timers).toBe(0);
    expect(lines).toEqual([
      expect.stringMatching(/^warn .*\(timeout\): this process works with its own tokens/),
      expect.stringMatching(/^warn /),
      'log The token store works again.',
    ]);
  });

  it('soon after it answered a probe is left alone for longer', async () => {
    const { clock, store, guarded, asked } = setUp();
    for (const pause of [1_000, 2_000, 4_000]) {
      store.reads = HANG;
      void guarded.get('a');
      await clock.advance(250);
      asked();
      store.reads = async () => undefined;
      await clock.advance(pause - 1);
      expect(asked()).toEqual([]);
      await clock.advance(1);
      expect(asked()).toEqual(['get a']);
    }
    await clock.advance(30_001);
    store.reads = HANG;
    void guarded.get('a');
    await clock.advance(250);
    asked();
    await clock.advance(1_000);
    expect(asked()).toEqual(['get a']);
  });

  it('is asked no more after the end', async () => {
    const { clock, store, guarded, asked } = setUp();
    store.reads = HANG;
    void guarded.get('a');
    await clock.advance(1_000);
    await guarded.close();
    expect(asked()).toEqual(['open', 'get a', 'close']);
    await clock.advance(60_000);
    expect(await guarded.get('a')).toBe(UNAVAILABLE);
    expect(asked()).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it('has the time that it names itself', async () => {
    const { clock, guarded, atOnce } = setUp((store) => {
      store.timeout = 40;
      store.reads = HANG;
    });
    const first = guarded.get('a');
    await clock.advance(40);
    expect(await atOnce(first)).toBe(UNAVAILABLE);
  });
});

/** As that of node-redis, which has no code. */
class ClientClosedError extends Error {}

describe('a store that refuses', () => {
  it.each([
    ['OOM command not allowed when used memory > maxmemory', 'OOM: its memory is full'],
    [
      "READONLY You can't write against a read only replica.",
      'READONLY: it is a replica, which takes no writes',
    ],
    ['MOVED 866 10.0.0.1:6379', 'MOVED: it is a node of a cluster, which needs a client of the application'],
    ['LOADING Redis is loading the dataset in memory', 'LOADING'],
    [{ code: 'ETIMEDOUT' }, 'ETIMEDOUT'],
    ['anything else, with redis://user:password@host', 'error'],
    [new ClientClosedError('redis://user:password@host'), 'ClientClosedError'],
    [null, 'error'],
    [Object.create(null), 'error'],
    [{ code: Object.create(null), message: Object.create(null) }, 'error'],
  ])('writes (%p) is read all the same, with one warning a minute', async (error, cause) => {
    const { clock, store, guarded, lines, asked } = setUp();
    store.writes = async () => {
      throw typeof error === 'string' ? new Error(error) : error;
    };
    for (let call = 0; call < 10; call += 1) {
      await guarded.set('a', 'b', 1);
      expect(await guarded.lock('a', 1)).toBe('none');
      expect(await guarded.get('a')).toBe('value');
    }
    expect(asked().filter((what) => what === 'get a')).toHaveLength(10);
    expect(lines).toEqual([
      `warn The token store does not work (${cause}): it takes no new tokens; those that are in it are still used.`,
    ]);
    await clock.advance(60_000);
    await guarded.set('a', 'b', 1);
    expect(lines).toHaveLength(2);
    store.writes = async () => undefined;
    await guarded.set('a', 'b', 1);
    await guarded.set('a', 'b', 1);
    expect(lines.slice(2)).toEqual(['log The token store works again.']);
    // Trouble too short for a warning of its own ends without a line.
    store.writes = () => Promise.reject(new Error(String(error)));
    await guarded.set('a', 'b', 1);
    store.writes = async () => undefined;
    await guarded.set('a', 'b', 1);
    expect(lines).toHaveLength(3);
  });

  it('writes and reads works again when both do', async () => {
    const { clock, store, guarded, lines } = setUp();
    store.writes = () => Promise.reject(new Error('OOM'));
    await guarded.set('a', 'b', 1);
    store.reads = () => Promise.reject(new Error('LOADING'));
    await guarded.get('a');
    store.reads = async () => 'value';
    await clock.advance(1_000);
    expect(await guarded.get('a')).toBe('value');
    expect(lines).toHaveLength(1);
    store.writes = async () => undefined;
    await guarded.set('a', 'b', 1);
    expect(lines.slice(1)).toEqual(['log The token store works again.']);
  });

  it('reads is not asked until it works again', async () => {
    const { clock, store, guarded, lines, asked } = setUp();
    store.reads = () => Promise.reject(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }));
    expect(await guarded.get('a')).toBe(UNAVAILABLE);
    asked();
    expect(await guarded.get('a')).toBe(UNAVAILABLE);
    expect(asked()).toEqual([]);
    expect(lines[0]).toContain('(ECONNREFUSED: nothing listens at its address)');
    store.reads = async () => 'value';
    await clock.advance(1_000);
    expect(await guarded.get('a')).toBe('value');
    expect(lines[1]).toBe('log The token store works again.');
  });
});

describe('a store of several servers, one of which does not answer', () => {
  it.each<[string, (guarded: GuardedStore, store: SetStore) => Promise<unknown>]>([
    ['read', (guarded) => guarded.get('gone')],
    ['write', (guarded) => guarded.set('gone', 'b', 1)],
    ['delete', (guarded) => guarded.delete('gone', 'b')],
    ['lock', (guarded) => guarded.lock('gone', 1)],
    [
      'release',
      async (guarded, store) => {
        store.lock = async () => HANG;
        const release = await guarded.lock('gone', 1);
        if (typeof release === 'function') await release();
      },
    ],
  ])(
    'is tried with the key of the %s that failed, and works again when that one answers',
    async (_, call) => {
      const { clock, guarded, store, lines, asked } = setUp();
      let isGone = true;
      let answer = (_value: string): void => undefined;
      store.writes = HANG;
      store.get = (key) => {
        store.asked.push(`get ${key}`);
        if (key === 'slow') return new Promise((resolve) => (answer = resolve));
        return isGone && key === 'gone' ? HANG() : Promise.resolve('value');
      };
      void call(guarded, store);
      await clock.advance(200);
      const other = guarded.get('slow');
      await clock.advance(50);
      expect(guarded.works).toBe(false);
      answer('of another server');
      expect(await other).toBe('of another server');
      asked();
      await clock.advance(1_250);
      expect(asked()).toEqual(['get gone']);
      expect(lines).toEqual([expect.stringMatching(/^warn .*\(timeout\)/)]);
      isGone = false;
      await clock.advance(2_000);
      expect(asked()).toEqual(['get gone']);
      expect(guarded.works).toBe(true);
      expect(lines.slice(1)).toEqual(['log The token store works again.']);
    },
  );
});

describe('a store that opens', () => {
  it('is opened once, before the first call, and the call waits for it', async () => {
    let opened = (): void => undefined;
    const { guarded, atOnce, asked } = setUp((store) => {
      store.opens = () => new Promise((resolve) => (opened = resolve));
    });
    const first = guarded.get('a');
    const second = guarded.get('b');
    await settle();
    expect(asked()).toEqual(['open']);
    opened();
    expect(await atOnce(Promise.all([first, second]))).toEqual(['value', 'value']);
    expect(asked()).toEqual(['get a', 'get b']);
  });

  it('and does not come to an end of that is waited for a second, by all together', async () => {
    const { clock, guarded, atOnce, asked } = setUp((store) => (store.opens = HANG));
    guarded.open();
    await clock.advance(700);
    const first = guarded.get('a');
    await clock.advance(300);
    expect(await atOnce(first)).toBe(UNAVAILABLE);
    expect(asked()).toEqual(['open']);
    await clock.advance(1_000);
    expect(await atOnce(guarded.get('a'))).toBe('value');
  });

  it.each([
    ['until it has', 400, async () => undefined],
    ['for a second at most', 1_000, HANG],
  ])('is waited for at the end, %s closed', async (_name, ms, after) => {
    const { clock, store, guarded, atOnce } = setUp();
    store.closes = () => new Promise<void>((resolve) => clock.schedule(resolve, 400)).then(after);
    await guarded.get('a');
    const closed = guarded.close().then(() => 'closed');
    await clock.advance(ms - 1);
    expect(await atOnce(closed)).toBeUndefined();
    await clock.advance(1);
    expect(await atOnce(closed)).toBe('closed');
  });

  it('is closed only if it was opened', async () => {
    const { guarded, asked } = setUp();
    await guarded.close();
    expect(asked()).toEqual([]);
  });
});

describe('a store that is tried', () => {
  it('has one timer at most, and none after the end, whatever it answers then', async () => {
    let answer = (_error: Error): void => undefined;
    const { clock, store, guarded, asked } = setUp();
    store.reads = () => Promise.reject(new Error('down'));
    await Promise.all([guarded.get('a'), guarded.get('b')]);
    expect(clock.timers).toBe(1);
    asked();
    store.reads = () => new Promise((_, reject) => (answer = reject));
    await clock.advance(1_000);
    expect(asked()).toEqual(['get a']);
    await guarded.close();
    answer(new Error('still down'));
    await settle();
    expect([guarded.works, clock.timers]).toEqual([false, 0]);
  });
});

describe('the time for an answer', () => {
  it('does not count what our own event loop was blocked for', async () => {
    /** Fires what is due, and between two timers lets the answer in that arrived meanwhile. */
    const due: (() => void)[] = [];
    const schedule = (callback: () => void) => (due.push(callback), () => undefined);
    const clock: Clock = { ...systemClock, schedule };
    let answer = (_text: string): void => undefined;
    const store = new SetStore();
    store.reads = () => new Promise<string>((resolve) => (answer = resolve));
    const observer = new StoreObserver({ log: SILENT, clock });
    const waiting = new GuardedStore(store, clock, observer).get('a');
    await settle();
    // However late each of its timers is.
    for (let slice = 0; slice < 4; slice += 1) {
      due.shift()?.();
      await settle();
    }
    answer('there all along');
    await settle();
    due.shift()?.();
    expect(await waiting).toBe('there all along');
  });
});
