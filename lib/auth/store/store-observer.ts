import { type TokenIo } from '../access-token.js';
import { StoreTimeout } from './answer-within.js';

const QUIET_MS = 60_000;

/** What begins an answer of Redis that refuses a command. Other words of an error could be anybody's, so none is logged. */
const REDIS_CODE =
  /^(OOM|READONLY|NOAUTH|WRONGPASS|NOPERM|LOADING|BUSY|MASTERDOWN|MISCONF|MOVED|CLUSTERDOWN|NOREPLICAS|TRYAGAIN|NOSCRIPT)\b/;
const SYSTEM_CODE = /^[A-Z][A-Z\d_]{2,40}$/;
const ERROR_CLASS = /^[A-Z]\w{2,40}Error$/;

/** `reads`: nothing can be shared. `writes`: what others wrote can still be read. */
export type StoreUse = 'reads' | 'writes';

/** Counts what a shared store does, and logs its troubles: a warning a minute, and a line when they are over. */
export class StoreObserver {
  readonly #io: Pick<TokenIo, 'telemetry' | 'log' | 'clock'>;
  readonly #failing = new Set<StoreUse>();
  #warnedAt = -Infinity;
  #hasWarned = false;

  constructor(io: Pick<TokenIo, 'telemetry' | 'log' | 'clock'>) {
    this.#io = io;
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
    log.warn(`The token store does not work (${reason}): ${effect}.`);
  }

  worked(use: StoreUse): void {
    if (!this.#failing.delete(use) || this.#failing.size > 0 || !this.#hasWarned) return;
    this.#hasWarned = false;
    this.#io.log.log('The token store works again.');
  }
}

/** One word that shows nothing of an address, a key or a value. */
function reasonOf(error: unknown): string {
  if (error instanceof StoreTimeout) return 'timeout';
  try {
    const { code, message, constructor } = Object(error) as NodeJS.ErrnoException;
    const known = [
      SYSTEM_CODE.exec(String(code)),
      REDIS_CODE.exec(String(message)),
      ERROR_CLASS.exec(constructor.name),
    ];
    return known.find((found) => found !== null)?.[0] ?? 'error';
  } catch {
    // No error of any library: it cannot even be read.
    return 'error';
  }
}
