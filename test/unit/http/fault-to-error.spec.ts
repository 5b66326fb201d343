import { describe, expect, it } from '@jest/globals';
import { type ServiceConnectionError } from '../../../lib/errors/index.js';
import { ExchangeFault, type ExchangeFaultDetails } from '../../../lib/exchange/exchange.types.js';
import { describeOption } from '../../helpers/describe-option.js';
import { faultToError } from '../../../lib/http/fault-to-error.js';

const url = new URL('https://api.example/banks/v1?customer=secret');
const errorOf = (method: string, fault: Partial<ExchangeFaultDetails>): ServiceConnectionError =>
  faultToError(
    new ExchangeFault({
      kind: 'tls',
      phase: 'sent',
      reusedSocket: false,
      certificateRefused: false,
      ...fault,
    }),
    { method, url },
    describeOption('ksa'),
  ) as ServiceConnectionError;

describe('faultToError', () => {
  it.each<[Partial<ExchangeFaultDetails>, RegExp]>([
    [{ reason: 'ERR_TLS_CERT_ALTNAME_INVALID' }, /certificate is for another host name \(ERR_TLS_CERT/],
    [{ reason: 'CERT_HAS_EXPIRED' }, /certificate has expired/],
    [
      { reason: 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY' },
      /not signed by what it is verified against: tls\.chain \(SERVICE_KSA_TLS_CHAIN\)/,
    ],
    [{ reason: 'CERT_SIGNATURE_FAILURE' }, /not signed by what it is verified against/],
    [{ reason: 'TLS_ALERT_40' }, /may demand a client certificate.*check tls\.certificate/],
    [{ reason: 'TLS_ALERT_80' }, /the TLS connection failed \(TLS_ALERT_80\)$/],
    [{ kind: 'proxy', reason: 'ERR_PROXY_TUNNEL_407' }, /refused the user and password of http\.proxy/],
    [{ kind: 'proxy', reason: 'ERR_PROXY_TUNNEL_403' }, /does not allow connections to the service/],
    [{ kind: 'proxy', reason: 'ERR_PROXY_TUNNEL_503' }, /cannot reach the service/],
    [
      { kind: 'proxy', reason: 'ERR_PROXY_ECONNREFUSED' },
      /could not be reached.*check http\.proxy \(SERVICE_KSA_HTTP_PROXY\)/,
    ],
    [
      { kind: 'proxy' },
      /: the proxy could not be reached or refused the connection; check http\.proxy \(\w+\)$/,
    ],
    [{ kind: 'tls' }, /: the TLS connection failed$/],
    [{ kind: 'dns', reason: 'ENOTFOUND' }, /could not be resolved.*check the address \(urls\)/],
  ])('%j says what to do', (fault, message) => {
    const error = errorOf('GET', fault);
    expect(error.message).toMatch(/^GET \/banks\/v1 at api\.example: /);
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain('secret');
  });

  it.each<[string, Partial<ExchangeFaultDetails>, boolean]>([
    ['GET', { kind: 'reset' }, false],
    ['POST', { kind: 'reset' }, true],
    ['DELETE', { kind: 'timeout', phase: 'answering' }, true],
    ['POST', { kind: 'reset', phase: 'connecting' }, false],
    ['POST', { certificateRefused: true }, true],
  ])('%s after %j: outcomeUnknown %p', (method, fault, outcomeUnknown) => {
    expect(errorOf(method, fault)).toMatchObject({ outcomeUnknown, method, path: '/banks/v1' });
  });
});
