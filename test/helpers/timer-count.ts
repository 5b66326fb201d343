/** Counts the timers that are pending: set, and neither fired nor cleared. */
export class TimerCount {
  readonly #running = new Set<NodeJS.Timeout>();
  readonly #real = { setTimeout, clearTimeout, setInterval, clearInterval };

  constructor() {
    const { setTimeout, clearTimeout, setInterval, clearInterval } = this.#real;
    const running = this.#running;
    const set = (callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): NodeJS.Timeout => {
      const timer = setTimeout(() => {
        running.delete(timer);
        callback(...args);
      }, ms);
      running.add(timer);
      return timer;
    };
    const repeat = (...parts: Parameters<typeof setInterval>): NodeJS.Timeout => {
      const timer = setInterval(...parts);
      running.add(timer);
      return timer;
    };
    const clear = (timer: NodeJS.Timeout): void => {
      running.delete(timer);
      clearTimeout(timer);
      clearInterval(timer);
    };
    Object.assign(globalThis, {
      setTimeout: set,
      clearTimeout: clear,
      setInterval: repeat,
      clearInterval: clear,
    });
  }

  get running(): number {
    return this.#running.size;
  }

  restore(): void {
    Object.assign(globalThis, this.#real);
  }
}
