import { beforeEach, describe, expect, it } from '@jest/globals';
import { REREAD_MS, Rotating } from '../../../lib/config/rotating.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';

/** A reading of the source that the test ends. */
interface Reading {
  at: number;
  respond: (value: string) => void;
  fail: () => void;
}

let clock: FakeClock;
let readings: Reading[];
beforeEach(() => {
  clock = new FakeClock();
  readings = [];
});

function make(settings: { kind?: keyof typeof REREAD_MS; waitEveryMs?: number } = {}): Rotating<string> {
  const read = () =>
    new Promise<string>((resolve, reject) => {
      readings.push({ at: clock.monotonic(), respond: resolve, fail: () => reject(new Error('sealed')) });
    });
  const { kind = 'file', ...more } = settings;
  return new Rotating({ read, clock, rereadMs: REREAD_MS[kind], ...more });
}

/** A credential that was read `ageMs` ago as `old`. After 1 s, get() reads it again. */
async function readAs(old: string, ageMs: number, settings?: Parameters<typeof make>[0]) {
  const rotating = make(settings);
  const first = rotating.get();
  await respond(old);
  await first;
  await clock.advance(ageMs);
  return rotating;
}

/** Ends the latest reading. */
async function respond(value: string): Promise<void> {
  await settle();
  readings.at(-1)?.respond(value);
  await settle();
}

/** What a search has found; `searching` while it goes on. */
function resultOf(search: Promise<string | undefined> | undefined) {
  const result: { found?: string } = { found: 'searching' };
  void search?.then((found) => (result.found = found));
  return result;
}

describe('get()', () => {
  it('reads a value again that is older than 1 s, and shares the reading between its callers', async () => {
    const rotating = await readAs('old', 999);
    expect(await rotating.get()).toBe('old');
    await clock.advance(1);
    const both = [rotating.get(), rotating.get()];
    await respond('new');
    expect([await Promise.all(both), rotating.last, readings.length]).toEqual([['new', 'new'], 'new', 2]);
  });

  it('returns the last value while the source fails, and reads the source again with the next call', async () => {
    const rotating = await readAs('old', 1_500);
    for (const reading of [1, 2]) {
      const value = rotating.get();
      await settle();
      readings[reading].fail();
      expect(await value).toBe('old');
    }
    const value = rotating.get();
    await respond('new');
    expect(await value).toBe('new');
  });

  it('rejects with the error of the source if there is no last value', async () => {
    const value = make().get();
    await settle();
    readings[0].fail();
    await expect(value).rejects.toThrow('sealed');
  });

  it.each([
    ['file', 1_000],
    ['function', 10_000],
  ] as const)('reads a refused value from a %s again only %d ms after the last reading', async (kind, ms) => {
    const rotating = await readAs('old', 1_500, { kind });
    const other = rotating.findOther('old');
    await respond('old');
    expect(await other).toBeUndefined();
    await clock.advance(ms - 1);
    expect(await rotating.get()).toBe('old');
    expect(readings).toHaveLength(2);
    await clock.advance(1);
    const value = rotating.get();
    await respond('new');
    expect(await value).toBe('new');
  });
});

