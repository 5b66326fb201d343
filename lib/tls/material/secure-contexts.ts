import { readFileSync } from 'node:fs';
import tls, { type SecureContext } from 'node:tls';

/** The settings of an identity's connections. */
export interface Contexts {
  apiContext: SecureContext;
  /** Made when it is first needed: with a chain it costs 25 ms and 500 kB, and `mtls` without OAuth never needs it. */
  tokenContext: () => SecureContext;
}

/**
 * Makes the contexts of an identity. The API is verified against the service's chain alone; without a chain against Node's
 * public roots. The token endpoint is verified against Node's public roots and the chain.
 * @param client PEM: the application certificate, with the chain certificates that are sent after it, and its key
 * @param chain PEM: the service's public chain
 */
export type ContextMaker = (client: { cert?: string; key?: string }, chain: string[] | undefined) => Contexts;

/** Undocumented: Node's createSecureContext calls these for each certificate of its `ca` option. */
interface NativeContext {
  addCACert(pem: string): void;
  setAllowPartialTrustChain(): void;
}

/** Node 22.15 and later have it. */
const { getCACertificates } = tls as { getCACertificates?: (type: 'default') => string[] };

/**
 * For all identities of one module.
 * @param offerToTokenEndpoint `oauth.mtls`: the token endpoint gets the client certificate too (RFC 8705)
 */
export function contextMaker(offerToTokenEndpoint: boolean): ContextMaker {
  const extraRoots = readExtraRoots();
  const makeTokenContext: (...given: Parameters<ContextMaker>) => SecureContext = (client, chain) => {
    const context = tls.createSecureContext({ ...trustOptions(undefined), ...client });
    if (!chain || addRoots(context, extraRoots ? [...chain, extraRoots] : chain)) return context;
    // For runtimes without these calls. The list lacks OpenSSL's roots: a server that needs one is refused.
    const listed = getCACertificates?.('default') ?? [];
    return tls.createSecureContext({ ...trustOptions([...listed, ...chain]), ...client });
  };
  return (client, chain) => {
    const offered = offerToTokenEndpoint ? client : {};
    let made: SecureContext | undefined;
    return {
      apiContext: tls.createSecureContext({ ...trustOptions(chain), ...client }),
      tokenContext: () => (made ??= makeTokenContext(offered, chain)),
    };
  };
}

/**
 * Adds roots to those that Node uses by default; false if the runtime has no such calls. There is no documented way: the
 * `ca` option replaces the roots, no list of Node's has those of OpenSSL (`--use-openssl-ca`, SSL_CERT_FILE), and parsing
 * one takes 50 ms. The flag comes last: the context gets a store of its own with its first certificate.
 */
function addRoots({ context }: SecureContext, roots: readonly string[]): boolean {
  const native = context as NativeContext;
  if (!('addCACert' in native && 'setAllowPartialTrustChain' in native)) return false;
  for (const pem of roots) native.addCACert(pem);
  native.setAllowPartialTrustChain();
  return true;
}

/** At least TLS 1.2, and at least what the process says (`--tls-min-v1.3`). */
export function minTlsVersion(): tls.SecureVersion {
  return tls.DEFAULT_MIN_VERSION === 'TLSv1.3' ? 'TLSv1.3' : 'TLSv1.2';
}

function trustOptions(ca: string[] | undefined): tls.SecureContextOptions {
  // The chain may end in an intermediate certificate: it is a trust anchor too (X509_V_FLAG_PARTIAL_CHAIN).
  return { ca, allowPartialTrustChain: ca !== undefined, minVersion: minTlsVersion() };
}

/**
 * The roots of NODE_EXTRA_CA_CERTS, which Node before 22.15 leaves out of a context that adds roots. Read as the module
 * starts: Node reads the file once too, and a rotation may find it changed or deleted.
 */
function readExtraRoots(): string | undefined {
  const { NODE_EXTRA_CA_CERTS: file } = process.env;
  try {
    return file && !getCACertificates ? readFileSync(file, 'utf8') : undefined;
  } catch {
    // Node has warned about this file at its start, and also continues without it.
    return undefined;
  }
}
