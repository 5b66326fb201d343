import { createHash, X509Certificate } from 'node:crypto';
import { lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { variablePrefix } from '../config/names.js';
import {
  type AuthorityPems,
  CertificateAuthority,
  type IssuedCertificate,
} from '../testing/certificate-authority.js';
import { ServiceSimulator } from '../testing/simulator.js';
import { type CommandIo } from './command.js';

const NAMES = ['application.crt', 'application.key', 'chain.pem', '.env'] as const;
/** The first line of each file, followed by the SHA-256 of the rest. It shows whether somebody has edited the file. */
const HEADER =
  '# Written by nestjs-service simulator, anew at each start. A changed file is not written over: ';
/** The mode of files with a key or a secret: only the user may read them. */
const PRIVATE = 0o600;
const PUBLIC = 0o644;

/** The absolute paths of a simulator's files. */
export interface SimulatorFiles {
  folder: string;
  certificate: string;
  privateKey: string;
  chain: string;
  env: string;
}

/** The folder contains a file that this command did not write, or that somebody has changed. */
export class ForeignFileError extends Error {}

/**
 * Checks that each file to be written does not exist yet, or is unchanged since this command wrote it.
 *
 * @throws ForeignFileError, or an error of the file system
 */
export async function checkFolder(folder: string): Promise<void> {
  for (const path of NAMES.map((name) => join(folder, name))) {
    const found = await readIfExists(path);
    if (found === undefined || found === withHeader(found.slice(found.indexOf('\n') + 1))) continue;
    throw new ForeignFileError(
      `${path} would be overwritten, but it was changed since the simulator wrote it, or was not written by the simulator. Move the file, or choose another folder with --dir.`,
    );
  }
}

/**
 * Creates the folder, and writes the certificates and a .env with which ServiceModule or any other client reaches the
 * simulator. Adds a .gitignore, so that keys and secrets are not committed.
 */
export async function writeFiles(
  folder: string,
  simulator: ServiceSimulator,
  moduleName?: string,
): Promise<SimulatorFiles> {
  const [certificate = '', privateKey = '', chain = '', env = ''] = NAMES.map((name) => join(folder, name));
  const files = { folder, certificate, privateKey, chain, env };
  await makeFolder(folder);
  await writeFile(join(folder, '.gitignore'), '*\n', { flag: 'wx' }).catch(ignoreExisting);
  await replaceFile(certificate, withHeader(simulator.application.certificate), PUBLIC);
  await replaceFile(privateKey, withHeader(simulator.application.privateKey), PRIVATE);
  await replaceFile(chain, withHeader(simulator.chain), PUBLIC);
  await replaceFile(env, withHeader(formatEnvFile(simulator, files, moduleName)), PRIVATE);
  return files;
}

/**
 * Creates the folder and its parents. Does not use the `recursive` option of mkdir(), with which Node never settles where
 * no folder can be created, for example below /proc.
 */
async function makeFolder(path: string, mode?: number): Promise<void> {
  const make = () => mkdir(path, { mode }).catch(ignoreExisting);
  try {
    await make();
  } catch (error) {
    // A root without a parent: a drive that does not exist.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path), mode);
    await make();
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

/** Removes the old file first, so that the new one gets its own mode and a link is not followed. */
async function replaceFile(path: string, content: string, mode: number): Promise<void> {
  await rm(path, { force: true });
  await writeFile(path, content, { mode, flag: 'wx' });
}

/**
 * Says why the paths of files in this folder cannot be written to a .env that dotenv, Node's --env-file and a shell all read
 * in the same way; undefined if they can.
 */
export function folderFault(folder: string): string | undefined {
  if (/\p{Cc}/u.test(folder)) return 'the path contains a line break or another control character.';
  const hasBoth = folder.includes("'") && /["$`]|\\[\\nr]/.test(folder);
  return hasBoth
    ? `the path contains a ' and also one of ", $, \` and \\, so it cannot be quoted safely in a .env file.`
    : undefined;
}

function formatEnvFile(simulator: ServiceSimulator, files: SimulatorFiles, name: string | undefined): string {
  const prefix = variablePrefix(name);
  const paths: Record<string, string> = {
    [`${prefix}TLS_CERTIFICATE`]: files.certificate,
    [`${prefix}TLS_PRIVATE_KEY`]: files.privateKey,
    [`${prefix}TLS_CHAIN`]: files.chain,
  };
  const lines = Object.entries(simulator.env({ name })).map(([variable, value]) =>
    variable in paths
      ? `${variable}_FILE=${quoteEnvValue(paths[variable])}`
      : `${variable}=${quoteEnvValue(value)}`,
  );
  return `# To use another mode, set ${prefix}ENVIRONMENT and ${prefix}AUTHENTICATION in the environment, which overrides this file:
# production with mtls or oauth; sandbox with app-token, mtls or oauth.
${lines.join('\n')}
`;
}

/** Quotes a value so that dotenv, Node's --env-file and a shell read the same; see {@link folderFault}. */
function quoteEnvValue(value: string): string {
  if (/^[\w@%+=:,./-]*$/.test(value)) return value;
  return value.includes("'") ? `"${value}"` : `'${value}'`;
}

/** Returns `no file` for a link, folder or pipe, which differs from all that this command writes: so it is not replaced. */
async function readIfExists(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isFile() ? await readFile(path, 'utf8') : 'no file';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function withHeader(content: string): string {
  return `${HEADER}${createHash('sha256').update(content).digest('hex')}\n${content}`;
}

/** A client warns about a certificate in its last 30 days. Certificates are replaced before that. */
const RENEWED_BEFORE_MS = 30 * 24 * 3_600_000;

/** The certificates and credentials that a restarted simulator uses again, so that clients need no new configuration. */
interface SimulatorState<Authority> {
  credentials: { clientId: string; clientSecret: string; appToken: string; webhookSecret: string };
  application: IssuedCertificate;
  authority: Authority;
}

/** The file in the user's data folder that stores the state for a `--dir`. Undefined if the user has no data folder. */
export function statePath(env: CommandIo['env'], dir: string, platform = process.platform) {
  const { XDG_DATA_HOME = '', LOCALAPPDATA, APPDATA, HOME } = env;
  const inHome = platform === 'darwin' ? ['Library', 'Application Support'] : ['.local', 'share'];
  const systemDefault = platform === 'win32' ? LOCALAPPDATA || APPDATA : HOME && join(HOME, ...inHome);
  // Relative paths are ignored: https://specifications.freedesktop.org/basedir-spec/latest/
  const data = isAbsolute(XDG_DATA_HOME) ? XDG_DATA_HOME : systemDefault;
  const id = createHash('sha256').update(dir).digest('hex').slice(0, 16);
  return data ? join(data, 'nestjs-service', `simulator-${id}.json`) : undefined;
}

/** Reads the state of an earlier start; undefined if there is none, or its certificate expires soon. */
export async function readState(path: string): Promise<SimulatorState<CertificateAuthority> | undefined> {
  try {
    const { credentials, application, authority } = JSON.parse(
      await readFile(path, 'utf8'),
    ) as SimulatorState<AuthorityPems>;
    const { validTo } = new X509Certificate(application.certificate);
    if (Date.now() + RENEWED_BEFORE_MS > Date.parse(validTo)) return undefined;
    return { credentials, application, authority: new CertificateAuthority(authority) };
  } catch {
    return undefined;
  }
}

/** @returns false if the file cannot be written */
export async function writeState(path: string, simulator: ServiceSimulator): Promise<boolean> {
  const { clientId, clientSecret, appToken, webhookSecret, application } = simulator;
  const state: SimulatorState<AuthorityPems> = {
    credentials: { clientId, clientSecret, appToken, webhookSecret },
    application,
    authority: ServiceSimulator.certificatesOf(simulator).authority.pems,
  };
  try {
    await makeFolder(join(path, '..'), 0o700);
    await replaceFile(path, JSON.stringify(state), PRIVATE);
    return true;
  } catch {
    return false;
  }
}
