import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRegularFile, whyUnreadable } from '../../../lib/config/read-file.js';

const MIB = 1024 * 1024;

describe('readRegularFile', () => {
  let folder: string;
  const fileOf = async (bytes: number) => {
    const file = join(folder, `${bytes}.txt`);
    await writeFile(file, Buffer.alloc(bytes, 'a'));
    return file;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'read-file-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it.each([0, 1, 200_000, MIB])('reads %i bytes', async (bytes) => {
    expect(await readRegularFile(await fileOf(bytes))).toHaveLength(bytes);
  });

  it('refuses a file over 1 MiB', async () => {
    await expect(readRegularFile(await fileOf(MIB + 1))).rejects.toMatchObject({
      code: 'ERR_FILE_TOO_LARGE',
    });
  });

  it('refuses a directory, a device and a missing file', async () => {
    await expect(readRegularFile(folder)).rejects.toMatchObject({ code: 'EISDIR' });
    await expect(readRegularFile('/dev/null')).rejects.toMatchObject({ code: 'ERR_NOT_A_FILE' });
    await expect(readRegularFile(join(folder, 'none'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('whyUnreadable', () => {
  const why = (path: string, code?: string) => whyUnreadable(path, Object.assign(new Error(), { code }));

  it.each([
    ['/run/key.pem', 'EACCES', 'the file /run/key.pem cannot be read (EACCES). Give the user'],
    ['/run/key.pem', 'EISDIR', 'the file /run/key.pem is a directory.'],
    ['/run/key.pem', 'EIO', 'the file /run/key.pem cannot be read (EIO).'],
    ['/run/key.pem', undefined, 'the file /run/key.pem cannot be read (unknown reason).'],
    ['~/key.pem', 'ENOENT', 'mounted into this process. ~ is not expanded here'],
    [
      'key.pem',
      'ENOENT',
      `mounted into this process. It was looked for at ${join(process.cwd(), 'key.pem')}.`,
    ],
  ])('explains %s, %s', (path, code, text) => {
    expect(why(path, code)).toContain(text);
  });

  it('names the folder only for a relative path', () => {
    expect(why('/run/key.pem', 'ENOENT')).toMatch(/mounted into this process\.$/);
    expect(why('key.pem', 'EACCES')).not.toContain(process.cwd());
  });
});
