export interface Manager {
  name: string;
  /** Installs a package. */
  add: string;
}

const LOCKS: Readonly<Record<string, Manager>> = {
  'yarn.lock': { name: 'yarn', add: 'yarn add' },
  'pnpm-lock.yaml': { name: 'pnpm', add: 'pnpm add' },
  'bun.lock': { name: 'bun', add: 'bun add' },
  'bun.lockb': { name: 'bun', add: 'bun add' },
};

/** The package manager of a project, by its lock file. */
export function lockedManager(exists: (file: string) => boolean): Manager {
  const lock = Object.keys(LOCKS).find(exists);
  return lock === undefined ? { name: 'npm', add: 'npm i' } : LOCKS[lock];
}

/**
 * package.json with the peers that it does not name yet, in the versions that fit the NestJS that is installed.
 *
 * @param core package.json of @nestjs/core
 * @returns undefined if the version is not known
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
  // Editors of Windows begin a file with a byte order mark.
  const manifest = JSON.parse(text.replace(/^\uFEFF/, '')) as Record<string, object | undefined>;
  const { dependencies, devDependencies } = manifest;
  const named = { ...devDependencies, ...dependencies };
  const missing = Object.entries(peers).filter(([name]) => !Object.hasOwn(named, name));
  if (missing.length === 0) return text;
  const all = [...Object.entries(dependencies ?? {}), ...missing].sort();
  const changed = { ...manifest, dependencies: Object.fromEntries(all) };
  return `${JSON.stringify(changed, null, /^[ \t]+/m.exec(text)?.[0] ?? '  ')}\n`;
}