describe('findOther()', () => {
  it('reads once more even if the value was read again just before it was refused', async () => {
    const rotating = await readAs('old', 1_500);
    const again = rotating.get();
    await respond('old');
    await again;
    const other = rotating.findOther('old');
    await respond('new');
    expect(await other).toBe('new');
    expect(readings).toHaveLength(3);
  });

  it.each([0, 60_000])(
    'reads a function at once after the first refusal, however new its last result is (waitEveryMs: %d)',
    async (waitEveryMs) => {
      const rotating = await readAs('old', 0, { kind: 'function', waitEveryMs });
      rotating.accept('old');
      const other = rotating.findOther('old');
      await respond('new');
      expect(await other).toBe('new');
    },
  );

  it('reads once more, for all callers together, if a reading was in flight, because it may be older than the rotation', async () => {
    const rotating = await readAs('old', 1_500);
    void rotating.get();
    await clock.advance(100);
    const all = [1, 2, 3].map(() => rotating.findOther('old'));
    await respond('old');
    expect(readings).toHaveLength(3);
    await respond('new');
    expect(await Promise.all(all)).toEqual(['new', 'new', 'new']);
  });

  it('uses the reading in flight if it brings another value', async () => {
    const rotating = await readAs('old', 1_500);
    void rotating.get();
    const other = rotating.findOther('old');
    await respond('new');
    expect([await other, await rotating.findOther('old'), readings.length]).toEqual(['new', 'new', 2]);
  });

  it('does not read again at once if the reading in flight fails', async () => {
    const rotating = await readAs('old', 1_500);
    const inFlight = rotating.get();
    const other = rotating.findOther('old');
    await settle();
    readings[1].fail();
    expect([await inFlight, await other, readings.length]).toEqual(['old', undefined, 2]);
  });

  it('reads once for callers of the same refusal, and at most once a second for later ones, even if a reading fails', async () => {
    const rotating = await readAs('old', 100);
    const both = [rotating.findOther('old'), rotating.findOther('old')];
    await respond('old');
    expect([await Promise.all(both), readings.length]).toEqual([[undefined, undefined], 2]);
    await clock.advance(999);
    for (let caller = 0; caller < 100; caller += 1) await rotating.findOther('old');
    expect(readings).toHaveLength(2);
    await clock.advance(1);
    const failed = rotating.findOther('old');
    await settle();
    readings[2].fail();
    expect([await failed, await rotating.findOther('old'), readings.length]).toEqual([
      undefined,
      undefined,
      3,
    ]);
  });

  it('does not read at once if something else may be wrong (isSure: false), and begins no wait', async () => {
    const rotating = await readAs('old', 999);
    rotating.accept('old');
    expect(await rotating.findOther('old', { isSure: false })).toBeUndefined();
    expect([readings.length, rotating.search()]).toEqual([1, undefined]);
    await clock.advance(1);
    const other = rotating.findOther('old', { isSure: false });
    await respond('new');
    expect(await other).toBe('new');
  });

  it('reads a text once more at most', async () => {
    const rotating = await readAs('old', 1_500, { kind: 'text' });
    rotating.accept('old');
    const other = rotating.findOther('old');
    await respond('old');
    expect(await other).toBeUndefined();
    await clock.advance(100_000);
    expect([await rotating.findOther('old'), readings.length]).toEqual([undefined, 2]);
  });
});

it('readNext() makes a reading that begins after the call, and shares it with others that came during the reading before', async () => {
  const rotating = await readAs('old', 1_500);
  const before = rotating.get();
  const both = [rotating.readNext(), rotating.readNext()];
  await respond('old');
  expect([await before, readings.length]).toEqual(['old', 3]);
  await respond('new');
  expect(await Promise.all(both)).toEqual(['new', 'new']);
});

