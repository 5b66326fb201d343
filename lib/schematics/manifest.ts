export interface PackageManager {
  name: string;
  /** The command that installs a package. */
  add: string;
}

const BY_LOCK_FILE: Readonly<Record<string, PackageManager>> = {
  'yarn.lock': { name: 'yarn', add: 'yarn add' },
  'pnpm-lock.yaml': { name: 'pnpm', add: 'pnpm add' },
  'bun.lock': { name: 'bun', add: 'bun add' },
  'bun.lockb': { name: 'bun', add: 'bun add' },
};

/** Detects the package manager of a project by its lock file. Default: npm. */
export function detectPackageManager(exists: (file: string) => boolean): PackageManager {
  const lock = Object.keys(BY_LOCK_FILE).find(exists);
  return lock === undefined ? { name: 'npm', add: 'npm i' } : BY_LOCK_FILE[lock];
}

/**
 * Adds the missing peer dependencies to package.json, in the versions that fit the installed NestJS.
 *
 * @param text package.json of the application
 * @param core package.json of the installed @nestjs/core
 * @returns the new package.json; undefined if NestJS is not installed, so that its version is unknown
 */
export function addPeers(text: string, core: string | undefined): string | undefined {
  if (core === undefined) return undefined;
  const isLatest = Number.parseInt((JSON.parse(core) as { version: string }).version, 10) >= 12;
  const peers = {
    '@nestjs/axios': isLatest ? '^12.0.0' : '^4.0.0',
    '@nestjs/config': isLatest ? '^12.0.0' : '^4.0.0',
    axios: '^1.18.0',
    'class-validator': isLatest ? '^0.15.0' : '^0.14.0',
  };
  // Editors on Windows may begin a file with a byte order mark, which JSON.parse() refuses.
  const manifest = JSON.parse(text.replace(/^\uFEFF/, '')) as Record<string, object | undefined>;
  const { dependencies, devDependencies } = manifest;
  const named = { ...devDependencies, ...dependencies };
  const missing = Object.entries(peers).filter(([name]) => !Object.hasOwn(named, name));
  if (missing.length === 0) return text;
  const all = [...Object.entries(dependencies ?? {}), ...missing].sort();
  const changed = { ...manifest, dependencies: Object.fromEntries(all) };
  return `${JSON.stringify(changed, null, /^[ \t]+/m.exec(text)?.[0] ?? '  ')}\n`;
}
