import { STATUS_CODES } from 'node:http';
import { systemClock } from '../../time/clock.js';
import {
  type Exchange,
  ExchangeFault,
  type ExchangeRequest,
  type ExchangeResponse,
} from '../../exchange/exchange.types.js';
import { type DescribeOption } from '../../errors/index.js';
import { within } from '../../time/timers.js';
import { completeError } from './about-call.js';
import { type StubbedResponse } from './doubles.js';
import { type ModuleStub } from './module-stub.js';

const TOKEN_LIFETIME_S = 3_600;

/** In the place of the network: tokens that no endpoint gave, and the answers of a test's doubles. */
export function stubExchange(stub: ModuleStub, tokenUrl: string, describeOption: DescribeOption): Exchange {
  return async (request) => {
    const url = new URL(`${request.url.protocol}//${request.url.hostname}${request.url.pathname}`);
    if (url.href === tokenUrl) return responseWith(JSON.stringify(tokenFor(request)));
    const expired = () => new ExchangeFault({ kind: 'timeout', phase: 'sent' });
    const limit = { clock: systemClock, timeoutMs: request.timeoutMs, signals: [request.signal], expired };
    try {
      return toResponse(await within(limit, () => stub.answer(request)), request);
    } catch (error) {
      throw completeError(error, describeOption, { method: request.method, url });
    }
  };
}

/** A token that no service knows (docs/service.md#tokens), good for an hour. */
function tokenFor({ body = '' }: ExchangeRequest): object {
  const scope = new URLSearchParams(Buffer.from(body).toString()).get('scope');
  return { access_token: `stub-token.${scope}`, token_type: 'bearer', expires_in: TOKEN_LIFETIME_S, scope };
}

/** As the service would send it: a Date becomes text, and nothing is shared with the test. */
function toResponse(answer: StubbedResponse = {}, request: ExchangeRequest): ExchangeResponse {
  const { data, status, headers } = answer;
  if (data === undefined) return responseWith('', status ?? 204, headers);
  const isRaw = !/json/i.test(String(request.headers.accept));
  return responseWith(isRaw && isText(data) ? data : jsonOf(data), status, headers);
}

function isText(answer: unknown): answer is string | Uint8Array {
  return typeof answer === 'string' || answer instanceof Uint8Array;
}

function responseWith(
  body: string | Uint8Array,
  status = 200,
  headers: StubbedResponse['headers'] = {},
): ExchangeResponse {
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    status,
    statusText: STATUS_CODES[status] ?? '',
    headers: { 'content-type': 'application/json', ...(Object.fromEntries(given) as object) },
    body: Buffer.from(body as string),
    reusedSocket: false,
    untilClose: false,
  };
}

function jsonOf(answer: unknown): string {
  const text = JSON.stringify(answer) as string | undefined;
  if (text === undefined) throw new TypeError(`A double answered with a ${typeof answer}, which is no JSON.`);
  return text;
}
