import { describe, expect, it } from '@jest/globals';
import { type CertificateSummary, type ServiceConnectionError } from '../../../lib/errors/index.js';
import { ExchangeFault, type ExchangeFaultDetails } from '../../../lib/exchange/exchange.types.js';
import { Call } from '../../../lib/http/call.js';
import { explainAnswer, isCredentialFault } from '../../../lib/http/explain-answer.js';
import { faultToError } from '../../../lib/http/fault-to-error.js';
import { clientOf } from './setup.js';

const certificate = { subject: 'CN=app', fingerprint256: 'AA:BB' } as CertificateSummary;
const answer = (status: number, body = '{"status":401}') => ({
  status,
  statusText: '',
  headers: {},
  body: Buffer.from(body),
  reusedSocket: false,
  untilClose: false,
});
const PAGE = '<html>No required SSL certificate was sent</html>';
const callOf = (path: string) => new Call('GET', new URL(`https://api.example${path}`), 1_000);
const common = clientOf({}, { identity: { certificate } });

describe('explainAnswer', () => {
  it.each([
    ['mtls', 401, /appToken.*tls\.certificate.*"CN=app" \(SHA-256 AA:BB\)/, 'appToken'],
    ['app-token', 401, /^(?!.*tls\.certificate).*appToken/, 'appToken'],
    ['oauth', 401, /^(?!.*appToken).*OAuth is enabled/, 'urls.baseUrl'],
    ['mtls', 403, /appToken.*"CN=app".*what the application may do/, 'appToken'],
    ['app-token', 403, /appToken.*what the application may do/, 'appToken'],
    ['oauth', 403, /what the application may do.*OAuth is enabled/, 'urls.baseUrl'],
  ] as const)('%s, %i: says what to check', (authentication, status, hint, blamed) => {
    const explained = explainAnswer(
      answer(status),
      callOf('/a'),
      clientOf({ authentication }, { identity: { certificate } }),
    );
    expect(explained.hint).toMatch(hint);
    expect(explained.options?.[0]).toBe(blamed);
    expect(isCredentialFault(answer(status))).toBe(true);
  });

  it.each([
    [400, /leave sendAppTokenWithBearer out/, 'sendAppTokenWithBearer'],
    [401, /OAuth is enabled.*app token was sent too: check appToken/, 'urls.baseUrl'],
    [403, /what the application may do.*app token was sent too: check appToken/, 'urls.baseUrl'],
    [422, undefined, undefined],
  ])(
    '%i with an app token beside the bearer: says so, and not where the bearer went alone',
    (status, hint, blamed) => {
      const oauth = clientOf({ authentication: 'oauth' });
      const bearer = { Authorization: 'Bearer b' };
      const call = callOf('/a');
      call.authenticate({ ...bearer, 'service-app-token': 'a' });
      const explained = explainAnswer(answer(status), call, oauth);
      expect(explained.hint).toEqual(hint && expect.stringMatching(hint));
      expect(explained.options?.[0]).toBe(blamed);
      call.authenticate(bearer);
      expect(explainAnswer(answer(status), call, oauth).hint ?? '').not.toMatch(/app ?token/i);
    },
  );

  it.each([
    [400, PAGE, /A proxy.*in use is "CN=app" \(SHA-256 AA:BB\)/, /a page \(HTML\) of a proxy/],
    [495, '', /A proxy.*in use is/, /a proxy before the service/],
    [496, '', /A proxy.*in use is/, /a proxy before the service misses/],
    [403, '<html>Forbidden</html>', /client certificates.*in use is/, /a page, not of the service itself/],
  ])("a proxy's %i: names the certificate in use", (status, body, hint, what) => {
    const explained = explainAnswer(answer(status, body), callOf('/a'), common);
    expect(explained).toMatchObject({
      message: expect.stringMatching(what),
      hint: expect.stringMatching(hint),
      options: expect.arrayContaining(['tls.certificate', 'tls.privateKey']),
    });
    expect(isCredentialFault(answer(status, body))).toBe(true);
    const without = explainAnswer(answer(status, body), callOf('/a'), clientOf());
    expect(without.hint).toMatch(/none is set/);
  });

  it.each([
    ['mtls', 401, '{}'],
    ['mtls', 403, '{}'],
    ['mtls', 400, PAGE],
    ['oauth', 403, '<html>Forbidden</html>'],
  ] as const)(
    'over a sidecar, which has the certificate, the hint names no option of TLS: %s, %i %s',
    (authentication, status, body) => {
      const explained = explainAnswer(
        answer(status, body),
        callOf('/a'),
        clientOf({ authentication, addresses: { baseUrl: 'http://127.0.0.1:1' } }),
      );
      expect(explained.hint).toMatch(/check what the sidecar at urls\.baseUrl shows/);
      expect(JSON.stringify(explained)).not.toContain('tls.');
    },
  );

  it.each([400, 404, 409, 422])('%i in JSON: nothing to do here', (status) => {
    expect(explainAnswer(answer(status), callOf('/customers/v1/c-1'), common).hint).toBeUndefined();
    expect(isCredentialFault(answer(status))).toBe(false);
  });

  it.each([
    [404, '{}', '/api/banks/v1', /no such path/, /path in urls\.baseUrl.*http\.trailingSlash/],
    [404, '{}', '/customers/v1/', /no such path/, /path in urls\.baseUrl/],
    [404, '<html>', '/a', /a page \(HTML\), not JSON/, /Check urls\.baseUrl/],
    [429, '{}', '/a', /too often/, /Try again later/],
    [500, '{}', '/a', /out of order/, /Nothing here to correct/],
  ])('%i %s to %s: says what it means', (status, body, path, what, hint) => {
    const explained = explainAnswer(answer(status, body), callOf(path), common);
    expect(explained.message).toMatch(what);
    expect(explained.hint).toMatch(hint);
    expect(isCredentialFault(answer(status, body))).toBe(false);
  });
});