describe('A refused value that has worked', () => {
  /** It was refused just now, and the source still has it. */
  async function refused(settings?: Parameters<typeof make>[0]) {
    const rotating = await readAs('old', 0, settings);
    rotating.accept('old');
    const search = resultOf(rotating.findOther('old'));
    await respond('old');
    return { rotating, search };
  }

  it('is searched for 2 s, with a reading each second; new requests wait for the end of the search', async () => {
    const { rotating, search } = await refused();
    await clock.advance(500);
    const waiting = resultOf(rotating.search());
    await clock.advance(500);
    await respond('old');
    await clock.advance(1_000);
    expect([search, waiting, readings.length]).toEqual([{ found: 'searching' }, { found: 'searching' }, 4]);
    await respond('new');
    expect([search, waiting, rotating.search()]).toEqual([{ found: 'new' }, { found: 'new' }, undefined]);
  });

  it('is no longer searched after 2 s; later callers do not wait, until the value has worked again', async () => {
    const { rotating, search } = await refused();
    for (let second = 1; second <= 2; second += 1) {
      await clock.advance(1_000);
      await respond('old');
    }
    expect([search.found, rotating.search(), clock.timers]).toEqual([undefined, undefined, 0]);
    expect(await rotating.findOther('old')).toBeUndefined();
    rotating.accept('old');
    const again = resultOf(rotating.findOther('old'));
    await respond('old');
    expect(again.found).toBe('searching');
  });

  it('is read a last time at the end of the 2 s, if a slow reading has delayed the next one', async () => {
    const rotating = await readAs('old', 0);
    rotating.accept('old');
    const search = resultOf(rotating.findOther('old'));
    await clock.advance(1_500);
    await respond('old');
    await respond('old');
    await clock.advance(500);
    await respond('new');
    expect(search.found).toBe('new');
  });

  it('is searched no longer than its caller can wait', async () => {
    const { rotating } = await refused();
    const endsAt = clock.monotonic() + 900;
    expect(await rotating.findOther('old', { endsAt })).toBeUndefined();
    const aborted = rotating.findOther('old', { signal: AbortSignal.abort(new Error('mine')) });
    await expect(aborted).rejects.toThrow('mine');
  });

  it('is not waited for if it comes from a function, which is called once in 10 s', async () => {
    const { rotating, search } = await refused({ kind: 'function' });
    expect([search.found, await rotating.search(), readings.length]).toEqual([undefined, undefined, 2]);
  });

  it('no longer holds up new requests after the server has accepted it again', async () => {
    const { rotating } = await refused();
    rotating.accept('old');
    expect(rotating.search()).toBeUndefined();
  });

  it('holds up requests to the server that refused it, and not to another one', async () => {
    const rotating = await readAs('old', 0);
    for (const server of ['api', 'token']) rotating.accept('old', server);
    void rotating.findOther('old', { server: 'api' });
    expect([rotating.search('api'), rotating.search('token')]).toEqual([expect.any(Promise), undefined]);
    await respond('new');
  });

  it('is searched again within `waitEveryMs` only without waiting, so that one server of several does not hold up all requests', async () => {
    const { rotating } = await refused({ waitEveryMs: 60_000 });
    await clock.advance(1_000);
    await respond('old');
    await clock.advance(1_000);
    await respond('old');
    await clock.advance(58_000);
    rotating.accept('old');
    const early = resultOf(rotating.findOther('old'));
    await respond('old');
    expect(early.found).toBeUndefined();
    rotating.accept('old');
    await clock.advance(1);
    const later = resultOf(rotating.findOther('old'));
    await respond('old');
    expect(later.found).toBe('searching');
  });

  describe('with `waitEveryMs` and a function that is slow', () => {
    const settings = { kind: 'function', waitEveryMs: 60_000 } as const;

    it.each([true, false])('is waited for until 2 s after the refusal (isSure: %s)', async (isSure) => {
      const rotating = await readAs('old', 20_000, settings);
      rotating.accept('old');
      const first = resultOf(rotating.findOther('old', { isSure }));
      await clock.advance(1_500);
      const second = resultOf(rotating.findOther('old', { isSure }));
      await clock.advance(499);
      expect([first, second]).toEqual([{ found: 'searching' }, { found: 'searching' }]);
      await clock.advance(1);
      expect([first, second, rotating.search()]).toEqual([{}, {}, undefined]);
    });

    it('is not waited for again within a minute; it runs once at a time, and what it returns is used', async () => {
      const rotating = await readAs('old', 20_000, settings);
      rotating.accept('old');
      void rotating.findOther('old');
      await clock.advance(2_000);
      for (let second = 3; second <= 61; second += 1) {
        await clock.advance(1_000);
        rotating.accept('old');
        expect(await rotating.findOther('old')).toBeUndefined();
        if (second % 8 === 0) readings.at(-1)?.respond('old');
      }
      const pauses = readings.slice(2).map(({ at }, index) => at - readings[index + 1].at);
      expect(pauses).toEqual(Array.from({ length: 6 }, () => 10_000));
      await clock.advance(2_000);
      rotating.accept('old');
      const again = resultOf(rotating.findOther('old'));
      await settle();
      expect(again.found).toBe('searching');
      await clock.advance(5_000);
      await respond('new');
      expect([again.found, rotating.last, await rotating.findOther('old')]).toEqual([
        undefined,
        'new',
        'new',
      ]);
    });
  });
});
