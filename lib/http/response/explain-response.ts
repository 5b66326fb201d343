import { collectionAtEnd } from '../../config/resources.js';
import { fillExplanation, type Explanation } from '../../errors/index.js';
import {
  ASK_EARLIER,
  ASKS_TOO_LATE,
  asksTooLate,
  certificateVerdict,
  isOfSidecar,
  isPage,
  OF_SIDECAR_CERTIFICATE,
  saysMissed,
  SIDECAR_FAILED,
} from '../../exchange/certificate-refusal.js';
import { type ExchangeResponse } from '../../exchange/exchange.types.js';
import { ofIssuer, whatToSend, whyNotSent } from '../../tls/certificate-error.js';
import { describeCertificate } from '../../tls/certificate-summary.js';
import { type Call } from '../request/call.js';
import { type ErrorClient } from '../request/client-context.js';
import { isDuplicate } from '../request/repeatability.js';

/**
 * The meaning of an answer. Options in braces are named; `{credentials}` and `{certificate}` say what to check of ours,
 * `{passOn}` how the host's callers hear of the case.
 */
interface Row {
  if: (answer: ExchangeResponse, pathname: string) => boolean;
  /** The app token and a bearer were sent. */
  both?: true;
  /** What answers is a sidecar on this machine, or the service behind it. */
  sidecar?: true;
  /** Follows the status in the message. */
  what?: string;
  hint: string;
}

/** Whether the service, or a proxy before it, refused our credentials or certificate: no input of a caller changes that. */
export function isCredentialFault(response: ExchangeResponse): boolean {
  return response.status === 401 || response.status === 403 || certificateVerdict(response) === 'refused';
}

/**
 * Explains an answer that is neither a success nor a redirect. The message follows its status.
 * @param name the service's own of the case
 */
export function explainAnswer(
  response: ExchangeResponse,
  call: Call,
  { options, identity }: ErrorClient,
  name?: string,
): Explanation {
  const { authentication, addresses, describeOption } = options;
  const both = authentication === 'oauth' && Object.keys(call.getCredentials()).length > 1;
  // `http:` is for loopback alone: what listens there does TLS.
  const isSidecar = addresses.baseUrl.startsWith('http:');
  const row = ROWS.find(
    (each) => (!each.both || both) && (!each.sidecar || isSidecar) && each.if(response, call.url.pathname),
  );
  const { certificate, keyType, lastIssuer } = identity;
  const inUse = certificate ? `in use is ${describeCertificate(certificate)}` : 'none is set';
  const appToken = authentication === 'mtls' ? `${APP_TOKEN} Also {certificate}` : APP_TOKEN;
  const address = { option: addresses.baseOption, describeOption };
  if (certificate && !isSidecar && saysMissed(response))
    return fillExplanation(
      `: the client certificate ${whyNotSent(keyType)}`,
      { hint: whatToSend(keyType) },
      {},
      address,
    );
  // What 403 is called says no more than 403.
  const isCase = name !== undefined && name !== 'FORBIDDEN';
  const hint = row?.hint
    .replace(
      '{passOn}',
      isCase ? `If ${name} is for your callers, name it in passOn of ServiceExceptionFilter. ` : '',
    )
    .replace('{credentials}', authentication === 'oauth' ? OAUTH : appToken)
    .replace('{certificate}', isSidecar ? OF_SIDECAR : CERTIFICATE);
  const issuer = lastIssuer && certificateVerdict(response) === 'refused' ? ` ${ofIssuer(lastIssuer)}` : '';
  return fillExplanation(row?.what ?? '', { hint: hint && hint + issuer }, { inUse }, address);
}

const CERTIFICATE =
  'check {tls.certificate} and {tls.privateKey}, that they are of this application and this environment; {inUse}.';
const OF_SIDECAR =
  'check what the sidecar at {address} shows, that it is of this application and this environment.';
const APP_TOKEN =
  'Check {appToken}, that it is of this application and this environment, and {appTokenHeader}, that it is the name that the portal shows. A value with # in a .env file needs quotes, and docker run --env-file keeps quotes as a part of it.';
const OAUTH =
  'Check that OAuth is enabled for the application, and that the addresses of the API, in {address}, and of the token endpoint are of the same environment.';

/** What nock 15 answers if no interceptor fits. Its text quotes the request with its credentials. */
export function isOfNock({ status, body }: ExchangeResponse): boolean {
  return status === 501 && body.includes('"ERR_NOCK_NO_MATCH"');
}

/** The first that fits counts. */
const ROWS: readonly Row[] = [
  {
    if: isOfNock,
    what: ': nock has no interceptor for this request',
    hint: 'Add one to the test, for the address that is connected to: {address}, or a proxy of {http.proxy}.',
  },
  {
    if: (answer) => certificateVerdict(answer) === 'refused',
    what: ': a proxy before the service misses or rejects the client certificate',
    hint: 'The proxy looks at the client certificate: {certificate}',
  },
  {
    if: asksTooLate,
    what: `: the server ${ASKS_TOO_LATE}`,
    hint: ASK_EARLIER,
  },
  {
    if: (answer) => certificateVerdict(answer) === 'perhaps',
    what: ', with a page, not of the service itself: a proxy or firewall before it refused the call',
    hint: 'Check {address}. A firewall may refuse the address of this machine, or something in the call: ask who runs it. If a proxy looks at client certificates: {certificate}',
  },
  {
    if: ({ status }) => status === 401,
    what: ': the service refused the credentials',
    hint: '{credentials}',
  },
  {
    // Nothing tells a wrong app token from a forbidden call.
    if: ({ status }) => status === 403,
    what: ': the service does not allow this call',
    hint: '{passOn}{credentials} If that is right, check in the developer portal what the application may do.',
  },
  {
    if: isOfSidecar,
    sidecar: true,
    what: `: ${SIDECAR_FAILED}`,
    hint: OF_SIDECAR_CERTIFICATE,
  },
  {
    if: isPage,
    what: ", with a page (HTML), not JSON: a proxy, firewall or website answers in the service's place",
    hint: 'Check {address}, with its path if it has one. If it is right, ask who runs the network or the service.',
  },
  {
    // The API's collections exist even if they are empty.
    if: ({ status }, pathname) => status === 404 && collectionAtEnd(pathname) !== undefined,
    what: ': there is no such path at this address',
    hint: 'Check the path in {address}: that of the call is appended to it. Some services want a slash at the end: {http.trailingSlash}.',
  },
  {
    if: isDuplicate,
    what: ': the same call is under way',
    hint: '{passOn}Look for its outcome before you send it again.',
  },
  {
    if: ({ status }) => status === 429 || status >= 500,
    what: ': the service is busy or out of order',
    hint: "Nothing here to correct. If it stays so, tell the service's operator.",
  },
  {
    if: ({ status }) => status === 400,
    both: true,
    hint: 'The app token was sent beside the bearer, which the service refuses on most paths: leave {sendAppTokenWithBearer} out. If not that, something in the call itself is wrong.',
  },
];
