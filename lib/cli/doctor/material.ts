import { type X509Certificate } from 'node:crypto';
import { type SecureContext } from 'node:tls';
import { type Clock } from '../../config/clock.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type CertificateSummary } from '../../errors/index.js';
import { checkIdentity } from '../../tls/material/check-identity.js';
import { PemContents } from '../../tls/material/pem-contents.js';
import { readIdentity } from '../../tls/material/read-identity.js';
import { type ReadInput } from '../../tls/material/read-input.js';
import { SecureContexts } from '../../tls/material/secure-contexts.js';

/** Certificates as they are in the files now, and connections' settings made of them. */
export interface Material {
  apiContext: SecureContext;
  tokenContext: SecureContext;
  certificate?: CertificateSummary;
  /** The application certificate, and what stands after it. */
  sent: readonly X509Certificate[];
  /** The service's chain; empty where Node's public roots are the anchor. */
  chain: readonly X509Certificate[];
}

/** Undefined where they are not usable any more. */
export async function readMaterial(
  { tls, oauth }: ResolvedOptions,
  clock: Clock,
): Promise<Material | undefined> {
  const snapshot = await readIdentity(tls, clock);
  const contexts = new SecureContexts(oauth?.mtls ?? false);
  const { identity } = checkIdentity(snapshot, clock.now(), contexts);
  if (!identity) return undefined;
  const { apiContext, tokenContext, certificate } = identity;
  return {
    apiContext,
    tokenContext,
    certificate,
    sent: certificatesIn(snapshot.certificate, 'certificate'),
    chain: certificatesIn(snapshot.chain, 'chain'),
  };
}

function certificatesIn(input: ReadInput | undefined, purpose: 'certificate' | 'chain'): X509Certificate[] {
  return input ? new PemContents(input, purpose).certificates.map(({ x509 }) => x509) : [];
}
