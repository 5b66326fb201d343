import { createHash, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import {
  CertificateAuthority,
  type IssuedCertificate,
  type KeptAuthority,
} from '../testing/certificate-authority.js';
import { ServiceSimulator } from '../testing/simulator.js';
import { type CommandIo } from './command.js';
import { makeFolder, PRIVATE, replace } from './simulator-files.js';

/** As long as a client warns that its certificate expires soon. */
const RENEWED_BEFORE_MS = 30 * 24 * 3_600_000;

/** What stays over a restart. */
interface Kept<Authority> {
  credentials: { clientId: string; clientSecret: string; appToken: string; webhookSecret: string };
  application: IssuedCertificate;
  authority: Authority;
}

/** Where the certificates and credentials for a `--dir` are kept, in the user's own folder; undefined if there is none. */
export function keptPath(env: CommandIo['env'], dir: string, platform = process.platform) {
  const { XDG_DATA_HOME = '', LOCALAPPDATA, APPDATA, HOME } = env;
  const ofHome = platform === 'darwin' ? ['Library', 'Application Support'] : ['.local', 'share'];
  const ofSystem = platform === 'win32' ? LOCALAPPDATA || APPDATA : HOME && join(HOME, ...ofHome);
  // The specification of XDG has relative ones ignored.
  const data = isAbsolute(XDG_DATA_HOME) ? XDG_DATA_HOME : ofSystem;
  const id = createHash('sha256').update(dir).digest('hex').slice(0, 16);
  return data ? join(data, 'nestjs-service', `simulator-${id}.json`) : undefined;
}

/** What an earlier start left; undefined if there is nothing of use, or a certificate that is not valid long enough. */
export async function readKept(path: string): Promise<Kept<CertificateAuthority> | undefined> {
  try {
    const { credentials, application, authority } = JSON.parse(
      await readFile(path, 'utf8'),
    ) as Kept<KeptAuthority>;
    const { validTo } = new X509Certificate(application.certificate);
    if (Date.now() + RENEWED_BEFORE_MS > Date.parse(validTo)) return undefined;
    return { credentials, application, authority: new CertificateAuthority(authority) };
  } catch {
    return undefined;
  }
}

/** @returns whether it could be written */
export async function keep(path: string, simulator: ServiceSimulator): Promise<boolean> {
  const { clientId, clientSecret, appToken, webhookSecret, application } = simulator;
  const kept: Kept<KeptAuthority> = {
    credentials: { clientId, clientSecret, appToken, webhookSecret },
    application,
    authority: ServiceSimulator.madeOf(simulator).authority.kept,
  };
  try {
    await makeFolder(join(path, '..'), 0o700);
    await replace(path, JSON.stringify(kept), PRIVATE);
    return true;
  } catch {
    return false;
  }
}
