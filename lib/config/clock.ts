export const DAY_MS = 86_400_000;

/** Time as the module sees it; tests hand in their own. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** Milliseconds that never jump, from an arbitrary start. */
  monotonic(): number;
  /** A timer that does not hold the process; returns what cancels it. */
  schedule(callback: () => void, delayMs: number): () => void;
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A delay that setTimeout keeps: a longer one would fire at once. */
export function timerDelay(ms: number): number {
  return Math.min(Math.max(ms, 0), LONGEST_TIMER_MS);
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

/** Keeps the process running until released; returns the release. */
export function holdProcess(): () => void {
  const timer = setInterval(() => undefined, LONGEST_TIMER_MS);
  return () => clearInterval(timer);
}
