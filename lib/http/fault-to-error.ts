import { type CertificateSummary, ServiceConnectionError, type ServiceError } from '../errors/index.js';
import { type ExchangeFault } from '../exchange/exchange.types.js';
import { type HttpSettings } from '../config/resolved-options.js';
import { explainFault, placeOf } from '../exchange/explain-fault.js';
import { certificateRefusedError } from '../tls/certificate-refused.js';
import { sentId, type Call } from './call.js';
import { doubtOf } from './retry-policy.js';

/**
 * An exchange without a whole answer, as the error that its caller gets.
 * @param option with the API's address: `urls.baseUrl`
 * @param certificate ours, as it was in use
 * @param way by which it goes, and what its server is verified against
 */
export function faultToError(
  fault: ExchangeFault,
  call: Pick<Call, 'method' | 'url'> & Partial<Call>,
  option: string,
  certificate?: CertificateSummary,
  way: Pick<HttpSettings, 'proxyFor' | 'ignoredProxyFor'> & { hasChain?: boolean } = {},
): ServiceError {
  const { method, url } = call;
  const { kind, reason, certificateRefused } = fault;
  const doubt = doubtOf(call, { fault });
  if (certificateRefused && !doubt.outcomeUnknown) return certificateRefusedError(certificate, reason);
  const where = `${method} ${url.pathname} at ${url.host}`;
  return new ServiceConnectionError({
    ...(certificateRefused
      ? lateRefusal(where, certificate, reason)
      : explainFault(where, fault, placeOf({ url, option, server: 'api', hasChain: way.hasChain }, way))),
    kind,
    method,
    path: url.pathname,
    reason,
    ...doubt,
    correlationId: sentId(call),
  });
}

function lateRefusal(where: string, certificate?: CertificateSummary, reason?: string) {
  const { hint, options } = certificateRefusedError(certificate, reason);
  const which = certificate ? ` (fingerprint ${certificate.fingerprint256})` : '';
  return {
    message: `${where}: the server refused the client certificate${which} after the request was sent, so it may have been carried out (${reason}).`,
    hint,
    options,
  };
}
