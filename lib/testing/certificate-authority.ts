// @peculiar/x509 depends on tsyringe, which throws when it is loaded before this polyfill.
import 'reflect-metadata';
import type * as X509 from '@peculiar/x509';
import { createPrivateKey, webcrypto, X509Certificate } from 'node:crypto';
import { summarize } from '../tls/certificate-summary.js';
import { type SimulatedService } from './simulated-service.js';
import { type ServerIdentity } from './servers/tls-server.js';
import { type ClientCertificateRequest, type ServerCertificateRequest } from './simulator.options.js';

const { subtle } = webcrypto;
const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** The subject and dates of a certificate to issue. */
export interface CertificateRequest {
  /** CN of the subject. */
  commonName?: string | undefined;
  /** O of the subject. */
  organization?: string | undefined;
  /** Default: an hour ago. */
  notBefore?: Date | undefined;
  /** Default: in a year. */
  notAfter?: Date | undefined;
  /** Encrypts the private key with it (PKCS#8, AES-256-CBC). Default: not encrypted. */
  passphrase?: string | undefined;
}

/** A certificate and its key, as PEM. */
export interface IssuedCertificate {
  /** The certificate alone. */
  certificate: string;
  /** PKCS#8. Encrypted if a passphrase was given. */
  privateKey: string;
  /** The intermediate and the root certificate of the authority that issued it. */
  chain: string;
  /** For example `CN=billing, O=Example`. */
  subject: string;
  /** SHA-256 with colons, like `X509Certificate.fingerprint256`. */
  fingerprint256: string;
  passphrase?: string;
}

/** The extended key usage of a certificate. The names of a server are DNS names and IP addresses. */
type CertificateUse = { client: true } | { server: readonly string[] };

/** An authority as PEM, so that it can be stored and used by another process. */
export interface AuthorityPems {
  root: string;
  intermediate: string;
  /** The private key of the intermediate: PKCS#8. */
  privateKey: string;
}

/** A root and an intermediate certificate authority with EC P-256 keys. */
export class CertificateAuthority {
  readonly pems: AuthorityPems;
  /** The service's public chain: intermediate, then root. */
  readonly chain: string;

  constructor(pems: AuthorityPems) {
    this.pems = pems;
    this.chain = `${pems.intermediate}\n${pems.root}\n`;
  }

  /** Creates an authority with new keys. Rejects if @peculiar/x509 is not installed. */
  static async create(name: string): Promise<CertificateAuthority> {
    const validity = {
      notBefore: new Date(Date.now() - 24 * HOUR_MS),
      notAfter: new Date(Date.now() + 10 * YEAR_MS),
    };
    const root = await signCertificate({ ...validity, subject: `CN=${name} Root CA`, pathLength: 1 });
    const issuing = { ...validity, subject: `CN=${name} Issuing CA`, pathLength: 0 };
    const { certificate, keys } = await signCertificate(issuing, {
      certificate: root.certificate,
      key: root.keys.privateKey,
    });
    const privateKey = await exportKey(keys.privateKey);
    return new CertificateAuthority({ root: root.certificate, intermediate: certificate, privateKey });
  }

  /** Creates a key and issues a certificate for it. Rejects if @peculiar/x509 is not installed. */
  async issue(use: CertificateUse, request: CertificateRequest = {}): Promise<IssuedCertificate> {
    const { commonName = 'application', organization, passphrase } = request;
    const issuer = { certificate: this.pems.intermediate, key: await importKey(this.pems.privateKey) };
    const subject: X509.JsonName = [{ CN: [commonName] }];
    if (organization !== undefined) subject.push({ O: [organization] });
    const { certificate, keys } = await signCertificate({ ...request, subject, use }, issuer);
    const { subject: shown, fingerprint256 } = summarize(new X509Certificate(certificate));
    return {
      certificate: `${certificate}\n`,
      privateKey: await exportKey(keys.privateKey, passphrase),
      chain: this.chain,
      subject: shown,
      fingerprint256,
      ...(passphrase !== undefined && { passphrase }),
    };
  }
}

/** The certificates of a simulator: those of its start, and further ones. */
export class SimulatorCertificates {
  #foreignAuthority?: Promise<CertificateAuthority>;

  private constructor(
    readonly authority: CertificateAuthority,
    readonly application: IssuedCertificate,
    readonly server: IssuedCertificate,
  ) {}

  /** Issues the certificates of the start, except those that exist already. */
  static async issue(
    authority: CertificateAuthority,
    { serverNames, options }: Pick<SimulatedService, 'serverNames' | 'options'>,
    existing: Partial<Pick<SimulatorCertificates, 'application' | 'server'>>,
  ): Promise<SimulatorCertificates> {
    const { applicationLifetime: seconds } = options.certificates ?? {};
    const notAfter = seconds === undefined ? undefined : new Date(Date.now() + seconds * 1000);
    const [application, server] = await Promise.all([
      existing.application ??
        authority.issue({ client: true }, { organization: 'Simulated Application', notAfter }),
      existing.server ?? authority.issue({ server: serverNames }, { commonName: 'localhost' }),
    ]);
    return new SimulatorCertificates(authority, application, server);
  }

