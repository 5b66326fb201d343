export class StoreTimeout extends Error {}

/** What begins an answer of Redis that refuses a command. Other words of an error could be anybody's, so none is logged. */
const REDIS_CODE =
  /^(OOM|READONLY|NOAUTH|WRONGPASS|NOPERM|LOADING|BUSY|MASTERDOWN|MISCONF|MOVED|CLUSTERDOWN|NOREPLICAS|TRYAGAIN|NOSCRIPT)\b/;
const SYSTEM_CODE = /^[A-Z][A-Z\d_]{2,40}$/;
const ERROR_CLASS = /^[A-Z]\w{2,40}Error$/;

/** Refusals of Redis that begin with `ERR`, as most do, and get a word here. */
const REDIS_REFUSALS: readonly [RegExp, string][] = [
  [/^ERR (invalid )?DB index/, 'WRONGDB'],
  [/^ERR AUTH /, 'WRONGPASS'],
];

/** Of words that do not say it themselves. */
export const MEANINGS: Partial<Record<string, string>> = {
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

/** One word that shows nothing of a user, a key or a value. */
export function reasonOf(error: unknown): string {
  if (error instanceof StoreTimeout) return 'timeout';
  try {
    const { code, message, constructor } = Object(error) as NodeJS.ErrnoException;
    const text = String(message);
    const refusal = REDIS_REFUSALS.find(([pattern]) => pattern.test(text));
    if (refusal) return refusal[1];
    const known = [SYSTEM_CODE.exec(String(code)), REDIS_CODE.exec(text), ERROR_CLASS.exec(constructor.name)];
    return known.find((found) => found !== null)?.[0] ?? 'error';
  } catch {
    // No error of any library: it cannot even be read.
    return 'error';
  }
}
