import { type Exchange } from '../../exchange/io.js';
import { parseHttpDate } from '../../exchange/response.js';
import { ok, skipped, warning, type Finding } from './check.js';

const TOLERATED_SKEW_MS = 30_000;
/** The Date header has a year of four digits (RFC 9110, 5.6.7). */
const MAX_DATE_MS = Date.UTC(10_000, 0);

/** Wraps an exchange and compares this machine's clock with the Date header of each response (RFC 9110, 6.6.1). */
export class ClockCheck {
  /** How many milliseconds the server's clock is ahead of ours: the smallest difference that was seen. */
  #skewMs?: number;

  constructor(
    private readonly perform: Exchange,
    private readonly now: () => number = Date.now,
  ) {}

  readonly exchange: Exchange = async (request) => {
    const response = await this.perform(request);
    const { date, age } = response.headers;
    const answeredAt = parseHttpDate(date);
    // A response with an Age comes from a cache, so its Date is old. The header has whole seconds: assume the middle.
    const serverTime = age === undefined && answeredAt <= MAX_DATE_MS ? answeredAt : NaN;
    const skew = serverTime + 500 - this.now();
    if (Math.abs(skew) < Math.abs(this.#skewMs ?? Infinity)) this.#skewMs = skew;
    return response;
  };

  judge(): Finding {
    if (this.#skewMs === undefined)
      return skipped('No response had a Date header to compare the clock with.');
    const seconds = Math.round(Math.abs(this.#skewMs) / 1000);
    if (Math.abs(this.#skewMs) <= TOLERATED_SKEW_MS)
      return ok(`This machine's clock agrees with that of the service to within ${Math.max(1, seconds)} s.`);
    return warning(
      `This machine's clock is ${seconds} s ${this.#skewMs > 0 ? 'behind' : 'ahead of'} that of the service, so valid certificates may be refused as expired or not yet valid.`,
      'Set the clock of this machine, and let it follow a time server (NTP). A container uses the clock of its host.',
    );
  }
}
