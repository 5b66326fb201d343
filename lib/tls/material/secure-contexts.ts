import { readFileSync } from 'node:fs';
import tls, { type SecureContext } from 'node:tls';

/** The secure contexts of an identity. */
export interface Contexts {
  apiContext: SecureContext;
  /** Makes the context when it is first needed: with a chain it costs 25 ms and 500 kB, and `mtls` without OAuth never needs it. */
  tokenContext: () => SecureContext;
}

/**
 * Makes the secure contexts of an identity. They verify
 * - the API against the service's chain only, or against Node's public roots if there is no chain,
 * - the token endpoint against Node's public roots and the chain.
 * @param client the application certificate with the chain certificates that are sent after it, and its key, as PEM
 * @param chain the service's public chain, as PEM
 */
export type ContextMaker = (client: { cert?: string; key?: string }, chain: string[] | undefined) => Contexts;

/** Methods that Node does not document. Its createSecureContext() calls them for each certificate of the `ca` option. */
interface NativeContext {
  addCACert(pem: string): void;
  setAllowPartialTrustChain(): void;
}

/** Exists since Node 22.15. */
const { getCACertificates } = tls as { getCACertificates?: (type: 'default') => string[] };

/**
 * Prepares the function that makes the secure contexts for all identities of one client.
 * @param offerToTokenEndpoint `oauth.mtls`: offer the client certificate to the token endpoint too
 */
export function createContextMaker(offerToTokenEndpoint: boolean): ContextMaker {
  const extraRoots = readExtraRoots();
  const makeTokenContext: (...given: Parameters<ContextMaker>) => SecureContext = (client, chain) => {
    const context = tls.createSecureContext({ ...trustOptions(undefined), ...client });
    if (!chain || addRoots(context, extraRoots ? [...chain, extraRoots] : chain)) return context;
    // For runtimes without the undocumented methods. This list lacks the roots of OpenSSL (SSL_CERT_FILE), so a server that needs
    // one of those is refused.
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
 * Adds roots to those that Node uses by default. Returns false if the runtime lacks the undocumented methods for it. Node has no
 * documented way (https://github.com/nodejs/node/issues/27079): the `ca` option replaces the default roots, no list of Node
 * contains the roots of OpenSSL (`--use-openssl-ca`, SSL_CERT_FILE), and parsing such a list takes 50 ms.
 */
function addRoots({ context }: SecureContext, roots: readonly string[]): boolean {
  const native = context as NativeContext;
  if (!('addCACert' in native && 'setAllowPartialTrustChain' in native)) return false;
  for (const pem of roots) native.addCACert(pem);
  // Set the flag after addCACert(), which is what gives the context its own certificate store.
  native.setAllowPartialTrustChain();
  return true;
}

/** TLS 1.2, or TLS 1.3 if the process requires it (`--tls-min-v1.3`). */
export function minTlsVersion(): tls.SecureVersion {
  return tls.DEFAULT_MIN_VERSION === 'TLSv1.3' ? 'TLSv1.3' : 'TLSv1.2';
}

function trustOptions(ca: string[] | undefined): tls.SecureContextOptions {
  // The chain may end with an intermediate certificate, which is then a trust anchor too (X509_V_FLAG_PARTIAL_CHAIN).
  return { ca, allowPartialTrustChain: ca !== undefined, minVersion: minTlsVersion() };
}

/**
 * Reads the roots of NODE_EXTRA_CA_CERTS, which Node before 22.15 omits from a context to which roots are added
 * (https://github.com/nodejs/node/issues/32010). Call it once at the start: Node itself reads the file only once, and at a later
 * rotation the file may be changed or deleted.
 */
function readExtraRoots(): string | undefined {
  const { NODE_EXTRA_CA_CERTS: file } = process.env;
  try {
    return file && !getCACertificates ? readFileSync(file, 'utf8') : undefined;
  } catch {
    // Node itself warns about a file that it cannot read, and continues without it.
    return undefined;
  }
}
