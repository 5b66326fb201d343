import { collectionAtEnd } from '../config/names.js';
import {
  explain,
  type Explanation,
  type Facts,
  type Words,
  ServiceConnectionError,
  type ServiceError,
  serviceErrorCode,
  cleanText,
  findSecretFields,
  ServiceApiError,
  type ApiErrorBody,
} from '../errors/index.js';
import {
  asksLateForCertificate,
  certificateVerdict,
  isRejectedByNginx,
  isUnsupportedInTls13,
  bodyKind,
  isFromSidecar,
  isCertain,
  isJsonObject,
  parseBody,
} from '../exchange/response.js';
import { type ExchangeResponse } from '../exchange/io.js';
import {
  describeCertificate,
  certificateRefusedError,
  explainCertificate,
} from '../tls/certificate-summary.js';
import { type Call, type ErrorClient, sentCorrelationId } from './call.js';
import { isDuplicate, outcomeFields } from './repeatability.js';
import { type ExchangeFault, explainFault, faultWords } from '../exchange/fault.js';
import { withoutSlashes } from '../config/address.js';
import { type CallResponse } from './call-response.js';

/**
 * Whether the service, or a proxy in front of it, refused our credentials or certificate. No other input of a caller would help. An
 * expired consent is everyday, and its customer renews it.
 */
export function isCredentialFault(response: ExchangeResponse, name?: string): boolean {
  const { status } = response;
  const isDenied = status === 401 || (status === 403 && name !== 'CONSENT_EXPIRED');
  return isDenied || certificateVerdict({ response }) !== undefined;
}

/** Whether nock 15 has no interceptor for the request. Its text quotes the request with its credentials, so it must not be shown. */
function isOfNock({ status, body }: ExchangeResponse): boolean {
  return status === 501 && body.includes('"ERR_NOCK_NO_MATCH"');
}

/** Explains a response of the API by what is known of it beside status and body. The message follows the status. */
export function explainByWords(
  response: ExchangeResponse,
  { options: { addresses, describeOption } }: ErrorClient,
  words: Words,
  facts: Facts,
): Explanation {
  const known = ['api response', String(response.status), bodyKind(response), ...words];
  return explain(known, facts, { option: addresses.baseOption, describeOption });
}

/**
 * Explains a response that is neither a success nor a redirect. The message follows the status.
 * @param name the service's own name of the case, such as `CUSTOMER_ALREADY_EXISTS`
 */
export function explainResponse(
  response: ExchangeResponse,
  call: Call,
  client: ErrorClient,
  name?: string,
): Explanation {
  const { options, identity } = client;
  const { authentication, addresses } = options;
  const { certificate, keyType, lastIssuer } = identity;
  const verdict = certificateVerdict({ response });
  // `http:` is allowed on loopback only, where a sidecar does the TLS.
  const isSidecar = addresses.baseUrl.startsWith('http:');
  const words = [
    isOfNock(response) && 'nock',
    isRejectedByNginx(response) && 'nginx',
    isDuplicate(response) && 'duplicate',
    collectionAtEnd(call.url.pathname) !== undefined && 'collection',
    asksLateForCertificate(response) && 'asks-late',
    isSidecar && isFromSidecar(response) && 'from-sidecar',
    verdict && `certificate-${verdict}`,
    !certificate && 'no-certificate',
    isUnsupportedInTls13(keyType) && 'unsupported-key',
    authentication,
    authentication === 'oauth' && Object.keys(call.getCredentials()).length > 1 && 'both-tokens',
    isSidecar && 'sidecar',
  ];
  const facts = {
    certificate: certificate && describeCertificate(certificate),
    keyType,
    lastIssuer,
    // The name FORBIDDEN says no more than the status 403.
    name: name === 'FORBIDDEN' ? undefined : name,
  };
  return explainByWords(response, client, words, facts);
}

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
    credentialFault: isCredentialFault(response, name),
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
