import { type Clock, DAY_MS } from '../../time/clock.js';
import { type CertificateSummary } from '../../errors/index.js';
import { type Log } from '../../exchange/io.js';
import { describeCertificate, formatDate, isOtherCertificate, WARNING_DAYS } from '../certificate-summary.js';

/** The wall clock is read at least this often: it may jump, and a machine may sleep. */
const CHECK_MS = 3_600_000;
/** Days before the expiry. The last one is the expiry itself. */
const DAYS = [...WARNING_DAYS, 0];

/** Logs once each that a certificate expires within 30, 7 and 1 day(s), and that it has expired. */
export class ExpiryWatch {
  readonly #clock: Clock;
  readonly #log: Log;
  #certificate?: CertificateSummary;
  #warnedDays = Infinity;
  #cancel?: () => void;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  watch(certificate: CertificateSummary | undefined): void {
    this.stop();
    if (isOtherCertificate(certificate, this.#certificate)) this.#warnedDays = Infinity;
    this.#certificate = certificate;
    if (certificate) this.#check(certificate);
  }

  stop(): void {
    this.#cancel?.();
  }

  #check(certificate: CertificateSummary): void {
    const left = certificate.validTo.getTime() - this.#clock.now();
    const reached = DAYS.findLast((days) => left <= days * DAY_MS);
    if (reached !== undefined && reached < this.#warnedDays) {
      this.#warnedDays = reached;
      this.#warn(certificate, reached);
    }
    if (left <= 0) return;
    const next = DAYS.find((days) => left > days * DAY_MS) ?? 0;
    const delayMs = Math.min(CHECK_MS, left - next * DAY_MS);
    this.#cancel = this.#clock.watch(() => this.#check(certificate), Math.max(1, delayMs));
  }

  #warn(certificate: CertificateSummary, days: number): void {
    const name = `The application certificate ${describeCertificate(certificate)}`;
    const end = formatDate(certificate.validTo);
    const what = days === 0 ? 'expired' : `expires within ${days} day${days === 1 ? '' : 's'},`;
    this.#log[days === 0 ? 'error' : 'warn'](
      `${name} ${what} on ${end}. Generate a new one in the developer portal and put it, with its new key, in place of this one.`,
    );
  }
}
