import { inspect } from 'node:util';

/**
 * Runs a callback of the test inside an event handler. Nobody could catch an error there, and it would end the process, so
 * it becomes a warning of the process.
 */
export function runCallback<Result>(name: string, callback: () => Result): Result | undefined {
  try {
    return callback();
  } catch (error) {
    process.emitWarning(`${name} of ServiceSimulator threw: ${inspect(error)}`);
    return undefined;
  }
}
