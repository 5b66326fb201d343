import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate, type SecureContext, type TLSSocket } from 'node:tls';
import { type Secret } from '../../config/secret.js';
import { type CertificateSummary, cleanText } from '../../errors/index.js';
import { type CertificateVerdict, isUnsupportedInTls13, verdictOfEnd } from '../../exchange/response.js';
import {
  explainFault,
  type ExplainedFault,
  type FaultPlace,
  faultWords,
  classify,
  type ClassifiedError,
  CONNECT_TIMEOUT,
} from '../../exchange/fault.js';
import { formatDate } from '../../time/time.js';
import { explainCertificate, summarize } from '../../tls/certificate-summary.js';
import { attemptTimeoutPerAddress, authorityOf, ProxyTunnel } from '../../tls/connections/connectors.js';
import { failed, type Finding, ok, skipped, warning } from './report.js';

/** A server that the doctor connects to, and the option that sets its address. */
interface ServerPlace extends FaultPlace {
  host: string;
  port: number;
  proxy?: Secret;
  /** The configured `tls.chain`; empty without one. */
  chain: readonly X509Certificate[];
  /** The client certificate that is offered to it; undefined without one. */
  certificate?: CertificateSummary;
  /** The type of the certificate's key. */
  keyType?: string;
}

/** In TLS 1.3 a server refuses the client certificate only after the handshake. How long to wait for that. */
const REFUSAL_WAIT_MS = 1_500;

/** The observations of one handshake. */
export interface HandshakeFacts {
  /** The handshake completed, even if the connection ended right after it. */
  established: boolean;
  /** Why the connection ended. */
  fault?: Partial<ClassifiedError> & Pick<ClassifiedError, 'kind'>;
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
  { host, port, proxy }: Pick<ServerPlace, 'host' | 'port' | 'proxy'>,
  secureContext: SecureContext,
  timeoutMs: number,
): Promise<HandshakeFacts> {
  const servername = isIP(host) ? '' : host;
  const shake = (rejectUnauthorized: boolean): Promise<HandshakeFacts> => {
    const to = proxy
      ? { host, socket: new ProxyTunnel(proxy, authorityOf({ host, port })) }
      : { host, port, ...attemptTimeoutPerAddress(timeoutMs) };
    const socket = connect({ ...to, servername, secureContext, rejectUnauthorized });
    return observe(socket, timeoutMs, proxy ? CONNECT_TIMEOUT : servername ? NO_DNS_ANSWER : 'ETIMEDOUT');
  };
  // The handshake goes on with a certificate that is not trusted, so that it can be described. That is safe, because no
  // request is sent.
  const facts = await shake(false);
  if (facts.notVerified !== 'UNSPECIFIED') return facts;
  // Node has no code for this reason. OpenSSL's description is only in the error of a connection that Node itself refuses,
  // so connect once more and let Node refuse it.
  const { fault } = await shake(true);
  return { ...facts, words: fault?.opensslText };
}

const NO_DNS_ANSWER = 'no answer in time';

/** @param reason why the time limit is exceeded if the connection makes no progress */
function observe(socket: TLSSocket, timeoutMs: number, reason: string): Promise<HandshakeFacts> {
  return new Promise((resolve) => {
    const facts: HandshakeFacts = { established: false, certificates: [] };
    let refusalWait: NodeJS.Timeout | undefined;
    const end = (fault?: HandshakeFacts['fault']): void => {
      clearTimeout(limit);
      clearTimeout(refusalWait);
      socket.removeAllListeners();
      socket.on('error', () => undefined);
      socket.destroy();
      resolve({ ...facts, fault });
    };
    // What the time limit means depends on how far the connection has come: DNS, TCP or TLS.
    socket.once('lookup', () => (reason = 'ETIMEDOUT'));
    socket.once('connect', () => (reason = 'HANDSHAKE_TIMEOUT'));
    const limit = setTimeout(() => {
      end({ kind: reason === NO_DNS_ANSWER ? 'dns' : 'timeout', reason });
    }, timeoutMs);
    // Node has no event for a CertificateRequest. But OpenSSL fills the list of shared signature algorithms when it reads
    // one, because a CertificateRequest must contain algorithms (RFC 8446, 4.3.2). The last `keylog` event comes after all
    // handshake messages of the server, and before the server can refuse the client certificate. Deno has no such event, and the
    // list of Bun is always empty.
    if (process.versions.bun === undefined)
      socket.on('keylog', () => (facts.askedForCertificate = socket.getSharedSigalgs()?.length !== 0));
    socket.once('secureConnect', () => {
      facts.established = true;
      facts.version = socket.getProtocol() ?? undefined;
      // Node's types say that `authorizationError` is an Error. In fact it is the error's code.
      if (!socket.authorized) facts.notVerified = String(socket.authorizationError ?? 'UNSPECIFIED');
      facts.certificates = collectCertificates(socket.getPeerCertificate(true));
      // In TLS 1.2 the server has checked the client certificate before the handshake completes.
      if (facts.version !== 'TLSv1.3') return void setImmediate(end);
      refusalWait = setTimeout(end, Math.min(REFUSAL_WAIT_MS, timeoutMs));
      // A server sends session tickets only after it has accepted the client certificate (RFC 8446, 4.6.1).
      socket.once('session', () => setImmediate(end));
    });
    socket.once('error', (error) => end(classify(error)));
    socket.once('close', () => end({ kind: 'reset' }));
    socket.resume();
  });
}

