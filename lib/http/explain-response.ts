import { collectionAtEnd } from '../config/names.js';
import { explain, type Explanation, type Facts, type Words } from '../errors/index.js';
import {
  asksLateForCertificate,
  certificateVerdict,
  isRejectedByNginx,
  isUnsupportedInTls13,
} from '../exchange/client-certificate.js';
import { bodyKind, isFromSidecar } from '../exchange/response.js';
import { type ExchangeResponse } from '../exchange/io.js';
import { describeCertificate } from '../tls/certificate-summary.js';
import { type Call, type ErrorClient } from './call.js';
import { isDuplicate } from './repeatability.js';

/** Whether the service, or a proxy in front of it, refused our credentials or certificate. No other input of a caller would help. */
export function isCredentialFault(response: ExchangeResponse): boolean {
  return response.status === 401 || response.status === 403 || certificateVerdict({ response }) !== undefined;
}

/** Whether nock 15 has no interceptor for the request. Its text quotes the request with its credentials, so it must not be shown. */
export function isOfNock({ status, body }: ExchangeResponse): boolean {
  return status === 501 && body.includes('"ERR_NOCK_NO_MATCH"');
}

/** Explains a redirect, or a success with a body that cannot be used. The message follows the status. */
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
  { options, identity }: ErrorClient,
  name?: string,
): Explanation {
  const { authentication, addresses, describeOption } = options;
  const { certificate, keyType, lastIssuer } = identity;
  const verdict = certificateVerdict({ response });
  // `http:` is allowed on loopback only, where a sidecar does the TLS.
  const isSidecar = addresses.baseUrl.startsWith('http:');
  const words = [
    'api response',
    String(response.status),
    bodyKind(response),
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
  return explain(words, facts, { option: addresses.baseOption, describeOption });
}
