import { type TokenIo } from '../access-token.js';

const QUIET_MS = 60_000;

/** The store did not answer in time. */
export class StoreTimeout extends Error {}

/** How Redis begins the refusal of a command. The rest of an error's text may hold anything, so it is not logged. */
const REDIS_CODE =
  /^(OOM|READONLY|NOAUTH|WRONGPASS|NOPERM|LOADING|BUSY|MASTERDOWN|MISCONF|MOVED|CLUSTERDOWN|NOREPLICAS|TRYAGAIN|NOSCRIPT)\b/;
const SYSTEM_CODE = /^[A-Z][A-Z\d_]{2,40}$/;
const ERROR_CLASS = /^[A-Z]\w{2,40}Error$/;

/** Refusals of Redis that begin with `ERR`, as most do, and get a word here. */
const REDIS_REFUSALS: readonly [RegExp, string][] = [
  [/^ERR (invalid )?DB index/, 'WRONGDB'],
  [/^ERR AUTH /, 'WRONGPASS'],
];

/** For codes that do not explain themselves. */
const MEANINGS: Partial<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens at its address',
  ENOTFOUND: 'its host name is not known',
  EAI_AGAIN: 'its host name cannot be looked up now',
  NOAUTH: 'it asks for a password',
  WRONGPASS: 'it refuses the user or the password',
  NOPERM: 'its user may not run this command, or not for these keys',
  WRONGDB: 'it has no database of this number',
  OOM: 'its memory is full',
  READONLY: 'it is a replica, which takes no writes',
  MOVED: 'it is a node of a cluster, which needs a client of the application',
};

/** `reads`: nothing can be shared. `writes`: what others wrote can still be read. */
export type StoreUse = 'reads' | 'writes';

/** Logs the troubles of a shared store: a warning a minute, and a line when they are over. */
export class StoreObserver {
  readonly #io: Pick<TokenIo, 'log' | 'clock'>;
  readonly #name: string;
  readonly #failing = new Set<StoreUse>();
  #warnedAt = -Infinity;
  #hasWarned = false;

  /** @param address of the store, if it is known: for messages */
  constructor(io: Pick<TokenIo, 'log' | 'clock'>, address?: string) {
    this.#io = io;
    this.#name = address === undefined ? 'The token store' : `The token store at ${address}`;
  }

  failed(use: StoreUse, error: unknown): void {
    const { log, clock } = this.#io;
    this.#failing.add(use);
    if (clock.monotonic() - this.#warnedAt < QUIET_MS) return;
    this.#warnedAt = clock.monotonic();
    this.#hasWarned = true;
    const effect =
      use === 'reads'
        ? 'this process works with its own tokens until it answers'
        : 'it takes no new tokens; those that are in it are still used';
    const reason = reasonOf(error);
    const cause = [reason, MEANINGS[reason]].filter(Boolean).join(': ');
    log.warn(`${this.#name} does not work (${cause}): ${effect}.`);
  }

  worked(use: StoreUse): void {
    if (!this.#failing.delete(use) || this.#failing.size > 0 || !this.#hasWarned) return;
    this.#hasWarned = false;
    this.#io.log.log(`${this.#name} works again.`);
  }
}

/** One word that shows nothing of a user, a key or a value. */
function reasonOf(error: unknown): string {
  if (error instanceof StoreTimeout) return 'timeout';
  try {
    const { code, message, constructor } = Object(error) as NodeJS.ErrnoException;
    const text = String(message);
    const refusal = REDIS_REFUSALS.find(([pattern]) => pattern.test(text));
    if (refusal) return refusal[1];
    const known = [SYSTEM_CODE.exec(String(code)), REDIS_CODE.exec(text), ERROR_CLASS.exec(constructor.name)];
    return known.find((found) => found !== null)?.[0] ?? 'error';
  } catch {
    // It cannot even be read.
    return 'error';
  }
}
