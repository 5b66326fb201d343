import { STATUS_CODES } from 'node:http';
import {
  type Exchange,
  ExchangeFault,
  type ExchangeRequest,
  type ExchangeResponse,
} from '../../exchange/exchange.types.js';
import { systemClock } from '../../time/clock.js';
import { within } from '../../time/timers.js';
import { type StubbedResponse } from './doubles.js';

/** What the double of an exchange answers; a fault is one where no whole answer arrives. */
export type GivenAnswer = StubbedResponse | ExchangeFault;

/** An exchange without a network: `answer` gets each request. Time limits and signals are those of a real one. */
export function exchangeDouble(
  answer: (request: ExchangeRequest) => GivenAnswer | PromiseLike<GivenAnswer>,
): Exchange {
  return async (request) => {
    const { timeoutMs, attemptTimeoutMs = Infinity, signal } = request;
    const limitMs = Math.min(timeoutMs, attemptTimeoutMs);
    const expired = () => new ExchangeFault({ kind: 'timeout', phase: 'sent', limitMs });
    const limit = { clock: systemClock, timeoutMs: limitMs, signals: [signal], expired };
    const given = await within(limit, async () => answer(request));
    if (given instanceof ExchangeFault) throw given;
    return toResponse(given, String(request.headers.accept));
  };
}

/**
 * As the service would send it: a Date becomes text, and nothing is shared with the test. Bytes are the body itself.
 * @param accept a text is the body itself too if this is not JSON
 */
export function toResponse(given: StubbedResponse, accept = 'application/json'): ExchangeResponse {
  const { data, status = data === undefined ? 204 : 200, headers = {} } = given;
  const sent = Object.entries(headers).filter(([, value]) => value !== undefined);
  const lowerCase = sent.map(([name, value]) => [name.toLowerCase(), value]);
  return {
    status,
    statusText: STATUS_CODES[status] ?? '',
    headers: { 'content-type': 'application/json', ...(Object.fromEntries(lowerCase) as object) },
    body: bodyOf(data, /json/i.test(accept)),
    untilClose: false,
  };
}

function bodyOf(data: unknown, isJson: boolean): Buffer {
  if (data === undefined) return Buffer.alloc(0);
  if (data instanceof Uint8Array || (typeof data === 'string' && !isJson)) return Buffer.from(data as string);
  const text = JSON.stringify(data) as string | undefined;
  if (text === undefined) throw new TypeError(`A double answered with a ${typeof data}, which is no JSON.`);
  return Buffer.from(text);
}
