import { type CertificateSummary } from '../../errors/index.js';
import { type Clock, DAY_MS, formatDate } from '../../time/clock.js';
import { type Log } from '../../exchange/io.js';
import { daysLeft, describeCertificate, isDueForRenewal, summarize } from '../certificate-summary.js';
import { type LoadedIdentity } from '../material/check-identity.js';

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
