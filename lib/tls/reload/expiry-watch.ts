import { type Clock, DAY_MS, formatDate } from '../../time/clock.js';
import { type Log } from '../../exchange/io.js';
import { daysLeft, describeCertificate, summarize, WARNING_DAYS } from '../certificate-summary.js';
import { type LoadedIdentity } from '../material/check-identity.js';

/** Warns of certificates in their last days, ours and those of the chain: at once and then each day. Returns its end. */
export function watchExpiry(inUse: () => LoadedIdentity, clock: Clock, log: Log): () => void {
  let cancel: () => void;
  const warn = (): void => {
    const { sent, chain } = inUse();
    const renewals = [
      ['tls.certificate', sent, 'Generate a new one in the developer portal and put it, with its new key,'],
      ['tls.chain', chain, 'Download the chain anew from the developer portal and put it'],
    ] as const;
    for (const [option, certificates, renew] of renewals) {
      for (const certificate of certificates.map(summarize)) {
        const left = daysLeft(certificate, clock.now());
        if (left >= WARNING_DAYS) continue;
        const ends = left < 0 ? 'expired' : `ends in ${left} day${left === 1 ? '' : 's'},`;
        log[left < 0 ? 'error' : 'warn'](
          `${option}: ${describeCertificate(certificate)} ${ends} on ${formatDate(certificate.validTo)}. ${renew} in place of this one.`,
        );
      }
    }
    cancel = clock.watch(warn, DAY_MS);
  };
  warn();
  return () => cancel();
}
