import assert from 'node:assert/strict';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';

const TOP_LEVEL = [
  '.env.example',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'dist',
  'docs',
  'package.json',
];

const ROOT = join(import.meta.dirname, '..', '..');

const withoutExtension = (file) => file.replace(/(\.d)?\.\w+$/, '');

async function filesOf(folder, pattern) {
  const files = await readdir(join(ROOT, folder), { recursive: true });
  return files.filter((file) => pattern.test(file)).sort();
}

/** Throws where the installed package has too many or too few files, or an export has no file. */
export async function checkPackageContents(folder) {
  assert.deepEqual((await readdir(folder)).sort(), TOP_LEVEL);
  assert.deepEqual((await readdir(join(folder, 'docs'))).sort(), await filesOf('docs', /\.md$/));
  const sources = new Set((await filesOf('lib', /./)).map(withoutExtension));
  const files = await readdir(join(folder, 'dist'), { recursive: true, withFileTypes: true });
  const strange = files
    .filter((file) => file.isFile())
    .map(({ parentPath, name }) => relative(join(folder, 'dist'), join(parentPath, name)))
    .filter((file) => file !== join('cjs', 'package.json'))
    .filter((file) => !sources.has(withoutExtension(file.replace(/^cjs[/\\]/, ''))));
  assert.deepEqual(strange, []);
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
