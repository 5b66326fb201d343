import { type X509Certificate, type KeyObject } from 'node:crypto';
import { DAY_MS, type Clock, formatDate } from '../time/time.js';
import {
  type CertificateSummary,
  ServiceCertificateError,
  type DescribeOption,
  explain,
  type Explanation,
  type Words,
} from '../errors/index.js';
import { type Log } from '../telemetry/telemetry.js';
import { type LoadedIdentity } from './material/check-identity.js';
import { isUnsupportedInTls13 } from '../exchange/response.js';

/** The log and the doctor warn of a certificate in its last 30 days, or in the last third of its lifetime if that is under 90 days. */
const WARNING_MS = 30 * DAY_MS;
const MAX_NAME = 160;

/** Whole days until a certificate expires; negative if it has expired. */
export function daysLeft({ validTo }: Pick<CertificateSummary, 'validTo'>, now: number): number {
  return Math.floor((validTo.getTime() - now) / DAY_MS);
}

/** Whether a certificate expires soon, or has expired. */
export function isDueForRenewal({ validFrom, validTo }: CertificateSummary, now: number): boolean {
  const [from, to] = [validFrom.getTime(), validTo.getTime()];
  return to - now < Math.min(WARNING_MS, (to - from) / 3);
}

/** The public facts of a certificate, as plain data. */
export function summarize(certificate: X509Certificate): CertificateSummary {
  return {
    subject: joinLines(certificate.subject) || alternativeName(certificate),
    issuer: joinLines(certificate.issuer),
    fingerprint256: certificate.fingerprint256,
    validFrom: new Date(certificate.validFrom),
    validTo: new Date(certificate.validTo),
  };
}

/** "CN=app, O=Example (SHA-256 AB:CD...)": enough to find it in the developer portal. */
export function describeCertificate({ subject, fingerprint256 }: CertificateSummary): string {
  return `"${subject}" (SHA-256 ${fingerprint256})`;
}

/** A name for a certificate without a subject, as SPIFFE and some public authorities issue them. */
function alternativeName({ subjectAltName, serialNumber }: X509Certificate): string {
  return subjectAltName?.slice(0, MAX_NAME) ?? `serial number ${serialNumber}`;
}

// Node puts each attribute of a name in a line of its own. In some versions, an empty name is undefined.
function joinLines(name: string | undefined): string {
  return (name ?? '').split('\n').join(', ');
}

const CURVES: Readonly<Record<string, string>> = {
  secp224r1: 'P-224',
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
};

/** The type of a key, with the name of its curve: `RSA`, `RSA-PSS`, `Ed25519`, `P-256`, `secp256k1`. */
export function keyTypeOf({ asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject): string | undefined {
  const { namedCurve = 'EC' } = asymmetricKeyDetails ?? {};
  if (type === 'ec') return CURVES[namedCurve] ?? namedCurve;
  return type?.toUpperCase().replace('ED', 'Ed');
}

/** How often the dates are checked. A certificate may have a lifetime of an hour (SPIFFE) or a day. */
const CHECK_PERIOD_MS = 600_000;
/** How many certificates a log line names. The chain may be the list of all system roots, some of which have expired. */
const MAX_NAMED = 3;

/**
 * Warns of certificates that expire soon, ours and those of the chain: at once, and then once a day. Returns a function that
 * stops it.
 */
export function watchExpiry(inUse: () => LoadedIdentity, clock: Clock, log: Log): () => void {
  let cancel: () => void;
  /** When each warning was last logged, on the monotonic clock. */
  let warnedAt = new Map<string, number>();
  const warn = (): void => {
    const [now, monotonic] = [clock.now(), clock.monotonic()];
    const before = warnedAt;
    warnedAt = new Map();
    for (const { level, option, found, renew } of findDueForRenewal(inUse(), now)) {
      const key = [level, option, ...found.map(({ fingerprint256 }) => fingerprint256)].join();
      const last = before.get(key) ?? -Infinity;
      const isDue = monotonic - last >= DAY_MS;
      if (isDue) log[level](`${option}: ${describeExpiry(found, now)}. ${renew} in place of this one.`);
      warnedAt.set(key, isDue ? monotonic : last);
    }
    cancel = clock.watch(warn, CHECK_PERIOD_MS);
  };
  warn();
  return () => cancel();
}

/** Finds the certificates to renew, with one entry for each log line. */
function findDueForRenewal({ sent, chain }: LoadedIdentity, now: number) {
  const options = [
    ['tls.certificate', sent, 'Generate a new one in the developer portal and use it, with its new key,'],
    ['tls.chain', chain, 'Download the current chain from the developer portal and use it'],
  ] as const;
  return options.flatMap(([option, certificates, renew]) => {
    const expiring = certificates.map(summarize).filter((each) => isDueForRenewal(each, now));
    return (['error', 'warn'] as const).flatMap((level) => {
      const found = expiring.filter((each) => daysLeft(each, now) < 0 === (level === 'error'));
      return found.length > 0 ? { level, option, found, renew } : [];
    });
  });
}

function describeExpiry(found: readonly CertificateSummary[], now: number): string {
  const named = found.slice(0, MAX_NAMED).map((certificate) => {
    const left = daysLeft(certificate, now);
    const expires =
      left < 0
        ? 'expired'
        : left === 0
          ? 'expires within a day,'
          : `expires in ${left} day${left === 1 ? '' : 's'},`;
    return `${describeCertificate(certificate)} ${expires} on ${formatDate(certificate.validTo)}`;
  });
  const more = found.length - named.length;
  return [...named, more > 0 ? `and ${more} more` : []].flat().join('; ');
}

/** A client certificate that a server refused, or required and did not get. */
interface RefusedCertificate {
  /** Undefined if none is offered to the server. */
  certificate?: CertificateSummary;
  keyType?: string;
  /** The issuer of the last certificate that we send; undefined if that certificate is self-signed. */
  lastIssuer?: string;
  /** The code of the TLS alert or of OpenSSL, or `HTTP` and a status. */
  reason?: string;
  /** The host of the proxy that leads to the server. */
  proxy?: string;
}

/** Explains a refusal of the client certificate. The words have the verdict: `certificate-refused` or `certificate-not-sent`. */
export function explainCertificate(
  words: Words,
  refused: RefusedCertificate,
  describeOption: DescribeOption,
): Explanation {
  const { certificate, keyType, ...facts } = refused;
  const { issuer, fingerprint256: fingerprint, validFrom, validTo } = certificate ?? {};
  const [startsAt = -Infinity, endsAt = Infinity] = [validFrom?.getTime(), validTo?.getTime()];
  const own = {
    ...facts,
    keyType,
    certificate: certificate && describeCertificate(certificate),
    issuer,
    fingerprint,
    validFrom: validFrom && formatDate(validFrom),
    validTo: validTo && formatDate(validTo),
  };
  const known = [
    ...words,
    endsAt <= Date.now() && 'expired',
    startsAt > Date.now() && 'not-yet-valid',
    isUnsupportedInTls13(keyType) && 'unsupported-key',
  ];
  return explain(known, own, { describeOption });
}

/** Makes the error for a client certificate that a server refused, or required and did not get. */
export function certificateRefusedError(
  words: Words,
  refused: RefusedCertificate,
  describeOption: DescribeOption,
): ServiceCertificateError {
  const explanation = explainCertificate(words, refused, describeOption);
  const { certificate } = refused;
  const message = `${explanation.message} ${explanation.hint}`;
  const details = { code: 'certificate_refused', certificate, ...explanation } as const;
  return new ServiceCertificateError([{ option: 'tls.certificate', message }], details);
}
