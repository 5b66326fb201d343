import { collectionAtEnd } from '../config/names.js';
import { fillExplanation, type Explanation } from '../errors/index.js';
import {
  REQUEST_CERTIFICATE_EARLIER,
  LATE_CERTIFICATE_REQUEST,
  requestsCertificateLate,
  certificateVerdict,
  isFromSidecar,
  isPage,
  CHECK_SIDECAR_CERTIFICATE,
  saysCertificateMissing,
  SIDECAR_FAILED,
} from '../exchange/response.js';
import { type ExchangeResponse } from '../exchange/io.js';
import { missingIssuerHint, notSentHint, notSentReason } from '../tls/certificate-error.js';
import { describeCertificate } from '../tls/certificate-summary.js';
import { type Call, type ErrorClient } from './call.js';
import { isDuplicate } from './repeatability.js';

/**
 * What a response means, and what to check. In the hint, braces are replaced: an option in braces by its name and variable,
 * `{credentials}` and `{certificate}` by what to check of ours, `{passOn}` by how the host application's callers can get the
 * case.
 */
interface ResponseMeaning {
  matches: (response: ExchangeResponse, call: SentCall) => boolean;
  /** Follows the status in the message. */
  what?: string;
  hint: string;
}

/** What matters of a call for the meaning of its response. */
interface SentCall {
  pathname: string;
  /** Whether both the app token and a bearer were sent. */
  bothSent: boolean;
  /** Whether calls go through a sidecar on this machine. */
  isSidecar: boolean;
}

/** Whether the service, or a proxy in front of it, refused our credentials or certificate. No other input of a caller would help. */
export function isCredentialFault(response: ExchangeResponse): boolean {
  return response.status === 401 || response.status === 403 || certificateVerdict(response) === 'refused';
}

/**
 * Explains a response that is neither a success nor a redirect. The message follows the status.
 * @param name the service's own name of the case, such as `CUSTOMER_ALREADY_EXISTS`
 */
export function explainResponse(
  response: ExchangeResponse,
  call: Call,
  { options, identity }: ErrorClient,
  name?: string,
): Explanation {
  const { authentication, addresses, describeOption } = options;
  const bothSent = authentication === 'oauth' && Object.keys(call.getCredentials()).length > 1;
  // `http:` is allowed on loopback only, where a sidecar does the TLS.
  const isSidecar = addresses.baseUrl.startsWith('http:');
  const sent = { pathname: call.url.pathname, bothSent, isSidecar };
  const meaning = MEANINGS.find(({ matches }) => matches(response, sent));
  const { certificate, keyType, lastIssuer } = identity;
  const inUse = certificate ? `in use is ${describeCertificate(certificate)}` : 'none is set';
  const appToken = authentication === 'mtls' ? `${APP_TOKEN} Also {certificate}` : APP_TOKEN;
  const address = { option: addresses.baseOption, describeOption };
  if (certificate && !isSidecar && saysCertificateMissing(response))
    return fillExplanation(
      `: the client certificate ${notSentReason(keyType)}`,
      { hint: notSentHint(keyType) },
      {},
      address,
    );
  // The name FORBIDDEN says no more than the status 403.
  const isCase = name !== undefined && name !== 'FORBIDDEN';
  const hint = meaning?.hint
    .replace(
      '{passOn}',
      isCase ? `If ${name} is for your callers, name it in passOn of ServiceExceptionFilter. ` : '',
    )
    .replace('{credentials}', authentication === 'oauth' ? OAUTH : appToken)
    .replace('{certificate}', isSidecar ? OF_SIDECAR : CERTIFICATE);
  const issuer =
    lastIssuer && certificateVerdict(response) === 'refused' ? ` ${missingIssuerHint(lastIssuer)}` : '';
  return fillExplanation(meaning?.what ?? '', { hint: hint && hint + issuer }, { inUse }, address);
}

const CERTIFICATE =
  'check that {tls.certificate} and {tls.privateKey} belong to this application and this environment; {inUse}.';
const OF_SIDECAR =
  'check that the certificate of the sidecar at {address} belongs to this application and this environment.';
const APP_TOKEN =
  'Check that {appToken} belongs to this application and this environment, and that {appTokenHeader} is the name that the portal shows. A value with # in a .env file needs quotes, and docker run --env-file keeps quotes as a part of it.';
const OAUTH =
  'Check that OAuth is enabled for the application, and that the addresses of the API, in {address}, and of the token endpoint are of the same environment.';

/** Whether nock 15 has no interceptor for the request. Its text quotes the request with its credentials, so it must not be shown. */
export function isOfNock({ status, body }: ExchangeResponse): boolean {
  return status === 501 && body.includes('"ERR_NOCK_NO_MATCH"');
}

/** The first one that matches is used. */
const MEANINGS: readonly ResponseMeaning[] = [
  {
    matches: isOfNock,
    what: ': nock has no interceptor for this request',
    hint: 'Add an interceptor to the test, for the address to which the socket connects: {address}, or the proxy in {http.proxy}.',
  },
  {
    matches: (response) => certificateVerdict(response) === 'refused',
    what: ': a proxy in front of the service got no client certificate, or rejects it',
    hint: 'The proxy looks at the client certificate: {certificate}',
  },
  {
    matches: requestsCertificateLate,
    what: `: the server ${LATE_CERTIFICATE_REQUEST}`,
    hint: REQUEST_CERTIFICATE_EARLIER,
  },
  {
    matches: (response) => certificateVerdict(response) === 'perhaps',
    what: ', with a page (HTML), which the service itself never sends: a proxy or firewall in front of it refused the call',
    hint: 'Check {address}. A firewall may refuse the address of this machine, or something in the call: ask who runs it. If a proxy looks at client certificates: {certificate}',
  },
  {
    matches: ({ status }) => status === 401,
    what: ': the service refused the credentials',
    hint: '{credentials}',
  },
  {
    // A 403 does not show whether the app token is wrong or the call is not allowed.
    matches: ({ status }) => status === 403,
    what: ': the service does not allow this call',
    hint: '{passOn}{credentials} If that is right, check in the developer portal what the application may do.',
  },
  {
    matches: (response, { isSidecar }) => isSidecar && isFromSidecar(response),
    what: `: ${SIDECAR_FAILED}`,
    hint: CHECK_SIDECAR_CERTIFICATE,
  },
  {
    matches: isPage,
    what: ", with a page (HTML), not JSON: a proxy, firewall or website responds in the service's place",
    hint: 'Check {address}, with its path if it has one. If it is right, ask who runs the network or the service.',
  },
  {
    // The collections of the API exist even if they are empty, so a 404 means that the address is wrong.
    matches: ({ status }, { pathname }) => status === 404 && collectionAtEnd(pathname) !== undefined,
    what: ': there is no such path at this address',
    hint: 'Check the path in {address}: the path of the call is appended to it. Some services want a slash at the end: {http.trailingSlash}.',
  },
  {
    matches: isDuplicate,
    what: ': the same call is still in progress',
    hint: '{passOn}Find out its outcome before you send it again.',
  },
  {
    matches: ({ status }) => status === 429 || status >= 500,
    what: ': the service is busy or out of order',
    hint: "There is nothing to correct in this application. If this goes on, tell the service's operator.",
  },
  {
    matches: ({ status }, { bothSent }) => bothSent && status === 400,
    hint: 'The app token was sent together with the bearer token, which the service refuses on most paths: leave {sendAppTokenWithBearer} out. If that is not the cause, something in the call itself is wrong.',
  },
];
