import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import {
  CertificateAuthority,
  type IssuedCertificate,
  type KeptAuthority,
} from '../testing/certificate-authority.js';
import { type ServiceSimulator } from '../testing/simulator.js';
import { ForeignFileError, KEPT_FILE, readOwn } from './simulator-files.js';

/** As long as a client warns that its certificate expires soon. */
const RENEWED_BEFORE_MS = 30 * 24 * 3_600_000;

interface Credentials {
  clientId: string;
  clientSecret: string;
  appToken: string;
}

/** What the file holds. */
interface KeptText {
  credentials: Credentials;
  application: IssuedCertificate;
  authority: KeptAuthority;
}

/** What an earlier start left. Without an authority, its certificates are not valid long enough, or not yet. */
export interface Kept {
  validFrom: Date;
  validTo: Date;
  credentials: Credentials;
  application: IssuedCertificate;
  authority?: CertificateAuthority;
}

/** The certificates and credentials of a simulator, for a later start. */
export async function textToKeep(
  simulator: Credentials & Pick<ServiceSimulator, 'application' | 'authority'>,
): Promise<string> {
  const { clientId, clientSecret, appToken, application } = simulator;
  const authority = await simulator.authority.toText();
  const kept: KeptText = { credentials: { clientId, clientSecret, appToken }, application, authority };
  return `${JSON.stringify(kept, undefined, 2)}\n`;
}

/**
 * What an earlier start with `--keep` left; undefined where there was none.
 * @throws ForeignFileError where the file is damaged, and the system's errors
 */
export async function readKept(folder: string): Promise<Kept | undefined> {
  const path = join(folder, KEPT_FILE);
  const text = await readOwn(path);
  if (text === undefined) return undefined;
  try {
    const { credentials, application, authority } = JSON.parse(text) as KeptText;
    const { validFrom, validTo } = validityOf([
      application.certificate,
      authority.intermediate,
      authority.root,
    ]);
    const { clientId, clientSecret, appToken } = credentials;
    const isValid = validFrom.getTime() <= Date.now() && Date.now() + RENEWED_BEFORE_MS < validTo.getTime();
    return {
      validFrom,
      validTo,
      credentials: { clientId, clientSecret, appToken },
      application,
      ...(isValid && { authority: await CertificateAuthority.restore(authority) }),
    };
  } catch (error) {
    if (/npm i /.test((error as Error).message)) throw error;
    throw new ForeignFileError(
      `${path} is not as this version of the command writes it. Remove it: the next start makes new certificates and credentials.`,
    );
  }
}

/** What became of the certificates and credentials, in one line. */
export function describeKept(found: Kept | undefined): string {
  if (found === undefined) return 'They are new, and stay for the next start with --keep.';
  const [from, to] = [found.validFrom, found.validTo].map((date) => date.toISOString().slice(0, 10));
  return found.authority
    ? `They are those of the last start with --keep. The certificates are valid until ${to}.`
    : `The certificates are new: those of the last start are valid from ${from} to ${to} only. Start your application again.`;
}

function validityOf(certificates: string[]): { validFrom: Date; validTo: Date } {
  const parsed = certificates.map((pem) => new X509Certificate(pem));
  return {
    validFrom: new Date(Math.max(...parsed.map(({ validFrom }) => Date.parse(validFrom)))),
    validTo: new Date(Math.min(...parsed.map(({ validTo }) => Date.parse(validTo)))),
  };
}
