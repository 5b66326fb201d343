import { it } from '@jest/globals';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { printFigure } from './print-figure.js';

/** A program that some tests need and that a machine may not have. */
export interface OptionalProgram {
  /** Undefined if the machine has none. */
  path?: string;
  install: string;
}

const PROGRAMS = {
  chromium: {
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    install: 'apt-get install chromium',
  },
  nginx: {
    names: ['nginx'],
    install: 'apt-get install nginx',
  },
  openssl: {
    names: ['openssl'],
    install: 'apt-get install openssl',
  },
  'redis-server': {
    names: ['redis-server'],
    install: 'apt-get install redis-server',
  },
};

export function findProgram(program: keyof typeof PROGRAMS): OptionalProgram {
  const { names, install } = PROGRAMS[program];
  // Debian has servers in /usr/sbin, which is in root's PATH only.
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin'];
  return {
    path: names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram),
    install,
  };
}

/** Returns `it` if the program is installed, and always in CI. Otherwise prints how to install it, and skips the test. */
export function itWith({ path, install }: OptionalProgram, leftOut: string): typeof it | typeof it.skip {
  if (path !== undefined || process.env.CI === 'true') return it;
  printFigure(`left out: ${leftOut}; install with: ${install}`);
  return it.skip;
}

/** Returns the path of the program. Throws if it is not installed. */
export function requireProgram({ path, install }: OptionalProgram): string {
  if (path !== undefined) return path;
  throw new Error(`A program that this test needs is missing; install with: ${install}`);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
