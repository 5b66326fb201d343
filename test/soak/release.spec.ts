import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync, spawnSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SCRIPT = join(import.meta.dirname, '../../build/release.mjs');
const VERSION = join(import.meta.dirname, '../../lib/version.ts');
const CHANGELOG = '# Changelog\n\n## [Unreleased]\n\n- New.\n\n## [0.1.0] - 2030-01-01\n';

describe('npm run release', () => {
  let folder: string;
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
  const release = (...args: string[]) =>
    spawnSync(process.execPath, [SCRIPT, ...args], { cwd: folder, encoding: 'utf8' });

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'release-'));
    await writeFile(join(folder, 'package.json'), '{ "name": "released", "version": "0.1.0" }');
    await writeFile(join(folder, 'CHANGELOG.md'), CHANGELOG);
    await cp(VERSION, join(folder, 'lib/version.ts'));
    git('init', '--quiet');
    for (const [key, value] of [
      ['user.name', 'nobody'],
      ['user.email', 'nobody@example.com'],
      ['commit.gpgsign', 'false'],
      ['tag.gpgsign', 'false'],
    ]) {
      git('config', key, value);
    }
    git('add', '.');
    git('commit', '--quiet', '--message', 'All');
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('sets the version and the date, commits and tags', async () => {
    const { status, stdout } = release('0.2.0');
    expect([status, stdout]).toEqual([0, 'Tagged v0.2.0. To publish it: git push origin HEAD v0.2.0\n']);
    expect(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))).toMatchObject({
      version: '0.2.0',
    });
    const source = await readFile(join(folder, 'lib/version.ts'), 'utf8');
    expect(source).toMatch(/^export const VERSION = '0\.2\.0';$/m);
    expect(source).toMatch(/^export const GUIDES = 'https:.*\/blob\/v0\.2\.0\/docs';$/m);
    const changelog = await readFile(join(folder, 'CHANGELOG.md'), 'utf8');
    const dated = changelog.replace(/(?<=2\.0\] - )\d{4}-\d{2}-\d{2}/, 'today');
    // The next change finds its heading.
    expect(dated).toBe(CHANGELOG.replace('## [Unreleased]\n', '## [Unreleased]\n\n## [0.2.0] - today\n'));
    expect(git('status', '--porcelain')).toBe('');
    expect(git('rev-parse', 'v0.2.0^{commit}')).toBe(git('rev-parse', 'HEAD'));
  });

  it.each([
    ['no version', [], 'Usage'],
    ['a version with a v', ['v0.2.0'], 'Usage'],
  ])('refuses %s', (_what, args, message) => {
    const { status, stderr } = release(...args);
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)]);
    expect(git('tag')).toBe('');
  });

  it('refuses a tree with changes, a tag that there is, and a changelog without news', async () => {
    await writeFile(join(folder, 'new.txt'), '');
    expect(release('0.2.0').stderr).toContain('has changes');
    await rm(join(folder, 'new.txt'));
    expect(release('0.2.0').status).toBe(0);
    expect(release('0.2.0').stderr).toContain('a tag v0.2.0 already');
    expect(release('0.3.0').stderr).toContain('nothing below');
    expect(git('tag')).toBe('v0.2.0');
  });
});
