import { type TokenIo } from '../access-token.js';
import { MEANINGS, reasonOf } from './store-fault.js';

const QUIET_MS = 60_000;

/** `reads`: nothing can be shared. `writes`: what others wrote can still be read. */
export type StoreUse = 'reads' | 'writes';

/** Counts what a shared store does, and logs its troubles: a warning a minute, and a line when they are over. */
export class StoreObserver {
  readonly #io: Pick<TokenIo, 'telemetry' | 'log' | 'clock'>;
  readonly #name: string;
  readonly #failing = new Set<StoreUse>();
  #warnedAt = -Infinity;
  #hasWarned = false;

  /** @param address of the store, if it is known: for messages */
  constructor(io: Pick<TokenIo, 'telemetry' | 'log' | 'clock'>, address?: string) {
    this.#io = io;
    this.#name = address === undefined ? 'The token store' : `The token store at ${address}`;
  }

  count(what: 'storeHits' | 'storeMisses' | 'storeLockWaits'): void {
    const { telemetry } = this.#io;
    telemetry[what].add(1, telemetry.attributes);
  }

  failed(use: StoreUse, error: unknown): void {
    const { telemetry, log, clock } = this.#io;
    const reason = reasonOf(error);
    telemetry.storeFaults.add(1, { ...telemetry.attributes, 'error.type': reason });
    this.#failing.add(use);
    if (clock.monotonic() - this.#warnedAt < QUIET_MS) return;
    this.#warnedAt = clock.monotonic();
    this.#hasWarned = true;
    const effect =
      use === 'reads'
        ? 'this process works with its own tokens until it answers'
        : 'it takes no new tokens; those that are in it are still used';
    const cause = [reason, MEANINGS[reason]].filter(Boolean).join(': ');
    log.warn(`${this.#name} does not work (${cause}): ${effect}.`);
  }

  worked(use: StoreUse): void {
    if (!this.#failing.delete(use) || this.#failing.size > 0 || !this.#hasWarned) return;
    this.#hasWarned = false;
    this.#io.log.log(`${this.#name} works again.`);
  }
}
