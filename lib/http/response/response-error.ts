import { withoutSlashes } from '../../config/address.js';
import {
  serviceErrorCode,
  cleanText,
  ServiceApiError,
  ServiceConnectionError,
  type ApiErrorBody,
} from '../../errors/index.js';
import { parseJson } from '../../exchange/decode.js';
import { type ExchangeResponse } from '../../exchange/exchange.types.js';
import { type Answer } from './call-response.js';
import { sentId, type Call } from '../request/call.js';
import { explainAnswer, isCredentialFault, isOfNock } from './explain-response.js';

const MAX_MESSAGE = 500;
const REDIRECTS = new Set([300, 301, 302, 303, 305, 306, 307, 308]);

/** The error for an answer that is no success. The HTTP status decides, not that of the body. */
export function answerError(answer: Answer): ServiceApiError | ServiceConnectionError {
  const { response, call, client } = answer;
  if (REDIRECTS.has(response.status)) return redirectError(answer);
  const json = parseJson(response.body.toString('utf8'));
  const body = isOfNock(response) ? undefined : readErrorBody(json, answer.secrets);
  const name = serviceErrorCode(body);
  const { message: what, hint, options } = explainAnswer(response, call, client, name);
  const said = body?.message;
  const meaning = said && what ? `${sentence(what)} ` : '';
  return new ServiceApiError({
    ...answer.facts,
    body,
    response: answer.kept(json),
    secrets: () => answer.secrets,
    credentialFault: isCredentialFault(response),
    message: `${answer.name}${name ? ` ${name}` : ''}${said ? `: ${said}` : `${what}.`}`,
    hint: hint && meaning + hint,
    options,
  });
}

/** The meaning of an answer, for a hint, where the message has the service's own text in place of it. */
function sentence(what: string): string {
  const words = what.replace(/^\W+/, '');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

function readErrorBody(json: unknown, secrets: readonly string[]): ApiErrorBody | undefined {
  if (typeof json !== 'object' || json === null) return undefined;
  const { status, message, detail, title } = json as Record<string, unknown>;
  const said = [message, detail, title].map(textOf).find((text) => text.trim() !== '');
  const body: ApiErrorBody = {};
  if (typeof status === 'string') body.status = cleanText(status, secrets, MAX_MESSAGE);
  if (typeof status === 'number') body.status = status;
  if (said !== undefined) body.message = cleanText(said, secrets, MAX_MESSAGE);
  return body.status === undefined && body.message === undefined ? undefined : body;
}

/** A text, or the texts of a list. */
function textOf(value: unknown): string {
  return [value]
    .flat()
    .filter((each) => typeof each === 'string')
    .join('; ');
}

function redirectError(answer: Answer): ServiceConnectionError {
  const { response, call, client } = answer;
  const { describeOption, addresses } = client.options;
  const { baseOption } = addresses;
  const target = redirectTarget(response.headers, call.url);
  const origin = target && cleanText(target.origin, answer.secrets, MAX_MESSAGE);
  return new ServiceConnectionError({
    kind: 'redirect',
    message: `${answer.name}, a redirect${origin ? ` to ${origin}` : ''}. Redirects are never followed.`,
    ...(target?.isOnlySlash
      ? {
          hint: `It only adds or removes a slash at the end: change ${describeOption('http.trailingSlash')}.`,
          options: ['http.trailingSlash'],
        }
      : {
          hint: `Put the address where the API is into ${describeOption(baseOption)}.`,
          options: [baseOption],
        }),
    // Its outcome too. A redirect proves nothing: 303 often follows a request that succeeded (RFC 9110, 15.4.4).
    ...answer.facts,
    reason: String(response.status),
    correlationId: sentId(call),
    location: origin,
  });
}

/** Where a redirect leads, and whether only a slash at the end differs; undefined without a usable Location. */
function redirectTarget(
  { location }: ExchangeResponse['headers'],
  { href, origin, pathname }: Call['url'],
): { origin: string; isOnlySlash: boolean } | undefined {
  if (location === undefined || !URL.canParse(location, href)) return undefined;
  const target = new URL(location, href);
  const isSamePath = withoutSlashes(target.pathname) === withoutSlashes(pathname);
  return { origin: target.origin, isOnlySlash: target.origin === origin && isSamePath };
}
