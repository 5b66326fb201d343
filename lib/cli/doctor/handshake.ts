import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import {
  connect as connectTls,
  type ConnectionOptions,
  type DetailedPeerCertificate,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import { classify, type Classified } from '../../exchange/classify.js';
import { timeForEachAddress } from '../../tls/connections/connecting.js';
import { minVersion } from '../../tls/material/secure-contexts.js';
import { openTransport, type Transport } from './reachable.js';

/** Milliseconds that a server gets after the handshake to refuse our certificate: in TLS 1.3 it does so after its end. */
const VERDICT_MS = 1_500;

export interface HandshakeTarget extends Transport {
  /** Our certificate and trust anchors; without it Node's public roots, and no certificate. */
  context?: SecureContext;
}

/** What a handshake showed. The server's certificate is judged by others. */
export interface HandshakeFacts {
  /** The handshake came to its end, whatever came then. */
  established: boolean;
  /** Why the connection ended; `timeout` if nothing came. */
  fault?: Classified;
  /** `TLSv1.3`. */
  version?: string;
  /** The reason of OpenSSL or of Node's check of the host name; undefined if the server is who it should be. */
  notVerified?: string;
  /** The server's certificate and those that issued it, as far as they are known. */
  certificates: X509Certificate[];
  /** Undefined if there was no handshake. */
  askedForCertificate?: boolean;
}

/** Connects, shakes hands, and closes. Nothing is sent over the connection. Never rejects. */
export function shakeHands(target: HandshakeTarget, timeoutMs: number): Promise<HandshakeFacts> {
  return new Promise((resolve) => {
    const facts: HandshakeFacts = { established: false, certificates: [] };
    const { host, port, proxy, context } = target;
    const secure = (to: ConnectionOptions): TLSSocket =>
      connectTls({
        ...to,
        servername: isIP(host) ? '' : host,
        secureContext: context,
        minVersion: minVersion(),
        // What it is refused for has to be seen; and nothing is sent.
        rejectUnauthorized: false,
      });
    const socket = proxy
      ? secure({ host, socket: openTransport(target, timeoutMs) })
      : secure({ host, port, ...timeForEachAddress(timeoutMs) });
    let verdict: NodeJS.Timeout | undefined;
    const end = (fault?: Classified): void => {
      clearTimeout(limit);
      clearTimeout(verdict);
      facts.fault = fault;
      socket
        .removeAllListeners()
        .on('error', () => undefined)
        .destroy();
      resolve(facts);
    };
    const late: Classified = { kind: 'timeout', reason: 'HANDSHAKE_TIMEOUT', certificateRefused: false };
    const limit = setTimeout(() => end(late), timeoutMs);
    // The last of them comes after all that the server sends in the handshake, and before it can refuse anything.
    // OpenSSL fills the list when it reads a CertificateRequest, whose algorithms it must have (RFC 8446, 4.3.2).
    socket.on('keylog', () => (facts.askedForCertificate = socket.getSharedSigalgs()?.length !== 0));
    socket.once('secureConnect', () => {
      facts.established = true;
      facts.version = socket.getProtocol() ?? undefined;
      if (!socket.authorized) facts.notVerified = reasonOf(socket);
      facts.certificates = certificatesOf(socket.getPeerCertificate(true));
      // In TLS 1.2 the server has looked at our certificate by now.
      if (facts.version !== 'TLSv1.3') return void setImmediate(end);
      verdict = setTimeout(end, Math.min(VERDICT_MS, timeoutMs));
      // Its tickets come after it has accepted us (RFC 8446, 4.6.1).
      socket.once('session', () => setImmediate(end));
    });
    socket.once('error', (error) => end(classify(error)));
    socket.once('close', () => end({ kind: 'reset', certificateRefused: false }));
    socket.resume();
  });
}

/** Its type says Error; it is the code. */
function reasonOf({ authorizationError }: TLSSocket): string {
  return (authorizationError as unknown as string | null) ?? 'UNSPECIFIED';
}

function certificatesOf(leaf: DetailedPeerCertificate): X509Certificate[] {
  const found = new Map<string, X509Certificate>();
  let next: DetailedPeerCertificate | undefined = leaf;
  while (next?.raw && !found.has(next.fingerprint256)) {
    found.set(next.fingerprint256, new X509Certificate(next.raw));
    next = next.issuerCertificate;
  }
  return [...found.values()];
}
