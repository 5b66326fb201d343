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
    [
      'mtls',
      401,
      /appToken.*# in a \.env file needs quotes.*tls\.certificate.*"CN=app" \(SHA-256 AA:BB\)/,
      'appToken',
    ],
    ['app-token', 401, /^(?!.*tls\.certificate).*appToken/, 'appToken'],
    ['oauth', 401, /^(?!.*appToken).*OAuth is enabled/, 'urls.baseUrl'],
    ['mtls', 403, /appToken.*"CN=app".*what the application may do/, 'appToken'],
    ['app-token', 403, /appToken.*what the application may do/, 'appToken'],
    ['oauth', 403, /OAuth is enabled.*what the application may do/, 'urls.baseUrl'],
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

  it('400 with an app token beside the bearer: names the option that sends both', () => {
    const oauth = clientOf({ authentication: 'oauth' });
    const bearer = { Authorization: 'Bearer b' };
    const call = callOf('/a');
    call.authenticate({ ...bearer, 'service-app-token': 'a' });
    expect(explainAnswer(answer(400), call, oauth)).toMatchObject({
      hint: expect.stringMatching(/leave sendAppTokenWithBearer out/),
      options: ['sendAppTokenWithBearer'],
    });
    call.authenticate(bearer);
    expect(explainAnswer(answer(400), call, oauth).hint).toBeUndefined();
  });

  it('names the issuer of the last certificate that we send, if a proxy refused it', () => {
    const identity = { certificate, lastIssuer: 'CN=Intermediate' };
    const hintOf = (status: number, body: string, mine: object) =>
      explainAnswer(answer(status, body), callOf('/a'), clientOf({}, { identity: mine })).hint;
    expect(hintOf(400, PAGE, identity)).toMatch(
      /lack the certificate of "CN=Intermediate": put it after ours/,
    );
    expect(hintOf(400, PAGE, { certificate })).not.toMatch(/lack/);
    expect(hintOf(403, '{}', identity)).not.toMatch(/lack/);
  });

  it.each([
    [400, PAGE, /The proxy.*in use is "CN=app" \(SHA-256 AA:BB\)/, /a proxy before the service/],
    [495, '', /The proxy.*in use is/, /a proxy before the service/],
    [496, '', /The proxy.*in use is/, /a proxy before the service misses/],
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
    [429, '{}', '/a', /is busy/, /Try again later/],
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
  it('names the issuer of the last certificate that we send after unknown_ca alone', () => {
    const hintOf = (reason: string, lastIssuer?: string) => {
      const fault = new ExchangeFault({ kind: 'tls', phase: 'connecting', reason, certificateRefused: true });
      const call = new Call('GET', url, 1_000);
      const now = new Date();
      call.certificate = { ...certificate, issuer: 'CN=ca', validFrom: now, validTo: new Date(8e15) };
      return faultToError(fault, call, clientOf({}, { identity: { lastIssuer } })).hint;
    };
    const ALERT = 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA';
    expect(hintOf(ALERT, 'CN=Intermediate')).toMatch(/lack the certificate of "CN=Intermediate"/);
    expect(hintOf(ALERT)).not.toMatch(/lack/);
    expect(hintOf('ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED', 'CN=Intermediate')).not.toMatch(/lack/);
  });

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
    ...['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'].map(
      (reason): [Partial<ExchangeFaultDetails>, RegExp, RegExp, undefined] => [
        { reason },
        /certificate has expired or is not valid yet \(CERT_\w+\)\. This machine's clock says \d{4}-/,
        /Compare this machine's clock/,
        undefined,
      ],
    ),
    [
      { reason: 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY' },
      /not signed by what it is verified against: Node's public roots \(/,
      /Download the whole chain .* into tls\.chain\./,
      'tls.chain',
    ],
    [
      { reason: 'CERT_SIGNATURE_FAILURE' },
      /not signed by what it is verified against/,
      /tls\.chain/,
      'tls.chain',
    ],
    [{ reason: 'CERT_REVOKED' }, /TLS connection failed \(CERT_REVOKED\)/, /operator/, 'urls.baseUrl'],
    [
      { reason: 'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE' },
      /ended the TLS handshake \(\w+FAILURE\)\. It may demand a client certificate/,
      /Check tls\.certificate/,
      'tls.certificate',
    ],
    [
      { reason: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' },
      /TLS connection failed \(ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION\)\.$/,
      /operator/,
      'urls.baseUrl',
    ],
    [
      { reason: 'ERR_SSL_UNSAFE_LEGACY_RENEGOTIATION_DISABLED' },
      /old, unsafe way, which OpenSSL 3 refuses/,
      /RFC 5746/,
      'urls.baseUrl',
    ],
    [
      { kind: 'protocol', reason: 'HPE_HEADER_OVERFLOW' },
      /headers of the answer are larger than Node takes/,
      /--max-http-header-size(?!.*https:)/,
      undefined,
    ],
    [
      { kind: 'protocol', reason: 'HPE_INVALID_CONTENT_LENGTH' },
      /is malformed: it breaks a rule of HTTP\/1\.1, invalid content length \(HPE_/,
      /another protocol(?!.*https:)/,
      'urls.baseUrl',
    ],
    [
      { kind: 'protocol', reason: 'Z_DATA_ERROR' },
      /is malformed: its body is not what its Content-Encoding says/,
      /operator/,
      'urls.baseUrl',
    ],
    [
      { kind: 'protocol', reason: 'ERR_HTTP_CONTENT_CODING' },
      /is malformed: its Content-Encoding is not one that was asked for \(gzip, deflate, br\)/,
      /operator/,
      'urls.baseUrl',
    ],
    [
      { reason: 'ERR_SSL_WRONG_VERSION_NUMBER' },
      /something that is not TLS, for example plain HTTP/,
      /port of HTTPS into urls\.baseUrl/,
      'urls.baseUrl',
    ],
    [
      { kind: 'reset', phase: 'connecting', reason: 'ECONNRESET' },
      /before anything was sent, without a reason \(ECONNRESET\)\. Likely a firewall/,
      /operator whether/,
      'urls.baseUrl',
    ],
    [
      { kind: 'timeout', phase: 'queued', limitMs: 30_000 },
      /: no free connection within 30000 ms: all connections of http\.maxSockets were in use\.$/,
      /raise http\.maxSockets/,
      'http.maxSockets',
    ],
    [
      { kind: 'timeout', phase: 'connecting', reason: 'ERR_CONNECT_TIMEOUT' },
      /: no connection to api\.example, port 443, within the time limit \(ERR_CONNECT_TIMEOUT\)\. Mostly a firewall/,
      /allow connections to api\.example, port 443/,
      'urls.baseUrl',
    ],
    [
      { kind: 'timeout' },
      /: the request was sent, but no answer began within the time limit\.$/,
      /raise the time limit: the `timeout` of the call, or http\.timeout/,
      'http.timeout',
    ],
    [
      { kind: 'timeout', phase: 'reading' },
      /: the answer began, but its rest did not arrive within the time limit\.$/,
      /raise the time limit: the `timeout` of the call, or http\.timeout/,
      'http.timeout',
    ],
    [
      { kind: 'timeout', phase: 'connecting', reusedSocket: true, limitMs: 30_000 },
      /: nothing was sent: 30000 ms was over before/,
      /what held the process/,
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
      { kind: 'proxy', reason: 'ERR_PROXY_AUTH_SCHEME' },
      /a way to log in that is not supported \(NTLM, Negotiate\): only Basic is/,
      /^User and password are not at fault/,
      'http.proxy',
    ],
    [
      { kind: 'proxy', reason: 'ERR_PROXY_ECONNREFUSED' },
      /proxy cannot be reached, or opens no tunnel to api\.example \(ECONNREFUSED\)/,
      /Check host and port of http\.proxy/,
      'http.proxy',
    ],
    [
      { kind: 'timeout', phase: 'connecting', addresses: ['10.0.0.1:443', '[::1]:443'] },
      /; its addresses, tried one after the other: 10\.0\.0\.1:443, \[::1\]:443\./,
      /raise http\.connectTimeout/,
      'urls.baseUrl',
    ],
    [
      { kind: 'proxy' },
      /: the proxy cannot be reached, or opens no tunnel/,
      /Check host and port of http\.proxy/,
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
      /the name api\.example could not be looked up \(ENOTFOUND\)/,
      /spelling in urls\.baseUrl/,
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
    ['DELETE', { kind: 'timeout', phase: 'reading' }, true],
    ['POST', { kind: 'reset', phase: 'connecting' }, false],
    ['POST', { certificateRefused: true }, true],
  ])('%s after %j: outcomeUnknown %p', (method, fault, outcomeUnknown) => {
    expect(errorOf(method, fault)).toMatchObject({ outcomeUnknown, method, path: '/banks/v1' });
  });
});
