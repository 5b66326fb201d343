import { isPromise } from 'node:util/types';

/**
 * Calls code of the host that only watches: a logger, OpenTelemetry. What it throws or rejects with is dropped, as there
 * is nobody left to tell it to; a call, a rotation or a token is worth more. Undefined where it threw.
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
