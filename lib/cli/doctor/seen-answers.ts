import { type CertificateSummary } from '../../errors/index.js';
import { type Exchange } from '../../exchange/exchange.types.js';
import { describeCertificate, formatDate } from '../../tls/certificate-summary.js';
import { failed, ok, skipped, warning, type Finding } from './check.js';

const MOST_SKEW_MS = 30_000;
/** The end of the year 9999: what the header can hold (RFC 9110, 5.6.7). */
const LAST_DATE_MS = Date.UTC(10_000, 0);

/** Performs exchanges, and keeps the times of their answers. */
export class SeenAnswers {
  readonly #exchange: Exchange;
  readonly #now: () => number;
  /** By how many milliseconds the clock of a server is before ours; its header has whole seconds. */
  readonly #skews: { ms: number; host: string }[] = [];
  lastStatus?: number;

  constructor(exchange: Exchange, now: () => number) {
    this.#exchange = exchange;
    this.#now = now;
  }

  readonly exchange: Exchange = async (request) => {
    const sentAt = this.#now();
    const response = await this.#exchange(request);
    this.lastStatus = response.status;
    const { date: said, age } = response.headers;
    const theirs = Date.parse(said ?? '');
    // An answer out of a cache says when it was made. A date that no clock shows is no time of a server.
    if (theirs <= LAST_DATE_MS && age === undefined) {
      const ours = (sentAt + this.#now()) / 2;
      this.#skews.push({ ms: theirs + 500 - ours, host: request.url.hostname });
    }
    return response;
  };

  /** Our clock against those of the servers that answered (RFC 9110, 6.6.1). */
  judgeClock(certificate: CertificateSummary | undefined): Finding {
    const skew = this.#skews.toSorted((one, other) => Math.abs(one.ms) - Math.abs(other.ms)).at(0);
    if (!skew) return skipped('No server answered with its time.');
    const seconds = Math.round(Math.abs(skew.ms) / 1000);
    if (Math.abs(skew.ms) <= MOST_SKEW_MS)
      return ok(`This machine's clock is that of ${skew.host}, give or take ${Math.max(1, seconds)} s.`);
    const message = `This machine's clock is ${seconds} s ${skew.ms > 0 ? 'behind' : 'ahead of'} that of ${skew.host}.`;
    const remedy =
      'Set the clock of this machine: let it follow a time server (NTP; in a container, the host does).';
    const theirs = this.#now() + skew.ms;
    if (certificate && isValid(certificate, theirs) !== isValid(certificate, this.#now())) {
      return failed(
        `${message} By the server's clock, ${formatDate(theirs)}, the client certificate ${describeCertificate(certificate)} is ${isValid(certificate, theirs) ? 'valid' : 'not valid'}.`,
        remedy,
      );
    }
    return warning(
      `${message} Certificates and tokens may then count as not yet valid, or as expired.`,
      remedy,
    );
  }
}

function isValid({ validFrom, validTo }: CertificateSummary, at: number): boolean {
  return validFrom.getTime() <= at && at < validTo.getTime();
}
