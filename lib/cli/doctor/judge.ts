import { type X509Certificate } from 'node:crypto';
import { type CertificateSummary, cleanText, fillExplanation } from '../../errors/index.js';
import { isHandshakeAlert, mayBeCertificate } from '../../exchange/classify.js';
import { certificateRefusedError, whatToSend } from '../../tls/certificate-error.js';
import { summarize } from '../../tls/certificate-summary.js';
import { isNeverSent } from '../../tls/material/key-type.js';
import { formatDate } from '../../time/clock.js';
import { failed, ok, skipped, warning, type Finding } from './check.js';
import { type HandshakeFacts } from './handshake.js';
import { explained, type Place } from './place.js';

const EXPIRED = 'CERT_HAS_EXPIRED';
const EARLY = 'CERT_NOT_YET_VALID';

/**
 * Whether the server can be reached, and is who it should be; the client certificate aside.
 *
 * @param chain the service's as configured; empty if there is none
 */
export function judgeServer(
  place: Place,
  facts: HandshakeFacts,
  chain: readonly X509Certificate[],
  now: number,
): Finding {
  const { established, fault, certificates, version, notVerified, words } = facts;
  if (!established && isAboutCertificate(facts))
    return skipped('The server ended the handshake before its own certificate could be judged.');
  if (!established) return explained(place, { kind: 'tls', ...fault, phase: 'connecting' });
  const leaf = certificates.at(0);
  if (!leaf) return explained(place, { kind: 'tls', reason: 'no certificate' });
  if (notVerified === undefined) {
    const way = place.proxy ? ` through the proxy ${new URL(place.proxy.reveal()).host}` : '';
    return ok(
      `${version}${way}; ${nameOf(leaf)}, issued by ${issuer(leaf)}, valid to ${formatDate(leaf.validTo)}.`,
    );
  }
  // A server may send more than what it is verified by, for example an old root that is there for old clients only.
  const dated = [EXPIRED, EARLY].includes(notVerified) ? certificates : [leaf];
  const found = (reason: string, shown: string) => explained(place, { kind: 'tls', reason, words, shown });
  const ended = dated.find(({ validTo }) => Date.parse(validTo) <= now);
  if (ended) return found(EXPIRED, `: ${nameOf(ended)} ended on ${formatDate(ended.validTo)}`);
  const early = dated.find(({ validFrom }) => Date.parse(validFrom) > now);
  if (early) return found(EARLY, `: ${nameOf(early)} begins on ${formatDate(early.validFrom)}`);
  if (notVerified === 'ERR_TLS_CERT_ALTNAME_INVALID') return found(notVerified, `: it is for ${names(leaf)}`);
  return found(
    notVerified,
    `. The server shows ${nameOf(leaf)}, issued by ${issuer(leaf)}${describeChain(certificates, chain, notVerified)}`,
  );
}

function describeChain(
  shown: readonly X509Certificate[],
  chain: readonly X509Certificate[],
  notVerified: string,
): string {
  if (chain.length === 0) return '';
  // As the chain of the sandbox has it in production.
  const isNamesake = shown.some(
    (each) => chain.some(({ subject }) => subject === each.issuer) && !chain.some((by) => isSigned(each, by)),
  );
  // The message says so itself.
  const isSaid = notVerified === 'CERT_SIGNATURE_FAILURE';
  return `; the chain holds ${list(chain, nameOf)}${isNamesake && !isSaid ? ': the same name, but another key' : ''}`;
}

function isSigned(certificate: X509Certificate, by: X509Certificate): boolean {
  try {
    return certificate.verify(by.publicKey);
  } catch {
    return false;
  }
}

/**
 * Whether the server asked for our certificate, and took it.
 *
 * @param certificate as it was offered; undefined if none was
 * @param keyType of its key
 */
