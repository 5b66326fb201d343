import * as timers from 'node:timers';

/**
 * Node's own functions, read when this file is loaded. Fake timers in an application's tests may replace the globals
 * and those of `node:timers` later. Calls and their time limits would then hang.
 */
export const { setImmediate, clearImmediate } = timers;

/** Waits one turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export const DAY_MS = 86_400_000;

/** Formats a date like "2030-01-31T12:00:00Z". */
export function formatDate(value: Date | string | number): string {
  return new Date(value).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The clock and timers of a client. Tests pass a fake. */
export interface Clock {
  /** Milliseconds since the epoch, by the wall clock. */
  now(): number;
  /** Milliseconds since an arbitrary moment. Setting the wall clock does not change it. */
  monotonic(): number;
  /**
   * Sets a timer that keeps the process running, because a caller waits for it. Returns a function that cancels the
   * timer.
   */
  schedule(callback: () => void, delayMs: number): () => void;
  /** Sets a timer that does not keep the process running. Returns a function that cancels the timer. */
  watch(callback: () => void, delayMs: number): () => void;
}

/** A moment, on both clocks. */
export interface Moment {
  wall: number;
  monotonic: number;
}

/** The current moment, or the moment `agoMs` milliseconds ago. */
export function momentOf(clock: Clock, agoMs = 0): Moment {
  return { wall: clock.now() - agoMs, monotonic: clock.monotonic() - agoMs };
}

/**
 * Milliseconds since a moment, by the clock on which more time has passed. The wall clock may have been set back since
 * then, and the monotonic clock does not run while a virtual machine is suspended.
 */
export function elapsedMs(clock: Clock, since: Moment): number {
  return Math.max(clock.now() - since.wall, clock.monotonic() - since.monotonic);
}

const MAX_TIMER_MS = 2 ** 31 - 1;

/** Limits a delay to what setTimeout accepts. With a longer delay, setTimeout would fire at once. */
export function timerDelay(ms: number): number {
  return Math.min(Math.max(ms, 0), MAX_TIMER_MS);
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule: (callback, delayMs) => {
    let immediate: NodeJS.Immediate | undefined;
    // If the event loop was blocked, Node fires overdue timers before it reads data that has already arrived. Waiting for
    // setImmediate() lets it read that data first, so that a response which arrived in time does not count as a time-out.
    const timer = setTimeout(() => (immediate = setImmediate(callback)), timerDelay(delayMs));
    return () => {
      clearTimeout(timer);
      clearImmediate(immediate);
    };
  },
  watch: (callback, delayMs) => {
    const timer = setTimeout(callback, timerDelay(delayMs)).unref();
    return () => clearTimeout(timer);
  },
};

/**
 * A clock whose timers never keep the process running: for background work, and for work whose callers have timers of
 * their own.
 */
export function watching(clock: Clock): Clock {
  const watch: Clock['watch'] = (callback, delayMs) => clock.watch(callback, delayMs);
  return { now: () => clock.now(), monotonic: () => clock.monotonic(), schedule: watch, watch };
}
