import { type SecureContext } from 'node:tls';
import { type CertificateSummary, type ConfigurationFault } from '../../errors/index.js';
import { checkContents } from './check-contents.js';
import { checkPair } from './check-pair.js';
import { fault, type ReadInput } from './read-input.js';
import { readContents, type PemContents } from './pem-contents.js';
import { readPrivateKey } from './private-key.js';
import { type ContextMaterial, type SecureContexts } from './secure-contexts.js';
import { type IdentitySnapshot } from './read-identity.js';
import { summarize } from '../certificate-summary.js';
import { checkChainDates, checkDates } from './check-dates.js';

/** A checked identity. Its private key is only inside the contexts, where JavaScript cannot read it. */
export interface LoadedIdentity {
  apiContext: SecureContext;
  tokenContext: SecureContext;
  /** The application certificate; absent where there is none (`app-token`, `oauth`). */
  certificate?: CertificateSummary;
  /** SHA-256 fingerprints of the service's chain; absent where Node's public roots are the anchor. */
  chain?: readonly string[];
  /** The same for the same content of the inputs. */
  digest: string;
}

export interface LoadResult {
  /** Only where there are no faults. */
  identity?: LoadedIdentity;
  faults: ConfigurationFault[];
  /** About the service's chain. {@link ExpiryWatch} warns about the application certificate. */
  warnings: string[];
  /** The application certificate where one could be read, faults or not. */
  certificate?: CertificateSummary;
}

/**
 * Checks an identity that was read (specification 5.2). Reports every fault at once and never throws.
 * @param now milliseconds since the epoch
 */
export function checkIdentity(snapshot: IdentitySnapshot, now: number, contexts: SecureContexts): LoadResult {
  if (snapshot.faults.length > 0) return { faults: snapshot.faults, warnings: [] };
  const certificate = snapshot.certificate && readContents(snapshot.certificate, 'certificate');
  const privateKey = snapshot.privateKey && readContents(snapshot.privateKey, 'key');
  const chain = snapshot.chain && readContents(snapshot.chain, 'chain');

  const faults = checkContents(certificate, privateKey, chain);
  const material: ContextMaterial = {};
  const first = certificate?.certificates[0];
  const summary = first && summarize(first.x509);
  const chainDates = chain?.certificates.length
    ? checkChainDates(
        chain.input,
        chain.certificates.map(({ x509 }) => summarize(x509)),
        now,
      )
    : { warnings: [] };
  if (chainDates.fault) faults.push(chainDates.fault);

  if (certificate && summary) {
    const dates = checkDates(certificate.input, summary, now);
    if (dates) faults.push(dates);
    material.certificate = certificate.certificates.map(({ pem }) => pem).join('');
  }
  if (privateKey?.keys.length === 1) {
    const key = pairedKey(certificate, privateKey, chain, snapshot.passphrase);
    if (key.fault) faults.push(key.fault);
    material.privateKey = key.pem;
  }
  material.chain = chain?.certificates.map(({ pem }) => pem);

  if (faults.length > 0) return { faults, warnings: [], certificate: summary };
  const result = makeContexts(snapshot, material, summary, chainDates.warnings, contexts);
  if (result.identity && chain)
    result.identity.chain = chain.certificates.map(({ x509 }) => x509.fingerprint256);
  return result;
}

function pairedKey(
  certificate: PemContents | undefined,
  privateKey: PemContents,
  chain: PemContents | undefined,
  passphrase: ReadInput | undefined,
): { pem?: string; fault?: ConfigurationFault } {
  // This fault says more than "there is no passphrase".
  if (passphrase?.fault) return { fault: passphrase.fault };
  const result = readPrivateKey(privateKey.input, privateKey.keys[0], passphrase);
  if (result.fault) return { fault: result.fault };
  const mismatch = certificate?.certificates.length
    ? checkPair(certificate, privateKey, result.key, chain)
    : undefined;
  if (mismatch) return { fault: mismatch };
  return { pem: result.key.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

function makeContexts(
  { certificate: input, digest }: IdentitySnapshot,
  material: ContextMaterial,
  certificate: CertificateSummary | undefined,
  warnings: string[],
  contexts: SecureContexts,
): LoadResult {
  try {
    const identity: LoadedIdentity = {
      apiContext: contexts.forApi(material),
      tokenContext: contexts.forTokenEndpoint(material),
      certificate,
      digest,
    };
    return { identity, faults: [], warnings, certificate };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown reason';
    const message = `OpenSSL does not accept the certificate and key (${code}): a key or signature too weak for its security level, perhaps. Generate new ones in the developer portal.`;
    return { faults: [fault(input ?? { option: 'tls.chain' }, message)], warnings: [], certificate };
  }
}
