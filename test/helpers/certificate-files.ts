import { mkdtemp, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Certificate and key, PEM. */
export interface CertificatePair {
  certificate: string;
  privateKey: string;
}

/** Replaces the certificate and key in `tls.crt` and `tls.key` of a folder. */
export type Replacement = (folder: string, pair: CertificatePair) => Promise<void>;

/** The pause between two steps of a slow writer. */
const STEP_MS = 50;

const files = ({ certificate, privateKey }: CertificatePair) =>
  [
    ['tls.crt', certificate],
    ['tls.key', privateKey],
  ] as const;

/** Writes one file after the other. Between the two writes, the certificate and the key do not match. */
export const byRename: Replacement = async (folder, pair) => {
  for (const [name, content] of files(pair)) {
    await writeFile(join(folder, `${name}.new`), content);
    await rename(join(folder, `${name}.new`), join(folder, name));
    await sleep(STEP_MS);
  }
};

/** Overwrites each file in two halves. For a while a file is incomplete, and the two do not match. */
export const inPlace: Replacement = async (folder, pair) => {
  for (const [name, content] of files(pair)) {
    const middle = content.length / 2;
    await writeFile(join(folder, name), content.slice(0, middle));
    await sleep(STEP_MS);
    await writeFile(join(folder, name), content.slice(middle), { flag: 'a' });
    await sleep(STEP_MS);
  }
};

/**
 * Replaces the files like the kubelet does for a mounted Secret: tls.crt is a link to ..data/tls.crt, and ..data is a link
 * to a folder for each version, which is swapped atomically.
 */
export const bySymlinkSwap: Replacement = async (folder, pair) => {
  const version = await mkdtemp(join(folder, '..version-'));
  for (const [name, content] of files(pair)) await writeFile(join(version, name), content);
  await symlink(version, join(folder, '..data_tmp'));
  await rename(join(folder, '..data_tmp'), join(folder, '..data'));
  for (const [name] of files(pair)) {
    await symlink(join('..data', name), join(folder, name)).catch(() => undefined);
  }
};
