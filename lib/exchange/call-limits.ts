import { setMaxListeners } from 'node:events';
import { DAY_MS } from '../config/clock.js';
import { ServiceRequestError } from '../errors/index.js';

/**
 * A call's own time limit; undefined for none (0, null, undefined).
 * @param property what the caller named it
 * @throws ServiceRequestError for what is no limit
 */
export function checkTimeout(timeout: unknown, property = 'timeout'): number | undefined {
  if (timeout === undefined || timeout === null || timeout === 0) return undefined;
  if (typeof timeout === 'number' && timeout > 0 && timeout <= DAY_MS) return timeout;
  throw ServiceRequestError.of(property, `must be milliseconds from 1 to ${DAY_MS}`);
}

/** Throws ServiceRequestError for what is no AbortSignal. */
export function checkSignal(signal: unknown): void {
  if (signal === undefined || signal === null) return;
  const { aborted, addEventListener, removeEventListener, throwIfAborted } = Object(
    signal,
  ) as Partial<AbortSignal>;
  const methods = [addEventListener, removeEventListener, throwIfAborted];
  if (typeof aborted === 'boolean' && methods.every((method) => typeof method === 'function')) return;
  throw ServiceRequestError.of('signal', 'must be an AbortSignal');
}

/**
 * One signal may be shared by any number of calls, each of which listens to it for as long as it runs; without this
 * Node warns of a leak from the eleventh on.
 */
export function allowListeners(signal: AbortSignal | undefined): void {
  if (signal instanceof EventTarget) setMaxListeners(0, signal);
}
