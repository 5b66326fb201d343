import { describe, expect, it } from '@jest/globals';
import { pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import { GuardedStore } from '../../../../lib/auth/store/guarded-store.js';
import { type TokenStore } from '../../../../lib/config/token-cache.options.js';
import { SILENT } from '../../../../lib/exchange/io.js';
import { systemClock } from '../../../../lib/time/clock.js';
import { nextTurn } from '../../../../lib/time/immediate.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';

const HANG = (): Promise<never> => new Promise(() => undefined);

/** A store whose behaviour the test sets; it counts what it is asked. */
class SetStore implements TokenStore {
  asked: string[] = [];
  reads: () => Promise<string | undefined> = async () => 'value';
  writes: () => Promise<void> = async () => undefined;
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
  async lock(): Promise<(() => Promise<void>) | undefined> {
    this.asked.push('lock');
    await this.writes();
    return async () => void this.asked.push('unlock');
  }
}

function setUp(change: (store: SetStore) => void = () => undefined) {
  const clock = new FakeClock();
  const store = new SetStore();
  change(store);
  const lines: string[] = [];
  const note = (level: string) => (line: string) => void lines.push(`${level} ${line}`);
  const log = { ...SILENT, warn: note('warn'), log: note('log') };
  const guarded = new GuardedStore(store, { clock, log });
  const asked = () => store.asked.splice(0);
  return { clock, store, guarded, lines, asked };
}

describe('a store that does not answer', () => {
  it.each([
    ['250 ms', 250, undefined],
    ['the time that it names itself', 40, 40],
  ])('is waited for %s, and then left alone for 1 s', async (_name, ms, timeout) => {
    const { clock, guarded, asked, store } = setUp((made) => {
      made.timeout = timeout;
      made.reads = HANG;
    });
    let isOver = false;
    void guarded.get('a').then(() => (isOver = true));
    await clock.advance(ms - 1);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await settle();
    expect([isOver, guarded.works, asked()]).toEqual([true, false, ['get a']]);
    for (let times = 0; times < 3; times += 1) {
      await clock.advance(999);
      expect(await guarded.get('a')).toBeUndefined();
      expect(await guarded.lock('a', 1)).toBe('none');
      await guarded.set('a', 'b', 1);
      await guarded.delete('a', 'b');
      expect(asked()).toEqual([]);
      await clock.advance(1);
      void guarded.get('a');
      await clock.advance(ms);
      expect(asked()).toEqual(['get a']);
    }
    store.reads = async () => 'value';
    await clock.advance(1_000);
    expect([guarded.works, await guarded.get('a'), asked()]).toEqual([true, 'value', ['get a']]);
    expect(clock.timers).toBe(0);
  });

  it('is not meant if the process stood still: the answer has its time once more', async () => {
    const { store } = setUp();
    // A client may send its commands in the next turn of the event loop only.
    store.reads = async () => {
      await nextTurn();
      await nextTurn();
      await promisify(pbkdf2)('', '', 1, 8, 'sha256');
      return 'value';
    };
    store.timeout = 100;
    const guarded = new GuardedStore(store, { clock: systemClock, log: SILENT });
    const answer = guarded.get('a');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    expect(await answer).toBe('value');
    expect(guarded.works).toBe(true);
  });

  it('throws at once: the same', async () => {
    const { guarded } = setUp((made) => {
      made.reads = () => {
        throw new Error('not connected');
      };
    });
    expect([await guarded.get('a'), guarded.works]).toEqual([undefined, false]);
  });
});

/** As that of node-redis, which has no code. */
class ClientClosedError extends Error {}

it.each([
  ['OOM command not allowed when used memory > maxmemory', 'OOM'],
  ["READONLY You can't write against a read only replica.", 'READONLY'],
  [Object.assign(new Error('x'), { code: 'ETIMEDOUT' }), 'ETIMEDOUT'],
  ['anything else, with redis://user:password@host', 'error'],
  [new ClientClosedError('redis://user:password@host'), 'ClientClosedError'],
  [null, 'error'],
])(
  'one that refuses (%p) is named in one warning a minute, and again when it works',
  async (error, cause) => {
    const { clock, store, guarded, lines, asked } = setUp();
    store.writes = async () => {
      throw (typeof error === 'string' ? new Error(error) : error) as Error;
    };
    for (let call = 0; call < 11; call += 1) {
      await guarded.set('a', 'b', 1);
      await clock.advance(5_000);
    }
    expect(asked()).toHaveLength(11);
    expect(lines).toEqual([
      `warn The token store does not work (${cause}): this process works with its own tokens until it answers.`,
    ]);
    await clock.advance(5_000);
    await guarded.set('a', 'b', 1);
    expect(lines).toHaveLength(2);
    store.writes = async () => undefined;
    await clock.advance(5_000);
    await guarded.set('a', 'b', 1);
    await guarded.set('a', 'b', 1);
    expect(lines.slice(2)).toEqual(['log The token store works again.']);
  },
);

describe('a lock', () => {
  it('is given back by its holder, but not after its time: it may be that of another by then', async () => {
    const { clock, guarded, asked } = setUp();
    const [first, second] = [await guarded.lock('a', 100), await guarded.lock('b', 100)];
    if (typeof first !== 'function' || typeof second !== 'function') throw new Error('no lock');
    asked();
    await clock.advance(99);
    await first();
    expect(asked()).toEqual(['unlock']);
    await clock.advance(1);
    await second();
    await settle();
    expect(asked()).toEqual([]);
  });

  it('of a store that has none is none; one that another process has is taken', async () => {
    const { store, guarded } = setUp();
    store.lock = async () => undefined;
    expect(await guarded.lock('a', 100)).toBe('taken');
    Object.assign(store, { lock: undefined });
    expect([await guarded.lock('a', 100), guarded.works]).toEqual(['none', true]);
  });
});
