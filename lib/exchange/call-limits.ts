import { setMaxListeners } from 'node:events';
import { DAY_MS } from '../time/clock.js';
import { ServiceRequestError } from '../errors/index.js';

const MIN_PART_MS = 1_000;
/** Of an answer. A string cannot be as long as 512 MiB. */
export const MAX_RESPONSE_BYTES = 500 * 1024 * 1024;

/**
 * A call's own time limit; undefined without one (0, null, undefined).
 * @throws ServiceRequestError if it is not valid
 */
export function checkTimeout(timeout: unknown, option = 'timeout'): number | undefined {
  if (timeout === undefined || timeout === null || timeout === 0) return undefined;
  if (typeof timeout === 'number' && timeout > 0 && timeout <= DAY_MS) return timeout;
  throw ServiceRequestError.ofCode(option, `must be milliseconds from 1 to ${DAY_MS}`);
}

/** The part of the remaining time for an attempt that may be followed by another: half of it, but at least 1 s. */
export function partOf(leftMs: number): number {
  return Math.min(leftMs, Math.max(leftMs / 2, MIN_PART_MS));
}

/** A signal to listen to, and the function to call when that ends. */
export interface FollowedSignal {
  signal?: AbortSignal;
  release: () => void;
}

const NOT_RELEASED = (): void => undefined;

/**
 * Returns the caller's signal, or a signal of Node's own that follows it, if it is a polyfill or of another realm.
 * @throws ServiceRequestError if it is not an AbortSignal
 */
export function followSignal(given: AbortSignal | null | undefined): FollowedSignal {
  if (given === undefined || given === null) return { signal: undefined, release: NOT_RELEASED };
  if (!isAbortSignal(given)) throw ServiceRequestError.ofCode('signal', 'must be an AbortSignal');
  const isOfNode: boolean = given instanceof AbortSignal;
  if (isOfNode) {
    allowListeners(given);
    return { signal: given, release: NOT_RELEASED };
  }
  const controller = new AbortController();
  const abort = (): void => controller.abort(given.reason);
  given.addEventListener('abort', abort);
  if (given.aborted) abort();
  return { signal: controller.signal, release: () => given.removeEventListener('abort', abort) };
}

function isAbortSignal(given: unknown): boolean {
  const signal = Object(given) as Partial<AbortSignal>;
  const methods = [signal.addEventListener, signal.removeEventListener, signal.throwIfAborted];
  return typeof signal.aborted === 'boolean' && methods.every((method) => typeof method === 'function');
}

/**
 * Any number of calls may share one signal, and each listens to it as long as it runs. Without this, Node warns of a leak
 * from the eleventh on.
 */
export function allowListeners(signal: AbortSignal): void {
  setMaxListeners(0, signal);
}
