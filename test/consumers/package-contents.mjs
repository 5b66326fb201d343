import assert from 'node:assert/strict';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

const TOP_LEVEL = ['CHANGELOG.md', 'LICENSE', 'README.md', 'dist', 'docs', 'package.json'];

/** Throws where the installed package has too many or too few files, or an export has no file. */
export async function checkPackageContents(folder) {
  assert.deepEqual((await readdir(folder)).sort(), TOP_LEVEL);
  const files = await readdir(join(folder, 'dist'), { recursive: true });
  assert.deepEqual(
    files.filter((file) => /(^|[/\\])(sample|test)[/\\]|\.spec\.|\.tsbuildinfo$/.test(file)),
    [],
  );
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
