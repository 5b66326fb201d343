import {
  ServiceConnectionError,
  type ServiceError,
  serviceErrorCode,
  cleanText,
  findSecretFields,
  ServiceApiError,
  type ApiErrorBody,
  type Explanation,
} from '../errors/index.js';
import { type ExchangeFault } from '../exchange/fault.js';
import { isCertain } from '../exchange/client-certificate.js';
import { explainFault, faultWords } from '../exchange/explain-fault.js';
import { certificateRefusedError, explainCertificate } from '../tls/certificate-error.js';
import { sentCorrelationId, type Call, type ErrorClient } from './call.js';
import { outcomeFields } from './repeatability.js';
import { withoutSlashes } from '../config/address.js';
import { isJsonObject, parseBody } from '../exchange/response.js';
import { type ExchangeResponse } from '../exchange/io.js';
import { type CallResponse } from './call-response.js';
import { explainByWords, explainResponse, isCredentialFault, isOfNock } from './explain-response.js';

/** Makes the caller's error for an exchange that failed without a complete response. */
export function faultToError(
  fault: ExchangeFault,
  call: Call,
  { options, identity }: ErrorClient,
): ServiceError {
  const { method, url, route, certificate } = call;
  const { kind, reason } = fault;
  const doubt = outcomeFields(call, { fault });
  const { describeOption } = options;
  const place = {
    url,
    option: options.addresses.baseOption,
    describeOption,
    server: 'api' as const,
    hasChain: identity.hasChain,
    hasCertificate: certificate !== undefined,
    hasOwnLimit: call.details.maxResponseBytes !== undefined,
    http: options.http,
  };
  const where = `${call.name} at ${url.host}`;
  let explanation: Explanation;
  if (isCertain(fault.certificateVerdict)) {
    const { lastIssuer, keyType } = identity;
    const refused = { certificate, keyType, lastIssuer, reason };
    const words = faultWords(fault, place);
    if (!doubt.outcomeUnknown) return certificateRefusedError(words, refused, describeOption);
    const inDoubt = explainCertificate([...words, 'in-doubt'], refused, describeOption);
    explanation = { ...inDoubt, message: `${where}: ${inDoubt.message}`, saysOutcome: true };
  } else explanation = explainFault(where, fault, place);
  return new ServiceConnectionError({
    ...explanation,
    kind,
    method,
    path: url.pathname,
    route,
    reason,
    ...doubt,
    correlationId: sentCorrelationId(call),
  });
}

const MAX_MESSAGE = 500;
const REDIRECTS = new Set([300, 301, 302, 303, 305, 306, 307, 308]);

/** Makes the error for a response that is not a success. The HTTP status decides, not a status in the body. */
export function toResponseError(callResponse: CallResponse): ServiceApiError | ServiceConnectionError {
  const { received: response, call, client } = callResponse;
  if (REDIRECTS.has(response.status)) return redirectError(callResponse);
  const json = parseBody(response);
  const body = isOfNock(response) ? undefined : readErrorBody(json, callResponse.secrets);
  const name = serviceErrorCode(body);
  const { message: what, hint, ...explanation } = explainResponse(response, call, client, name);
  const said = body?.message;
  const meaning = said && what ? `${capitalize(what)} ` : '';
  return new ServiceApiError({
    ...callResponse.errorFields,
    body,
    response: callResponse.toErrorResponse(json),
    secretFields: isJsonObject(json) ? findSecretFields(json, callResponse.secrets) : [],
    credentialFault: isCredentialFault(response),
    message: `${callResponse.name}${name ? ` ${name}` : ''}${said ? `: ${said}` : what || '.'}`,
    hint: hint && meaning + hint,
    ...explanation,
  });
}

/** Turns the meaning of a response into a sentence, which the hint shows if the message has the service's own text in its place. */
function capitalize(what: string): string {
  const words = what.replace(/^\W+/, '');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

function readErrorBody(json: unknown, secrets: readonly string[]): ApiErrorBody | undefined {
  if (typeof json !== 'object' || json === null) return undefined;
  const { status, message, detail, title } = json as Record<string, unknown>;
  const said = [message, detail, title].map(joinTexts).find((text) => text.trim() !== '');
  const body: ApiErrorBody = {};
  if (typeof status === 'string') body.status = cleanText(status, secrets, MAX_MESSAGE);
  if (typeof status === 'number') body.status = status;
  if (said !== undefined) body.message = cleanText(said, secrets, MAX_MESSAGE);
  return body.status === undefined && body.message === undefined ? undefined : body;
}

/** Returns a string as it is, and joins the strings of a list. */
function joinTexts(value: unknown): string {
  return [value]
    .flat()
    .filter((each) => typeof each === 'string')
    .join('; ');
}

function redirectError(callResponse: CallResponse): ServiceConnectionError {
  const { received: response, call, client } = callResponse;
  const target = redirectTarget(response.headers, call.url);
  const origin = target && cleanText(target.origin, callResponse.secrets, MAX_MESSAGE);
  const words = ['redirect', target?.isOnlySlash && 'only-slash'];
  const explanation = explainByWords(response, client, words, { target: origin });
  return new ServiceConnectionError({
    kind: 'redirect',
    ...explanation,
    message: callResponse.name + explanation.message,
    // With outcomeUnknown: a redirect does not prove that nothing was done. 303 often follows a success (RFC 9110, 15.4.4).
    ...callResponse.errorFields,
    reason: String(response.status),
    correlationId: sentCorrelationId(call),
    location: origin,
  });
}

/** Finds where a redirect leads, and whether only a slash at the end differs. Undefined without a usable Location header. */
function redirectTarget(
  { location }: ExchangeResponse['headers'],
  { href, origin, pathname }: Call['url'],
): { origin: string; isOnlySlash: boolean } | undefined {
  if (location === undefined || !URL.canParse(location, href)) return undefined;
  const target = new URL(location, href);
  const isSamePath = withoutSlashes(target.pathname) === withoutSlashes(pathname);
  return { origin: target.origin, isOnlySlash: target.origin === origin && isSamePath };
}
