import { type Clock } from '../../time/clock.js';

const SLICE_MS = 50;

export class StoreTimeout extends Error {}

/**
 * The answer of a store, or StoreTimeout. The time passes in slices of 50 ms, so that a pause of our own event loop
 * counts as one of them: an answer that arrived meanwhile is read between two slices.
 */
export function answerWithin<T>(clock: Clock, timeoutMs: number, work: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let cancel: () => void = () => undefined;
    const wait = (leftMs: number): void => {
      const sliceMs = Math.min(SLICE_MS, leftMs);
      const next = (): void => {
        if (sliceMs === 0) reject(new StoreTimeout(`There was no answer within ${timeoutMs} ms`));
        else wait(leftMs - sliceMs);
      };
      cancel = clock.schedule(next, sliceMs);
    };
    wait(timeoutMs);
    // An async function, so that a synchronous throw becomes a rejection too.
    (async () => work())()
      .then(resolve, reject)
      .finally(() => cancel());
  });
}
