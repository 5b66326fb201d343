import { inspect } from 'node:util';
import { readFile, readlink, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ACCESS_DENIED, codedError, type ConfigurationFault } from '../errors/index.js';
import { type Clock, within, systemClock } from '../time/time.js';

/** A secret: its text, or the file that contains it. Line breaks at the end are removed. */
export type SecretValue = string | { file: string };

/** A secret: its text, the file that contains it, or a function that returns it (vault, KMS). */
export type SecretSource = SecretValue | (() => string | Promise<string>);

/** A PEM: its text (newlines may be escaped as `\n`), the base64 of its text, or the file that contains it. */
export type PemValue = string | { file: string };

/**
 * Milliseconds that a function may take to return a secret, for example from a vault. The limit is shorter than that of
 * a token request, so that the error blames the function and not the token endpoint.
 */
const SOURCE_MS = 8_000;

/** Whether a value names a file, as `{ file: path }`. */
export function isFile(value: unknown): value is { file: string } {
  return typeof value === 'object' && typeof (value as { file?: unknown } | null)?.file === 'string';
}

const HIDDEN = '[secret]';

/** Wraps a value that must not be printed: logs, JSON and util.inspect show `[secret]`. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Removes line breaks at the end, which editors, `echo` and command-line tools of vaults add. */
  static of(text: string): Secret {
    return new Secret(text.replace(/[\r\n]+$/, ''));
  }

  reveal(): string {
    return this.#value;
  }

  equals(other: Secret | undefined): boolean {
    return other !== undefined && other.#value === this.#value;
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }

  [inspect.custom](): string {
    return HIDDEN;
  }
}

/** Ample: a secret has some hundred bytes, a PEM file some thousand, and a file of all public root certificates 200,000. */
const MAX_BYTES = 1024 * 1024;

/**
 * Reads a file of at most 1 MiB. Refuses pipes, because reading a pipe may never end. A refusal is the `code` of the error, because
 * messages show that in parentheses, as they show the codes of the system.
 */
export async function readRegularFile(path: string): Promise<Buffer> {
  const found = await stat(path);
  if (!found.isFile()) throw codedError('', 'not a regular file');
  if (found.size > MAX_BYTES) throw codedError('', 'larger than 1 MiB');
  return readFile(path);
}

/** Explains why {@link readRegularFile} failed: "the file /run/secrets/x cannot be read (ENOENT)". */
async function whyUnreadable(path: string, folder: string, error: unknown): Promise<string> {
  const { code = 'unknown reason' } = error as NodeJS.ErrnoException;
  if (isInQuotes(path)) return `names a file that cannot be read (${code}); ${KEPT_QUOTES}.`;
  const whole = resolve(folder, path);
  return isPlainPath(path)
    ? `the file ${whole} cannot be read (${code}).${await describeAccess(whole, code)}`
    : `names a file that cannot be read (${code}). The path is not shown, because it may be the secret itself: to set the secret directly, use the variable without _FILE, or the text without { file } in code.`;
}

/**
 * For EACCES: says to whom a file belongs that this process may not read, and as whom the process runs. If the process may not enter a
 * folder on the way to the file, says it of the folder. For a file that Node's permission model hides: says what to do. Otherwise an
 * empty text.
 */
export async function describeAccess(path: string, code: string): Promise<string> {
  if (code === ACCESS_DENIED)
    return " Node's permission model does not let this process read it: start Node with --allow-fs-read for its folder.";
  const user = process.geteuid?.();
  // Windows has no users and modes of this kind.
  if (code !== 'EACCES' || user === undefined) return '';
  const target = await readlink(path).catch(() => undefined);
  if (target !== undefined) return describeAccess(resolve(dirname(path), target), code);
  let place = path;
  let found = await stat(place).catch(() => undefined);
  while (!found && place !== dirname(place)) {
    place = dirname(place);
    found = await stat(place).catch(() => undefined);
  }
  if (!found) return '';
  const mode = (found.mode & 0o7777).toString(8).padStart(4, '0');
  const groups = process.getgroups?.().join(', ');
  return ` ${place === path ? 'It' : place} belongs to user ${found.uid} and group ${found.gid}, and its mode is ${mode}. This process runs as user ${user}, in the groups ${groups}.`;
}

