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
