import { type DescribeOption } from '../config/resolved-options.js';
import {
  ServiceConnectionError,
  type CertificateSummary,
  type ConnectionErrorKind,
  type ServiceError,
} from '../errors/index.js';
import { CONNECT_TIMEOUT, type ExchangeFault } from '../exchange/exchange.types.js';
import { explainServerCertificate, HANDSHAKE_FAILURE, isUntrusted } from '../exchange/tls-explanation.js';
import { certificateRefusedError } from '../tls/certificate-refused.js';
import { sentId, type Call } from './call.js';
import { cannotHaveActed, isSafe } from './retry-policy.js';

const EXPLANATIONS: Readonly<Record<ConnectionErrorKind, string>> = {
  timeout: "no whole answer within the time limit (the call's timeout, http.timeout or http.attemptTimeout)",
  reset: 'the connection ended before the whole answer was there',
  refused: 'the connection was refused; check the address (urls), and that the service is reachable',
  dns: 'the host name could not be resolved; check the address (urls)',
  tls: 'the TLS connection failed',
  redirect: 'the service answered with a redirect, which is never followed',
  too_large: 'the answer is larger than http.maxResponseBytes',
  proxy: 'the proxy could not be reached or refused the connection',
  protocol: 'the exchange broke the rules of HTTP',
  closed: 'the module is shutting down',
  network: 'the network failed',
};

const NO_CONNECTION =
  'no connection (name, TCP, proxy and TLS handshake) within the time to connect (http.connectTimeout); check the address (urls), and that the service is reachable';

/**
 * An exchange without a whole answer, as the error that its caller gets.
 * @param certificate ours, as it was in use
 */
export function faultToError(
  fault: ExchangeFault,
  call: Pick<Call, 'method' | 'url'> & Partial<Call>,
  describeOption: DescribeOption,
  certificate?: CertificateSummary,
): ServiceError {
  const outcomeUnknown = !isSafe(call.method) && !cannotHaveActed(fault);
  if (fault.certificateRefused && !outcomeUnknown) return certificateRefusedError(certificate, fault.reason);
  const explanation = explain(fault, describeOption, certificate);
  return new ServiceConnectionError({
    kind: fault.kind,
    message: `${call.method} ${call.url.pathname} at ${call.url.host}: ${explanation}${fault.reason ? ` (${fault.reason})` : ''}`,
    method: call.method,
    path: call.url.pathname,
    reason: fault.reason,
    outcomeUnknown,
    correlationId: sentId(call),
  });
}

function explain(
  { kind, reason, certificateRefused }: ExchangeFault,
  describeOption: DescribeOption,
  ours?: CertificateSummary,
): string {
  if (certificateRefused) return explainLateRefusal(ours);
  if (reason === CONNECT_TIMEOUT) return NO_CONNECTION;
  if (reason === 'ERR_CANCELED') return 'the call was cancelled';
  if (kind === 'tls') return explainTls(describeOption, reason);
  return kind === 'proxy' ? explainProxy(describeOption('http.proxy'), reason) : EXPLANATIONS[kind];
}

function explainLateRefusal(certificate?: CertificateSummary): string {
  const which = certificate ? ` (fingerprint ${certificate.fingerprint256})` : '';
  return `the server refused the client certificate${which} after the request was sent, so it may have been carried out`;
}

function explainProxy(option: string, reason = ''): string {
  const status = /_TUNNEL_(\d{3})$/.exec(reason)?.[1] ?? '';
  if (status === '407') return `the proxy refused the user and password of ${option}`;
  if (status === '403') return 'the proxy of http.proxy does not allow connections to the service';
  if (status.startsWith('5')) return 'the proxy of http.proxy cannot reach the service';
  return `${EXPLANATIONS.proxy}; check ${option}`;
}

function explainTls(describeOption: DescribeOption, reason = ''): string {
  const cause =
    reason === HANDSHAKE_FAILURE
      ? `the server ended the handshake (handshake_failure); it may demand a client certificate, of a kind it takes: check ${describeOption('tls.certificate')}`
      : explainServerCertificate(reason);
  if (cause) return `${EXPLANATIONS.tls}: ${cause}`;
  if (!isUntrusted(reason)) return EXPLANATIONS.tls;
  return `${EXPLANATIONS.tls}: the server's certificate is not signed by what it is verified against: ${describeOption('tls.chain')}, the service's public chain of the developer portal, or Node's public roots where that is not set`;
}
