import { setMaxListeners } from 'node:events';
import { DAY_MS } from '../config/clock.js';
import { ServiceRequestError } from '../errors/index.js';

const MIN_PART_MS = 1_000;

/**
 * A call's own time limit; undefined for none (0, null, undefined).
 * @throws ServiceRequestError for what is no limit
 */
export function checkTimeout(timeout: unknown): number | undefined {
  if (timeout === undefined || timeout === null || timeout === 0) return undefined;
  if (typeof timeout === 'number' && timeout > 0 && timeout <= DAY_MS) return timeout;
  throw ServiceRequestError.of('timeout', `must be milliseconds from 1 to ${DAY_MS}`);
}

/** The part of the time left for an attempt that may be followed by another: half of it, but at least 1 s. */
export function partOf(leftMs: number): number {
  return Math.min(leftMs, Math.max(leftMs / 2, MIN_PART_MS));
}

/** Throws ServiceRequestError for what is no AbortSignal. */
export function checkSignal(signal: unknown): void {
  if (signal === undefined || signal === null || isAbortSignal(signal)) return;
  throw ServiceRequestError.of('signal', 'must be an AbortSignal');
}

function isAbortSignal(signal: unknown): boolean {
  try {
    const { aborted, addEventListener, removeEventListener, throwIfAborted } = Object(
      signal,
    ) as Partial<AbortSignal>;
    const methods = [addEventListener, removeEventListener, throwIfAborted];
    return typeof aborted === 'boolean' && methods.every((method) => typeof method === 'function');
  } catch {
    return false;
  }
}

/** A signal to listen to, and what is called when nobody listens any more. */
export interface FollowedSignal {
  signal?: AbortSignal;
  release: () => void;
}

const NOT_RELEASED = (): void => undefined;

/**
 * A caller's signal: itself, or one of Node's that follows it where it is of another realm or a polyfill. The methods of
 * such a one may throw, in the middle of a call.
 * @throws ServiceRequestError where it cannot be followed
 */
export function followSignal(given: AbortSignal | null | undefined): FollowedSignal {
  checkSignal(given);
  if (given === undefined || given === null) return { signal: undefined, release: NOT_RELEASED };
  if (given instanceof AbortSignal && Object.keys(given).length === 0)
    return { signal: given, release: NOT_RELEASED };
  const controller = new AbortController();
  const abort = (): void => controller.abort(reasonOf(given));
  try {
    given.addEventListener('abort', abort);
    if (given.aborted) abort();
  } catch {
    throw ServiceRequestError.of('signal', 'must be an AbortSignal; a method of this one throws');
  }
  const release = (): void => {
    try {
      given.removeEventListener('abort', abort);
    } catch {
      // It listens on, to no effect.
    }
  };
  return { signal: controller.signal, release };
}

/** The reason of a signal; undefined also where it cannot be read. */
export function reasonOf(signal: Partial<Pick<AbortSignal, 'reason'>> | null | undefined): unknown {
  try {
    return signal?.reason;
  } catch {
    return undefined;
  }
}

/**
 * One signal may be shared by any number of calls, each of which listens to it for as long as it runs; without this
 * Node warns of a leak from the eleventh on.
 */
export function allowListeners(signal: AbortSignal | undefined): void {
  if (signal instanceof EventTarget) setMaxListeners(0, signal);
}
