/**
 * Runs one at a time. Asked for while one runs, it runs once more after that, for all who asked in the meantime: the
 * one under way may have begun before what they know of.
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
