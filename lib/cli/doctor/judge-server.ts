import { type X509Certificate } from 'node:crypto';
import { cleanText } from '../../errors/index.js';
import { formatDate } from '../../tls/certificate-summary.js';
import { failed, ok, type Finding } from './check.js';
import { type HandshakeFacts } from './handshake.js';
import { explained, type Place } from './reachable.js';

export interface ServerJudgement {
  place: Place;
  facts: HandshakeFacts;
  /** The service's chain as configured; empty where there is none. */
  chain: readonly X509Certificate[];
  now: number;
  /** Whether Node's public roots alone would verify the server. Asked only where that says something. */
  isPublic: () => Promise<boolean>;
}

const EXPIRED = 'CERT_HAS_EXPIRED';
const EARLY = 'CERT_NOT_YET_VALID';
/** They say all by themselves. */
const PLAIN_REASONS = ['CERT_REVOKED', 'INVALID_PURPOSE', 'UNSPECIFIED'];

/** Whether the server is who it should be. The handshake has come to its end. */
export async function judgeServer(judgement: ServerJudgement): Promise<Finding> {
  const { place, facts, now } = judgement;
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
  const found = (reason: string, shown?: string) => explained(place, { kind: 'tls', reason, shown });
  if (ended) return found(EXPIRED, `: ${name(ended)} ended on ${formatDate(ended.validTo)}`);
  const early = dated.find(({ validFrom }) => Date.parse(validFrom) > now);
  if (early) return found(EARLY, `: ${name(early)} begins on ${formatDate(early.validFrom)}`);
  if (notVerified === 'ERR_TLS_CERT_ALTNAME_INVALID') return found(notVerified, `: it is for ${names(leaf)}`);
  if (PLAIN_REASONS.includes(notVerified)) return found(notVerified);
  return judgeIssuer(judgement, leaf, notVerified);
}

/** The server's certificate is not signed by what it is verified against. */
async function judgeIssuer(
  { place, facts, chain, isPublic }: ServerJudgement,
  leaf: X509Certificate,
  reason: string,
): Promise<Finding> {
  const shown = `The server shows ${name(leaf)}, issued by ${issuer(leaf)}`;
  const chainDescribed = place.describeOption('tls.chain');
  if (chain.length === 0) {
    return failed(
      `${shown}, which is none of Node's public roots; and there is no ${chainDescribed} (${reason}).`,
      `Download the service's public chain from the developer portal (authentication section, "certificate chain") and set ${chainDescribed}, in place of ${place.describeOption('tls.publicRoots')} if that is set. If the service has none, something between may answer in its place, for example a proxy that opens TLS.`,
    );
  }
  const held = `${chainDescribed} holds ${chain.map(name).join(', ')}`;
  // Node adds to what the server sent what it finds in the chain by its name.
  const sent = facts.certificates.filter(({ raw }) => !chain.some((each) => each.raw.equals(raw)));
  const sameName = chain.find(({ subject }) => sent.some((each) => each.issuer === subject));
  if (sameName && sent.every((each) => each.issuer !== sameName.subject || !isSigned(each, sameName))) {
    return failed(
      `${shown}. ${held}: the same name, but another key (${reason}).`,
      `The chain is of another environment, or was renewed. Download it anew from the developer portal section of this environment, and put it into ${chainDescribed}.`,
    );
  }
  if (await isPublic()) {
    return failed(
      `${shown}, a public authority, and ${held}: with a chain set, nothing else is trusted (${reason}).`,
      `Check that ${place.describeOption(place.option)} is the service's own address and not, for example, its website. If it is, the service uses a public certificate: leave ${chainDescribed} out and set ${place.describeOption('tls.publicRoots')} to true, or put that authority's certificate into it.`,
    );
  }
  if (isAlone(facts, reason)) {
    return failed(
      `${shown}, and sends no certificate of that issuer. ${held}, and not this one (${reason}).`,
      `Download the whole chain from the developer portal, with the intermediate certificate ${issuer(leaf)}, and put it into ${chainDescribed}. If it has none of that name, the chain is of another environment, or something between answers in the service's place (a proxy that opens TLS).`,
    );
  }
  return failed(
    `${shown}. Neither ${chainDescribed} nor a public authority signed that. ${held} (${reason}).`,
    `If you know ${issuer(leaf)} as your company's: a proxy between opens TLS; have it leave this address alone. Else the chain is of another environment: download it from the developer portal section of this one and put it into ${chainDescribed}. Check ${place.describeOption(place.option)} too.`,
  );
}

/** The server sent its own certificate only, and somebody else issued it. */
function isAlone({ certificates }: HandshakeFacts, reason: string): boolean {
  const [leaf] = certificates;
  return certificates.length === 1 && leaf.issuer !== leaf.subject && reason.startsWith('UNABLE_TO_');
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
