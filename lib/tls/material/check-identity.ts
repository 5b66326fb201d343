import { type SecureContext } from 'node:tls';
import { type CertificateSummary, type ConfigurationFault } from '../../errors/index.js';
import { checkContents, missingCounterpart } from './check-contents.js';
import { checkChainDates, checkDates } from './check-dates.js';
import { checkPair } from './check-pair.js';
import { PemContents } from './pem-contents.js';
import { readPrivateKey } from './private-key.js';
import { type IdentitySnapshot } from './read-identity.js';
import { type SecureContexts } from './secure-contexts.js';

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
  const certificate = snapshot.certificate && new PemContents(snapshot.certificate, 'certificate');
  const privateKey = snapshot.privateKey && new PemContents(snapshot.privateKey, 'key');
  const chain = snapshot.chain && new PemContents(snapshot.chain, 'chain');

  checkContents(certificate, privateKey, chain);
  if (certificate) checkDates(certificate, now);
  const warnings = chain ? checkChainDates(chain, now) : [];
  const key = privateKey && readPrivateKey(privateKey, snapshot.passphrase);
  if (certificate?.certificates.length && privateKey && key) checkPair(certificate, privateKey, key, chain);

  const summary = certificate?.certificates[0]?.summary;
  const faults = [certificate, privateKey, chain].flatMap((contents) => contents?.faults ?? []);
  if (snapshot.passphrase?.fault) faults.push(snapshot.passphrase.fault);
  const missing = missingCounterpart(certificate, privateKey);
  if (missing) faults.push(missing);
  if (faults.length > 0) return { faults, warnings: [], certificate: summary };

  const material = {
    certificate: certificate?.certificates.map(({ pem }) => pem).join(''),
    privateKey: key?.export({ type: 'pkcs8', format: 'pem' }).toString(),
    chain: chain?.certificates.map(({ pem }) => pem),
  };
  try {
    const identity: LoadedIdentity = {
      apiContext: contexts.forApi(material),
      tokenContext: contexts.forTokenEndpoint(material),
      certificate: summary,
      chain: chain?.certificates.map((each) => each.summary.fingerprint256),
      digest: snapshot.digest,
    };
    return { identity, faults: [], warnings, certificate: summary };
  } catch (error) {
    const { option, variable } = snapshot.certificate ?? { option: 'tls.chain' };
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown reason';
    const message = `OpenSSL does not accept the certificate and key (${code}): a key or signature too weak for its security level, perhaps. Generate new ones in the developer portal.`;
    return { faults: [{ option, variable, message }], warnings: [], certificate: summary };
  }
}
