import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkFolder, ForeignFileError } from '../../../lib/cli/simulator-files.js';

describe('the folder of the simulator command', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'simulator-files-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it.each<[string, (path: string) => unknown]>([
    ['a link to nowhere', (path) => symlink('nowhere', path)],
    ['a link to a file', (path) => symlink('/etc/hostname', path)],
    ['a folder', (path) => mkdir(path)],
    ['a pipe, which is not read', (path) => execFileSync('mkfifo', [path])],
    ['a file', (path) => writeFile(path, 'x')],
  ])('leaves %s of somebody else', async (_, make) => {
    for (const name of ['.env', 'application.key']) {
      await make(join(folder, name));
      await expect(checkFolder(folder)).rejects.toThrow(ForeignFileError);
      await rm(join(folder, name), { recursive: true });
    }
    await expect(checkFolder(folder)).resolves.toBeUndefined();
  });

  it.each(['null', '[]', '{', '{".env":5}', '{".env":{"includes":1}}'])(
    'takes a record that is none for none: %s',
    async (record) => {
      await writeFile(join(folder, '.written-by-nestjs-service'), record);
      await expect(checkFolder(folder)).resolves.toBeUndefined();
      await writeFile(join(folder, '.env'), 'x');
      await expect(checkFolder(folder)).rejects.toThrow(ForeignFileError);
    },
  );
});
