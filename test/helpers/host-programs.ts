import { transformFile, type Options } from '@swc/core';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const HOST = 'test/consumers/host/src';
const SWC: Options = {
  swcrc: false,
  module: { type: 'es6' },
  jsc: {
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
    target: 'es2022',
  },
};

export interface HostPrograms {
  /** Runs one to its end, with none of this process's SERVICE_* variables; returns what it printed. */
  run(name: string): Promise<string>;
  remove(): Promise<void>;
}

/** The programs of the consumers' host, to be run in processes of their own against this folder's lib. */
export async function hostPrograms(): Promise<HostPrograms> {
  const path = await mkdtemp(join(tmpdir(), 'nestjs-service-host-'));
  await cp(join(ROOT, 'package.json'), join(path, 'package.json'));
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'));
  await transpile(join(ROOT, 'lib'), join(path, 'dist'));
  await transpile(join(ROOT, HOST), join(path, 'host'));
  return {
    run: async (name) => {
      const inherited = Object.entries(process.env).filter(([key]) => !/^(SERVICE_|NODE_OPTIONS$)/.test(key));
      const env = { ...Object.fromEntries(inherited), NO_COLOR: '1' };
      const program = join(path, 'host', `${name}.js`);
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [program], {
        cwd: path,
        env,
        timeout: 60_000,
      });
      return stdout + stderr;
    },
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

async function transpile(from: string, to: string): Promise<void> {
  const files = await readdir(from, { recursive: true });
  await Promise.all(
    files
      .filter((file) => file.endsWith('.ts'))
      .map(async (file) => {
        const target = join(to, file.replace(/\.ts$/, '.js'));
        const { code } = await transformFile(join(from, file), SWC);
        await mkdir(dirname(target), { recursive: true });
        await writeFile(target, code);
      }),
  );
}
