import type * as X509 from '@peculiar/x509';
// tsyringe, under @peculiar/x509, refuses to load without it.
import 'reflect-metadata';

const NOT_INSTALLED =
  'ServiceSimulator makes certificates with an optional peer dependency, which is not installed: ' +
  'npm i -D @peculiar/x509';

/** Imports @peculiar/x509, an optional peer that only a simulator needs. */
export function importX509(): Promise<typeof X509> {
  return importPeer(() => import('@peculiar/x509'));
}

/** Runs the import; where the package is not installed, rejects with the command that installs it. */
export function importPeer<T>(load: () => Promise<T>): Promise<T> {
  return load().catch((error: unknown) => {
    throw isModuleNotFound(error) ? new Error(NOT_INSTALLED) : error;
  });
}

function isModuleNotFound(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
}
