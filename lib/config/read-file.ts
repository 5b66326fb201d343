import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';

/** Bytes; a secret has some hundred, a PEM file a few thousand, and a bundle of all public roots some 200,000. */
const MOST_BYTES = 1024 * 1024;

/**
 * Reads a file of at most 1 MiB.
 *
 * @throws the system's error; ERR_NOT_A_FILE for a pipe or device, which could keep the reader waiting for ever, and
 * ERR_FILE_TOO_LARGE
 */
export async function readRegularFile(path: string): Promise<Buffer> {
  const found = await stat(path);
  if (found.isDirectory()) throw codedError('a directory', 'EISDIR');
  if (!found.isFile()) throw codedError('no regular file', 'ERR_NOT_A_FILE');
  const chunks: Buffer[] = [];
  for await (const chunk of createReadStream(path, { end: MOST_BYTES })) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  if (bytes.length > MOST_BYTES) throw codedError('too large', 'ERR_FILE_TOO_LARGE');
  return bytes;
}

function codedError(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}