export const KEPT_QUOTES =
  'it is in quotes, which docker run --env-file and podman keep as part of the value: remove the quotes';

export function isInQuotes(value: unknown): boolean {
  return typeof value === 'string' && /^(["']).*\1$/.test(value);
}

/** Its message is safe to show: {@link whyUnreadable}. */
class UnreadableFile extends Error {}

/**
 * Reads a secret or a PEM.
 * @param folder the base of relative paths: the working directory at start-up, because the application may change it later
 * @throws UnreadableFile
 */
export async function readSecret(value: SecretValue, folder: string): Promise<Secret> {
  if (typeof value === 'string') return Secret.of(value);
  const bytes = await readRegularFile(resolve(folder, value.file)).catch(async (error: unknown) => {
    throw new UnreadableFile(await whyUnreadable(value.file, folder, error));
  });
  return Secret.of(decodeFile(bytes));
}

/** Returns a function that reads the secret again with each call, because a file or a vault may have a new secret. */
export function secretReader(source: SecretSource, folder: string): () => Promise<Secret> {
  return async () => (typeof source === 'function' ? Secret.of(await source()) : readSecret(source, folder));
}

/** The message for a function that returned no secret, and for a file that could not be read in time. */
export const UNAVAILABLE = `its function threw, returned no text, or took longer than ${SOURCE_MS / 1000} s, or its file took so long to read. The function's own error is left out, because it may quote the secret.`;

/**
 * Reads a secret within 8 s.
 * @throws UnreadableFile, or an error with the message {@link UNAVAILABLE}
 */
export async function readInTime(read: () => Promise<Secret>, clock: Clock): Promise<Secret> {
  const limit = { clock, timeoutMs: SOURCE_MS, expired: () => new Error() };
  return within(limit, read).catch((error: unknown) => {
    throw error instanceof UnreadableFile ? error : new Error(UNAVAILABLE);
  });
}

const UTF_16: Readonly<Record<string, string>> = { fffe: 'utf-16le', feff: 'utf-16be' };

/**
 * Decodes UTF-8, or UTF-16 with a byte order mark, which `>` of Windows PowerShell writes. The byte order mark is removed.
 */
export function decodeFile(bytes: Buffer): string {
  return new TextDecoder(UTF_16[bytes.toString('hex', 0, 2)]).decode(bytes);
}

/** Whether a text is surely a path: it begins at a root or has a common file extension. Any other text may be a secret. */
export function isPlainPath(path: string): boolean {
  if (path.length > 512 || !/^[\w.@~:/\\ -]+$/.test(path)) return false;
  const isRooted = /^([~/]|\.{1,2}[/\\]|[A-Za-z]:[/\\])/.test(path);
  return (
    /\.(pem|crt|cer|key|der|p12|pfx|txt|env|secret|token|json)$/i.test(path) ||
    (isRooted && /.[/\\]/.test(path))
  );
}

const PRINTABLE_ASCII = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;
const UNSENDABLE =
  'cannot be sent in a header: it begins or ends with a space, has a line break or another control character, or is not ASCII.';
const BROKEN =
  'begins with a line break or a tab, or ends with a tab, which would be used as part of the secret: remove it.';

/**
 * Reads and checks a secret at start-up. Of the functions, only that of the app token is called: the others are called when
 * their secret is first needed.
 */
export async function checkSecret(
  value: SecretSource | undefined,
  option: 'appToken' | 'oauth.clientSecret' | 'webhook.secret',
  folder: string,
): Promise<{ secret?: Secret; faults: ConfigurationFault[] }> {
  if (value === undefined || (typeof value === 'function' && option !== 'appToken')) return { faults: [] };
  const fault = (message: string) => ({ faults: [{ option, message }] });
  try {
    const secret = await readInTime(secretReader(value, folder), systemClock);
    const text = secret.reveal();
    if (text.trim() === '') {
      return fault(
        isFile(value) ? `the file ${value.file} is empty.` : 'its function returned an empty text.',
      );
    }
    if (option !== 'appToken' && /^[\r\n\t]|\t$/.test(text)) return fault(BROKEN);
    return option === 'appToken' && !PRINTABLE_ASCII.test(text) ? fault(UNSENDABLE) : { secret, faults: [] };
  } catch (error) {
    return fault((error as Error).message);
  }
}
