import { type X509Certificate } from 'node:crypto';
import { type CertificateSummary, cleanText, fillExplanation } from '../../errors/index.js';
import { isHandshakeAlert, mayBeCertificateRefusal } from '../../exchange/fault.js';
import { certificateRefusedError, notSentHint } from '../../tls/certificate-error.js';
import { summarize, isUnsupportedInTls13 } from '../../tls/certificate-summary.js';
import { formatDate } from '../../time/time.js';
import { failed, ok, skipped, warning, type Finding } from './check.js';
import { type HandshakeFacts } from './handshake.js';
import { explainHandshakeFault, type ServerPlace } from './server-place.js';

const EXPIRED = 'CERT_HAS_EXPIRED';
const NOT_YET_VALID = 'CERT_NOT_YET_VALID';

/**
 * Judges whether the server can be reached and its certificate is valid. The client certificate is judged separately.
 *
 * @param chain the configured `tls.chain`; empty without one
 */
export function judgeServer(
  place: ServerPlace,
  facts: HandshakeFacts,
  chain: readonly X509Certificate[],
  now: number,
): Finding {
  const { established, fault, certificates, version, notVerified, words } = facts;
  if (!established && isAboutClientCertificate(facts))
    return skipped('The server ended the handshake before its own certificate could be judged.');
  if (!established) return explainHandshakeFault(place, { kind: 'tls', ...fault });
  const leaf = certificates.at(0);
  if (!leaf) return explainHandshakeFault(place, { kind: 'tls', reason: 'no certificate' });
  if (notVerified === undefined) {
    const route = place.proxy ? ` through the proxy ${new URL(place.proxy.reveal()).host}` : '';
    return ok(
      `${version}${route}; ${quoteSubject(leaf)}, issued by ${describeIssuer(leaf)}, valid to ${formatDate(leaf.validTo)}.`,
    );
  }
  const explain = (reason: string, shown: string) =>
    explainHandshakeFault(place, { kind: 'tls', reason, opensslText: words, detail: shown });
  // A server may send certificates that are not needed, for example an expired root for old clients. Their dates matter
  // only if OpenSSL complained about a date.
  const dated = [EXPIRED, NOT_YET_VALID].includes(notVerified) ? certificates : [leaf];
  const expired = dated.find(({ validTo }) => Date.parse(validTo) <= now);
  if (expired)
    return explain(EXPIRED, `: ${quoteSubject(expired)} expired on ${formatDate(expired.validTo)}`);
  const early = dated.find(({ validFrom }) => Date.parse(validFrom) > now);
  if (early)
    return explain(NOT_YET_VALID, `: ${quoteSubject(early)} is valid from ${formatDate(early.validFrom)}`);
  if (notVerified === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return explain(notVerified, `: it is for ${listServerNames(leaf)}`);
  return explain(
    notVerified,
    `. The server shows ${quoteSubject(leaf)}, issued by ${describeIssuer(leaf)}${compareWithChain(certificates, chain, notVerified)}`,
  );
}

/** Says what `tls.chain` contains, and whether an authority there has the right name but the wrong key. */
function compareWithChain(
  shown: readonly X509Certificate[],
  chain: readonly X509Certificate[],
  notVerified: string,
): string {
  if (chain.length === 0) return '';
  // The sandbox and production have authorities with the same names and different keys. This is the usual sign that the
  // chain of the other environment is configured.
  const isNamesake = shown.some(
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
    return false;
  }
}

/**
 * Judges whether the server asked for the client certificate and accepted it.
 *
 * @param certificate the certificate that was offered; undefined without one
 * @param keyType the type of its key
 */
export function judgeClientCertificate(
  place: ServerPlace,
  facts: HandshakeFacts,
  certificate: CertificateSummary | undefined,
  keyType?: string,
): Finding {
  if (isAboutClientCertificate(facts)) return explainRefusal(place, facts, certificate, keyType);
  if (facts.askedForCertificate === undefined)
    return skipped('This runtime does not show whether the server asks for a client certificate.');
  if (!facts.askedForCertificate) {
    if (!certificate) return ok('The server does not ask for a client certificate, and none is offered.');
    return warning(
      `The server did not ask for a client certificate in the handshake, so "${certificate.subject}" was not sent.`,
      `Check that ${place.describeOption(place.option)} is the address for mutual TLS. Some servers ask later, for certain paths only: then the check api.banks shows whether the certificate is accepted.`,
    );
  }
  if (certificate && facts.version === 'TLSv1.3' && isUnsupportedInTls13(keyType))
    return warning(
      `The server asked for the client certificate, and "${certificate.subject}" was not sent: TLS 1.3 has no signature algorithm for a key of its type (${keyType}). The server accepted the connection without a certificate.`,
      fillExplanation('', { hint: notSentHint(keyType) }, {}, place).hint ?? '',
    );
  if (certificate)
    return ok(`The server asked for the client certificate, and did not refuse "${certificate.subject}".`);
  return skipped(
    'The server asks for a client certificate, and accepted the connection without one: the certificate may be optional, or checked at each call. There is nothing to do here: the checks of the calls below show whether it is needed.',
  );
}

/** Whether the connection most likely ended because of the client certificate. */
function isAboutClientCertificate({ fault, askedForCertificate }: HandshakeFacts): boolean {
  if (!fault) return false;
  if (fault.certificateRefused) return true;
  return askedForCertificate === true && mayBeCertificateRefusal(fault);
}

/** The server refused the client certificate, or requires one and none was offered. */
function explainRefusal(
  place: ServerPlace,
  { established, version, fault }: HandshakeFacts,
  certificate: CertificateSummary | undefined,
  keyType?: string,
): Finding {
  const { kind = 'tls', reason = 'the connection ended', alert } = fault ?? {};
  const isSaid = fault?.certificateRefused === true || (established && isHandshakeAlert({ alert }));
  if (!certificate && place.server === 'token')
    return explainHandshakeFault(place, { kind, reason, certificateRefused: true });
  const isTls13 = version === 'TLSv1.3';
  const sent = { keyType, isTls13 };
  const { message, hint = '' } = certificateRefusedError(certificate, reason, place.describeOption, sent);
  const other = place.proxy ? `a firewall, or the proxy ${new URL(place.proxy.reveal()).host}` : 'a firewall';
  const unsure = `The server asked for the client certificate and then ended the connection. Most likely it refused the certificate; otherwise ${other} ended the connection`;
  return failed(
    isSaid || !certificate || (isTls13 && isUnsupportedInTls13(keyType))
      ? message
      : message.replace(/^[^:]*/, unsure),
    hint,
  );
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

function describeIssuer(certificate: X509Certificate): string {
  return certificate.issuer === certificate.subject ? 'itself' : quoteForeignText(certificate.issuer);
}

function listServerNames({ subjectAltName, subject }: X509Certificate): string {
  return cleanText((subjectAltName ?? subject ?? 'no name').replace(/\b(DNS|IP Address):/g, ''), [], 200);
}

/** A certificate of an unknown server may contain any text, so it is cleaned and shortened. */
function quoteForeignText(text: string | undefined): string {
  return `"${cleanText((text ?? '').split('\n').join(', '), [], 160)}"`;
}
