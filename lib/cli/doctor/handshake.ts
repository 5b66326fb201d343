import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import {
  connect,
  type ConnectionOptions,
  type DetailedPeerCertificate,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import { classify, type Classified } from '../../exchange/classify.js';
import { CONNECT_TIMEOUT } from '../../exchange/exchange.types.js';
import { authorityOf, timeForEachAddress } from '../../tls/connections/connecting.js';
import { ProxyTunnel } from '../../tls/connections/proxy-tunnel.js';
import { type Place } from './place.js';

/** Milliseconds that a server gets after the handshake to refuse our certificate: in TLS 1.3 it does so after its end. */
const VERDICT_MS = 1_500;

/** What a handshake showed. The server's certificate is judged by others. */
export interface HandshakeFacts {
  /** The handshake came to its end, whatever came then. */
  established: boolean;
  /** Why the connection ended. */
  fault?: Classified;
  /** `TLSv1.3`. */
  version?: string;
  /** The reason of OpenSSL or of Node's check of the host name; undefined if the server is who it should be. */
  notVerified?: string;
  /** OpenSSL's words for it, where Node has no code. */
  words?: string;
  /** The server's certificate and those that issued it, as far as they are known. */
  certificates: X509Certificate[];
  /** Undefined if there was no handshake. */
  askedForCertificate?: boolean;
}

/**
 * Connects, shakes hands, and closes. Nothing is sent over the connection. Never rejects.
 *
 * @param secureContext our certificate and trust anchors
 */
export async function shakeHands(
  to: Pick<Place, 'host' | 'port' | 'proxy'>,
  secureContext: SecureContext,
  timeoutMs: number,
): Promise<HandshakeFacts> {
  const facts = await connectOnce(to, secureContext, timeoutMs, false);
  if (facts.notVerified !== 'UNSPECIFIED') return facts;
  // Only the error of a connection that Node itself refuses has OpenSSL's words.
  const { fault } = await connectOnce(to, secureContext, timeoutMs, true);
  return { ...facts, words: fault?.words };
}

function connectOnce(
  { host, port, proxy }: Pick<Place, 'host' | 'port' | 'proxy'>,
  secureContext: SecureContext,
  timeoutMs: number,
  rejectUnauthorized: boolean,
): Promise<HandshakeFacts> {
  return new Promise((resolve) => {
    const facts: HandshakeFacts = { established: false, certificates: [] };
    const to: ConnectionOptions = proxy
      ? { host, socket: new ProxyTunnel(proxy, authorityOf({ host, port })) }
      : { host, port, ...timeForEachAddress(timeoutMs) };
    const socket = connect({
      ...to,
      servername: isIP(host) ? '' : host,
      secureContext,
      // What it is refused for has to be seen; and nothing is sent.
      rejectUnauthorized,
    });
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
    let late: Pick<Classified, 'kind' | 'reason'> = { kind: 'dns', reason: 'no answer in time' };
    if (proxy) late = { kind: 'timeout', reason: CONNECT_TIMEOUT };
    else if (isIP(host) > 0) late = { kind: 'timeout', reason: 'ETIMEDOUT' };
    const limit = setTimeout(() => end({ ...late, certificateRefused: false }), timeoutMs);
    socket.once('lookup', () => (late = { kind: 'timeout', reason: 'ETIMEDOUT' }));
    socket.once('connect', () => (late = { kind: 'timeout', reason: 'HANDSHAKE_TIMEOUT' }));
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
