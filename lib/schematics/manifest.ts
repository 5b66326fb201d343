interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

const BYTE_ORDER_MARK = '\uFEFF';

/** The peers, in the versions that fit a version of NestJS. */
function peersFor(nest: number): Record<string, string> {
  const nestModules = nest >= 12 ? '^12.0.0' : '^4.0.0';
  return {
    '@nestjs/axios': nestModules,
    '@nestjs/config': nestModules,
    axios: '^1.18.0',
    'class-validator': nest >= 12 ? '^0.15.0' : '^0.14.0',
  };
}

/** The NestJS version that a range of package.json begins with; undefined for `latest` and the like. */
export function nestVersionIn(manifest: string): number | undefined {
  const { dependencies, devDependencies } = parse(manifest);
  const range = { ...devDependencies, ...dependencies }['@nestjs/core'];
  const major = /^[\^~>=v\s]*(\d+)/.exec(range ?? '')?.[1];
  return major === undefined ? undefined : Number(major);
}

/** Whether package.json names a package. */
export function isNamed(name: string, manifest: string): boolean {
  const { dependencies, devDependencies } = parse(manifest);
  return { ...devDependencies, ...dependencies }[name] !== undefined;
}

/** package.json with the peers that it does not name yet. */
export function addPeers(text: string, nest: number): string {
  const manifest = parse(text);
  const named = { ...manifest.devDependencies, ...manifest.dependencies };
  const missing = Object.entries(peersFor(nest)).filter(([name]) => named[name] === undefined);
  if (missing.length === 0) return text;
  const dependencies = [...Object.entries(manifest.dependencies ?? {}), ...missing].sort();
  const indent = /^[ \t]+/m.exec(text)?.[0] ?? '  ';
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const result = JSON.stringify(
    { ...manifest, dependencies: Object.fromEntries(dependencies) },
    null,
    indent,
  );
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
  return mark + `${result}\n`.replaceAll('\n', eol);
}

/** Of nest-cli.json: whether the project in a folder is a library, and the name of an application beside it. */
export function projectsOf(text: string, sourceRoot: string) {
  const { projects = {} } = parse<{ projects?: Record<string, { type?: string; sourceRoot?: string }> }>(
    text,
  );
  const own = Object.values(projects).find((project) => project.sourceRoot === sourceRoot);
  const application = Object.keys(projects).find((name) => projects[name].type !== 'library');
  return { isLibrary: own?.type === 'library', application: application ?? '<name>' };
}

/** Editors of Windows begin a file with a byte order mark, which JSON.parse does not take. */
function parse<T = Manifest>(text: string): T {
  return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text) as T;
}

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
