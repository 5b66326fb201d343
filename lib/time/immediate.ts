import * as timers from 'node:timers';

/**
 * Node's own, taken when this file is loaded: fake timers of a host's tests, which may replace those of `node:timers` too,
 * would hold calls and their time limits back.
 */
export const { setImmediate, clearImmediate } = timers;

/** The next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A turn that takes longer than this has held the process up. */
const LONG_MS = 10;
const MAX_TURNS = 10;

/**
 * Resolves when the event loop has read what had arrived by now: with the second turn, as the first comes before the next
 * reading if the caller runs in a callback of I/O, or later, after one in which nothing held the process up. At the latest
 * after ten.
 */
export async function untilRead(): Promise<void> {
  let begun = performance.now();
  for (let turn = 1; turn <= MAX_TURNS; turn += 1) {
    await nextTurn();
    const now = performance.now();
    if (turn > 1 && now - begun < LONG_MS) return;
    begun = now;
  }
}
