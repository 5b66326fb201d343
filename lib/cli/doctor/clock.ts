import { type Exchange } from '../../exchange/exchange.types.js';
import { parseHttpDate } from '../../exchange/retry-after.js';
import { ok, skipped, warning, type Finding } from './check.js';

const MOST_SKEW_MS = 30_000;
/** The end of the year 9999: what the header can hold (RFC 9110, 5.6.7). */
const LAST_DATE_MS = Date.UTC(10_000, 0);

/** Performs exchanges, and compares this machine's clock with the times of the answers (RFC 9110, 6.6.1). */
export class ClockCheck {
  /** By how many milliseconds the clock of a server is before ours. */
  #skewMs?: number;

  constructor(
    private readonly perform: Exchange,
    private readonly now: () => number = Date.now,
  ) {}

  readonly exchange: Exchange = async (request) => {
    const response = await this.perform(request);
    const { date, age } = response.headers;
    const answeredAt = parseHttpDate(date);
    // Of answers out of a cache, and dates that no clock shows, there is nothing to learn. The header has whole seconds.
    const theirs = age === undefined && answeredAt <= LAST_DATE_MS ? answeredAt : NaN;
    const skew = theirs + 500 - this.now();
    if (Math.abs(skew) < Math.abs(this.#skewMs ?? Infinity)) this.#skewMs = skew;
    return response;
  };

  judge(): Finding {
    if (this.#skewMs === undefined) return skipped('No server answered with its time.');
    const seconds = Math.round(Math.abs(this.#skewMs) / 1000);
    if (Math.abs(this.#skewMs) <= MOST_SKEW_MS)
      return ok(`This machine's clock is that of the service, give or take ${Math.max(1, seconds)} s.`);
    return warning(
      `This machine's clock is ${seconds} s ${this.#skewMs > 0 ? 'behind' : 'ahead of'} that of the service. Certificates may count as not yet valid, or as expired.`,
      'Set the clock of this machine: let it follow a time server (NTP; in a container, the host does).',
    );
  }
}
