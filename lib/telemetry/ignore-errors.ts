import { isPromise } from 'node:util/types';

/**
 * Calls a function, and returns undefined if it throws. For functions of the application that only observe, such as a logger or a
 * listener: their errors and rejections must fail no call, token request or certificate rotation. Also for checks whose error is
 * thrown later, in another place.
 */
export function ignoreErrors<T>(call: () => T): T | undefined {
  try {
    const result = call();
    // Nothing awaits this promise. Without a handler, its rejection would end the process.
    if (isPromise(result)) result.catch(() => undefined);
    return result;
  } catch {
    return undefined;
  }
}
