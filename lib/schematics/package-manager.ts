export interface PackageManager {
  name: 'npm' | 'yarn' | 'pnpm' | 'bun';
  lockFiles: readonly string[];
  /** Installs a package. */
  add: string;
  /** Installs a package for development. */
  addDev: string;
  /** Runs a command of an installed package. */
  run: string;
}

const NPM: PackageManager = { name: 'npm', lockFiles: [], add: 'npm i', addDev: 'npm i -D', run: 'npx' };

/** In the order in which the command line of Nest looks for them. */
const OTHERS: readonly PackageManager[] = [
  { name: 'yarn', lockFiles: ['yarn.lock'], add: 'yarn add', addDev: 'yarn add -D', run: 'yarn' },
  { name: 'pnpm', lockFiles: ['pnpm-lock.yaml'], add: 'pnpm add', addDev: 'pnpm add -D', run: 'pnpm exec' },
  { name: 'bun', lockFiles: ['bun.lock', 'bun.lockb'], add: 'bun add', addDev: 'bun add -d', run: 'bunx' },
];

/** The package manager of a project, by its lock file; npm where there is none. */
export function packageManagerOf(files: { exists(path: string): boolean }): PackageManager {
  return OTHERS.find(({ lockFiles }) => lockFiles.some((file) => files.exists(file))) ?? NPM;
}
