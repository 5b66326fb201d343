import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type CommandIo } from './command.js';

/** Of a folder that this command makes: keys and secrets are in no repository, not even those of a simulator. */
export const IGNORE_ALL = '*\n';

/** A git that waits, for example for a file system that is gone, holds up a start for no longer. */
const GIT_MS = 5_000;

/**
 * Why git might take a file of this folder into a repository, as the end of a sentence; undefined if it cannot, or if there
 * is no repository.
 */
export async function exposureTo(
  folder: string,
  name: string,
  env: CommandIo['env'],
  timeoutMs = GIT_MS,
): Promise<string | undefined> {
  if (!existsSync(folder)) return undefined;
  const real = await realpath(folder);
  if (!isInRepository(real) || (await ignoresAll(real))) return undefined;
  const code = await checkIgnore(real, name, env, timeoutMs);
  if (code === 0) return undefined;
  return code === 1
    ? `git does not ignore ${join(folder, name)}`
    : `git cannot be asked whether it ignores ${join(folder, name)}`;
}

function isInRepository(folder: string): boolean {
  if (existsSync(join(folder, '.git'))) return true;
  const above = dirname(folder);
  return above !== folder && isInRepository(above);
}

/** Without git, which a container may lack. */
async function ignoresAll(folder: string): Promise<boolean> {
  return (await readFile(join(folder, '.gitignore'), 'utf8').catch(() => '')) === IGNORE_ALL;
}

/** 0: it is ignored, 1: it is not, or is in the repository already; anything else: git cannot say. */
function checkIgnore(folder: string, name: string, env: CommandIo['env'], timeout: number): Promise<unknown> {
  // A hook of git has variables about its own repository.
  const own = Object.fromEntries(Object.entries(env).filter(([variable]) => !variable.startsWith('GIT_')));
  // A repository's configuration may name a program to run.
  const args = ['-C', folder, '-c', 'core.fsmonitor=false', 'check-ignore', '--quiet', '--', name];
  return new Promise((resolve) => {
    execFile('git', args, { env: own, timeout }, (error) => resolve(error ? error.code : 0));
  });
}
