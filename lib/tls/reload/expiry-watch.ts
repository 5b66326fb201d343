import { type CertificateSummary } from '../../errors/index.js';
import { type Clock, DAY_MS, formatDate } from '../../time/clock.js';
import { type Log } from '../../exchange/io.js';
import { daysLeft, describeCertificate, isDueForRenewal, summarize } from '../certificate-summary.js';
import { type LoadedIdentity } from '../material/check-identity.js';

/** A certificate may have a life of an hour (SPIFFE) or a day. */
const LOOK_MS = 600_000;
/** Certificates that a line names. All of the system's roots may be the chain, some of them expired. */
const MOST_NAMED = 3;

/** Warns of certificates in their last days, ours and those of the chain: at once, and then each day. Returns its end. */
export function watchExpiry(inUse: () => LoadedIdentity, clock: Clock, log: Log): () => void {
  let cancel: () => void;
  /** When the same was last said, on the monotonic clock. */
  let warnedAt = new Map<string, number>();
  const warn = (): void => {
    const [now, monotonic] = [clock.now(), clock.monotonic()];
    const before = warnedAt;
    warnedAt = new Map();
    for (const { level, option, found, renew } of findDueForRenewal(inUse(), now)) {
      const key = [level, option, ...found.map(({ fingerprint256 }) => fingerprint256)].join();
      const last = before.get(key) ?? -Infinity;
      const isDue = monotonic - last >= DAY_MS;
      if (isDue) log[level](`${option}: ${describeEnding(found, now)}. ${renew} in place of this one.`);
      warnedAt.set(key, isDue ? monotonic : last);
    }
    cancel = clock.watch(warn, LOOK_MS);
  };
  warn();
  return () => cancel();
}

/** What to renew, in one entry for each line of the log. */
function findDueForRenewal({ sent, chain }: LoadedIdentity, now: number) {
  const options = [
    ['tls.certificate', sent, 'Generate a new one in the developer portal and put it, with its new key,'],
    ['tls.chain', chain, 'Download the chain anew from the developer portal and put it'],
  ] as const;
  return options.flatMap(([option, certificates, renew]) => {
    const ending = certificates.map(summarize).filter((each) => isDueForRenewal(each, now));
    return (['error', 'warn'] as const).flatMap((level) => {
      const found = ending.filter((each) => daysLeft(each, now) < 0 === (level === 'error'));
      return found.length > 0 ? { level, option, found, renew } : [];
    });
  });
}

function describeEnding(found: readonly CertificateSummary[], now: number): string {
  const named = found.slice(0, MOST_NAMED).map((certificate) => {
    const left = daysLeft(certificate, now);
    const ends =
      left < 0
        ? 'expired'
        : left === 0
          ? 'ends within a day,'
          : `ends in ${left} day${left === 1 ? '' : 's'},`;
    return `${describeCertificate(certificate)} ${ends} on ${formatDate(certificate.validTo)}`;
  });
  const more = found.length - named.length;
  return [...named, more > 0 ? `and ${more} more` : []].flat().join('; ');
}
