import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { isAbsolute, resolve } from 'node:path';
import { codedError } from '../errors/coded-error.js';
import { Secret, type SecretValue } from './secret.js';

/** A secret has some hundred bytes, a PEM file some thousand, a file of all public root certificates about 200,000. */
const MAX_BYTES = 1024 * 1024;

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist (ENOENT). Check the path, and that the file is mounted into this process.',
  EACCES: 'cannot be read (EACCES). Give the user this process runs as the right to read it.',
  EPERM: 'cannot be read (EPERM). Give the user this process runs as the right to read it.',
  EISDIR: 'is a directory. Name the file inside it.',
  ENOTDIR: 'does not exist (ENOTDIR): a part of its path is a file, not a directory.',
  ELOOP: 'cannot be read (ELOOP): its symbolic links form a loop.',
  ERR_NOT_A_FILE: 'is a pipe or a device. Name a regular file.',
  ERR_FILE_TOO_LARGE: 'is larger than 1 MiB, so it is no secret and no certificate. Check the path.',
};

/** Reads a file of at most 1 MiB. Throws the system's error, or one for a pipe, whose reading may never end. */
export async function readRegularFile(path: string): Promise<Buffer> {
  const found = await stat(path);
  if (found.isDirectory()) throw codedError('a directory', 'EISDIR');
  if (!found.isFile()) throw codedError('no regular file', 'ERR_NOT_A_FILE');
  const chunks: Buffer[] = [];
  for await (const chunk of createReadStream(path, { end: MAX_BYTES })) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  if (bytes.length > MAX_BYTES) throw codedError('too large', 'ERR_FILE_TOO_LARGE');
  return bytes;
}

/** Why {@link readRegularFile} failed, and what to do: "the file /run/secrets/x does not exist (ENOENT). ...". */
export function whyUnreadable(path: string, error: unknown): string {
  if (!isPlainPath(path)) {
    return (
      `names a file that does not exist (working directory: ${process.cwd()}). The path is not shown, because it may be ` +
      'the secret itself. Give the path of a file, or give the value without _FILE; in code, as text in place of { file }.'
    );
  }
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown reason';
  const why = UNREADABLE[code] ?? `cannot be read (${code}).`;
  return `the file ${path} ${why}${code === 'ENOENT' ? whereSought(path) : ''}`;
}

/** Its message may be shown: {@link whyUnreadable}. */
export class UnreadableFile extends Error {}

/**
 * Reads a secret. From a file, one newline at the end is removed: editors and `echo` add it.
 * @throws UnreadableFile
 */
export async function readSecret(value: SecretValue): Promise<Secret> {
  if (typeof value === 'string') return new Secret(value);
  const bytes = await readRegularFile(value.file).catch((error: unknown) => {
    throw new UnreadableFile(whyUnreadable(value.file, error));
  });
  const text = bytes.toString('utf8');
  // Editors of Windows begin a file with a byte order mark.
  return new Secret(text.replace(/^\ufeff/, '').replace(/\r?\n$/, ''));
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

function whereSought(path: string): string {
  if (path.startsWith('~')) return ' ~ is not expanded here: write the home directory out.';
  return isAbsolute(path) ? '' : ` It was looked for at ${resolve(path)}.`;
}
