import { createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto';
import { type CertificateSummary, type ConfigurationFault, describeLocation } from '../../errors/index.js';
import { SECURITY_LEVEL } from '../../errors/explanations.js';
import { formatDate } from '../../time/time.js';
import { describeCertificate, summarize, keyTypeOf } from '../certificate-summary.js';
import { orSmallHeap, PemContents, SMALL_HEAP } from './pem-contents.js';
import { type IdentitySnapshot } from './read-identity.js';
import { type ContextMaker, type Contexts } from './secure-contexts.js';

/** Kinds of keys that a runtime may not know, by their identifiers in DER. BoringSSL, which Bun has, knows none of them. */
const KINDS: readonly (readonly [identifier: string, kind: string])[] = [
  ['06092a864886f70d01010a', 'RSA-PSS'],
  ['06032b6571', 'Ed448'],
  ['06052b8104000a', 'secp256k1'],
  ['06092b240303020801', 'a Brainpool curve'],
  ['06096086480165030403', 'ML-DSA or SLH-DSA'],
];
const RENEW =
  "Check this machine's clock. If it is right, replace the certificate by the current one from the developer portal.";

/** An identity without faults. No property contains its private key, which is only inside the secure contexts. */
export interface LoadedIdentity extends Contexts {
  /** The application certificate; absent if none is configured (`app-token`, `oauth`). */
  certificate?: CertificateSummary;
  /** The type of the certificate's key, for example `RSA` or `P-256`. */
  keyType?: string;
  /** The application certificate and the chain certificates after it, all of which are sent to the server. */
  sent: readonly X509Certificate[];
  /** The service's chain. Empty if the service is verified against Node's public roots. */
  chain: readonly X509Certificate[];
  /** Whether the service is verified against Node's public roots although `tls.publicRoots` is not set. */
  lacksChain: boolean;
  /** The digest of the inputs. */
  digest: string;
}

export interface LoadResult<T = LoadedIdentity> {
  /** Absent if there are faults, unless the only one is `notValidNow` and no other identity is in use. */
  identity?: T;
  faults: ConfigurationFault[];
  /** Which of the faults says that the application certificate has expired, or is not valid yet. */
  notValidNow?: ConfigurationFault;
  /** The application certificate. Present if it could be read, even if there are faults. */
  certificate?: CertificateSummary;
}

/** What the check of a new identity depends on beside its inputs. */
interface CheckContext {
  /** The identity that the new one would replace, if there is one. */
  inUse?: LoadedIdentity;
  /** Whether the new one may send fewer certificates of authorities than the one in use. */
  mayLackIssuer?: boolean;
}

/**
 * Checks the inputs of an identity (docs/service.md#mutual-tls). Reports the faults of all options together, and never throws.
 * @param now milliseconds since the epoch
 */
export function checkIdentity(
  snapshot: IdentitySnapshot,
  now: number,
  contextsFor: ContextMaker,
  { inUse, mayLackIssuer = false }: CheckContext = {},
): LoadResult {
  if (snapshot.fault) return { faults: [snapshot.fault] };
  const [certificate, privateKey, chain] = (['certificate', 'privateKey', 'chain'] as const).map(
    (key) => snapshot[key] && new PemContents(snapshot[key]),
  );
  // Vault Agent and HAProxy keep the certificate and its key in one file.
  const isShared = snapshot.certificate?.text?.reveal() === snapshot.privateKey?.text?.reveal();
  certificate?.expectCertificates(isShared);
  privateKey?.expectKey();
  chain?.expectCertificates(false);
  const { key, fault } = privateKey ? readPrivateKey(privateKey, snapshot) : {};
  if (certificate && privateKey && key) checkPair(certificate, privateKey, key);
  const [sent, anchors] = [certificate?.certificates ?? [], chain?.certificates ?? []];
  const notValidNow = checkDates(certificate, chain, now);
  const issuer = mayLackIssuer ? undefined : findLostIssuer(sent, inUse?.sent);
  if (issuer !== undefined)
    certificate?.addFault(
      `lacks the certificate of the issuer "${issuer}". The identity in use sends more certificates of authorities, so this file is perhaps not written to its end. It is used when a server refuses the one in use, when that one has expired, or after 10 minutes.`,
    );
  const summary = sent[0] && summarize(sent[0]);
  const found = [certificate?.fault, privateKey?.fault, chain?.fault, fault ?? snapshot.passphrase?.fault];
  const faults = [...found, ...findMissing(snapshot, inUse)].filter((each) => each !== undefined);
  const isUsable = faults.every((each) => each === notValidNow && !inUse);
  if (!isUsable) return { faults, notValidNow, certificate: summary };

  // An X509Certificate as a string is PEM.
  const client = certificate && {
    cert: sent.join(''),
    key: key?.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
  try {
    const identity: LoadedIdentity = {
      ...contextsFor(client ?? {}, chain && anchors.map(String)),
      certificate: summary,
      keyType: key && keyTypeOf(key),
      sent,
      chain: anchors,
      lacksChain: lacksChain(snapshot),
      digest: snapshot.digest,
    };
    return { identity, faults, notValidNow, certificate: summary };
  } catch (error) {
    const { option, message } = explainRefusedContext(error, certificate !== undefined);
    return { faults: [{ ...snapshot.locate(option), message }], certificate: summary };
  }
}

/** Says why OpenSSL makes no secure context. A setting of this process may be the cause, and not the certificate. */
function explainRefusedContext(error: unknown, hasCertificate: boolean): ConfigurationFault {
  const { code = 'unknown reason' } = error as NodeJS.ErrnoException;
  if (code === 'ERR_SSL_NO_CIPHER_MATCH')
    return {
      option: 'tls',
      message: `OpenSSL knows none of the ciphers that this process is set to (${code}). Check --tls-cipher-list on the command line of Node and in NODE_OPTIONS, and code that sets tls.DEFAULT_CIPHERS.`,
    };
  if (code.endsWith('MALLOC_FAILURE'))
    return { option: 'tls.privateKey', message: `OpenSSL cannot load the key (${code}): ${SMALL_HEAP}.` };
  const option = hasCertificate ? 'tls.certificate' : 'tls.chain';
  const what = /_CA_(KEY|MD)_/.test(code)
    ? "The key or signature of an authority whose certificate follows ours is too weak for OpenSSL's security level"
    : "The key or a signature may be too weak for OpenSSL's security level";
  const remedy = 'Generate new ones in the developer portal.';
  const message = `OpenSSL does not accept the certificate and key (${code}). ${what}. ${remedy} ${SECURITY_LEVEL}`;
  return { option, message };
}

/** Finds the inputs that are missing. */
function findMissing(snapshot: IdentitySnapshot, inUse: LoadedIdentity | undefined): ConfigurationFault[] {
  const { certificate, privateKey, chain, publicRoots, needsChain, locate } = snapshot;
  const faults: ConfigurationFault[] = [];
  const add = (option: string, message: string): void => void faults.push({ ...locate(option), message });
  // A vault may return less than before, because of a mistake there. That must not remove the certificate, and must not change the
  // trust anchor from the service's chain to Node's public roots.
  const lost =
    'is missing: the tls function returned none, but returned one before. Check the vault or store that it reads.';
  if (certificate && !privateKey) {
    add('tls.privateKey', 'is missing: tls.certificate is set. Set the key, or leave out both.');
  } else if (privateKey && !certificate) {
    add('tls.certificate', 'is missing: tls.privateKey is set. Set the certificate, or leave out both.');
  } else if (!certificate && inUse?.certificate) add('tls.certificate', lost);
  if (!chain && !publicRoots && inUse?.chain.length) add('tls.chain', lost);
  else if (needsChain === 'required' && lacksChain(snapshot)) {
    add(
      'tls.chain',
      `is missing: in production, a service that gets the client certificate is verified against its own chain (specification, 5.2.4). Download it from the developer portal (authentication section, "certificate chain"). Only if the service has a certificate of a public authority, set ${describeLocation(locate('tls.publicRoots'))} to true instead.`,
    );
  }
  return faults;
}

/**
 * The issuer whose certificate a new identity does not send, if it sends fewer certificates of authorities above ours than the one
 * in use; otherwise undefined. Some tools write the application certificate first and append the others later. They are
 * counted and not compared by name, because authorities change the names of their intermediates.
 */
export function findLostIssuer(
  sent: readonly X509Certificate[],
  sentBefore: readonly X509Certificate[] = [],
): string | undefined {
  const path = pathOf(sent);
  const last = path.at(-1);
  return last && path.length < pathOf(sentBefore).length ? summarize(last).issuer : undefined;
}

/** Our certificate, that of its issuer, that of the issuer's issuer and so on, as far as they are sent. */
function pathOf([own, ...others]: readonly X509Certificate[]): X509Certificate[] {
  const path: X509Certificate[] = [];
  for (let next: X509Certificate | undefined = own; next;) {
    path.push(next);
    next = others.find((each) => !path.includes(each) && path.at(-1)?.checkIssued(each));
  }
  return path;
}

function lacksChain({ certificate, chain, publicRoots, needsChain }: IdentitySnapshot): boolean {
  return needsChain !== undefined && certificate !== undefined && !chain && !publicRoots;
}

/**
 * Checks that the application certificate is valid now, and that a certificate of the chain is. Returns the fault of the application
 * certificate, if there is no other fault of its file.
 */
function checkDates(
  certificate: PemContents | undefined,
  chain: PemContents | undefined,
  now: number,
): ConfigurationFault | undefined {
  // Expired certificates in the chain do no harm as long as one is valid. Without a valid one, no server can be verified.
  const whyChainNotValid = chain?.certificates.map((each) => whyNotValidNow(each, now)) ?? [];
  if (whyChainNotValid[0] && !whyChainNotValid.includes(undefined))
    chain?.addFault(`holds no certificate that is valid now: ${whyChainNotValid[0]} ${RENEW}`);
  const own = certificate?.certificates[0];
  const why = own && whyNotValidNow(own, now);
  if (!certificate || !why || certificate.fault) return undefined;
  certificate.addFault(`holds the certificate ${why} ${RENEW}`);
  return certificate.fault;
}

/** Why a certificate is not valid now; undefined if it is valid. */
function whyNotValidNow(certificate: X509Certificate, now: number): string | undefined {
  const summary = summarize(certificate);
  const [from, to] = [summary.validFrom.getTime(), summary.validTo.getTime()];
  if (from <= now && now < to) return undefined;
  const why = now < from ? `is not valid before ${formatDate(from)}` : `expired on ${formatDate(to)}`;
  return `${describeCertificate(summary)}, which ${why}; this machine's clock says ${formatDate(now)}.`;
}

/**
 * Reads the private key, and decrypts it with the passphrase if it is encrypted. A fault of the key is added to `contents`. A fault
 * of the passphrase is returned.
 */
function readPrivateKey(
  contents: PemContents,
  { passphrase, locate }: IdentitySnapshot,
): { key?: KeyObject; fault?: ConfigurationFault } {
  const [block] = contents.keys;
  if (contents.fault || passphrase?.fault) return { fault: passphrase?.fault };
  const isEncrypted = block.label.startsWith('ENCRYPTED') || block.pem.includes('Proc-Type: 4,ENCRYPTED');
  if (isEncrypted && !passphrase) {
    const where = describeLocation(locate('tls.passphrase'));
    contents.addFault(`is an encrypted key and there is no passphrase. Set ${where}, or decrypt the key.`);
    return {};
  }
  try {
    const opened = isEncrypted ? passphrase?.text?.reveal() : undefined;
    return { key: createPrivateKey({ key: block.pem, passphrase: opened }) };
  } catch (error) {
    if (isUnknownAlgorithm(error)) {
      contents.addFault(describeUnknownAlgorithm(block.pem));
      return {};
    }
    if (!isEncrypted || !passphrase) {
      contents.addFault(
        `holds a private key that cannot be read: it is damaged or incomplete${orSmallHeap()}.`,
      );
      return {};
    }
    const { path } = contents.input;
    const message = `the passphrase does not open the private key${path === undefined ? '' : ` in ${path}`}: it is wrong (in .env, a value with # needs quotes, and with expandVariables of ConfigModule a $ needs a backslash before it), the key is damaged, or OpenSSL no longer reads its cipher (then encrypt it again: openssl pkcs8 -topk8 -v2 aes-256-cbc -provider legacy -provider default).`;
    return { fault: { ...passphrase.location, message } };
  }
}

/** @param pem the key. If it is encrypted, its kind is not visible */
export function describeUnknownAlgorithm(
  pem: string,
  { bun, openssl }: NodeJS.ProcessVersions = process.versions,
): string {
  const bytes = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64').toString('hex');
  const [, kind] = KINDS.find(([identifier]) => bytes.includes(identifier)) ?? [];
  const [unknown, remedy] =
    bun === undefined
      ? [`this Node does not know (OpenSSL ${openssl})`, 'Use a newer Node']
      : [`Bun ${bun} does not know`, 'Run the application with Node'];
  return `holds a key of an algorithm that ${unknown}${kind === undefined ? '' : `: ${kind}`}. ${remedy}, or use a certificate for an RSA or ECDSA key.`;
}

/**
 * Whether OpenSSL could decrypt the key but does not know its algorithm. The code of the error is the same for a damaged key. Bun
 * has a code for it.
 */
function isUnknownAlgorithm(error: unknown): boolean {
  const { code, opensslErrorStack: reasons = [] } = error as { code?: string; opensslErrorStack?: string[] };
  return (
    code === 'ERR_OSSL_EVP_UNSUPPORTED_ALGORITHM' ||
    reasons.some((reason) => reason.endsWith(':unsupported private key algorithm'))
  );
}

/** Checks that the key belongs to the first certificate. If it does not, adds a fault that names the most likely mistake. */
function checkPair(certificate: PemContents, privateKey: PemContents, key: KeyObject): void {
  const [first] = certificate.certificates;
  const place = certificate.certificates.findIndex((each) => each.checkPrivateKey(key));
  if (!first || place === 0) return;
  const name = describeCertificate(summarize(first));
  if (place > 0) {
    const own = describeCertificate(summarize(certificate.certificates[place]));
    certificate.addFault(
      `begins with a certificate of the chain, ${name}; the application certificate, ${own}, comes at place ${place + 1}. Put the application certificate first.`,
    );
  } else if (first.ca) {
    certificate.addFault(
      `begins with a certificate authority's certificate, ${name}, and has none that fits the private key. Put the application certificate (CRT) there, first; the service's chain belongs in tls.chain.`,
    );
  } else {
    privateKey.addFault(
      `holds the key of another certificate, not of ${name}. Take key and certificate from the same download of the developer portal.`,
    );
  }
}
