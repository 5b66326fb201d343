import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import {
  connect,
  type ConnectionOptions,
  type DetailedPeerCertificate,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import { classify, type ClassifiedError, CONNECT_TIMEOUT } from '../../exchange/fault.js';
import { authorityOf, attemptTimeoutPerAddress } from '../../tls/connections/connecting.js';
import { ProxyTunnel } from '../../tls/connections/proxy-tunnel.js';
import { type ServerPlace } from './server-place.js';

/** In TLS 1.3 a server refuses the client certificate only after the handshake. How long to wait for that. */
const REFUSAL_WAIT_MS = 1_500;

/** The observations of one handshake. `judge.ts` decides what they mean. */
export interface HandshakeFacts {
  /** The handshake completed, even if the connection ended right after it. */
  established: boolean;
  /** Why the connection ended. */
  fault?: ClassifiedError;
  /** For example `TLSv1.3`. */
  version?: string;
  /** Why the server's certificate was not accepted: a code of OpenSSL or Node. Undefined if it was accepted. */
  notVerified?: string;
  /** OpenSSL's own description, if Node has no code for the reason. */
  words?: string;
  /** The server's certificate and its issuers, as far as they are known. */
  certificates: X509Certificate[];
  /** Undefined if the connection ended before that was known. */
  askedForCertificate?: boolean;
}

/**
 * Connects, completes the TLS handshake, and closes the connection without a request. Never rejects.
 *
 * @param secureContext the client certificate and trust anchors
 */
export async function shakeHands(
  to: Pick<ServerPlace, 'host' | 'port' | 'proxy'>,
  secureContext: SecureContext,
  timeoutMs: number,
): Promise<HandshakeFacts> {
  const facts = await connectOnce(to, secureContext, timeoutMs, false);
  if (facts.notVerified !== 'UNSPECIFIED') return facts;
  // Node has no code for this reason. OpenSSL's description is only in the error of a connection that Node itself refuses,
  // so connect once more and let Node refuse it.
  const { fault } = await connectOnce(to, secureContext, timeoutMs, true);
  return { ...facts, words: fault?.opensslText };
}

function connectOnce(
  { host, port, proxy }: Pick<ServerPlace, 'host' | 'port' | 'proxy'>,
  secureContext: SecureContext,
  timeoutMs: number,
  rejectUnauthorized: boolean,
): Promise<HandshakeFacts> {
  return new Promise((resolve) => {
    const facts: HandshakeFacts = { established: false, certificates: [] };
    const to: ConnectionOptions = proxy
      ? { host, socket: new ProxyTunnel(proxy, authorityOf({ host, port })) }
      : { host, port, ...attemptTimeoutPerAddress(timeoutMs) };
    const socket = connect({
      ...to,
      servername: isIP(host) ? '' : host,
      secureContext,
      // By default the handshake goes on with a certificate that is not trusted, so that it can be described. That is
      // safe, because no request is sent.
      rejectUnauthorized,
    });
    let refusalWait: NodeJS.Timeout | undefined;
    const end = (fault?: ClassifiedError): void => {
      clearTimeout(limit);
      clearTimeout(refusalWait);
      facts.fault = fault;
      socket
        .removeAllListeners()
        .on('error', () => undefined)
        .destroy();
      resolve(facts);
    };
    // What the time limit means depends on how far the connection has come: DNS, TCP or TLS.
    let timeoutFault: Pick<ClassifiedError, 'kind' | 'reason'> = { kind: 'dns', reason: 'no answer in time' };
    if (proxy) timeoutFault = { kind: 'timeout', reason: CONNECT_TIMEOUT };
    else if (isIP(host) > 0) timeoutFault = { kind: 'timeout', reason: 'ETIMEDOUT' };
    const limit = setTimeout(() => end({ ...timeoutFault, certificateRefused: false }), timeoutMs);
    socket.once('lookup', () => (timeoutFault = { kind: 'timeout', reason: 'ETIMEDOUT' }));
    socket.once('connect', () => (timeoutFault = { kind: 'timeout', reason: 'HANDSHAKE_TIMEOUT' }));
    // Node has no event for a CertificateRequest. But OpenSSL fills the list of shared signature algorithms when it reads
    // one, because a CertificateRequest must contain algorithms (RFC 8446, 4.3.2). The last `keylog` event comes after all
    // handshake messages of the server, and before the server can refuse the client certificate.
    socket.on('keylog', () => (facts.askedForCertificate = socket.getSharedSigalgs()?.length !== 0));
    socket.once('secureConnect', () => {
      facts.established = true;
      facts.version = socket.getProtocol() ?? undefined;
      if (!socket.authorized) facts.notVerified = verificationErrorCode(socket);
      facts.certificates = collectCertificates(socket.getPeerCertificate(true));
      // In TLS 1.2 the server has checked the client certificate before the handshake completes.
      if (facts.version !== 'TLSv1.3') return void setImmediate(end);
      refusalWait = setTimeout(end, Math.min(REFUSAL_WAIT_MS, timeoutMs));
      // A server sends session tickets only after it has accepted the client certificate (RFC 8446, 4.6.1).
      socket.once('session', () => setImmediate(end));
    });
    socket.once('error', (error) => end(classify(error)));
    socket.once('close', () => end({ kind: 'reset', certificateRefused: false }));
    socket.resume();
  });
}

/** Node's types say that `authorizationError` is an Error. In fact it is the error's code. */
function verificationErrorCode({ authorizationError }: TLSSocket): string {
  return (authorizationError as unknown as string | null) ?? 'UNSPECIFIED';
}

function collectCertificates(leaf: DetailedPeerCertificate): X509Certificate[] {
  const found = new Map<string, X509Certificate>();
  let next: DetailedPeerCertificate | undefined = leaf;
  while (next?.raw && !found.has(next.fingerprint256)) {
    found.set(next.fingerprint256, new X509Certificate(next.raw));
    next = next.issuerCertificate;
  }
  return [...found.values()];
}