export function judgeClientCertificate(
  place: Place,
  facts: HandshakeFacts,
  certificate: CertificateSummary | undefined,
  keyType?: string,
): Finding {
  if (isAboutCertificate(facts)) return refused(place, facts, certificate, keyType);
  if (facts.askedForCertificate === undefined)
    return skipped('Whether the server asks for a client certificate is not known on this runtime.');
  if (!facts.askedForCertificate) {
    if (!certificate) return ok('The server does not ask for a client certificate, and none is offered.');
    return warning(
      `The server did not ask for a client certificate in the handshake, so "${certificate.subject}" was not shown.`,
      `Check that ${place.describeOption(place.option)} is the address for mutual TLS. A server may also ask later, for some paths only: then the call of the banks shows it.`,
    );
  }
  if (certificate && facts.version === 'TLSv1.3' && isNeverSent(keyType))
    return warning(
      `The server asked for the client certificate, and "${certificate.subject}" was not sent: TLS 1.3 has no signature for a key of its type (${keyType}). The server took the connection without one.`,
      fillExplanation('', { hint: whatToSend(keyType) }, {}, place).hint ?? '',
    );
  if (certificate)
    return ok(`The server asked for the client certificate, and did not refuse "${certificate.subject}".`);
  return skipped(
    'The server asks for a client certificate, and took the connection without one: it may be optional, or be checked at each call. There is nothing to do here: the checks of the calls show whether they need it.',
  );
}

/** Signs that the end of a handshake is about our certificate, and nothing else is more likely. */
function isAboutCertificate({ fault, askedForCertificate }: HandshakeFacts): boolean {
  if (!fault) return false;
  if (fault.certificateRefused) return true;
  return askedForCertificate === true && (fault.kind === 'reset' || mayBeCertificate(fault));
}

/** The server refused our certificate; or it wants one, and none is offered. */
function refused(
  place: Place,
  { established, version, fault }: HandshakeFacts,
  certificate: CertificateSummary | undefined,
  keyType?: string,
): Finding {
  const { kind = 'tls', reason = 'the connection ended', alert } = fault ?? {};
  const isSaid = fault?.certificateRefused === true || (established && isHandshakeAlert({ alert }));
  if (!certificate && place.server === 'token')
    return explained(place, { kind, reason, certificateRefused: true });
  const isTls13 = version === 'TLSv1.3';
  const sent = { keyType, isTls13 };
  const { message, hint = '' } = certificateRefusedError(certificate, reason, place.describeOption, sent);
  const other = place.proxy ? `a firewall, or the proxy ${new URL(place.proxy.reveal()).host}` : 'a firewall';
  const unsure = `The server asked for the client certificate and then ended the connection, which mostly means that it refused it (else: ${other})`;
  return failed(
    isSaid || !certificate || (isTls13 && isNeverSent(keyType)) ? message : message.replace(/^[^:]*/, unsure),
    hint,
  );
}

/** `"CN=api.service.example, O=Service"`. What the other side says of itself is foreign text. */
export function nameOf(certificate: X509Certificate): string {
  return quoted(summarize(certificate).subject);
}

/** A chain may be all of the system's roots. */
const MOST_LISTED = 10;

export function list(
  certificates: readonly X509Certificate[],
  describe: (certificate: X509Certificate) => string,
): string {
  const more = certificates.length - MOST_LISTED;
  const listed = certificates.slice(0, MOST_LISTED).map(describe).join(', ');
  return more > 0 ? `${listed}, and ${more} more` : listed;
}

function issuer(certificate: X509Certificate): string {
  return certificate.issuer === certificate.subject ? 'itself' : quoted(certificate.issuer);
}

function names({ subjectAltName, subject }: X509Certificate): string {
  return cleanText((subjectAltName ?? subject ?? 'no name').replace(/\b(DNS|IP Address):/g, ''), [], 200);
}

function quoted(text: string | undefined): string {
  return `"${cleanText((text ?? '').split('\n').join(', '), [], 160)}"`;
}
