import { isPromise } from 'node:util/types';

/**
 * Calls a function of the application that only observes, such as a logger or a listener. Its errors and rejections are
 * ignored, so that they fail no call, token request or certificate rotation.
 */
export function harmless<T>(call: () => T): T | undefined {
  try {
    const result = call();
    // Nothing awaits this promise. Without a handler, its rejection would end the process.
    if (isPromise(result)) result.catch(() => undefined);
    return result;
  } catch {
    return undefined;
  }
}
