import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { codedError } from '../errors/error-codes.js';
import { Secret, type SecretSource, type SecretValue } from './secret.js';

/** A secret has some hundred bytes, a PEM file some thousand, a file of all public root certificates about 200,000. */
const MAX_BYTES = 1024 * 1024;

/** Reads a file of at most 1 MiB. Throws the system's error, or one for a pipe, whose reading may never end. */
export async function readRegularFile(path: string): Promise<Buffer> {
  const found = await stat(path);
  if (!found.isFile()) throw codedError('', 'not a regular file');
  if (found.size > MAX_BYTES) throw codedError('', 'larger than 1 MiB');
  return readFile(path);
}

/** Why {@link readRegularFile} failed: "the file /run/secrets/x cannot be read (ENOENT)". */
function whyUnreadable(path: string, folder: string, error: unknown): string {
  const { code = 'unknown reason' } = error as NodeJS.ErrnoException;
  if (isInQuotes(path)) return `names a file that cannot be read (${code}); ${KEPT_QUOTES}.`;
  return isPlainPath(path)
    ? `the file ${resolve(folder, path)} cannot be read (${code}).`
    : `names a file that cannot be read (${code}). Its path is not shown, as it may be the secret itself: to give the value, leave out _FILE, or { file } in code.`;
}

export const KEPT_QUOTES =
  'it is in quotes, which docker run --env-file and podman keep as a part of the value: remove them';

export function isInQuotes(value: unknown): boolean {
  return typeof value === 'string' && /^(["']).*\1$/.test(value);
}

/** Its message may be shown: {@link whyUnreadable}. */
export class UnreadableFile extends Error {}

/**
 * Reads a secret or a PEM.
 * @param folder where relative paths begin: the working directory at the start, which the application may change later
 * @throws UnreadableFile
 */
export async function readSecret(value: SecretValue, folder: string): Promise<Secret> {
  if (typeof value === 'string') return Secret.of(value);
  const bytes = await readRegularFile(resolve(folder, value.file)).catch((error: unknown) => {
    throw new UnreadableFile(whyUnreadable(value.file, folder, error));
  });
  return Secret.of(decodeText(bytes));
}

/** Reads the secret again at each call, because a file or a vault may have a new one. */
export function secretReader(source: SecretSource, folder: string): () => Promise<Secret> {
  return async () => (typeof source === 'function' ? Secret.of(await source()) : readSecret(source, folder));
}

const UTF_16: Readonly<Record<string, string>> = { fffe: 'utf-16le', feff: 'utf-16be' };

/** Text in UTF-8, or in UTF-16 with a byte order mark, as `>` of Windows PowerShell writes it. Without the mark. */
export function decodeText(bytes: Buffer): string {
  return new TextDecoder(UTF_16[bytes.toString('hex', 0, 2)]).decode(bytes);
}

/** True for a path that begins at a root or has a usual file extension. Any other may be a secret, and is not shown. */
export function isPlainPath(path: string): boolean {
  if (path.length > 512 || !/^[\w.@~:/\\ -]+$/.test(path)) return false;
  const isRooted = /^([~/]|\.{1,2}[/\\]|[A-Za-z]:[/\\])/.test(path);
  return (
    /\.(pem|crt|cer|key|der|p12|pfx|txt|env|secret|token|json)$/i.test(path) ||
    (isRooted && /.[/\\]/.test(path))
  );
}
