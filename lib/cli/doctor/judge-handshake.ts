import { type CertificateSummary } from '../../errors/index.js';
import { HANDSHAKE_FAILURE } from '../../exchange/tls-explanation.js';
import { describeCertificate, formatDate } from '../../tls/certificate-summary.js';
import { failed, ok, skipped, warning, type Finding } from './check.js';
import { type HandshakeFacts } from './handshake.js';
import { type Place } from './reachable.js';

export interface ClientJudgement {
  place: Place;
  facts: HandshakeFacts;
  /** Ours, as it was offered; undefined where none was. */
  certificate?: CertificateSummary;
  /** How a message names the options of the certificate and key. */
  certificateDescribed: string;
  /** What to set where the server asks for a certificate and we offer none. */
  offerDescribed: string;
  now: number;
}

/** By the reason, which OpenSSL's versions spell differently. */
const ALERTS: readonly (readonly [RegExp, string])[] = [
  [/_(70|PROTOCOL_VERSION)$/, 'it wants another version of TLS than 1.2 or 1.3 (protocol_version)'],
  [/_(112|UNRECOGNIZED_NAME)$/, 'it knows no host of this name (unrecognized_name)'],
];

/** Whether the handshake came to its end; the client certificate aside. Undefined where there is nothing against it. */
export function judgeEnd({ place, facts }: ClientJudgement): Finding | undefined {
  const { established, fault, peerTalks, askedForCertificate } = facts;
  const { host, port, described, option, proxyDescribed } = place;
  if (established || isAboutCertificate(facts)) return undefined;
  const where = `${host}, port ${port},`;
  if (peerTalks === 'http' || peerTalks === 'other') {
    const what = peerTalks === 'http' ? 'plain HTTP' : 'something that is not TLS';
    return failed(
      `${where} answers with ${what}: there is no TLS on this port.`,
      `Put the port of HTTPS into ${described} (443 where none is named).`,
      option,
    );
  }
  const reason = fault?.reason ?? fault?.kind ?? 'unknown reason';
  if (fault?.kind === 'timeout') {
    return failed(
      `${where} took the connection and did not answer the TLS handshake in time. A firewall or load balancer that holds it, or a server that is overloaded; or it is no TLS server and waits for something else.`,
      `Check the port of ${described}. If it is right, ask who runs the network or the service.`,
      option,
    );
  }
  if (fault?.kind === 'proxy') {
    return failed(
      `The proxy did not open a tunnel to ${host} (${reason}).`,
      `Check ${proxyDescribed}, and that the proxy allows this host and port.`,
      'http.proxy',
    );
  }
  if (fault?.kind === 'reset') {
    const asked = askedForCertificate ? ' It had asked for a client certificate.' : '';
    return failed(
      `${where} ended the connection in the TLS handshake, without a reason (${reason}).${asked} Likely a firewall or load balancer that does not let this machine or host name through; also a server that is not for TLS.`,
      `Check ${described}. If it is right, ask the service's operator whether the address of this machine has to be allowed first.`,
      option,
    );
  }
  const [, said = 'the server ended it'] = ALERTS.find(([pattern]) => pattern.test(reason)) ?? [];
  return failed(
    `The TLS handshake with ${host} failed: ${said} (${reason}).`,
    `Check ${described}. If it is right, tell the service's operator.`,
    option,
  );
}

/** Whether the server asked for our certificate, and took it. */
export function judgeClientCertificate(judgement: ClientJudgement): Finding {
  const { facts, certificate } = judgement;
  if (isAboutCertificate(facts)) return certificate ? refused(judgement, certificate) : missing(judgement);
  if (!facts.askedForCertificate) {
    if (!certificate) return ok('The server does not ask for a client certificate, and none is offered.');
    return warning(
      `The server did not ask for a client certificate in the handshake, so "${certificate.subject}" was not shown.`,
      `Check that ${judgement.place.described} is the address for mutual TLS. A server may also ask later, for some paths only: then the call of the banks shows it.`,
      judgement.place.option,
    );
  }
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
  if (!askedForCertificate) return false;
  // In TLS 1.2 a server may refuse with no more than the end of the connection, or with handshake_failure.
  return fault.reason === HANDSHAKE_FAILURE || fault.kind === 'reset';
}

function refused(
  { facts, certificateDescribed, now, place }: ClientJudgement,
  certificate: CertificateSummary,
): Finding {
  const { reason = 'the connection ended', certificateRefused } = facts.fault ?? {};
  const sure = certificateRefused
    ? 'The server refused the client certificate'
    : 'The server asked for the client certificate and then ended the connection, which mostly means that it refused it (else: a firewall)';
  const dates = `valid from ${formatDate(certificate.validFrom)} to ${formatDate(certificate.validTo)}`;
  const expired = certificate.validTo.getTime() <= now ? ' It has expired.' : '';
  return failed(
    `${sure}: ${describeCertificate(certificate)}, issued by "${certificate.issuer}", ${dates} (${reason}).${expired}`,
    `In the developer portal, compare the certificate that is listed for this application and this environment with ${certificateDescribed}: the sandbox and production have certificates of their own, and a revoked one does not come back. Check that ${place.described} is of the same environment, and this machine's clock.`,
    'tls.certificate',
  );
}

function missing({ facts, offerDescribed, place }: ClientJudgement): Finding {
  const reason = facts.fault?.reason ?? 'the connection ended';
  return failed(
    `${place.host} asks for a client certificate and none is offered (${reason}).`,
    `${offerDescribed}; or put an address that does not ask for one into ${place.described}.`,
    place.option,
  );
}
