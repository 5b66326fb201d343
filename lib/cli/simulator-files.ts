import { createHash, randomUUID } from 'node:crypto';
import { lstat, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { variablePrefix } from '../config/module-name.js';
import { type ServiceSimulator } from '../testing/simulator.js';
import { IGNORE_ALL } from './git-ignores.js';

const NAMES = ['application.crt', 'application.key', 'chain.pem', '.env'] as const;
/** Certificates and credentials for the next start. */
export const KEPT_FILE = 'simulator.kept';
/** Before the SHA-256 of all that follows: a file says by itself whether it is still as this command wrote it. */
const MARK =
  '# Written by nestjs-service simulator, anew at each start. A changed file is not written over: ';
/** Only the user may read what holds a key or a secret. */
const PRIVATE = 0o600;
const PUBLIC = 0o644;

/** Where the files of a simulator are; absolute paths. */
export interface SimulatorFiles {
  folder: string;
  certificate: string;
  privateKey: string;
  chain: string;
  env: string;
  /** Of all that were written. */
  names: string[];
}

/** There is a file in the way that this command did not write. */
export class ForeignFileError extends Error {}

/**
 * Makes sure that every file to be written is new or still as this command wrote it. Writes nothing.
 * @throws ForeignFileError, and the system's errors
 */
export async function checkFolder(folder: string): Promise<void> {
  for (const name of [...NAMES, KEPT_FILE]) await readOwn(join(folder, name));
}

/**
 * What this command wrote to a file; undefined if there is none.
 * @throws ForeignFileError, and the system's errors
 */
export async function readOwn(path: string): Promise<string | undefined> {
  const found = await readIfThere(path);
  if (found === undefined) return undefined;
  const content = found.slice(found.indexOf('\n') + 1);
  if (found === marked(content)) return content;
  throw new ForeignFileError(
    `${path} was not written by this command, or was changed since, so it stays as it is. Move it, or choose another folder with --dir.`,
  );
}

/**
 * Makes the folder. Writes the certificates and a .env with which ServiceModule, or the one with the name, or any other
 * client, reaches the simulator.
 */
export async function writeFiles(
  folder: string,
  simulator: ServiceSimulator,
  { name: moduleName, kept }: { name?: string; kept?: string } = {},
): Promise<SimulatorFiles> {
  const [certificate = '', privateKey = '', chain = '', env = ''] = NAMES.map((name) => join(folder, name));
  const files = { folder, certificate, privateKey, chain, env };
  const contents = {
    'application.crt': simulator.application.certificate,
    'application.key': simulator.application.privateKey,
    'chain.pem': simulator.chain,
    '.env': envFile(simulator, files, moduleName),
    ...(kept !== undefined && { [KEPT_FILE]: kept }),
  };
  // A folder that was there is somebody else's.
  if (await makeFolder(folder)) await writeFile(join(folder, '.gitignore'), IGNORE_ALL, { flag: 'wx' });
  for (const [name, content] of Object.entries(contents)) {
    const mode = /\.(crt|pem)$/.test(name) ? PUBLIC : PRIVATE;
    await replace(join(folder, name), marked(content), mode);
  }
  return { ...files, names: Object.keys(contents) };
}

/**
 * Whether it made the folder, or it was there. Not mkdir's own `recursive`: that never ends below a folder that takes no
 * others, for example /proc.
 */
async function makeFolder(folder: string): Promise<boolean> {
  const isThere = await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (isThere || dirname(folder) === folder) return false;
  await makeFolder(dirname(folder));
  return mkdir(folder).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      // Somebody else may have made it meanwhile.
      if (error.code === 'EEXIST') return false;
      throw error;
    },
  );
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

function envFile(
  simulator: ServiceSimulator,
  files: Omit<SimulatorFiles, 'names'>,
  name: string | undefined,
): string {
  const prefix = variablePrefix(name);
  const paths = new Map([
    [`${prefix}TLS_CERTIFICATE`, files.certificate],
    [`${prefix}TLS_PRIVATE_KEY`, files.privateKey],
    [`${prefix}TLS_CHAIN`, files.chain],
  ]);
  const lines = Object.entries(simulator.env({ name })).map(([variable, value]) => {
    const path = paths.get(variable);
    return path === undefined ? `${variable}=${quoted(value)}` : `${variable}_FILE=${quoted(path)}`;
  });
  const modes =
    `# Another mode: set ${prefix}ENVIRONMENT and ${prefix}AUTHENTICATION in the environment, which counts before this file:\n` +
    '# production with mtls or oauth, sandbox with app-token, mtls or oauth.\n';
  return `${modes}${lines.join('\n')}\n`;
}

/** As dotenv, Node's --env-file and a shell read it; see {@link folderFault}. */
function quoted(value: string): string {
  if (/^[\w@%+=:,./-]*$/.test(value)) return value;
  return value.includes("'") ? `"${value}"` : `'${value}'`;
}

/** Through another name, so that nobody reads half a file and a link is not followed. */
async function replace(path: string, content: string, mode: number): Promise<void> {
  // Not by the process id: in a container it is the same at each start, and a start may be killed here.
  const temporary = `${path}.${randomUUID()}.tmp`;
  await writeFile(temporary, content, { mode, flag: 'wx' });
  await rename(temporary, path);
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
