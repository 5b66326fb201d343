import { type KeyObject, type X509Certificate } from 'node:crypto';
import { type CertificateSummary, type ConfigurationFault, describeLocation } from '../../errors/index.js';
import { daysLeft, describeCertificate, formatDate, WARNING_DAYS } from '../certificate-summary.js';
import { type ParsedCertificate, PemContents } from './pem-contents.js';
import { readPrivateKey } from './private-key.js';
import { type IdentitySnapshot } from './read-identity.js';
import { type Contexts, type SecureContexts } from './secure-contexts.js';

type Locate = IdentitySnapshot['locate'];

const RENEW_CHAIN = 'Download the chain anew from the developer portal.';

/** The contents of the inputs that are given. */
interface Contents {
  certificate?: PemContents;
  privateKey?: PemContents;
  chain?: PemContents;
}

/** A checked identity. Its private key is only inside the contexts, where JavaScript cannot read it. */
export interface LoadedIdentity extends Contexts {
  /** The application certificate; absent without one (`app-token`, `oauth`). */
  certificate?: CertificateSummary;
  /** The application certificate, and the certificates after it. */
  sent: readonly X509Certificate[];
  /** The service's chain; empty if Node's public roots are the anchor. */
  chain: readonly X509Certificate[];
  /** The service is verified against Node's public roots, but `tls.publicRoots` is not set. */
  lacksChain: boolean;
  /** The same for the same content of the inputs. */
  digest: string;
}

interface LoadResult {
  /** Absent if there are faults. */
  identity?: LoadedIdentity;
  faults: ConfigurationFault[];
  /** About the service's chain. {@link ExpiryWatch} warns about the application certificate. */
  warnings: string[];
  /** The application certificate, if one could be read, faults or not. */
  certificate?: CertificateSummary;
}

/**
 * Checks an identity that was read (docs/service.md#mutual-tls) and is to replace the one `inUse`. Reports all faults at
 * once and never throws. `now` in milliseconds since the epoch.
 */
