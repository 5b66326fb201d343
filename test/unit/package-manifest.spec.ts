import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';

interface Conditions {
  module: string;
  require: { types: string; default: string };
  types: string;
  default: string;
}

interface Manifest {
  main: string;
  types: string;
  exports: Record<string, string | Conditions>;
  typesVersions: Record<string, Record<string, string[]>>;
  dependencies?: Record<string, string>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional?: boolean }>;
  devDependencies: Record<string, string>;
}

const root = resolve(import.meta.dirname, '../..');
const lib = join(root, 'lib');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

const isOptional = (name: string): boolean => manifest.peerDependenciesMeta[name]?.optional === true;
const optionalPeers = Object.keys(manifest.peerDependencies).filter(isOptional);
const declared = [...Object.keys(manifest.dependencies ?? {}), ...Object.keys(manifest.peerDependencies)];

/** The subpaths of the package beside the root. A package that only a subpath imports may be an optional peer. */
const subpaths = Object.keys(manifest.exports)
  .map((subpath) => subpath.replace(/^\.\/?/, ''))
  .filter((subpath) => subpath !== '' && subpath !== 'package.json');

interface Import {
  from: string;
  specifier: string;
  /** Left of it at run time: nothing for a type, a promise for import(). */
  kind: 'static' | 'dynamic' | 'type';
  /** A bundler does not fail where the package is not installed. */
  inTry: boolean;
}

const files = readdirSync(lib, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => join(lib, file));
const imports = new Map(files.map((file) => [file, importsOf(file)]));
const packageImports = [...imports.values()].flat().filter(({ specifier }) => isPackage(specifier));

