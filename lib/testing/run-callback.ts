import { inspect, types } from 'node:util';

/**
 * Runs a function of the test's in an event, where nobody could catch what it throws: that becomes a warning of the
 * process, and the simulator goes on.
 */
export function runCallback<Result>(name: string, callback: () => Result): Result | undefined {
  const warn = (error: unknown): void => {
    process.emitWarning(`${name} of ServiceSimulator threw: ${inspect(error)}`);
  };
  try {
    const result = callback();
    // One that is async rejects later.
    if (types.isPromise(result)) result.catch(warn);
    return result;
  } catch (error) {
    warn(error);
    return undefined;
  }
}
