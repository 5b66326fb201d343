import type * as X509 from '@peculiar/x509';
// tsyringe, under @peculiar/x509, refuses to load without it.
import 'reflect-metadata';
import { isNotInstalled } from '../errors/coded-error.js';

const NOT_INSTALLED =
  'ServiceSimulator makes certificates with an optional peer dependency, which is not installed: ' +
  'npm i -D @peculiar/x509';

/**
 * Imports @peculiar/x509, an optional peer that only a simulator needs. In a `try`, as a bundler then only warns of a
 * package that is not installed.
 */
export async function importX509(): Promise<typeof X509> {
  try {
    return await import('@peculiar/x509');
  } catch (error) {
    throw explainAbsence(error);
  }
}

/** Where the package is not installed, an error with the command that installs it. */
export function explainAbsence(error: unknown): unknown {
  return isNotInstalled(error) ? new Error(NOT_INSTALLED) : error;
}
