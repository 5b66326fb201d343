import { readFileSync } from 'node:fs';
import * as tls from 'node:tls';
import { type SecureContext } from 'node:tls';

/** The PEM text that contexts are made of. */
interface ContextMaterial {
  /** The application certificate and the chain certificates after it: sent to the server (RFC 8446, 4.4.2). */
  certificate?: string;
  privateKey?: string;
  /** The service's public chain. */
  chain?: string[];
}

/** What Node's own createSecureContext calls for each certificate of its `ca` option. It is not documented. */
interface NativeContext {
  addCACert(pem: string): void;
  setAllowPartialTrustChain(): void;
}

/** Node 22.15 and later have it. */
const { getCACertificates } = tls as { getCACertificates?: (type: 'default') => string[] };

/** Makes the two contexts of each identity of one module. */
export class SecureContexts {
  readonly #offerToTokenEndpoint: boolean;
  /**
   * The roots of NODE_EXTRA_CA_CERTS. Node before 22.15 leaves them out of a context that adds roots. Read once, when
   * the module starts: Node reads the file once too, and a rotation may find it changed or deleted.
   */
  readonly #extraRoots = getCACertificates ? undefined : readExtraRoots();

  /** @param offerToTokenEndpoint `oauth.mtls`: the token endpoint gets the client certificate too (RFC 8705) */
  constructor(offerToTokenEndpoint: boolean) {
    this.#offerToTokenEndpoint = offerToTokenEndpoint;
  }

  /** For the API: it is verified against the service's chain alone. Without a chain: against Node's public roots. */
  forApi({ certificate, privateKey, chain }: ContextMaterial): SecureContext {
    return tls.createSecureContext({ ...trusting(chain), cert: certificate, key: privateKey });
  }

  /** For the token endpoint: it is verified against Node's public roots and the service's chain. */
  forTokenEndpoint({ certificate, privateKey, chain }: ContextMaterial): SecureContext {
    const client = this.#offerToTokenEndpoint ? { cert: certificate, key: privateKey } : {};
    const context = tls.createSecureContext({ ...trusting(undefined), ...client });
    if (!chain || this.#addRoots(context, chain)) return context;
    // For Node versions without these calls. The list has no roots of OpenSSL: a server that needs one is refused.
    const listed = getCACertificates?.('default') ?? [];
    return tls.createSecureContext({ ...trusting([...listed, ...chain]), ...client });
  }

  /**
   * Adds the chain to the roots that Node uses by default. There is no documented way: the `ca` option replaces the
   * roots, and no list of Node's has those of OpenSSL (`--use-openssl-ca`, SSL_CERT_FILE). Parsing such a list also
   * takes some 50 ms for each identity; this takes 3 ms. Returns false where Node has no such calls. The flag comes
   * last: the context gets a store of its own with its first certificate.
   */
  #addRoots(secureContext: SecureContext, chain: readonly string[]): boolean {
    const native = secureContext.context as NativeContext;
    if (!('addCACert' in native && 'setAllowPartialTrustChain' in native)) return false;
    beforeFirstUse(secureContext, () => {
      for (const pem of chain) native.addCACert(pem);
      if (this.#extraRoots) native.addCACert(this.#extraRoots);
      native.setAllowPartialTrustChain();
    });
    return true;
  }
}

/**
 * Node reads `context` for each connection. The first store of a process parses all public roots, which takes 25 ms: a
 * host that never asks for a token never needs them.
 */
function beforeFirstUse(secureContext: SecureContext, complete: () => void): void {
  const context: unknown = secureContext.context;
  const get = (): unknown => {
    Object.defineProperty(secureContext, 'context', { value: context });
    complete();
    return context;
  };
  Object.defineProperty(secureContext, 'context', { get, configurable: true });
}

function trusting(ca: string[] | undefined): tls.SecureContextOptions {
  // The chain may end in an intermediate certificate: it is a trust anchor too (X509_V_FLAG_PARTIAL_CHAIN).
  return { ca, allowPartialTrustChain: ca !== undefined, minVersion: 'TLSv1.2' };
}

function readExtraRoots(): string | undefined {
  const file = process.env.NODE_EXTRA_CA_CERTS;
  if (!file) return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // Node has warned about this file at its start, and also continues without it.
    return undefined;
  }
}
