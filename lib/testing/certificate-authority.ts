import type * as X509 from '@peculiar/x509';
import { createPrivateKey, createPublicKey, webcrypto, X509Certificate } from 'node:crypto';
import { summarize } from '../tls/certificate-summary.js';
import { importX509 } from './optional-peers.js';

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** The properties of a certificate to issue. */
export interface CertificateRequest {
  /** CN of the subject. */
  commonName?: string;
  /** O of the subject. */
  organization?: string;
  /** Default: an hour ago. */
  notBefore?: Date;
  /** Default: in a year. */
  notAfter?: Date;
  /** Encrypts the private key (PKCS#8, AES-256-CBC). Default: not encrypted. */
  passphrase?: string;
}

/** A certificate and its key, all in PEM. */
export interface IssuedCertificate {
  /** The certificate alone. */
  certificate: string;
  /** PKCS#8. Encrypted if a passphrase was given. */
  privateKey: string;
  /** Intermediate and root of the authority that issued it. */
  chain: string;
  /** For example `CN=billing, O=Example`. */
  subject: string;
  /** SHA-256, colon-separated, as `X509Certificate.fingerprint256`. */
  fingerprint256: string;
  passphrase?: string;
}

/** The certificate's use, by its extended key usage; a server's names are DNS names or IPv4/IPv6 addresses. */
type CertificateUse = { client: true } | { server: readonly string[] };

/** An authority as text, so that another process can go on with it. All PEM. */
export interface KeptAuthority {
  root: string;
  intermediate: string;
  /** The intermediate's; PKCS#8. */
  privateKey: string;
}

interface Signer {
  name: string;
  keys: webcrypto.CryptoKeyPair;
}

/** A root and an intermediate certificate authority with EC P-256 keys. */
export class CertificateAuthority {
  readonly #x509: typeof X509;
  readonly #issuer: Signer;
  /** The intermediate's certificate, PEM. */
  readonly intermediate: string;
  /** The root's certificate, PEM. */
  readonly root: string;

  private constructor(x509: typeof X509, issuer: Signer, intermediate: string, root: string) {
    this.#x509 = x509;
    this.#issuer = issuer;
    this.intermediate = intermediate;
    this.root = root;
  }

  /** The service's public chain: intermediate, then root. */
  get chain(): string {
    return `${this.intermediate}\n${this.root}\n`;
  }

  /** With new keys. Rejects if @peculiar/x509 is not installed. */
  static async create(name: string): Promise<CertificateAuthority> {
    const x509 = await importX509();
    const [rootKeys, issuerKeys] = await Promise.all([generateKeys(), generateKeys()]);
    const validity = {
      notBefore: new Date(Date.now() - 24 * HOUR_MS),
      notAfter: new Date(Date.now() + 10 * YEAR_MS),
    };
    const rootName = `CN=${name} Root CA`;
    const issuerName = `CN=${name} Issuing CA`;
    const certify = async (subject: string, keys: webcrypto.CryptoKeyPair, pathLength: number) => {
      const usages = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign;
      const certificate = await x509.X509CertificateGenerator.create({
        ...validity,
        subject,
        publicKey: keys.publicKey,
        issuer: rootName,
        signingKey: rootKeys.privateKey,
        signingAlgorithm: KEY_ALGORITHM,
        extensions: [
          new x509.BasicConstraintsExtension(true, pathLength, true),
          new x509.KeyUsagesExtension(usages, true),
          await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
          await x509.AuthorityKeyIdentifierExtension.create(rootKeys.publicKey),
        ],
      });
      return certificate.toString('pem');
    };
    const [root, intermediate] = await Promise.all([
      certify(rootName, rootKeys, 1),
      certify(issuerName, issuerKeys, 0),
    ]);
    const issuer = { name: issuerName, keys: issuerKeys };
    return new CertificateAuthority(x509, issuer, intermediate, root);
  }

  /** The authority that `toText()` was called on. Rejects as `create()` does, and for what is no such text. */
  static async restore({ root, intermediate, privateKey }: KeptAuthority): Promise<CertificateAuthority> {
    const x509 = await importX509();
    const { subject } = new X509Certificate(intermediate);
    const issuer = { name: subject, keys: await importKeys(privateKey) };
    return new CertificateAuthority(x509, issuer, intermediate, root);
  }

  /** For `restore()`, also in another process. */
  async toText(): Promise<KeptAuthority> {
    const { root, intermediate } = this;
    return { root, intermediate, privateKey: await exportKey(this.#issuer.keys.privateKey, undefined) };
  }

  /** Issues a certificate for a new key. */
  async issue(use: CertificateUse, request: CertificateRequest = {}): Promise<IssuedCertificate> {
    const x509 = this.#x509;
    const keys = await generateKeys();
    const purpose = 'server' in use ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth;
    const certificate = await x509.X509CertificateGenerator.create({
      subject: [
        { CN: [request.commonName ?? 'application'] },
        ...(request.organization === undefined ? [] : [{ O: [request.organization] }]),
      ],
      issuer: this.#issuer.name,
      notBefore: request.notBefore ?? new Date(Date.now() - HOUR_MS),
      notAfter: request.notAfter ?? new Date(Date.now() + YEAR_MS),
      publicKey: keys.publicKey,
      signingKey: this.#issuer.keys.privateKey,
      signingAlgorithm: KEY_ALGORITHM,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([purpose]),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
        await x509.AuthorityKeyIdentifierExtension.create(this.#issuer.keys.publicKey),
        ...('server' in use ? [new x509.SubjectAlternativeNameExtension(use.server.map(generalName))] : []),
      ],
    });
    const pem = certificate.toString('pem');
    const { subject, fingerprint256 } = summarize(new X509Certificate(pem));
    return {
      certificate: `${pem}\n`,
      privateKey: await exportKey(keys.privateKey, request.passphrase),
      chain: this.chain,
      subject,
      fingerprint256,
      ...(request.passphrase === undefined ? {} : { passphrase: request.passphrase }),
    };
  }
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
}

async function importKeys(pem: string): Promise<webcrypto.CryptoKeyPair> {
  const { subtle } = webcrypto;
  const key = createPrivateKey(pem);
  const [pkcs8, spki] = [
    key.export({ type: 'pkcs8', format: 'der' }),
    createPublicKey(key).export({ type: 'spki', format: 'der' }),
  ];
  const [privateKey, publicKey] = await Promise.all([
    subtle.importKey('pkcs8', pkcs8, KEY_ALGORITHM, true, ['sign']),
    subtle.importKey('spki', spki, KEY_ALGORITHM, true, ['verify']),
  ]);
  return { privateKey, publicKey };
}

function generalName(name: string): { type: 'ip' | 'dns'; value: string } {
  return { type: /^[\d.]+$|:/.test(name) ? 'ip' : 'dns', value: name };
}

async function exportKey(key: webcrypto.CryptoKey, passphrase: string | undefined): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));
  const encryption = passphrase === undefined ? {} : { cipher: 'aes-256-cbc', passphrase };
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ type: 'pkcs8', format: 'pem', ...encryption })
    .toString();
}