  /** What the servers present at the start. */
  get serverIdentity(): ServerIdentity {
    return withIntermediate(this.server, this.authority);
  }

  async issueForClient(request: ClientCertificateRequest): Promise<IssuedCertificate> {
    return (await this.#authorityFor(request)).issue({ client: true }, request);
  }

  async issueForServers(
    request: ServerCertificateRequest,
    serverNames: readonly string[],
  ): Promise<ServerIdentity> {
    const authority = await this.#authorityFor(request);
    const { names = serverNames, notBefore, notAfter } = request;
    const server = await authority.issue({ server: names }, { commonName: names[0], notBefore, notAfter });
    return withIntermediate(server, authority);
  }

  async #authorityFor({ foreign }: { foreign?: boolean | undefined }): Promise<CertificateAuthority> {
    if (!foreign) return this.authority;
    return (this.#foreignAuthority ??= CertificateAuthority.create('Unknown'));
  }
}

/** A correctly configured server sends its certificate followed by the intermediate. */
function withIntermediate(
  { certificate, privateKey }: IssuedCertificate,
  authority: CertificateAuthority,
): ServerIdentity {
  return { certificate: certificate + authority.pems.intermediate, privateKey };
}

interface CertificateFields {
  subject: string | X509.JsonName;
  notBefore?: Date;
  notAfter?: Date;
  /** Present for the certificate of an authority. */
  pathLength?: number;
  use?: CertificateUse;
}

interface Issuer {
  /** PEM. */
  certificate: string;
  key: webcrypto.CryptoKey;
}

/** Creates a key and a certificate (PEM) for it. Without an issuer the certificate is self-signed. */
async function signCertificate(
  { subject, notBefore, notAfter, pathLength, use }: CertificateFields,
  issuer?: Issuer,
): Promise<{ certificate: string; keys: webcrypto.CryptoKeyPair }> {
  const x509 = await importX509();
  const keys = await subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const issuerCertificate = issuer && new x509.X509Certificate(issuer.certificate);
  const isAuthority = pathLength !== undefined;
  const { keyCertSign, cRLSign, digitalSignature } = x509.KeyUsageFlags;
  const extensions: X509.Extension[] = [
    new x509.BasicConstraintsExtension(isAuthority, pathLength, true),
    new x509.KeyUsagesExtension(isAuthority ? keyCertSign | cRLSign : digitalSignature, true),
    await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(issuerCertificate?.publicKey ?? keys.publicKey),
  ];
  if (use) {
    const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
    extensions.push(new x509.ExtendedKeyUsageExtension(['server' in use ? serverAuth : clientAuth]));
    if ('server' in use)
      extensions.push(new x509.SubjectAlternativeNameExtension(use.server.map(generalName)));
  }
  const certificate = await x509.X509CertificateGenerator.create({
    subject,
    issuer: issuerCertificate?.subject ?? subject,
    notBefore: notBefore ?? new Date(Date.now() - HOUR_MS),
    notAfter: notAfter ?? new Date(Date.now() + YEAR_MS),
    publicKey: keys.publicKey,
    signingKey: issuer?.key ?? keys.privateKey,
    signingAlgorithm: KEY_ALGORITHM,
    extensions,
  });
  return { certificate: certificate.toString('pem'), keys };
}

/**
 * Imports the optional peer that only the simulator needs. If a bundler does not find a package, an import inside `try` is
 * a warning and not an error.
 */
async function importX509(): Promise<typeof X509> {
  try {
    return await import('@peculiar/x509');
  } catch (error) {
    throw explainMissingPeer(error);
  }
}

/** Replaces "module not found" by an error that names the command to install the package. Other errors stay as they are. */
export function explainMissingPeer(error: unknown): unknown {
  const { code } = Object(error) as { code?: unknown };
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return error;
  return new Error(
    'ServiceSimulator needs an optional peer dependency to create certificates, and it is not installed: npm i -D @peculiar/x509',
  );
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
  return subtle.importKey('pkcs8', der, KEY_ALGORITHM, true, ['sign']);
}

async function exportKey(key: webcrypto.CryptoKey, passphrase?: string): Promise<string> {
  const der = Buffer.from(await subtle.exportKey('pkcs8', key));
  const encryption = passphrase === undefined ? {} : { cipher: 'aes-256-cbc', passphrase };
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ type: 'pkcs8', format: 'pem', ...encryption })
    .toString();
}

function generalName(name: string): { type: 'ip' | 'dns'; value: string } {
  return { type: /^[\d.]+$|:/.test(name) ? 'ip' : 'dns', value: name };
}
