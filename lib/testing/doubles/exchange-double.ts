import { STATUS_CODES } from 'node:http';
import { type Exchange, type ExchangeRequest, type ExchangeResponse } from '../../exchange/io.js';
import { ExchangeFault } from '../../exchange/fault.js';
import { systemClock, within } from '../../time/time.js';
import { type StubbedResponse } from './doubles.js';

/** What the double of an exchange returns. With an ExchangeFault, no complete response arrives. */
export type GivenAnswer = StubbedResponse | ExchangeFault;

/** Makes an exchange without a network: `answer` receives each request. Time limits and abort signals work as usual. */
export function exchangeDouble(
  answer: (request: ExchangeRequest) => GivenAnswer | PromiseLike<GivenAnswer>,
): Exchange {
  return async (request) => {
    const { timeoutMs, attemptTimeoutMs = Infinity, signal } = request;
    const limitMs = Math.min(timeoutMs, attemptTimeoutMs);
    const expired = () => new ExchangeFault({ kind: 'timeout', phase: 'sent', limitMs });
    const limit = { clock: systemClock, timeoutMs: limitMs, signals: [signal], expired };
    const given = await within(limit, async () => answer(request)).catch((error: unknown) => {
      if (signal?.aborted) request.onLost?.();
      throw error;
    });
    if (given instanceof ExchangeFault) throw given;
    return toExchangeResponse(given, String(request.headers.accept));
  };
}

/**
 * Turns what the test returns into a response with bytes, as a real service sends them: a Date becomes text, and the client
 * shares no object with the test. Data that is bytes becomes the body unchanged.
 *
 * @param accept if this is not JSON, text becomes the body unchanged too
 */
export function toExchangeResponse(given: StubbedResponse, accept = 'application/json'): ExchangeResponse {
  const { data, status = data === undefined ? 204 : 200, headers = {} } = given;
  const sent = Object.entries(headers).filter(([, value]) => value !== undefined);
  const lowerCase = sent.map(([name, value]) => [name.toLowerCase(), value]);
  return {
    status,
    statusText: STATUS_CODES[status] ?? '',
    headers: { 'content-type': 'application/json', ...(Object.fromEntries(lowerCase) as object) },
    body: toBodyBytes(data, /json/i.test(accept)),
    untilClose: false,
  };
}

function toBodyBytes(data: unknown, isJson: boolean): Buffer {
  if (data === undefined) return Buffer.alloc(0);
  if (data instanceof Uint8Array || (typeof data === 'string' && !isJson)) return Buffer.from(data as string);
  const text = JSON.stringify(data) as string | undefined;
  if (text === undefined)
    throw new TypeError(`A double returned a ${typeof data}, which cannot be sent as JSON.`);
  return Buffer.from(text);
}