function importsOf(file: string): Import[] {
  const from = relative(root, file);
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.ES2023, true);
  const found: Import[] = [];
  const visit = (node: ts.Node): void => {
    if (
      (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) &&
      node.moduleSpecifier !== undefined &&
      ts.isStringLiteral(node.moduleSpecifier)
    ) {
      const kind = isTypeOnly(node) ? 'type' : 'static';
      found.push({ from, specifier: node.moduleSpecifier.text, kind, inTry: false });
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [specifier] = node.arguments;
      if (specifier && ts.isStringLiteral(specifier)) {
        found.push({ from, specifier: specifier.text, kind: 'dynamic', inTry: isInTry(node) });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** In the `try` of its own function. */
function isInTry(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isFunctionLike(node) || ts.isSourceFile(node)) return false;
  return (ts.isTryStatement(parent) && parent.tryBlock === node) || isInTry(parent);
}

function isTypeOnly(node: ts.ImportDeclaration | ts.ExportDeclaration): boolean {
  if (ts.isExportDeclaration(node)) return node.isTypeOnly || allAreTypes(node.exportClause);
  const clause = node.importClause;
  if (clause?.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  return clause !== undefined && clause.name === undefined && allAreTypes(clause.namedBindings);
}

function allAreTypes(names: ts.NamedImportBindings | ts.NamedExportBindings | undefined): boolean {
  if (names === undefined || !(ts.isNamedImports(names) || ts.isNamedExports(names))) return false;
  return names.elements.length > 0 && names.elements.every(({ isTypeOnly }) => isTypeOnly);
}

function isPackage(specifier: string): boolean {
  return !specifier.startsWith('.') && !isBuiltin(specifier);
}

/** `@nestjs/common/interfaces` is of `@nestjs/common`. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** Every file that Node loads with this one. */
function reachedFrom(entry: string): string[] {
  const seen = new Set([entry]);
  for (const file of seen) {
    for (const { specifier, kind } of imports.get(file) ?? []) {
      if (kind !== 'static' || !specifier.startsWith('.')) continue;
      seen.add(resolve(dirname(file), specifier.replace(/\.js$/, '.ts')));
    }
  }
  return [...seen];
}

const staticPackages = (entry: string): string[] =>
  reachedFrom(entry)
    .flatMap((file) => imports.get(file) ?? [])
    .filter(({ specifier, kind }) => kind === 'static' && isPackage(specifier))
    .map(({ specifier }) => packageOf(specifier));

describe('package.json', () => {
  it('declares every package that lib imports', () => {
    expect(packageImports.length).toBeGreaterThan(30);
    expect(packageImports.filter(({ specifier }) => !declared.includes(packageOf(specifier)))).toEqual([]);
  });

  it('declares no package that lib does not import, but for those its peers need', () => {
    const neededByPeers = ['@nestjs/core', 'rxjs'];
    // RedisTokenStore takes its clients; it makes none itself.
    const givenByHosts = ['ioredis'];
    const neededByValidationPipe = ['class-transformer'];
    const needed = [...neededByPeers, ...givenByHosts, ...neededByValidationPipe];
    const imported = new Set(packageImports.map(({ specifier }) => packageOf(specifier)));
    expect(declared.filter((name) => !imported.has(name) && !needed.includes(name))).toEqual([]);
  });

  it('has each optional peer for subpaths only', () => {
    const elsewhere = packageImports.filter(
      ({ from, specifier }) =>
        isOptional(packageOf(specifier)) &&
        !subpaths.some((subpath) => from.startsWith(join('lib', subpath, '/'))),
    );
    expect(elsewhere).toEqual([]);
  });

  it('can be bundled by a host that has not every optional peer', () => {
    const dynamic = packageImports.filter(({ kind }) => kind === 'dynamic');
    expect(dynamic.map(({ specifier }) => specifier)).toContain('@peculiar/x509');
    expect(dynamic.filter(({ inTry }) => !inTry)).toEqual([]);
  });

  it('installs every peer for the tests', () => {
    const installed = Object.keys(manifest.devDependencies);
    expect(Object.keys(manifest.peerDependencies).filter((name) => !installed.includes(name))).toEqual([]);
  });

  it('names every subpath for the classic resolution of TypeScript too', () => {
    expect(manifest.exports['.']).toMatchObject({ types: manifest.types, module: manifest.main });
    const classic = Object.fromEntries(
      subpaths.map((subpath) => [subpath, [(manifest.exports[`./${subpath}`] as Conditions).types]]),
    );
    expect(manifest.typesVersions).toEqual({ '*': classic });
    for (const subpath of subpaths) expect(statSync(join(lib, subpath, 'index.ts')).isFile()).toBe(true);
  });
});

it('gives Node the CommonJS build, by thin ES modules where it is imported, and a bundler the ES build', () => {
  for (const conditions of Object.values(manifest.exports)) {
    if (typeof conditions === 'string') continue;
    const { types, module: esm } = conditions;
    const inFolder = (folder: string, file: string) => file.replace('./dist/', `./dist/${folder}/`);
    // The first that fits is taken.
    expect(Object.entries(conditions)).toEqual([
      ['module', esm],
      ['require', { types: inFolder('cjs', types), default: inFolder('cjs', esm) }],
      ['types', types],
      ['default', inFolder('node', esm)],
    ]);
  }
});

describe('lib/index.ts', () => {
  const entry = join(lib, 'index.ts');

  it('reaches files and packages, as the next tests need', () => {
    expect(reachedFrom(entry).length).toBeGreaterThan(50);
    expect(reachedFrom(entry).filter((file) => !imports.has(file))).toEqual([]);
    expect(staticPackages(entry)).toContain('@nestjs/common');
  });

  it('loads no optional peer', () => {
    expect(staticPackages(entry).filter((name) => optionalPeers.includes(name))).toEqual([]);
  });

  it('loads no subpath', () => {
    const loaded = reachedFrom(entry).filter((file) =>
      subpaths.includes(relative(lib, file).split('/')[0] ?? ''),
    );
    expect(loaded).toEqual([]);
  });

  it('loads reflect-metadata before anything else', () => {
    expect(imports.get(entry)?.[0]?.specifier).toBe('reflect-metadata');
  });
});
