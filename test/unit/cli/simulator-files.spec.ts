import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { ServiceSimulator } from '../../../lib/testing/simulator.js';
import { checkFolder, ForeignFileError, writeFiles } from '../../../lib/cli/simulator-files.js';

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

  it.each<[string, (text: string) => string, boolean]>([
    ['as it is', (text) => text, true],
    ['with a line more', (text) => `${text}PORT=3000\n`, false],
    ['with another first line', (text) => `\n${text}`, false],
    ['without its first line', (text) => text.replace(/^.*\n/, ''), false],
  ])('knows a file that it wrote, %s', async (_, change, isOwn) => {
    const simulator = {
      application: { certificate: 'CERTIFICATE', privateKey: 'KEY' },
      chain: 'CHAIN',
      env: () => ({ SERVICE_CLIENT_ID: 'id' }),
    } as unknown as ServiceSimulator;
    const { env } = await writeFiles(folder, simulator);
    await writeFile(env, change(await readFile(env, 'utf8')));
    const checked = checkFolder(folder);
    await (isOwn
      ? expect(checked).resolves.toBeUndefined()
      : expect(checked).rejects.toThrow(ForeignFileError));
  });

  it.each([undefined, 'ksa'])(
    'has a .env with what env() has in each mode, for the module %s',
    async (name) => {
      const simulator = await ServiceSimulator.start();
      const { env } = await writeFiles(folder, simulator, { name });
      const prefix = name === undefined ? 'SERVICE_' : 'SERVICE_KSA_';
      const read = Object.entries(parseEnv(await readFile(env, 'utf8')) as Record<string, string>).map(
        async ([variable, value]) => {
          if (!variable.endsWith('_FILE')) return [variable, value];
          const [, pem = ''] = /^#.*\n([^]*)$/.exec(await readFile(value, 'utf8')) ?? [];
          return [variable.slice(0, -'_FILE'.length), pem.replaceAll('\n', '\\n')];
        },
      );
      const written = Object.fromEntries(await Promise.all(read)) as Record<string, string>;
      await simulator.stop();
      expect(written).toEqual(simulator.env({ name }));
      for (const [environment, authentication] of [
        ['production', 'mtls'],
        ['production', 'oauth'],
        ['sandbox', 'app-token'],
        ['sandbox', 'mtls'],
        ['sandbox', 'oauth'],
      ] as const) {
        const chosen = { [`${prefix}ENVIRONMENT`]: environment, [`${prefix}AUTHENTICATION`]: authentication };
        expect({ ...written, ...chosen }).toEqual(simulator.env({ environment, authentication, name }));
      }
    },
  );
});
