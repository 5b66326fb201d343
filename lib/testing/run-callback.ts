import { inspect } from 'node:util';

/** Runs a function of the test's in an event, where nobody could catch what it throws: that becomes a warning of the process. */
export function runCallback<Result>(name: string, callback: () => Result): Result | undefined {
  try {
    return callback();
  } catch (error) {
    process.emitWarning(`${name} of ServiceSimulator threw: ${inspect(error)}`);
    return undefined;
  }
}
