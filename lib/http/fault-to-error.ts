import { type DescribeOption, ServiceConnectionError, type ServiceError } from '../errors/index.js';
import { type ExchangeFault } from '../exchange/exchange.types.js';
import { explainFault, placeOf } from '../exchange/explain-fault.js';
import { certificateRefusedError } from '../tls/certificate-refused.js';
import { sentId, type Call } from './call.js';
import { type ErrorClient } from './client-context.js';
import { doubtOf } from './retry-policy.js';

/** An exchange without a whole answer, as the error that its caller gets. */
export function faultToError(
  fault: ExchangeFault,
  call: Call,
  { options, identity }: ErrorClient,
): ServiceError {
  const { method, url, certificate } = call;
  const { kind, reason, certificateRefused } = fault;
  const doubt = doubtOf(call, { fault });
  const { describeOption } = options;
  if (certificateRefused && !doubt.outcomeUnknown) {
    return certificateRefusedError(certificate, reason, describeOption);
  }
  const where = `${method} ${url.pathname} at ${url.host}`;
  const place = {
    url,
    option: options.addresses.baseOption,
    describeOption,
    server: 'api' as const,
    hasChain: identity.hasChain,
  };
  return new ServiceConnectionError({
    ...(certificateRefused
      ? lateRefusal(where, call, reason, describeOption)
      : explainFault(where, fault, placeOf(place, options.http))),
    kind,
    method,
    path: url.pathname,
    reason,
    ...doubt,
    correlationId: sentId(call),
  });
}

function lateRefusal(
  where: string,
  { certificate }: Call,
  reason: string | undefined,
  describeOption: DescribeOption,
) {
  const { hint, options } = certificateRefusedError(certificate, reason, describeOption);
  const which = certificate ? ` (fingerprint ${certificate.fingerprint256})` : '';
  return {
    message: `${where}: the server refused the client certificate${which} after the request was sent, so it may have been carried out (${reason}).`,
    hint,
    options,
  };
}
