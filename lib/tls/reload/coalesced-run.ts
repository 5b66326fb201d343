/**
 * Runs a function, one run at a time. All requests made during a run share one more run after it: the current run may
 * have begun before the event that they are about.
 */
export class CoalescedRun {
  readonly #run: () => Promise<void>;
  #current?: Promise<void>;
  #next?: Promise<void>;

  /** @param run must not reject */
  constructor(run: () => Promise<void>) {
    this.#run = run;
  }

  /** Resolves after a run that began after this call. */
  request(): Promise<void> {
    if (!this.#current) {
      this.#current = this.#run().finally(() => (this.#current = undefined));
      return this.#current;
    }
    this.#next ??= this.#current.then(() => {
      this.#next = undefined;
      return this.request();
    });
    return this.#next;
  }
}