function collectCertificates(leaf: DetailedPeerCertificate): X509Certificate[] {
  const found = new Set<DetailedPeerCertificate>();
  for (let next = leaf; next?.raw && !found.has(next); next = next.issuerCertificate) found.add(next);
  return [...found].map(({ raw }) => new X509Certificate(raw));
}

const EXPIRED = 'CERT_HAS_EXPIRED';
const NOT_YET_VALID = 'CERT_NOT_YET_VALID';

/** Judges whether the server can be reached and its certificate is valid. The client certificate is judged separately. */
export function judgeServer(place: ServerPlace, facts: HandshakeFacts): Finding {
  const { established, fault, certificates, version, notVerified, words } = facts;
  if (!established && verdictOfHandshake(place, facts))
    return skipped('The server ended the handshake before its own certificate could be judged.');
  if (!established) return explain(place, { kind: 'tls', ...fault });
  const leaf = certificates.at(0);
  if (!leaf) return explain(place, { kind: 'tls', reason: 'no certificate' });
  const issuer = leaf.issuer === leaf.subject ? 'itself' : quoteForeignText(leaf.issuer);
  const shown = `${quoteSubject(leaf)}, issued by ${issuer}`;
  if (notVerified === undefined) {
    const route = place.proxy ? ` through the proxy ${new URL(place.proxy.reveal()).host}` : '';
    return ok(`${version}${route}; ${shown}, valid to ${formatDate(leaf.validTo)}.`);
  }
  const refuse = (reason: string, detail: string) =>
    explain(place, { kind: 'tls', reason, opensslText: words, detail });
  // A server may send certificates that are not needed, for example an expired root for old clients. Their dates matter
  // only if OpenSSL complained about a date.
  const dated = [EXPIRED, NOT_YET_VALID].includes(notVerified) ? certificates : [leaf];
  const expired = dated.find(({ validTo }) => Date.parse(validTo) <= Date.now());
  if (expired) return refuse(EXPIRED, `: ${quoteSubject(expired)} expired on ${formatDate(expired.validTo)}`);
  const early = dated.find(({ validFrom }) => Date.parse(validFrom) > Date.now());
  if (early)
    return refuse(NOT_YET_VALID, `: ${quoteSubject(early)} is valid from ${formatDate(early.validFrom)}`);
  if (notVerified !== 'ERR_TLS_CERT_ALTNAME_INVALID')
    return refuse(notVerified, `. The server shows ${shown}${compareWithChain(place, facts)}`);
  const names = (leaf.subjectAltName ?? leaf.subject ?? 'no name').replace(/\b(DNS|IP Address):/g, '');
  return refuse(notVerified, `: it is for ${cleanText(names, [], 200)}`);
}

/** Explains a fault with the same words as the error of a call. */
function explain(place: ServerPlace, fault: Omit<ExplainedFault, 'phase'>): Finding {
  const where = `${place.host}, port ${place.port}`;
  const { message, hint } = explainFault(where, { ...fault, phase: 'connecting' }, place);
  return failed(message, hint ?? 'Run the check again.');
}

/** Says what `tls.chain` contains, and whether an authority there has the right name but the wrong key. */
function compareWithChain({ chain }: ServerPlace, { certificates, notVerified }: HandshakeFacts): string {
  if (chain.length === 0) return '';
  // The sandbox and production have authorities with the same names and different keys. This is the usual sign that the
  // chain of the other environment is configured.
  const isNamesake = certificates.some(
    (each) =>
      chain.some(({ subject }) => subject === each.issuer) && !chain.some((by) => isSignedBy(each, by)),
  );
  // The message for this code already says so.
  const isSaid = notVerified === 'CERT_SIGNATURE_FAILURE';
  return `; tls.chain contains ${listCertificates(chain, quoteSubject)}${isNamesake && !isSaid ? ': the same name, but another key' : ''}`;
}

