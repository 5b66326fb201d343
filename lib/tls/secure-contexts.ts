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
  return tls.createSecureContext({ ...base(chain && [...publicRoots(), ...chain]), ...client });
}

function base(ca: string[] | undefined): tls.SecureContextOptions {
  // The chain may end in an intermediate: it is an anchor all the same (X509_V_FLAG_PARTIAL_CHAIN).
  return { ca, allowPartialTrustChain: ca !== undefined, minVersion: 'TLSv1.2' };
}

/** Node's own roots as a list: handing in a `ca` replaces them, those of NODE_EXTRA_CA_CERTS included. */
function publicRoots(): string[] {
  const modern = (tls as { getCACertificates?: (type: 'default') => string[] }).getCACertificates;
  if (modern) return modern('default');
  return [...tls.rootCertificates, ...extraRoots()];
}

function extraRoots(): string[] {
  const file = process.env.NODE_EXTRA_CA_CERTS;
  if (!file) return [];
  try {
    return [readFileSync(file, 'utf8')];
  } catch {
    // As Node does it: it has warned about that file at its own start.
    return [];
  }
}
