import { type X509Certificate } from 'node:crypto';
import { cleanText } from '../../errors/index.js';
import { formatDate } from '../../tls/certificate-summary.js';
import { ok, type Finding } from './check.js';
import { type HandshakeFacts } from './handshake.js';
import { explained, type Place } from './reachable.js';

export interface ServerJudgement {
  place: Place;
  facts: HandshakeFacts;
  /** The service's chain as configured; empty if there is none. */
  chain: readonly X509Certificate[];
  now: number;
  /** Whether Node's public roots alone would verify the server. */
  isPublic: () => Promise<boolean>;
}

const EXPIRED = 'CERT_HAS_EXPIRED';
const EARLY = 'CERT_NOT_YET_VALID';

/** Whether the server is who it should be. The handshake has come to its end. */
export async function judgeServer(judgement: ServerJudgement): Promise<Finding> {
  const { place, facts, chain, now, isPublic } = judgement;
  const { certificates, version, notVerified } = facts;
  const leaf = certificates.at(0);
  if (!leaf) return explained(place, { kind: 'tls', reason: 'no certificate' });
  if (notVerified === undefined) {
    return ok(`${version}; ${name(leaf)}, issued by ${issuer(leaf)}, valid to ${formatDate(leaf.validTo)}.`);
  }
  // A server may send more than what it is verified by, for example an old root that is there for old clients only.
  const isAboutDates = [EXPIRED, EARLY].includes(notVerified);
  const dated = isAboutDates && isAnchored(judgement) ? certificates : [leaf];
  const ended = dated.find(({ validTo }) => Date.parse(validTo) <= now);
  const found = (reason: string, shown: string, isPublic?: boolean) =>
    explained(place, { kind: 'tls', reason, shown, isPublic });
  if (ended) return found(EXPIRED, `: ${name(ended)} ended on ${formatDate(ended.validTo)}`);
  const early = dated.find(({ validFrom }) => Date.parse(validFrom) > now);
  if (early) return found(EARLY, `: ${name(early)} begins on ${formatDate(early.validFrom)}`);
  if (notVerified === 'ERR_TLS_CERT_ALTNAME_INVALID') return found(notVerified, `: it is for ${names(leaf)}`);
  const shown = `. The server shows ${name(leaf)}, issued by ${issuer(leaf)}${describeChain(judgement)}`;
  const reason = isAboutDates ? 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' : notVerified;
  return found(reason, shown, chain.length > 0 && (await isPublic()));
}

function describeChain({ chain, facts }: ServerJudgement): string {
  if (chain.length === 0) return '';
  // Node adds to what the server sent what it finds in the chain by its name.
  const sent = facts.certificates.filter(({ raw }) => !chain.some((each) => each.raw.equals(raw)));
  const sameName = chain.find(({ subject }) => sent.some((each) => each.issuer === subject));
  const isOther =
    sameName && sent.every((each) => each.issuer !== sameName.subject || !isSigned(each, sameName));
  return `; the chain holds ${chain.map(name).join(', ')}${isOther ? ': the same name, but another key' : ''}`;
}

/** Whether the chain knows any of them: if not, OpenSSL may report a date that does not matter. */
function isAnchored({ chain, facts }: ServerJudgement): boolean {
  const known = (each: X509Certificate): boolean =>
    chain.some((anchor) => each.raw.equals(anchor.raw) || isSigned(each, anchor));
  return chain.length === 0 || facts.certificates.some(known);
}

function isSigned(certificate: X509Certificate, by: X509Certificate): boolean {
  try {
    return certificate.verify(by.publicKey);
  } catch {
    return false;
  }
}

/** `"CN=api.service.example, O=Service"`. What the other side says of itself is foreign text. */
export function name({ subject }: X509Certificate): string {
  return quoted(subject);
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
