/** So many requests at a time; the others wait for their place, first come first served. */
export class RequestLane {
  #free: number;
  readonly #queue = new Set<() => void>();

  constructor(places: number) {
    this.#free = places;
  }

  /** Whether a request that comes now would have to wait. */
  get isFull(): boolean {
    return this.#free <= 0;
  }

  /**
   * Resolves to the function that gives the place back, to be called once. Rejects with the signal's reason when that
   * comes first.
   */
  enter(signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        signal.removeEventListener('abort', onAbort);
        this.#free -= 1;
        resolve(() => this.#leave());
      };
      const onAbort = (): void => {
        this.#queue.delete(begin);
        reject(signal.reason as Error);
      };
      if (!this.isFull) return begin();
      this.#queue.add(begin);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  #leave(): void {
    this.#free += 1;
    const [next] = this.#queue;
    if (next === undefined) return;
    this.#queue.delete(next);
    next();
  }
}
