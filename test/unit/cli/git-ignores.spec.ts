import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exposureTo } from '../../../lib/cli/git-ignores.js';

const KEY = 'private.key';

describe('whether git might take a file', () => {
  let root: string;
  let folder: string;
  const { PATH = '' } = process.env;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'git ignores '));
    folder = join(root, 'a/b');
    await mkdir(folder, { recursive: true });
  });
  afterEach(() => rm(root, { recursive: true }));

  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, env: { PATH }, stdio: 'pipe' });
  const exposure = (env: Record<string, string> = { PATH }) => exposureTo(folder, KEY, env);

  it('cannot where there is no repository, whether git is there or not', async () => {
    expect(await exposure()).toBeUndefined();
    expect(await exposure({ PATH: '' })).toBeUndefined();
  });

  it('might where it does not ignore it', async () => {
    git('init');
    expect(await exposure()).toBe(`git does not ignore ${join(folder, KEY)}`);
    await writeFile(join(folder, '.gitignore'), '*.crt\n');
    expect(await exposure()).toBeDefined();
  });

  it('cannot where it ignores it, by any of its files', async () => {
    git('init');
    await writeFile(join(root, '.gitignore'), 'b/\n');
    expect(await exposure()).toBeUndefined();
    await writeFile(join(root, '.gitignore'), '');
    await writeFile(join(root, '.git/info/exclude'), KEY);
    expect(await exposure()).toBeUndefined();
  });

  it('might where it is in the repository already', async () => {
    git('init');
    await writeFile(join(root, '.gitignore'), '*\n');
    await writeFile(join(folder, KEY), '');
    git('add', '--force', join(folder, KEY));
    expect(await exposure()).toBeDefined();
  });

  it('cannot in a folder that is not there, or has the .gitignore of this command, also without git', async () => {
    git('init');
    await writeFile(join(folder, '.gitignore'), '*\n');
    expect(await exposure({ PATH: '' })).toBeUndefined();
    folder = join(folder, 'new');
    expect(await exposure({ PATH: '' })).toBeUndefined();
  });

  it('might where git cannot be asked', async () => {
    git('init');
    const unknown = `git cannot be asked whether it ignores ${join(folder, KEY)}`;
    expect(await exposure({ PATH: '' })).toBe(unknown);
    await writeFile(join(root, '.git/config'), 'no configuration');
    expect(await exposure()).toBe(unknown);
  });

  it('might where git gives no answer in time', async () => {
    git('init');
    await writeFile(join(root, 'git'), '#!/bin/sh\nexec sleep 60\n', { mode: 0o755 });
    const unknown = `git cannot be asked whether it ignores ${join(folder, KEY)}`;
    expect(await exposureTo(folder, KEY, { PATH: `${root}:${PATH}` }, 100)).toBe(unknown);
  }, 10_000);

  it('is of the repository in which the folder is, by whatever name, and no other', async () => {
    git('init');
    await writeFile(join(root, '.gitignore'), KEY);
    expect(await exposure({ PATH, GIT_DIR: '/nowhere' })).toBeUndefined();
    const link = await mkdtemp(join(tmpdir(), 'git ignores link '));
    await rm(join(root, '.gitignore'));
    await symlink(folder, join(link, 'b'));
    folder = join(link, 'b');
    expect(await exposure()).toBeDefined();
    await rm(link, { recursive: true });
  });

  it('runs no program that the repository names', async () => {
    git('init');
    await writeFile(join(root, 'monitor'), `#!/bin/sh\ntouch '${root}/ran'\n`, { mode: 0o755 });
    git('config', 'core.fsmonitor', `'${root}/monitor'`);
    git('add', '.');
    git('update-index', '--fsmonitor');
    await rm(join(root, 'ran'));
    await exposure();
    expect(await readdir(root)).not.toContain('ran');
  });
});
