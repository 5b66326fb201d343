import { createHash } from 'node:crypto';
import { lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { variablePrefix } from '../config/module-name.js';
import { type ServiceSimulator } from '../testing/simulator.js';

const NAMES = ['application.crt', 'application.key', 'chain.pem', '.env'] as const;
/** Before the SHA-256 of all that follows: a file says by itself whether it is still as this command wrote it. */
const MARK =
  '# Written by nestjs-service simulator, anew at each start. A changed file is not written over: ';
/** Only the user may read what holds a key or a secret. */
export const PRIVATE = 0o600;
const PUBLIC = 0o644;

/** Where the files of a simulator are; absolute paths. */
export interface SimulatorFiles {
  folder: string;
  certificate: string;
  privateKey: string;
  chain: string;
  env: string;
}

/** There is a file in the way that this command did not write. */
export class ForeignFileError extends Error {}

/**
 * Makes sure that every file to be written is new or still as this command wrote it. Writes nothing.
 * @throws ForeignFileError, and the system's errors
 */
export async function checkFolder(folder: string): Promise<void> {
  for (const path of NAMES.map((name) => join(folder, name))) {
    const found = await readIfThere(path);
    if (found === undefined || found === marked(found.slice(found.indexOf('\n') + 1))) continue;
    throw new ForeignFileError(
      `${path} was not written by this command, or was changed since, so it stays as it is. Move it, or choose another folder with --dir.`,
    );
  }
}

/**
 * Makes the folder. Writes the certificates and a .env with which ServiceModule, or the one with the name, or any other
 * client, reaches the simulator; and a .gitignore if there is none: keys and secrets belong in no repository.
 */
export async function writeFiles(
  folder: string,
  simulator: ServiceSimulator,
  moduleName?: string,
): Promise<SimulatorFiles> {
  const [certificate = '', privateKey = '', chain = '', env = ''] = NAMES.map((name) => join(folder, name));
  const files = { folder, certificate, privateKey, chain, env };
  await makeFolder(folder);
  await writeFile(join(folder, '.gitignore'), '*\n', { flag: 'wx' }).catch(unlessThere);
  await replace(certificate, marked(simulator.application.certificate), PUBLIC);
  await replace(privateKey, marked(simulator.application.privateKey), PRIVATE);
  await replace(chain, marked(simulator.chain), PUBLIC);
  await replace(env, marked(envFile(simulator, files, moduleName)), PRIVATE);
  return files;
}

/** With those above it. Not by `recursive`, with which Node never ends where none can be made, as below /proc. */
export async function makeFolder(path: string, mode?: number): Promise<void> {
  const make = () => mkdir(path, { mode }).catch(unlessThere);
  try {
    await make();
  } catch (error) {
    // A root has none above it: a drive that is not there.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path), mode);
    await make();
  }
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

/** With its own mode, and without following a link. */
export async function replace(path: string, content: string, mode: number): Promise<void> {
  await rm(path, { force: true });
  await writeFile(path, content, { mode, flag: 'wx' });
}

/**
 * Why files of this folder cannot be named in a .env that dotenv, Node's --env-file and a shell read in the same way;
 * undefined if they can.
 */
export function folderFault(folder: string): string | undefined {
  if (/\p{Cc}/u.test(folder)) return 'the path of the folder has a line break or another control character.';
  const hasBoth = folder.includes("'") && /["$`]|\\[\\nr]/.test(folder);
  return hasBoth
    ? `the path of the folder has a ' and also ", $, \` or \\. A shell may run a part of it.`
    : undefined;
}

function envFile(simulator: ServiceSimulator, files: SimulatorFiles, name: string | undefined): string {
  const prefix = variablePrefix(name);
  const paths: Record<string, string> = {
    [`${prefix}TLS_CERTIFICATE`]: files.certificate,
    [`${prefix}TLS_PRIVATE_KEY`]: files.privateKey,
    [`${prefix}TLS_CHAIN`]: files.chain,
  };
  const lines = Object.entries(simulator.env({ name })).map(([variable, value]) =>
    variable in paths ? `${variable}_FILE=${quoted(paths[variable])}` : `${variable}=${quoted(value)}`,
  );
  return `# Another mode: set ${prefix}ENVIRONMENT and ${prefix}AUTHENTICATION in the environment, which counts before this file:
# production with mtls or oauth, sandbox with app-token, mtls or oauth.
${lines.join('\n')}
`;
}

/** As dotenv, Node's --env-file and a shell read it; see {@link folderFault}. */
function quoted(value: string): string {
  if (/^[\w@%+=:,./-]*$/.test(value)) return value;
  return value.includes("'") ? `"${value}"` : `'${value}'`;
}

/** A link, also one to nowhere, a folder or a pipe is `no file`: whoever made it wants it to stay. */
async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isFile() ? await readFile(path, 'utf8') : 'no file';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function marked(content: string): string {
  return `${MARK}${createHash('sha256').update(content).digest('hex')}\n${content}`;
}