function isSignedBy(certificate: X509Certificate, by: X509Certificate): boolean {
  try {
    return certificate.verify(by.publicKey);
  } catch {
    // This Node does not know the algorithm of the key.
    return false;
  }
}

/** Judges whether the server asked for the client certificate and accepted it. */
export function judgeClientCertificate(place: ServerPlace, facts: HandshakeFacts): Finding {
  const { certificate, describeOption } = place;
  const { askedForCertificate } = facts;
  const verdict = verdictOfHandshake(place, facts);
  if (verdict) return explainRefusal(place, facts, verdict);
  if (askedForCertificate === undefined)
    return skipped('This runtime does not show whether the server asks for a client certificate.');
  if (!certificate)
    return askedForCertificate
      ? skipped(
          'The server asks for a client certificate, and accepted the connection without one: the certificate may be optional, or checked at each call. There is nothing to do here: the checks of the calls below show whether it is needed.',
        )
      : ok('The server does not ask for a client certificate, and none is offered.');
  if (!askedForCertificate)
    return warning(
      `The server did not ask for a client certificate in the handshake, so "${certificate.subject}" was not sent.`,
      `Check that ${describeOption(place.option)} is the address for mutual TLS. Some servers ask later, for certain paths only: then the check api.banks shows whether the certificate is accepted.`,
    );
  if (isNotSent(place, facts))
    return warning(
      `The server asked for the client certificate, and "${certificate.subject}" was not sent: TLS 1.3 has no signature algorithm for a key of its type (${place.keyType}). The server accepted the connection without a certificate.`,
      explainRefusal(place, facts, 'not-sent').remedy ?? '',
    );
  return ok(`The server asked for the client certificate, and did not refuse "${certificate.subject}".`);
}

/** The verdict on the client certificate. Undefined if the connection did not end, or certainly not because of the certificate. */
function verdictOfHandshake(place: ServerPlace, facts: HandshakeFacts): CertificateVerdict | undefined {
  const { certificate, keyType } = place;
  const { fault, established, askedForCertificate } = facts;
  const handshake = { isOverForUs: established, isPending: askedForCertificate === true };
  const verdict = fault && verdictOfEnd(fault, { keyType }, handshake);
  return verdict && (!certificate || isNotSent(place, facts)) ? 'not-sent' : verdict;
}

/** Whether OpenSSL sends no client certificate, because TLS 1.3 has no signature algorithm for its key. */
function isNotSent({ keyType }: ServerPlace, { version }: HandshakeFacts): boolean {
  return version === 'TLSv1.3' && isUnsupportedInTls13(keyType);
}

/** The server refused the client certificate, or requires one and none was offered. */
function explainRefusal(place: ServerPlace, facts: HandshakeFacts, verdict: CertificateVerdict): Finding {
  const { certificate, describeOption, keyType, server } = place;
  const { kind, reason = 'the connection ended' } = facts.fault ?? { kind: 'tls' };
  const refusal = { kind, reason, certificateVerdict: verdict };
  if (!certificate && server === 'token') return explain(place, refusal);
  const to = { ...place, hasCertificate: certificate !== undefined };
  const words = [...faultWords({ ...refusal, phase: 'connecting' }, to), 'doctor'];
  const proxy = place.proxy && new URL(place.proxy.reveal()).host;
  const refused = { certificate, keyType, reason, proxy };
  const { message, hint = '' } = explainCertificate(words, refused, describeOption);
  return failed(message, hint);
}

/** For example `"CN=api.service.example, O=Service"`. */
export function quoteSubject(certificate: X509Certificate): string {
  return quoteForeignText(summarize(certificate).subject);
}

/** The chain may be a file with all root certificates of the system. */
const MAX_LISTED = 10;

export function listCertificates(
  certificates: readonly X509Certificate[],
  describe: (certificate: X509Certificate) => string,
): string {
  const more = certificates.length - MAX_LISTED;
  const listed = certificates.slice(0, MAX_LISTED).map(describe).join(', ');
  return more > 0 ? `${listed}, and ${more} more` : listed;
}

/** A certificate of an unknown server may contain any text, so it is cleaned and shortened. */
function quoteForeignText(text: string | undefined): string {
  return `"${cleanText((text ?? '').split('\n').join(', '), [], 160)}"`;
}
