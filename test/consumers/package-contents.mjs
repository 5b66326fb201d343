import assert from 'node:assert/strict';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

const TOP_LEVEL = ['LICENSE', 'README.md', 'dist', 'package.json'];

/** What hosts import, run or read, and what these files share: nothing else belongs into dist/. */
const DIST = [
  /^(?:cjs\/)?(?:(?:redis|terminus|testing)\/)?index\.(?:js|d\.ts)$/,
  /^cjs\/(?:(?:redis|terminus|testing)\/)?index\.js\.map$/,
  /^node\/(?:(?:redis|terminus|testing)\/)?index\.js$/,
  /^(?:cjs\/)?chunks\/[a-z-]+\.(?:js|d\.ts)$/,
  /^cjs\/chunks\/[a-z-]+\.js\.map$/,
  /^cjs\/(?:package\.json|peers\.js)$/,
  // The last is what the simulator imports only for --name.
  /^cli\/(?:main|call|doctor|simulator|host-configuration)\.js$/,
  /^schematics\/(?:nest-add\.js|collection\.json)$/,
];

/** Throws where the installed package has too many or too few files, or an export has no file. */
export async function checkPackageContents(folder) {
  // Beside an old axios, npm puts the newer proxy-from-env there.
  const entries = (await readdir(folder)).filter((entry) => entry !== 'node_modules');
  assert.deepEqual(entries.sort(), TOP_LEVEL);
  const dist = join(folder, 'dist');
  const files = (await readdir(dist, { recursive: true, withFileTypes: true }))
    .filter((file) => file.isFile())
    .map(({ parentPath, name }) => relative(dist, join(parentPath, name)).split(sep).join('/'));
  assert.deepEqual(
    files.filter((file) => !DIST.some((pattern) => pattern.test(file))),
    [],
  );
  for (const file of files.filter((name) => name.endsWith('.map'))) {
    const { sources, sourcesContent } = JSON.parse(await readFile(join(dist, file), 'utf8'));
    assert.ok(
      sources.every((source) => /\/lib\/.*\.ts$/.test(source)),
      `${file}: ${sources}`,
    );
    assert.equal(sourcesContent, undefined, file);
  }
  const { exports, bin } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const targets = Object.values(exports).flatMap((target) =>
    typeof target === 'string'
      ? [target]
      : Object.values(target).flatMap((file) => (typeof file === 'string' ? file : Object.values(file))),
  );
  for (const target of targets) assert.ok((await stat(join(folder, target))).isFile(), target);
  for (const command of Object.values(bin)) {
    const path = join(folder, command);
    assert.ok((await stat(path)).mode & 0o100, `${command} is not executable`);
    assert.match(await readFile(path, 'utf8'), /^#!\/usr\/bin\/env node\n/);
  }
}