export function checkIdentity(
  snapshot: IdentitySnapshot,
  now: number,
  contexts: SecureContexts,
  inUse?: LoadedIdentity,
): LoadResult {
  if (snapshot.fault) return { faults: [snapshot.fault], warnings: [] };
  const { locate, publicRoots, needsChain } = snapshot;
  const contents: Contents = {
    certificate: snapshot.certificate && new PemContents(snapshot.certificate, 'certificate'),
    privateKey: snapshot.privateKey && new PemContents(snapshot.privateKey, 'key'),
    chain: snapshot.chain && new PemContents(snapshot.chain, 'chain'),
  };
  const { certificate, privateKey, chain } = contents;
  if (certificate && privateKey && areSwapped(certificate, privateKey)) {
    const other = describeLocation(privateKey.input.location);
    certificate.refuse(
      `holds the private key, and ${other} holds the certificate: the two are swapped. Exchange them.`,
    );
  } else {
    certificate?.checkCertificates();
    privateKey?.checkKey();
  }
  chain?.checkCertificates();
  if (certificate) checkDates(certificate, now);
  const warnings = chain ? checkChainDates(chain, now) : [];
  const key = privateKey && readPrivateKey(privateKey, snapshot.passphrase, locate);
  if (key) checkPair(contents, key);

  const summary = certificate?.certificates[0]?.summary;
  const faults = [certificate, privateKey, chain].flatMap((each) => each?.faults ?? []);
  if (snapshot.passphrase?.fault) faults.push(snapshot.passphrase.fault);
  const missing = missingCounterpart(contents, locate);
  if (missing) faults.push(missing);
  if (inUse?.certificate && !certificate && !missing) faults.push(lost('tls.certificate'));
  const lacksChain = needsChain !== undefined && certificate !== undefined && !chain && !publicRoots;
  if (inUse?.chain.length && !chain && !publicRoots) faults.push(lost('tls.chain'));
  else if (lacksChain && needsChain === 'required') faults.push(missingChain(locate));
  if (chain && publicRoots) faults.push(twoAnchors(locate));
  const unusable = { faults, warnings: [], certificate: summary };
  if (faults.length > 0) return unusable;

  const chainPems = chain?.certificates.map(({ pem }) => pem);
  const client = {
    cert: certificate?.certificates.map(({ pem }) => pem).join(''),
    key: key?.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
  try {
    const identity: LoadedIdentity = {
      ...contexts.create(client, chainPems),
      certificate: summary,
      sent: x509Of(certificate),
      chain: x509Of(chain),
      lacksChain,
      digest: snapshot.digest,
    };
    return { identity, faults: [], warnings, certificate: summary };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown reason';
    const message = `OpenSSL does not accept the certificate and key (${code}): a key or signature too weak for its security level, perhaps. Generate new ones in the developer portal.`;
    return { ...unusable, faults: [{ ...locate(certificate ? 'tls.certificate' : 'tls.chain'), message }] };
  }
}

function areSwapped(certificate: PemContents, privateKey: PemContents): boolean {
  const holdsKeyOnly = certificate.keys.length > 0 && certificate.certificates.length === 0;
  return holdsKeyOnly && privateKey.certificates.length > 0 && privateKey.keys.length === 0;
}

/** The fault if only one of certificate and key is set: that of the missing option. */
function missingCounterpart(
  { certificate, privateKey }: Contents,
  locate: Locate,
): ConfigurationFault | undefined {
  if (!certificate === !privateKey) return undefined;
  const [present, absent, what] = certificate
    ? ['tls.certificate', 'tls.privateKey', 'key']
    : ['tls.privateKey', 'tls.certificate', 'certificate'];
  const message = `is missing: ${present} is set, and one is of no use without the other. Set the ${what}, or leave out both.`;
  return { ...locate(absent), message };
}

/** Specification, 5.2.4: the client must verify the server against the chain. */
function missingChain(locate: Locate): ConfigurationFault {
  const location = locate('tls.chain');
  const publicRoots = describeLocation(locate('tls.publicRoots'));
  const isNamed = location.variable !== undefined || location.key !== undefined;
  const inAnswer = isNamed ? '' : ' (a tls function returns it: publicRoots: true)';
  const message = `is missing: in production, a service that gets the client certificate is verified against its own chain (specification, 5.2.4). Download it from the developer portal (authentication section, "certificate chain"). Only if the service has a certificate of a public authority, set ${publicRoots} to true instead${inAnswer}.`;
  return { ...location, message };
}

function twoAnchors(locate: Locate): ConfigurationFault {
  const message = `is true, and tls.chain is set too, which trusts no public root. Leave out tls.publicRoots to trust the chain alone, or ${describeLocation(locate('tls.chain'))} to trust Node's public roots.`;
  return { ...locate('tls.publicRoots'), message };
}

function x509Of(contents: PemContents | undefined): X509Certificate[] {
  return (contents?.certificates ?? []).map(({ x509 }) => x509);
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

/** Without a valid trust anchor, no server can be verified. Returns warnings about certificates that expire soon. */
function checkChainDates(contents: PemContents, now: number): string[] {
  const { input } = contents;
  const chain = contents.certificates.map(({ summary }) => summary);
  const isExpired = ({ validTo }: CertificateSummary) => now >= validTo.getTime();
  const [first] = chain;
  if (first && chain.every((each) => isExpired(each) || now < each.validFrom.getTime())) {
    const why = isExpired(first)
      ? `expired on ${formatDate(first.validTo)}`
      : `is not valid before ${formatDate(first.validFrom)}`;
    contents.fail(
      `no certificate of the service's chain${input.inFile} is valid now: ${describeCertificate(first)} ${why}. ${RENEW_CHAIN}`,
    );
  }
  const ending = chain.filter((each) => daysLeft(each, now) < WARNING_DAYS[0]);
  return ending.map((each) => {
    const verb = isExpired(each) ? 'expired' : 'expires';
    return `tls.chain: ${describeCertificate(each)} of the service's chain ${verb} on ${formatDate(each.validTo)}. ${RENEW_CHAIN}`;
  });
}

/** Checks that the key belongs to the first certificate. If it does not, says which of the usual mistakes was made. */
function checkPair({ certificate, privateKey, chain }: Contents, key: KeyObject): void {
  if (!certificate || certificate.certificates.length === 0) return;
  const name = ({ summary }: ParsedCertificate) => describeCertificate(summary);
  const fits = ({ x509 }: ParsedCertificate) => x509.checkPrivateKey(key);
  const [first, ...rest] = certificate.certificates;
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
    const { path } = chain.input;
    certificate.refuse(
      `holds another certificate than that of the private key, which stands in tls.chain${path ? ` (${path})` : ''}: application certificate and chain are swapped. Exchange the two.`,
    );
  } else if (first.x509.ca) {
    certificate.refuse(
      `begins with a certificate authority's certificate, ${name(first)}, and has none that fits the private key. Put the application certificate (CRT) there, first; the service's chain belongs in tls.chain.`,
    );
  } else {
    privateKey?.refuse(
      `holds the key of another certificate, not of ${name(first)}. Take key and certificate from the same download of the developer portal.`,
    );
  }
}
