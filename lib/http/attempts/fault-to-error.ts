import {
  type ServiceCertificateError,
  ServiceConnectionError,
  type ServiceError,
} from '../../errors/index.js';
import { type ExchangeFault } from '../../exchange/exchange.types.js';
import { explainFault } from '../../exchange/explain-fault.js';
import { certificateRefusedError } from '../../tls/certificate-error.js';
import { sentCorrelationId, type Call } from '../request/call.js';
import { type ErrorClient } from '../request/client-context.js';
import { outcomeFields } from '../request/repeatability.js';

/** Makes the caller's error for an exchange that failed without a complete response. */
export function faultToError(
  fault: ExchangeFault,
  call: Call,
  { options, identity }: ErrorClient,
): ServiceError {
  const { method, url, route, certificate } = call;
  const { kind, phase, reason, certificateRefused } = fault;
  const doubt = outcomeFields(call, { fault });
  const { describeOption } = options;
  const { lastIssuer, keyType } = identity;
  const sent = { lastIssuer, keyType, isTls13: phase !== 'connecting' };
  const refusal = certificateRefused && certificateRefusedError(certificate, reason, describeOption, sent);
  if (refusal && !doubt.outcomeUnknown) return refusal;
  const where = `${call.name} at ${url.host}`;
  const place = {
    url,
    option: options.addresses.baseOption,
    describeOption,
    server: 'api' as const,
    hasChain: identity.hasChain,
    hasCertificate: certificate !== undefined,
    http: options.http,
  };
  return new ServiceConnectionError({
    ...(refusal ? lateRefusal(where, refusal, reason) : explainFault(where, fault, place)),
    kind,
    method,
    path: url.pathname,
    route,
    reason,
    ...doubt,
    correlationId: sentCorrelationId(call),
  });
}

function lateRefusal(
  where: string,
  { certificate, hint, options }: ServiceCertificateError,
  reason?: string,
) {
  const which = certificate ? ` (fingerprint ${certificate.fingerprint256})` : '';
  const message = `${where}: the server refused the client certificate${which} after the request was sent, so it may have been executed (${reason}).`;
  return { message, hint, options, saysOutcome: true };
}
