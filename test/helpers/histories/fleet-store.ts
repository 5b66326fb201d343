import { type TokenStore } from 'nestjs-service';
import { setImmediate as turn } from 'node:timers/promises';

export type StoreMode = 'store works' | 'store fails' | 'store hangs' | 'store is slow';

/** The store through which the replicas of a fleet share their tokens, and the faults that it can have. */
export class FleetStore implements TokenStore {
  readonly timeout = 100;
  mode: StoreMode = 'store works';
  readonly #entries = new Map<string, { value: string; until: number }>();
  readonly #locks = new Map<string, number>();

  async get(key: string): Promise<string | undefined> {
    await this.#trouble();
    const entry = this.#entries.get(key);
    return entry && entry.until > performance.now() ? entry.value : undefined;
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#trouble();
    this.#entries.set(key, { value, until: performance.now() + ttlMs });
  }

  async delete(key: string, ifValue?: string): Promise<void> {
    await this.#trouble();
    if (ifValue === undefined || this.#entries.get(key)?.value === ifValue) this.#entries.delete(key);
  }

  async lock(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined> {
    await this.#trouble();
    if ((this.#locks.get(key) ?? 0) > performance.now()) return undefined;
    const until = performance.now() + ttlMs;
    this.#locks.set(key, until);
    return async () => {
      await this.#trouble();
      if (this.#locks.get(key) === until) this.#locks.delete(key);
    };
  }

  flush(): void {
    this.#entries.clear();
    this.#locks.clear();
  }

  /** Ends all locks at once, as if their TTL had passed. An error of the endpoint is shared only while its lock is held. */
  endLocks(): void {
    this.#locks.clear();
  }

  /** Exchanges the values of the entries, so that each entry has the value of another one. */
  mixUp(): void {
    const values = [...this.#entries.values()];
    [...this.#entries.keys()].forEach((key, index) => this.#entries.set(key, values.at(index - 1)!));
  }

  /** Everything in the store, as text. */
  get contents(): string {
    return JSON.stringify([...this.#entries, ...this.#locks]);
  }

  async #trouble(): Promise<void> {
    await turn();
    if (this.mode === 'store fails') throw new Error('the store is down');
    if (this.mode === 'store hangs') await new Promise(() => undefined);
    if (this.mode === 'store is slow') for (let left = 20; left > 0; left -= 1) await turn();
  }
}
