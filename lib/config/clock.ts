export const DAY_MS = 86_400_000;

/** The time that the module uses. Tests pass their own. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some fixed moment. Not changed when the wall clock is set. */
  monotonic(): number;
  /** A timer that does not keep the process running. Returns a function that cancels it. */
  schedule(callback: () => void, delayMs: number): () => void;
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
    const timer = setTimeout(callback, timerDelay(delayMs));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Keeps the process running. Returns a function that ends this. */
export function keepProcessRunning(): () => void {
  const timer = setInterval(() => undefined, MAX_TIMER_MS);
  return () => clearInterval(timer);
}
