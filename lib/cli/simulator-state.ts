import { createHash, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import {
  type AuthorityPems,
  CertificateAuthority,
  type IssuedCertificate,
} from '../testing/certificate-authority.js';
import { ServiceSimulator } from '../testing/simulator.js';
import { type CommandIo } from './command.js';
import { makeFolder, PRIVATE, replaceFile } from './simulator-files.js';

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
