import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileMarks } from '../../../../lib/tls/reload/file-marks.js';

let folder: string;
let path: string;
let marks: FileMarks;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'file-marks-'));
  await mkdir(join(folder, 'one'));
  await mkdir(join(folder, 'two'));
  for (const each of ['one', 'two']) await writeFile(join(folder, each, 'pem'), each);
  // As Kubernetes does it: the file is below a link.
  await symlink(join(folder, 'one'), join(folder, 'data'));
  path = join(folder, 'data', 'pem');
  marks = new FileMarks([path]);
});
afterEach(() => rm(folder, { recursive: true }));

const look = () => marks.areUnchanged();

it('is certain of a file that was the same twice', async () => {
  expect([await look(), await look(), await look(), await look()]).toEqual([false, false, true, true]);
});

it.each<[string, () => Promise<void>]>([
  ['a write in place, of the same length', () => writeFile(path, 'ONE')],
  [
    'a rename',
    async () => {
      await writeFile(join(folder, 'new'), 'one');
      await rename(join(folder, 'new'), path);
    },
  ],
  [
    'a new link to a folder',
    async () => {
      await symlink(join(folder, 'two'), join(folder, 'new'));
      await rename(join(folder, 'new'), join(folder, 'data'));
    },
  ],
  ['the times of another file', () => utimes(path, 1, 1)],
])('notices %s', async (_, change) => {
  for (let times = 0; times < 3; times++) await look();
  await change();
  expect([await look(), await look(), await look()]).toEqual([false, false, true]);
});

it('is never certain of a file that is not there, nor without files', async () => {
  for (let times = 0; times < 3; times++) await look();
  await rm(path);
  expect([await look(), await look(), await look()]).toEqual([false, false, false]);
  await writeFile(path, 'one');
  expect([await look(), await look(), await look()]).toEqual([false, false, true]);
  marks = new FileMarks([]);
  expect([await look(), await look(), await look()]).toEqual([false, false, false]);
});
