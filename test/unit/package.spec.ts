import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');
const lib = join(root, 'lib');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: object;
  dependencies?: object;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, object>;
  devDependencies: object;
};
const peers = Object.keys(manifest.peerDependencies);
const optionalPeers = Object.keys(manifest.peerDependenciesMeta);
const subpaths = Object.keys(manifest.exports).flatMap((name) => /^\.\/(\w+)$/.exec(name)?.[1] ?? []);

interface Import {
  specifier: string;
  isType: boolean;
}

/** Of import, export and import(), in a file without its comments. */
const IMPORTS = /(?:^(?:import|export)\b(?:([^;'"`]*?)\bfrom )?\s*|\bimport\()'([^']+)'/gm;
const areTypes = (names = '') => /^ (?:type |\{(?:\s*type [^,]+,?)+\s*\} $)/.test(names);
const imports = new Map<string, Import[]>();
for (const file of readdirSync(lib, { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.ts')) continue;
  const text = readFileSync(join(lib, file), 'utf8').replace(/^\s*(?:\*|\/\/|\/\*).*$/gm, '');
  const found = [...text.matchAll(IMPORTS)];
  imports.set(
    join(lib, file),
    found.map(([, names, specifier]) => ({ specifier, isType: areTypes(names) })),
  );
}
const isPackage = ({ specifier }: Import): boolean => !specifier.startsWith('.') && !isBuiltin(specifier);
const packageOf = ({ specifier }: Import) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? '';
const packagesOf = (wanted: string[]) =>
  new Set(wanted.flatMap((file) => (imports.get(file) ?? []).filter(isPackage).map(packageOf)));

describe('package.json', () => {
  it('declares every package that lib imports, and otherwise only those that peers or host applications need', () => {
    // RedisTokenStore is given a client; ValidationPipe needs class-transformer.
    const needed = ['@nestjs/core', 'rxjs', 'ioredis', 'class-transformer'];
    const declared = [...Object.keys(manifest.dependencies ?? {}), ...peers];
    const imported = packagesOf([...imports.keys()]);
    expect([...imported].filter((name) => !declared.includes(name))).toEqual([]);
    expect(declared.filter((name) => !imported.has(name) && !needed.includes(name))).toEqual([]);
    expect(Object.keys(manifest.devDependencies)).toEqual(expect.arrayContaining(peers));
  });

  it('has optional peers for subpaths only', () => {
    const core = [...imports.keys()].filter(
      (file) => !subpaths.some((name) => file.startsWith(join(lib, name, '/'))),
    );
    expect(subpaths).toEqual(['redis', 'terminus', 'testing']);
    expect([...packagesOf(core)].filter((name) => optionalPeers.includes(name))).toEqual([]);
  });
});

it('lib/index.ts loads reflect-metadata before anything else, and no subpath', () => {
  const entry = join(lib, 'index.ts');
  const reached = new Set([entry]);
  for (const file of reached) {
    for (const { specifier, isType } of imports.get(file) ?? []) {
      if (!isType && specifier.startsWith('.'))
        reached.add(resolve(dirname(file), specifier.replace(/\.js$/, '.ts')));
    }
  }
  expect(imports.get(entry)?.[0]?.specifier).toBe('reflect-metadata');
  expect([...reached].filter((file) => !imports.has(file))).toEqual([]);
  expect(reached.size).toBeGreaterThan(50);
  expect(
    [...reached].filter((file) => subpaths.some((name) => file.startsWith(join(lib, name, '/')))),
  ).toEqual([]);
});
