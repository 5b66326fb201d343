import { setMaxListeners } from 'node:events';
import { DAY_MS } from '../time/clock.js';
import { ServiceRequestError } from '../errors/index.js';

/** Of an answer. A string cannot be as long as 512 MiB. */
export const MAX_RESPONSE_BYTES = 500 * 1024 * 1024;

/**
 * A call's own time limit; undefined without one (0, null, undefined).
 * @throws ServiceRequestError if it is not valid
 */
export function checkTimeout(timeout: unknown, option = 'timeout'): number | undefined {
  if (timeout === undefined || timeout === null || timeout === 0) return undefined;
  if (typeof timeout === 'number' && timeout > 0 && timeout <= DAY_MS) return timeout;
  throw ServiceRequestError.ofMisuse(
    option,
    `must be milliseconds from 1 to ${DAY_MS}${hintIfString(timeout)}`,
  );
}

/** The end of a message about a number that was given as text: the value of a variable is a string. */
export function hintIfString(given: unknown): string {
  return typeof given === 'string' && /^\d+$/.test(given) ? '; it is a string: use Number()' : '';
}

/** A caller's signal. Throws ServiceRequestError if it is none. */
export function checkSignal(given: unknown): AbortSignal | undefined {
  if (given === undefined || given === null) return undefined;
  if (!(given instanceof AbortSignal)) throw ServiceRequestError.ofMisuse('signal', 'must be an AbortSignal');
  allowManyListeners(given);
  return given;
}

/**
 * Any number of calls may share one signal, and each listens to it as long as it runs. Without this, Node warns of a leak
 * from the eleventh on.
 */
export function allowManyListeners(signal: AbortSignal): void {
  setMaxListeners(0, signal);
}
