import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { webcrypto } from 'node:crypto';

x509.cryptoProvider.set(webcrypto);

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;
let serial = 1;

export interface Issued {
  /** PEM. */
  certificate: string;
  /** PKCS#8 PEM. */
  key: string;
  x509: x509.X509Certificate;
  keys: webcrypto.CryptoKeyPair;
}

export interface IssueOptions {
  issuer?: Issued;
  ca?: boolean;
  notBefore?: Date;
  notAfter?: Date;
  /** Host names and addresses of a server. */
  names?: string[];
  /** Of the key pair; signs too where there is no issuer. Default: ECDSA with P-256. */
  algorithm?: webcrypto.RsaHashedKeyGenParams;
  /** Beside the usual ones. */
  extension?: x509.Extension;
  /** An existing key pair, for a renewal that keeps the key. */
  keys?: webcrypto.CryptoKeyPair;
}

/** An unknown extension that is marked as critical. Whoever verifies the certificate must refuse it (RFC 5280, 4.2). */
export const UNKNOWN_CRITICAL = new x509.Extension('1.2.3.4.5', true, new Uint8Array([5, 0]));

/**
 * Creates a key and issues a certificate for it. Without an issuer the certificate is self-signed.
 *
 * @param commonName the CN, a whole subject such as `CN=a, O=b`, or an empty text
 */
export async function issue(commonName: string, options: IssueOptions = {}): Promise<Issued> {
  const subject = commonName === '' || commonName.includes('=') ? commonName : `CN=${commonName}`;
  const keys =
    options.keys ??
    (await webcrypto.subtle.generateKey(options.algorithm ?? ALGORITHM, true, ['sign', 'verify']));
  const extensions: x509.Extension[] = [
    new x509.BasicConstraintsExtension(options.ca ?? false, undefined, true),
  ];
  if (options.extension) extensions.push(options.extension);
  if (options.names) {
    const names = options.names.map((value) => ({
      type: /^[\d.]+$/.test(value) ? ('ip' as const) : ('dns' as const),
      value,
    }));
    extensions.push(new x509.SubjectAlternativeNameExtension(names));
  }
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: (serial++).toString(16).padStart(4, '0'),
    subject,
    issuer: options.issuer?.x509.subject ?? subject,
    notBefore: options.notBefore ?? new Date(Date.now() - DAY_MS),
    notAfter: options.notAfter ?? new Date(Date.now() + 365 * DAY_MS),
    publicKey: keys.publicKey,
    signingKey: (options.issuer?.keys ?? keys).privateKey,
    signingAlgorithm: { ...ALGORITHM, ...(options.issuer?.keys ?? keys).privateKey.algorithm },
    extensions,
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key: pem('PRIVATE KEY', pkcs8),
    x509: certificate,
    keys,
  };
}

export function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** A certificate request (PKCS#10), as PEM. */
export async function createCertificateRequest(
  subject: string,
  keys: webcrypto.CryptoKeyPair,
): Promise<string> {
  const csr = await x509.Pkcs10CertificateRequestGenerator.create({
    name: `CN=${subject}`,
    keys,
    signingAlgorithm: ALGORITHM,
  });
  return csr.toString('pem');
}

export interface Authority {
  root: Issued;
  intermediate: Issued;
  /** For localhost and 127.0.0.1. */
  server: Issued;
  /** Server certificate and intermediate, as a server sends them. */
  serverChain: string;
  /** Intermediate and root: the service's public chain. */
  chain: string;
  client(subject: string, options?: Omit<IssueOptions, 'issuer'>): Promise<Issued>;
}

/** Root, intermediate and server, as the service has them. */
export async function createAuthority(name = 'Service'): Promise<Authority> {
  const root = await issue(`${name} Root`, { ca: true });
  const intermediate = await issue(`${name} Intermediate`, { ca: true, issuer: root });
  const server = await issue('localhost', { issuer: intermediate, names: ['localhost', '127.0.0.1'] });
  return {
    root,
    intermediate,
    server,
    serverChain: server.certificate + intermediate.certificate,
    chain: intermediate.certificate + root.certificate,
    client: (subject, options) => issue(subject, { ...options, issuer: intermediate }),
  };
}

/** A list of revoked certificates (CRL) as PEM. `isOutOfDate`: since yesterday. */
export async function revocationList(
  issuer: Issued,
  { revoked = [], isOutOfDate = false }: { revoked?: readonly Issued[]; isOutOfDate?: boolean } = {},
): Promise<string> {
  const day = (days: number): Date => new Date(Date.now() + days * DAY_MS);
  const list = await x509.X509CrlGenerator.create({
    issuer: issuer.x509.subject,
    thisUpdate: day(-2),
    nextUpdate: day(isOutOfDate ? -1 : 1),
    entries: revoked.map(({ x509: { serialNumber } }) => ({ serialNumber, revocationDate: day(-2) })),
    signingKey: issuer.keys.privateKey,
    signingAlgorithm: ALGORITHM,
  });
  return pem('X509 CRL', Buffer.from(list.rawData));
}

/** Removes paths from a message. Tests then search the rest for long words, which could be parts of a PEM. */
export function withoutPaths(message: string, folder: string): string {
  return message.replaceAll(folder, '').replaceAll(process.cwd(), '');
}
