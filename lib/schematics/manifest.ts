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

/** package.json with the peers that it does not name yet. */
export function addPeers(text: string, nest: number): string {
  const manifest = parse(text);
  const named = { ...manifest.devDependencies, ...manifest.dependencies };
  const missing = Object.entries(peersFor(nest)).filter(([name]) => named[name] === undefined);
  if (missing.length === 0) return text;
  const dependencies = [...Object.entries(manifest.dependencies ?? {}), ...missing].sort(byName);
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

/** Editors of Windows begin a file with a byte order mark, which JSON.parse does not take. */
function parse(text: string): Manifest {
  return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text) as Manifest;
}

function byName([one]: [string, string], [other]: [string, string]): number {
  return one < other ? -1 : 1;
}
