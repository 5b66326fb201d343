import { isPromise } from 'node:util/types';

/**
 * Calls code of the host that only watches: a logger, a listener. Its errors and rejections are dropped: a call, a rotation
 * or a token is worth more.
 */
export function harmless<T>(call: () => T): T | undefined {
  try {
    const result = call();
    // Nobody waits for it: its rejection would end the process.
    if (isPromise(result)) result.catch(() => undefined);
    return result;
  } catch {
    return undefined;
  }
}
