import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import {
  CertificateAuthority,
  type IssuedCertificate,
  type KeptAuthority,
} from '../testing/certificate-authority.js';
import { type ServiceSimulator } from '../testing/simulator.js';
import { KEPT_FILE, readOwn } from './simulator-files.js';

/** As long as a client warns that its certificate expires soon. */
const RENEWED_BEFORE_MS = 30 * 24 * 3_600_000;

/** What stays over a restart. */
interface Kept<Authority> {
  credentials: { clientId: string; clientSecret: string; appToken: string };
  application: IssuedCertificate;
  authority: Authority;
}

/** The certificates and credentials of a simulator, for a later start. */
export async function textToKeep(
  simulator: Kept<CertificateAuthority>['credentials'] & Pick<ServiceSimulator, 'application' | 'authority'>,
): Promise<string> {
  const { clientId, clientSecret, appToken, application } = simulator;
  const authority = await simulator.authority.toText();
  const kept: Kept<KeptAuthority> = {
    credentials: { clientId, clientSecret, appToken },
    application,
    authority,
  };
  return `${JSON.stringify(kept, undefined, 2)}\n`;
}

/**
 * What an earlier start left; undefined if there is nothing, or nothing of use: of another version of the command, or
 * with a certificate that is not valid long enough.
 *
 * @throws ForeignFileError if the file was changed, and the system's errors
 */
export async function readKept(folder: string): Promise<Kept<CertificateAuthority> | undefined> {
  const text = await readOwn(join(folder, KEPT_FILE));
  if (text === undefined) return undefined;
  try {
    const { credentials, application, authority } = JSON.parse(text) as Kept<KeptAuthority>;
    const { clientId, clientSecret, appToken } = credentials;
    if (!isCurrent(new X509Certificate(application.certificate))) return undefined;
    return {
      credentials: { clientId, clientSecret, appToken },
      application,
      authority: await CertificateAuthority.restore(authority),
    };
  } catch {
    return undefined;
  }
}

function isCurrent({ validFrom, validTo }: X509Certificate): boolean {
  const now = Date.now();
  return Date.parse(validFrom) <= now && now + RENEWED_BEFORE_MS < Date.parse(validTo);
}
