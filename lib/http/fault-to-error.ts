import { ServiceConnectionError, type ConnectionErrorKind, type ServiceError } from '../errors/index.js';
import { type ExchangeFault } from '../exchange/exchange.types.js';
import { type Call } from './call.js';
import { cannotHaveActed, isSafe } from './retry-policy.js';

const EXPLANATIONS: Readonly<Record<ConnectionErrorKind, string>> = {
  timeout: "no whole answer within the time limit (the call's timeout, or http.timeout)",
  reset: 'the connection ended before the whole answer was there',
  refused: 'the connection was refused; check the address (SERVICE_*_URL) and that the service is reachable',
  dns: 'the host name could not be resolved; check the address (SERVICE_*_URL)',
  tls: 'the TLS connection failed',
  redirect: 'the service answered with a redirect, which is never followed',
  too_large: 'the answer is larger than http.maxResponseBytes',
  proxy:
    'the proxy could not be reached or refused the connection; check http.proxy (SERVICE_HTTP_PROXY), its user and password',
  protocol: 'the exchange broke the rules of HTTP',
  closed: 'the module is shutting down',
  network: 'the network failed',
};

const TLS_HINTS: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate is for another host name",
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  CERT_NOT_YET_VALID: "the server's certificate is not valid yet",
  CERT_REVOKED: "the server's certificate was revoked",
  INVALID_PURPOSE: "the server's certificate is not for servers",
  UNSPECIFIED:
    "the server's certificate breaks a rule of its chain: a name constraint, a weak key or signature",
  TLS_ALERT_40:
    'the server ended the handshake (handshake_failure); it may demand a client certificate, of a kind it takes: check tls.certificate',
};
const UNTRUSTED =
  "the server's certificate is not signed by what it is verified against: tls.chain (SERVICE_TLS_CHAIN, the service's public chain of the developer portal), or Node's public roots where that is not set";

/** An exchange without a whole answer, as the error that its caller gets. */
export function faultToError(
  fault: ExchangeFault,
  call: Pick<Call, 'method' | 'url'>,
  retryAfter?: number,
): ServiceError {
  const explanation = fault.kind === 'tls' ? explainTls(fault.reason) : EXPLANATIONS[fault.kind];
  return new ServiceConnectionError({
    kind: fault.kind,
    message: `${call.method} ${call.url.pathname} at ${call.url.host}: ${explanation}${fault.reason ? ` (${fault.reason})` : ''}`,
    method: call.method,
    path: call.url.pathname,
    reason: fault.reason,
    outcomeUnknown: !isSafe(call.method) && !cannotHaveActed(fault),
    retryAfter,
  });
}

function explainTls(reason = ''): string {
  const known = TLS_HINTS[reason];
  if (known) return `${EXPLANATIONS.tls}: ${known}`;
  return /^(UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|CERT_|INVALID_CA)/.test(reason)
    ? `${EXPLANATIONS.tls}: ${UNTRUSTED}`
    : EXPLANATIONS.tls;
}
