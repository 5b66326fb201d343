import { clearImmediate, setImmediate } from './immediate.js';

export const DAY_MS = 86_400_000;

/** "2030-01-31T12:00:00Z". */
export function formatDate(value: Date | string | number): string {
  return new Date(value).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The time that the module uses. Tests pass their own. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some fixed moment. Not changed when the wall clock is set. */
  monotonic(): number;
  /** A timer that somebody waits for: it keeps the process running. Returns a function that cancels it. */
  schedule(callback: () => void, delayMs: number): () => void;
  /** The same, but it does not keep the process running. */
  watch(callback: () => void, delayMs: number): () => void;
}

/** A moment, by both clocks. */
export interface Moment {
  wall: number;
  monotonic: number;
}

/** The moment so many milliseconds ago. */
export function momentOf(clock: Clock, agoMs = 0): Moment {
  return { wall: clock.now() - agoMs, monotonic: clock.monotonic() - agoMs };
}

/**
 * Milliseconds since then, by the clock that says more. The wall clock may have been set back meanwhile, and the monotonic
 * clock stands still while a virtual machine is suspended.
 */
export function elapsedMs(clock: Clock, since: Moment): number {
  return Math.max(clock.now() - since.wall, clock.monotonic() - since.monotonic);
}

const MAX_TIMER_MS = 2 ** 31 - 1;

/** A delay that setTimeout accepts. With a longer one it would call back at once. */
export function timerDelay(ms: number): number {
  return Math.min(Math.max(ms, 0), MAX_TIMER_MS);
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule: (callback, delayMs) => {
    let afterReading: NodeJS.Immediate | undefined;
    // After a standstill of the process, timers would come before data that has arrived: read that first.
    const timer = setTimeout(() => (afterReading = setImmediate(callback)), timerDelay(delayMs));
    return () => {
      clearTimeout(timer);
      clearImmediate(afterReading);
    };
  },
  watch: (callback, delayMs) => {
    const timer = setTimeout(callback, timerDelay(delayMs)).unref();
    return () => clearTimeout(timer);
  },
};

/** The same clock for work that nobody waits for, or whose callers have timers of their own. */
export function watching(clock: Clock): Clock {
  const watch: Clock['watch'] = (callback, delayMs) => clock.watch(callback, delayMs);
  return { now: () => clock.now(), monotonic: () => clock.monotonic(), schedule: watch, watch };
}
