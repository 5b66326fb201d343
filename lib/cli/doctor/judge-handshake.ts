import { type CertificateSummary } from '../../errors/index.js';
import { HANDSHAKE_FAILURE } from '../../exchange/classify.js';
import { certificateRefusedError } from '../../tls/certificate-error.js';
import { failed, ok, skipped, warning, type Finding } from './check.js';
import { type HandshakeFacts } from './handshake.js';
import { explained, type Place } from './reachable.js';

export interface ClientJudgement {
  place: Place;
  facts: HandshakeFacts;
  /** Ours, as it was offered; undefined if none was. */
  certificate?: CertificateSummary;
}

/** Whether the handshake came to its end; the client certificate aside. Undefined if there is nothing against it. */
export function judgeEnd({ place, facts }: ClientJudgement): Finding | undefined {
  const { established, fault } = facts;
  if (established || isAboutCertificate(facts)) return undefined;
  return explained(place, { kind: 'tls', ...fault, phase: 'connecting' });
}

/** Whether the server asked for our certificate, and took it. */
export function judgeClientCertificate(judgement: ClientJudgement): Finding {
  const { facts, certificate, place } = judgement;
  if (isAboutCertificate(facts)) return refused(judgement);
  if (facts.askedForCertificate === undefined)
    return skipped('Whether the server asks for a client certificate is not known on this runtime.');
  if (!facts.askedForCertificate) {
    if (!certificate) return ok('The server does not ask for a client certificate, and none is offered.');
    return warning(
      `The server did not ask for a client certificate in the handshake, so "${certificate.subject}" was not shown.`,
      `Check that ${place.describeOption(place.option)} is the address for mutual TLS. A server may also ask later, for some paths only: then the call of the banks shows it.`,
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

/** The server refused our certificate; or it wants one, and none is offered. */
function refused({ facts, place, certificate }: ClientJudgement): Finding {
  const { kind = 'tls', reason = 'the connection ended', certificateRefused } = facts.fault ?? {};
  if (!certificate && place.server === 'token')
    return explained(place, { kind, reason, certificateRefused: true });
  const { message, hint = '' } = certificateRefusedError(certificate, reason, place.describeOption);
  const unsure =
    'The server asked for the client certificate and then ended the connection, which mostly means that it refused it (else: a firewall)';
  return failed(certificateRefused || !certificate ? message : message.replace(/^[^:]*/, unsure), hint);
}
