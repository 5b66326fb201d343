import { readFileSync } from 'node:fs';
import * as tls from 'node:tls';
import { type SecureContext } from 'node:tls';

/** What goes into the contexts; PEM text. */
export interface ContextMaterial {
  /** The application certificate and what stands after it in its file: sent to the server (RFC 8446, 4.4.2). */
  certificate?: string;
  privateKey?: string;
  /** The service's public chain. */
  chain?: string[];
}

/** The API: verified against the service's chain alone where there is one, else against Node's public roots. */
export function apiContext({ certificate, privateKey, chain }: ContextMaterial): SecureContext {
  return tls.createSecureContext({ ...base(chain), cert: certificate, key: privateKey });
}

/**
 * The token endpoint: verified against Node's public roots and the service's chain; it sees the client certificate
 * only where that is offered to it (`oauth.mtls`, RFC 8705).
 */
export function tokenContext(
  { certificate, privateKey, chain }: ContextMaterial,
  offer: boolean,
): SecureContext {
  const client = offer ? { cert: certificate, key: privateKey } : {};
  const context = tls.createSecureContext({ ...base(undefined), ...client });
  if (chain) addRoots(context, chain);
  return context;
}

function base(ca: string[] | undefined): tls.SecureContextOptions {
  // The chain may end in an intermediate: it is an anchor all the same (X509_V_FLAG_PARTIAL_CHAIN).
  return { ca, allowPartialTrustChain: ca !== undefined, minVersion: 'TLSv1.2' };
}

/** What Node's own createSecureContext calls for each certificate of its `ca` option. */
interface NativeContext {
  addCACert(pem: string): void;
  setAllowPartialTrustChain(): void;
}

/**
 * Node before 22.15 gives a context that adds roots a store without those of NODE_EXTRA_CA_CERTS. Read as the process
 * starts, as Node itself does: the file may be gone, or another one, when the identity is rotated.
 */
const EXTRA_ROOTS = 'getCACertificates' in tls ? undefined : readExtraRoots();

/**
 * Adds to the roots that Node uses by itself: its own, the system's or OpenSSL's, and those of NODE_EXTRA_CA_CERTS. The
 * `ca` option would replace them, and no list that Node gives holds those of `--use-openssl-ca` and SSL_CERT_FILE. Node
 * gives the context a store of its own with the first certificate, so the flag comes after that.
 */
function addRoots({ context }: SecureContext, chain: readonly string[]): void {
  const native = context as NativeContext;
  for (const pem of chain) native.addCACert(pem);
  if (EXTRA_ROOTS) native.addCACert(EXTRA_ROOTS);
  native.setAllowPartialTrustChain();
}

function readExtraRoots(): string | undefined {
  const file = process.env.NODE_EXTRA_CA_CERTS;
  if (!file) return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // As Node does it: it has warned about that file at its own start.
    return undefined;
  }
}
