import { ServiceApiError } from '../errors/index.js';
import { type ExchangeResponse } from '../exchange/exchange.types.js';
import { isPage } from '../exchange/certificate-refusal.js';
import { parseJson } from '../exchange/decode.js';
import { answerFacts, statusOf, type AnswerContext } from './answer-to-error.js';
import { type Call } from './call.js';
import { carriedOut, isSafe } from './retry-policy.js';

/**
 * The JSON body of a success; undefined for 204, 205 and HEAD, and where a method that changes something is answered
 * without a body (the service shows no body of one). Throws ServiceApiError `invalid_response`.
 */
export function readBody(response: ExchangeResponse, context: AnswerContext): unknown {
  if (hasNoBody(response, context.call)) return undefined;
  const text = response.body.toString('utf8');
  const isPart = response.status === 206;
  const json = isPart ? undefined : parseJson(text);
  if (json !== undefined) return json;
  const isEmpty = text.trim() === '';
  if (isEmpty && !isPart && !isSafe(context.call.method)) return undefined;
  const what = isPart
    ? 'a part of a body, which was not asked for'
    : isPage(response)
      ? "a page (HTML): it is not the service's API that answers, but for example a website, a login page or a proxy"
      : isEmpty
        ? 'an empty body'
        : 'a body that is not JSON';
  const facts = answerFacts(response, context);
  const { baseOption } = context.credentials;
  throw new ServiceApiError({
    ...facts,
    code: 'invalid_response',
    message: `${statusOf(response, context.call)}, with ${what}.${carriedOut(facts)}`,
    hint: `Check ${baseOption}, with its path if it has one.`,
    options: [baseOption],
  });
}

/**
 * Whether a success may be truncated: its body ends with the connection, and is no JSON, or a number, which may be the
 * beginning of a longer one. Over TLS too: Node does not tell whether the server announced the end (close_notify;
 * RFC 9112, 9.8). An empty body is a complete answer to a method that changes something.
 */
export function isTruncated(response: ExchangeResponse, call: Call): boolean {
  const { status, body, untilClose } = response;
  if (!untilClose || !call.readsJson || status < 200 || status >= 300 || hasNoBody(response, call))
    return false;
  const text = body.toString('utf8');
  if (text.trim() === '') return isSafe(call.method);
  const json = parseJson(text);
  return json === undefined || typeof json === 'number';
}

function hasNoBody({ status }: ExchangeResponse, { method }: Call): boolean {
  return status === 204 || status === 205 || method === 'HEAD';
}