const url = new URL('https://api.example/banks/v1?customer=secret');
const errorOf = (
  method: string,
  fault: Partial<ExchangeFaultDetails>,
  hasChain?: boolean,
): ServiceConnectionError =>
  faultToError(
    new ExchangeFault({
      kind: 'tls',
      phase: 'sent',
      reusedSocket: false,
      certificateRefused: false,
      ...fault,
    }),
    new Call(method, url, 1_000),
    clientOf({}, { identity: { hasChain } }),
  ) as ServiceConnectionError;

describe('faultToError', () => {
  it('names tls.chain alone as what an unknown issuer is verified against, where it is set', () => {
    const { message, hint } = errorOf('GET', { reason: 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY' }, true);
    expect(hint).not.toMatch('publicRoots');
    expect(message).toMatch(/verified against: tls\.chain, the service's public chain \(UNABLE/);
  });

  it.each<[Partial<ExchangeFaultDetails>, RegExp, RegExp | undefined, string | undefined]>([
    [
      { reason: 'ERR_TLS_CERT_ALTNAME_INVALID' },
      /certificate is for another host name, not for api\.example \(ERR_TLS_CERT/,
      /Put the host name .* into urls\.baseUrl.* doctor/,
      'urls.baseUrl',
    ],
    [
      { reason: 'CERT_HAS_EXPIRED' },
      /certificate has expired \(CERT_HAS_EXPIRED\)\. This machine's clock says \d{4}-/,
      /Compare this machine's clock/,
      undefined,
    ],
    [
      { reason: 'CERT_NOT_YET_VALID' },
      /not valid yet \(CERT_NOT_YET_VALID\)\. This machine's clock says \d{4}-/,
      /clock that is behind/,
      undefined,
    ],
    [
      { reason: 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY' },
      /not signed by what it is verified against: Node's public roots \(/,
      /Download the whole chain .* into tls\.chain, in place of tls\.publicRoots if/,
      'tls.chain',
    ],
    [
      { reason: 'CERT_SIGNATURE_FAILURE' },
      /not signed by what it is verified against/,
      /tls\.chain/,
      'tls.chain',
    ],
    [{ reason: 'CERT_REVOKED' }, /was revoked/, /operator/, 'urls.baseUrl'],
    [
      { reason: 'TLS_ALERT_40' },
      /handshake_failure \(TLS_ALERT_40\)\. It may demand a client certificate/,
      /Check tls\.certificate/,
      'tls.certificate',
    ],
    [{ reason: 'TLS_ALERT_80' }, /ended the TLS handshake \(TLS_ALERT_80\)\.$/, /operator/, 'urls.baseUrl'],
    [{ reason: 'TLS_ALERT_70' }, /another version of TLS/, /operator/, 'urls.baseUrl'],
    [
      { reason: 'ERR_SSL_WRONG_VERSION_NUMBER' },
      /something that is not TLS, for example plain HTTP/,
      /port of HTTPS into urls\.baseUrl/,
      'urls.baseUrl',
    ],
    [
      { kind: 'reset', phase: 'connecting', reason: 'ECONNRESET' },
      /in the TLS handshake, without a reason \(ECONNRESET\)\. Likely a firewall/,
      /operator whether/,
      'urls.baseUrl',
    ],
    [
      { kind: 'timeout', phase: 'connecting' },
      /no connection within the time limit\./,
      /allow connections to api\.example, port 443/,
      'urls.baseUrl',
    ],
    [
      { kind: 'timeout' },
      /no whole answer within the time limit\.$/,
      /raise the time limit: the `timeout` of the call, or http\.timeout/,
      'http.timeout',
    ],
    [{ kind: 'reset' }, /ended before the whole answer was there\.$/, undefined, undefined],
    [
      { kind: 'refused', reason: 'ECONNREFUSED' },
      /was refused \(ECONNREFUSED\)\. Nothing listens there/,
      /host and port of urls\.baseUrl/,
      'urls.baseUrl',
    ],
    [
      { kind: 'proxy', reason: 'ERR_PROXY_TUNNEL_407' },
      /refuses the user and password/,
      /Check http\.proxy/,
      'http.proxy',
    ],
    [
      { kind: 'proxy', reason: 'ERR_PROXY_TUNNEL_403' },
      /does not allow connections to api\.example/,
      /who runs the proxy/,
      'http.proxy',
    ],
    [
      { kind: 'proxy', reason: 'ERR_PROXY_TUNNEL_503' },
      /cannot reach api\.example/,
      /urls\.baseUrl/,
      'urls.baseUrl',
    ],
    [
      { kind: 'proxy', reason: 'ERR_PROXY_ECONNREFUSED' },
      /connection to the proxy was refused \(ECONNREFUSED\)/,
      /Check host and port of http\.proxy/,
      'http.proxy',
    ],
    [
      { kind: 'proxy', phase: 'connecting', reason: 'ERR_PROXY_TUNNEL_ENDED', reusedSocket: true },
      /ended the idle connection; nothing of this call had gone through it \(ERR_PROXY_TUNNEL_ENDED\)/,
      /Send the call again/,
      undefined,
    ],
    ...['ETIMEDOUT', 'ERR_CONNECT_TIMEOUT'].map(
      (reason): [Partial<ExchangeFaultDetails>, RegExp, RegExp, string] => [
        { kind: 'timeout', phase: 'connecting', reason, addresses: ['10.0.0.1:443', '[::1]:443'] },
        /several addresses; these were tried, one after the other: 10\.0\.0\.1:443, \[::1\]:443\.$/,
        /^Find out which of 10\.0\.0\.1:443, \[::1\]:443 this machine can connect to(?!.*firewall).*raise http\.connectTimeout, or, if an attempt has less time than that, the `timeout` of the call, http\.timeout or http\.attemptTimeout/,
        'http.connectTimeout',
      ],
    ),
    [
      { kind: 'proxy' },
      /: the proxy cannot be reached, or opens no tunnel/,
      /Check http\.proxy/,
      'http.proxy',
    ],
    [
      { kind: 'network', phase: 'connecting', reason: 'EMFILE' },
      /too many files and connections are open \(EMFILE\)/,
      /limit of open files/,
      undefined,
    ],
    [{ kind: 'tls' }, /: the TLS connection failed\.$/, /urls\.baseUrl/, 'urls.baseUrl'],
    [
      { kind: 'dns', reason: 'ENOTFOUND' },
      /no host with the name api\.example/,
      /spelling in urls\.baseUrl/,
      'urls.baseUrl',
    ],
    [{ kind: 'dns', reason: 'EAI_AGAIN' }, /could not be looked up/, /DNS server/, 'urls.baseUrl'],
    [
      { kind: 'timeout', phase: 'connecting', limitMs: 30_000, lateMs: 40_500 },
      /no whole answer within 30000 ms\. This process did not run for at least 40 s meanwhile, so an answer could not be read\.$/,
      /^Find out what held the process/,
      undefined,
    ],
    [
      { kind: 'timeout', phase: 'connecting', limitMs: 30_000, lateMs: 900 },
      /no connection within 30000 ms/,
      /firewall|allow connections/,
      'urls.baseUrl',
    ],
  ])('%j says what happened and what to do', (fault, message, hint, blamed) => {
    const error = errorOf('GET', fault);
    expect(error.message).toMatch(/^GET \/banks\/v1 at api\.example: /);
    expect(error.message).toMatch(message);
    expect(error.hint ?? '').toMatch(hint ?? /^$/);
    expect(error.options?.[0]).toBe(blamed);
    expect(JSON.stringify(error)).not.toContain('secret');
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
