import { type TLSSocket } from 'node:tls';

/** Other runtimes do TLS without OpenSSL. On Bun the list is always empty. */
const KNOWS_REQUESTS = !['bun', 'deno', 'electron'].some((name) => name in process.versions);

/**
 * Whether the server has asked for a client certificate; undefined if that cannot be known, as of a resumed session. Not
 * to be called after `close`: Node 20 crashes.
 */
export function hasAsked(socket: TLSSocket): boolean | undefined {
  if (!KNOWS_REQUESTS || socket.isSessionReused()) return undefined;
  // OpenSSL fills this list when it reads a CertificateRequest, whose algorithms it must have (RFC 8446, 4.3.2).
  return socket.getSharedSigalgs()?.length !== 0;
}
