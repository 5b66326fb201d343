import { setMaxListeners } from 'node:events';
import { DAY_MS } from '../time/clock.js';
import { ServiceRequestError } from '../errors/index.js';

/** The maximum size of a response's body in bytes. A string in Node cannot have 512 MiB. */
export const MAX_RESPONSE_BYTES = 500 * 1024 * 1024;

/**
 * Checks the `timeout` option of a call.
 * @returns milliseconds; undefined for no limit (0, null or undefined)
 * @throws ServiceRequestError if the value is not valid
 */
export function checkTimeout(timeout: unknown, option = 'timeout'): number | undefined {
  if (timeout === undefined || timeout === null || timeout === 0) return undefined;
  if (typeof timeout === 'number' && timeout > 0 && timeout <= DAY_MS) return timeout;
  throw ServiceRequestError.ofMisuse(
    option,
    `must be milliseconds from 1 to ${DAY_MS}${hintIfString(timeout)}`,
  );
}

/** The end of an error message about a number that was given as a string, as the values of environment variables are. */
export function hintIfString(given: unknown): string {
  return typeof given === 'string' && /^\d+$/.test(given) ? '; it is a string: use Number()' : '';
}

/**
 * Checks the `signal` option of a call.
 * @throws ServiceRequestError if the value is not an AbortSignal
 */
export function checkSignal(given: unknown): AbortSignal | undefined {
  if (given === undefined || given === null) return undefined;
  if (!(given instanceof AbortSignal)) throw ServiceRequestError.ofMisuse('signal', 'must be an AbortSignal');
  allowManyListeners(given);
  return given;
}

/**
 * Lets any number of calls in flight listen to one signal. Otherwise Node warns of a memory leak (MaxListenersExceededWarning) at the
 * eleventh.
 */
export function allowManyListeners(signal: AbortSignal): void {
  setMaxListeners(0, signal);
}
