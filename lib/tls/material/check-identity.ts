import { type KeyObject } from 'node:crypto';
import { type SecureContext } from 'node:tls';
import { type CertificateSummary, type ConfigurationFault } from '../../errors/index.js';
import { daysLeft, describeCertificate, formatDate, WARNING_DAYS } from '../certificate-summary.js';
import { checkContents, missingCounterpart } from './check-contents.js';
import { type ParsedCertificate, PemContents } from './pem-contents.js';
import { readPrivateKey } from './private-key.js';
import { type IdentitySnapshot } from './read-identity.js';
import { type SecureContexts } from './secure-contexts.js';

const RENEW_CHAIN = 'Download the chain anew from the developer portal.';

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

interface LoadResult {
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
 * @param inUse the one that it is to replace
 */
export function checkIdentity(
  snapshot: IdentitySnapshot,
  now: number,
  contexts: SecureContexts,
  inUse?: LoadedIdentity,
): LoadResult {
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
  if (inUse?.certificate && !certificate && !missing) faults.push(lost('tls.certificate'));
  if (inUse?.chain && !chain) faults.push(lost('tls.chain'));
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

/**
 * A vault that returns less than before must not take away the certificate, nor change the trust anchor from the
 * service's chain to Node's public roots.
 */
function lost(option: string): ConfigurationFault {
  const message =
    'is missing: the tls function returned none, and there was one before. Look at its vault or store.';
  return { option, message };
}

/** Checks the dates of the application certificate. `now` in milliseconds since the epoch. */
function checkDates(contents: PemContents, now: number): void {
  const summary = contents.certificates[0]?.summary;
  if (!summary) return;
  const name = `the certificate ${describeCertificate(summary)}${contents.input.inFile}`;
  if (now >= summary.validTo.getTime()) {
    contents.fail(
      `${name} expired on ${formatDate(summary.validTo)}, and this machine's clock says ${formatDate(now)}. Generate a new one in the developer portal and put it there with its new key.`,
    );
  } else if (now < summary.validFrom.getTime()) {
    contents.fail(
      `${name} is not valid before ${formatDate(summary.validFrom)}, and this machine's clock says ${formatDate(now)}. Check the clock, or wait.`,
    );
  }
}

/**
 * Checks the dates of the trust anchors. With no valid one, no server can be verified.
 * @returns warnings about those that have expired or expire soon
 */
function checkChainDates(contents: PemContents, now: number): string[] {
  const { input, certificates } = contents;
  const chain = certificates.map(({ summary }) => summary);
  const expired = chain.filter(({ validTo }) => now >= validTo.getTime());
  const early = chain.filter(({ validFrom }) => now < validFrom.getTime());
  const [first] = chain;
  if (first && expired.length + early.length === chain.length) {
    const why = expired.includes(first)
      ? `expired on ${formatDate(first.validTo)}`
      : `is not valid before ${formatDate(first.validFrom)}`;
    contents.fail(
      `no certificate of the service's chain${input.inFile} is valid now: ${describeCertificate(first)} ${why}. ${RENEW_CHAIN}`,
    );
  }
  const ending = chain.filter((each) => !expired.includes(each) && daysLeft(each, now) < WARNING_DAYS[0]);
  return [...expired, ...ending].map((each) => {
    const verb = expired.includes(each) ? 'expired' : 'expires';
    return `${input.option}: ${describeCertificate(each)} of the service's chain ${verb} on ${formatDate(each.validTo)}. ${RENEW_CHAIN}`;
  });
}

/** Checks that the key belongs to the first certificate. If it does not, says which of the usual mistakes was made. */
function checkPair(
  certificate: PemContents,
  privateKey: PemContents,
  key: KeyObject,
  chain: PemContents | undefined,
): void {
  const name = ({ summary }: ParsedCertificate) => describeCertificate(summary);
  const [first, ...rest] = certificate.certificates;
  const fits = ({ x509 }: ParsedCertificate) => x509.checkPrivateKey(key);
  const inChain = chain?.certificates.find(fits);
  const place = rest.findIndex(fits);
  if (fits(first)) {
    if (inChain)
      chain?.refuse(
        `holds the application certificate itself, ${name(inChain)}: whoever has its key could pose as the service. Put the service's public chain from the developer portal there, and nothing else.`,
      );
  } else if (place >= 0) {
    certificate.refuse(
      `begins with a certificate of the chain, ${name(first)}; the application certificate, ${name(rest[place])}, comes at place ${place + 2}. Put the application certificate first.`,
    );
  } else if (chain && inChain) {
    const { option, path } = chain.input;
    certificate.refuse(
      `holds another certificate than that of the private key, which stands in ${option}${path ? ` (${path})` : ''}: application certificate and chain are swapped. Exchange the two.`,
    );
  } else if (first.x509.ca) {
    certificate.refuse(
      `begins with a certificate authority's certificate, ${name(first)}, and has none that fits the private key. Put the application certificate (CRT) there, first; the service's chain belongs in tls.chain.`,
    );
  } else {
    privateKey.refuse(
      `holds the key of another certificate, not of ${name(first)}. Take key and certificate from the same download of the developer portal.`,
    );
  }
}
