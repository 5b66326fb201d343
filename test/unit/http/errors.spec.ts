import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { ConsoleLogger, HttpException, Logger, type ArgumentsHost } from '@nestjs/common';
import { inspect } from 'node:util';
import { lastValueFrom, type Observable } from 'rxjs';
import {
  type CertificateSummary,
  type ConnectionErrorKind,
  describeError,
  explain,
  ServiceApiError,
  ServiceCertificateError,
  ServiceConnectionError,
  ServiceError,
  ServiceRequestError,
  ServiceTokenError,
} from '../../../lib/errors/index.js';
import { Secret } from '../../../lib/config/secret.js';
import { verdictOfEnd } from '../../../lib/exchange/response.js';
import { ExchangeFault, type ExchangeFaultDetails } from '../../../lib/exchange/fault.js';
import { Call } from '../../../lib/http/call.js';
import { answerOf, type ExceptionAnswer, toHttpException } from '../../../lib/answers/answer.js';
import { explainResponse, isCredentialFault, faultToError } from '../../../lib/http/call-error.js';
import { ServiceExceptionFilter } from '../../../lib/answers/service-exception.filter.js';
import { GUIDES } from '../../../lib/version.js';
import { describeOption } from '../../helpers/describe-option.js';
import { clientOf } from './setup.js';

const certificate = { subject: 'CN=app', fingerprint256: 'AA:BB' } as CertificateSummary;
const PAGE = '<html>The SSL certificate error</html>';
const NONE_SENT = '<html>No required SSL certificate was sent</html>';
const FORBIDDEN = '<html>Forbidden</html>';
/** The page of Apache 2.4 over TLS 1.3 with SSLVerifyClient in a Location. */
const TOO_LATE =
  "<html><h1>Forbidden</h1><p>You don't have permission to access this resource.Reason: Cannot perform Post-Handshake Authentication.<br /></p></html>";

describe('Errors of responses', () => {
  /** The response of nock 15 to a request without a handler. */
  const NO_MATCH = JSON.stringify({
    code: 'ERR_NOCK_NO_MATCH',
    message: 'Nock: No match for request {"headers": ...}',
  });
  const answer = (status: number, body: string) => ({
    status,
    statusText: '',
    headers: {},
    body: Buffer.from(body),
    untilClose: false,
  });
  const callOf = (path: string) => new Call('GET', new URL(`https://api.example${path}`), 1_000);
  const explained = (status: number, body: string, options: object = {}, path = '/a', identity = {}) => {
    const client = clientOf(options, { identity: { certificate, ...identity } });
    return explainResponse(answer(status, body), callOf(path), client);
  };

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
  ] as const)('%s, %i: says what to check of the credentials', (authentication, status, hint, blamed) => {
    const explanation = explained(status, '{"status":401}', { authentication });
    expect(explanation.hint).toMatch(hint);
    expect(explanation.options?.[0]).toBe(blamed);
    expect(isCredentialFault(answer(status, '{"status":401}'))).toBe(true);
  });

  it.each([
    [
      400,
      PAGE,
      /certificate arrived: .*in use is "CN=app" \(SHA-256 AA:BB\)/,
      /an nginx, rejects the client/,
    ],
    [495, '', /certificate arrived: .*in use is/, /an nginx, rejects the client certificate/],
    [403, '<html>certificate</html>', /The proxy.*in use is/, /got no client certificate, or rejects it/],
    [
      403,
      FORBIDDEN,
      /client certificates.*in use is/,
      /a page \(HTML\), which the service itself never sends/,
    ],
  ])('name the certificate in use if a proxy sends %i %s', (status, body, hint, what) => {
    expect(explained(status, body)).toMatchObject({
      message: expect.stringMatching(what),
      hint: expect.stringMatching(hint),
      options: expect.arrayContaining(['tls.certificate', 'tls.privateKey']),
    });
    expect(isCredentialFault(answer(status, body))).toBe(true);
    expect(explained(status, body, {}, '/a', { certificate: undefined }).hint).toMatch(/none is set/);
  });

  it.each([
    [400, NONE_SENT],
    [403, '<html>no client certificate</html>'],
    [496, ''],
  ])('say that the certificate was not sent, with the type of its key, for %i %s', (status, body) => {
    expect(explained(status, body, {}, '/a', { keyType: 'Ed25519', lastIssuer: 'CN=ca' })).toEqual({
      words: expect.stringMatching(/certificate-not-sent/),
      message:
        ': the client certificate was not sent, or did not arrive: the server accepts no key of this type (Ed25519), or a proxy in front of it ended TLS.',
      hint: expect.stringMatching(/^Ask .* which types of keys/),
      options: ['tls.certificate'],
    });
    // Without any certificate, the missing certificate is the cause.
    const none = explained(status, body, {}, '/a', { certificate: undefined });
    expect(none).toMatchObject({
      message: expect.stringMatching(/got no client certificate, or rejects it/),
      hint: expect.stringMatching(/none is set/),
    });
  });

  it.each([
    ['mtls', 401, '{}'],
    ['mtls', 403, '{}'],
    ['mtls', 400, PAGE],
    ['mtls', 400, NONE_SENT],
    ['oauth', 403, FORBIDDEN],
  ] as const)('over a sidecar names no option of TLS: %s, %i %s', (authentication, status, body) => {
    const addresses = { baseUrl: 'http://127.0.0.1:1' };
    const explanation = explained(status, body, { authentication, addresses });
    expect(explanation.hint).toMatch(/check that the certificate of the sidecar at urls\.baseUrl belongs/);
    expect(JSON.stringify(explanation)).not.toContain('tls.');
  });

  it.each([
    ['Caddy', 502, ''],
    ['nginx', 502, '<html><h1>502 Bad Gateway</h1></html>'],
    ['HAProxy', 503, '<html><body><h1>503 Service Unavailable</h1></body></html>'],
    ['Apache', 500, '<html><h1>Internal Server Error</h1></html>'],
  ])(
    'name the certificate of a sidecar that the service refuses, as %s reports it (%i)',
    (_, status, body) => {
      const addresses = { baseUrl: 'http://127.0.0.1:1' };
      expect(explained(status, body, { addresses })).toMatchObject({
        message: ': the sidecar on this machine got no response from the service.',
        hint: expect.stringMatching(/log of the sidecar at urls\.baseUrl.*client certificate of the sidecar/),
        options: ['urls.baseUrl'],
      });
      expect(explained(status, body).message).not.toMatch(/sidecar/);
      // The message of the service itself.
      expect(explained(status, '{"status":500}', { addresses }).message).toMatch(/busy or out of order/);
    },
  );

  it('name the cause of the page of an Apache that asks for the certificate after the request', () => {
    const explanation = explained(403, TOO_LATE);
    expect(explanation.message).toMatch(/asks for the client certificate after the request/);
    expect(explanation.hint).toMatch(/SSLVerifyClient is in a Location.*in the handshake/);
    expect(explanation.options).toEqual(['urls.baseUrl']);
  });

  it('name the issuer of the last certificate that we send if a proxy refused it', () => {
    const lastIssuer = 'CN=Intermediate';
    const hintOf = (status: number, body: string, identity: object) =>
      explained(status, body, {}, '/a', identity).hint;
    expect(hintOf(400, PAGE, { lastIssuer })).toMatch(
      /lack the certificate of "CN=Intermediate": put it after ours/,
    );
    expect(hintOf(400, PAGE, {})).not.toMatch(/lack/);
    expect(hintOf(403, '{}', { lastIssuer })).not.toMatch(/lack/);
  });

  it('name the error code that passOn can pass on after a 403 or 429, and what to do after a duplicate', () => {
    const hintOf = (status: number, name: string) => {
      const body = JSON.stringify({ status: name });
      return explainResponse(answer(status, body), callOf('/a'), clientOf(), name).hint;
    };
    const passOn = (name: string) =>
      `If ${name} is for your callers, name it in passOn of ServiceExceptionFilter. `;
    expect(hintOf(403, 'CONSENT_EXPIRED')).toMatch(
      new RegExp(`^${passOn('CONSENT_EXPIRED')}Check that appToken`),
    );
    expect(hintOf(429, 'DUPLICATED_REQUEST')).toBe(
      `${passOn('DUPLICATED_REQUEST')}Find out its outcome before you send it again.`,
    );
    for (const explanation of [
      hintOf(403, 'FORBIDDEN'),
      hintOf(429, 'TOO_MANY_REQUESTS'),
      hintOf(401, 'EXPIRED'),
      explained(403, '{}').hint,
    ])
      expect(explanation).not.toMatch(/passOn/);
  });

  it('name the option that sends both app token and bearer after a 400', () => {
    const call = callOf('/a');
    const hintOf = (credentials: object) => {
      call.setCredentials({ Authorization: 'Bearer b', ...credentials });
      return explainResponse(answer(400, '{}'), call, clientOf({ authentication: 'oauth' })).hint;
    };
    expect(hintOf({ 'service-app-token': 'a' })).toMatch(/leave sendAppTokenWithBearer out/);
    expect(hintOf({})).toBeUndefined();
  });

  it.each([
    [404, '{}', '/api/banks/v1', /no such path/, /path in urls\.baseUrl.*http\.trailingSlash/],
    [404, '{}', '/customers/v1/', /no such path/, /path in urls\.baseUrl/],
    [404, '<html>', '/a', /a page \(HTML\), not JSON/, /Check urls\.baseUrl/],
    [429, '{}', '/a', /is busy/, /nothing to correct/],
    [500, '{}', '/a', /out of order/, /nothing to correct/],
    [501, '{}', '/a', /out of order/, /nothing to correct/],
    [
      501,
      NO_MATCH,
      '/a',
      /^: nock has no interceptor for this request\.$/,
      /urls\.baseUrl, or the proxy in http\.proxy/,
    ],
    ...[400, 404, 409, 422].map((status): [number, string, string, RegExp, undefined] => [
      status,
      '{}',
      '/customers/v1/c-1',
      /^$/,
      undefined,
    ]),
  ])('say what %i %s to %s means', (status, body, path, what, hint) => {
    const explanation = explained(status, body, {}, path);
    expect(explanation.message).toMatch(what);
    if (hint) expect(explanation.hint).toMatch(hint);
    else expect(explanation.hint).toBeUndefined();
    expect(isCredentialFault(answer(status, body))).toBe(false);
  });
});

describe('Errors of calls without a complete response', () => {
  const url = new URL('https://api.example/banks/v1?customer=secret');
  const faulty = (
    fault: Partial<ExchangeFaultDetails>,
    {
      method = 'GET',
      ...identity
    }: {
      method?: string;
      hasChain?: boolean;
      keyType?: string;
      lastIssuer?: string;
      certificate?: undefined;
    } = {},
    options: Parameters<typeof clientOf>[0] = {},
  ): ServiceConnectionError => {
    const call = new Call(method, url, 1_000);
    const dates = { validFrom: new Date(), validTo: new Date(8e15) };
    call.certificate = 'certificate' in identity ? undefined : { ...certificate, issuer: 'CN=ca', ...dates };
    const details = { kind: 'tls' as const, phase: 'sent' as const, ...fault };
    return faultToError(
      new ExchangeFault(details),
      call,
      clientOf(options, { identity }),
    ) as ServiceConnectionError;
  };

  type Row = [Partial<ExchangeFaultDetails>, RegExp, RegExp?, string?];
  const of =
    (kind: ConnectionErrorKind, phase: ExchangeFaultDetails['phase'] = 'sent') =>
    (reason?: string): Partial<ExchangeFaultDetails> => ({ kind, reason, phase });
  const [tls, protocol, proxy, reset] = [of('tls'), of('protocol'), of('proxy'), of('reset', 'connecting')];
  const early = of('tls', 'connecting');
  const late = (phase: ExchangeFaultDetails['phase'], more: Partial<ExchangeFaultDetails> = {}) =>
    ({ kind: 'timeout', phase, ...more }) as const;
  const [BASE, PROXY, LIMIT] = ['urls.baseUrl', 'http.proxy', 'http.timeout'];
  const CLOCK = /has expired or is not valid yet \(CERT_\w+\)\. This machine's clock says \d{4}-/;
  const RAISE = /raise the time limit: the `timeout` of the call, or http\.timeout/;
  const ADDRESSES = { addresses: ['10.0.0.1:443', '[::1]:443'] };

  it.each<Row>([
    [tls('ERR_TLS_CERT_ALTNAME_INVALID'), /another host name, not for api\.example/, /doctor/, BASE],
    [tls('CERT_HAS_EXPIRED'), CLOCK, /Compare this machine's clock/],
    [tls('CERT_NOT_YET_VALID'), CLOCK, /Compare this machine's clock/],
    [tls('UNABLE_TO_GET_ISSUER_CERT_LOCALLY'), /: Node's public roots \(/, /whole chain/, 'tls.chain'],
    [tls('CERT_SIGNATURE_FAILURE'), /same name, but another key/, /tls\.chain has two/, 'tls.chain'],
    [tls('CERT_REVOKED'), /server's certificate was refused \(CERT_REVOKED\)/, /operator/, BASE],
    [
      { ...tls('UNSPECIFIED'), opensslText: 'permitted subtree violation' },
      /server's certificate was refused: permitted subtree violation \(/,
      /operator/,
      BASE,
    ],
    [tls('X_ALERT_HANDSHAKE_FAILURE'), /It may require a client certificate/, /Check tls/, 'tls.certificate'],
    [early('X_ALERT_HANDSHAKE_FAILURE'), /no cipher in common with this client/, /operator/, BASE],
    [
      { ...tls('X_ALERT_INTERNAL_ERROR'), certificateVerdict: 'perhaps-refused' },
      /It may have refused the client certificate/,
      /^Check tls\.certificate: .*clientAuth/,
      'tls.certificate',
    ],
    [
      tls('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'),
      /no version of TLS in common/,
      /--tls-min-v1\.3.*operator/,
      BASE,
    ],
    [tls('ERR_SSL_BAD_DECRYPT'), /TLS connection failed \(\w+\)\.$/, /operator/, BASE],
    [tls('ERR_SSL_WRONG_VERSION_NUMBER'), /is not TLS, for example plain HTTP/, /port of HTTPS/, BASE],
    [tls(), /: the TLS connection failed\.$/, /urls\.baseUrl/, BASE],
    [protocol('HPE_HEADER_OVERFLOW'), /headers .* are larger/, /--max-http-header-size(?!.*https:)/],
    [protocol('HPE_INVALID_CONTENT_LENGTH'), /HTTP\/1\.1, invalid content length/, /another protocol/, BASE],
    [protocol('Z_DATA_ERROR'), /its body is not what its Content-Encoding says/, /operator/, BASE],
    [protocol('ERR_HTTP_CONTENT_CODING'), /not one that was asked for \(gzip/, /operator/, BASE],
    [reset('ECONNRESET'), /before anything was sent, .* Most likely a firewall/, /operator whether/, BASE],
    [of('reset')(), /ended before the whole response had arrived\.$/],
    [
      { ...of('reset')('ECONNRESET'), certificateVerdict: 'perhaps-refused' },
      /before the first byte of a response.* refused the client certificate .*, or it crashed or restarted\.$/,
      /^Check tls\.certificate: /,
      'tls.certificate',
    ],
    [of('refused')('ECONNREFUSED'), /was refused .*Nothing listens there/, /host and port/, BASE],
    [of('dns')('ENOTFOUND'), /api\.example could not be looked up/, /spelling in urls/, BASE],
    [of('network', 'connecting')('EMFILE'), /too many files and connections are open/, /limit of open files/],
    [late('queued', { limitMs: 30_000 }), /no free connection within 30000 ms/, /raise/, 'http.maxSockets'],
    [late('connecting'), /api\.example, port 443, within the time limit\. Most likely/, /allow/, BASE],
    [late('connecting', { reason: 'ERR_CONNECT_TIMEOUT' }), /: no connection/, /http\.connectTimeout/, BASE],
    [late('connecting', ADDRESSES), /; its addresses, .*: 10\.0\.0\.1:443, \[::1\]:443\./, /allow/, BASE],
    [late('waiting'), /: nothing was sent: /, /what blocks the event loop/, LIMIT],
    [late('sent'), /: the request was sent, but no response began within the time limit\.$/, RAISE, LIMIT],
    [late('reading'), /: the response began, but the rest of it did not arrive within/, RAISE, LIMIT],
    [proxy('ERR_PROXY_TUNNEL_407'), /refuses the user and password/, /^Check http\.proxy: /, PROXY],
    [proxy('ERR_PROXY_TUNNEL_401'), /refuses the user and password/, /^Check http\.proxy: /, PROXY],
    [proxy('ERR_PROXY_TUNNEL_400'), /is not a proxy/, /host and port of http\.proxy/, PROXY],
    [proxy('ERR_PROXY_TUNNEL_404'), /cannot reach api\.example, port 443/, /urls\.baseUrl/, BASE],
    [
      proxy('ERR_PROXY_SELF_SIGNED_CERT_IN_CHAIN'),
      /certificate of the proxy was refused/,
      /NODE_EXTRA_CA_CERTS/,
      PROXY,
    ],
    [proxy('ERR_PROXY_TUNNEL_403'), /not allow connections to api\.example/, /who runs/, PROXY],
    [proxy('ERR_PROXY_TUNNEL_503'), /cannot reach api\.example/, /urls\.baseUrl/, BASE],
    [proxy('ERR_PROXY_AUTH_SCHEME'), /not supported \(NTLM, Negotiate\): only Basic is/, /cntlm/, PROXY],
    [proxy('ERR_PROXY_ECONNREFUSED'), /to api\.example \(ECONNREFUSED\)/, /host and port/, PROXY],
    [proxy(), /: the proxy cannot be reached, or opens no tunnel/, /host and port of http\.proxy/, PROXY],
  ])('say what happened and what to do after %j', (...[fault, message, hint = /^$/, blamed]) => {
    const error = faulty(fault);
    expect(error.message).toMatch(/^GET \/banks\/v1 at api\.example: /);
    expect(error.message).toMatch(message);
    expect(error.message).toContain(fault.reason?.replace('ERR_PROXY_ECONN', 'ECONN') ?? '');
    expect(error.hint ?? '').toMatch(hint);
    expect(error.options?.[0]).toBe(blamed);
    expect(JSON.stringify(error)).not.toContain('secret');
  });

  it.each([
    reset('ECONNRESET'),
    of('reset')('ECONNRESET'),
    of('reset', 'reading')(),
    tls('ERR_SSL_WRONG_VERSION_NUMBER'),
    tls('SELF_SIGNED_CERT_IN_CHAIN'),
    tls('CERT_HAS_EXPIRED'),
    early('ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE'),
    late('connecting', { reason: 'ERR_CONNECT_TIMEOUT' }),
    late('sent'),
    protocol('HPE_INVALID_CONSTANT'),
  ])('name the proxy without its password for a fault inside its tunnel: %j', (fault) => {
    const proxyFor = () => new Secret('http://user:secret@proxy.example:3128');
    const { message, hint = '' } = faulty(fault, {}, { http: { proxyFor } });
    expect(message).toMatch(/proxy proxy\.example:3128/);
    expect(message).toMatch(/^GET \/banks\/v1 at api\.example/);
    expect(message + hint).not.toMatch(/secret|put the port of HTTPS/i);
  });

  it('name a client certificate after a reset in the handshake: as refused if one is configured, otherwise as required', () => {
    const explanation = (error: ServiceConnectionError) => `${error.message} ${error.hint}`;
    expect(explanation(faulty(reset('ECONNRESET')))).toMatch(
      /refuses the client certificate.*tls\.certificate is accepted/,
    );
    const none = { certificate: undefined };
    expect(explanation(faulty(reset('ECONNRESET'), none))).toMatch(
      /requires a client certificate.*whether the server requires a client certificate/,
    );
    const http = { proxyFor: () => new Secret('http://proxy.example:3128') };
    expect(explanation(faulty(reset('ECONNRESET'), none, { http }))).toMatch(
      /proxy\.example.*whether the server requires a client certificate/,
    );
  });

  it('name only tls.chain as what an unknown issuer is verified against if it is set', () => {
    const { message } = faulty({ reason: 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY' }, { hasChain: true });
    expect(message).toMatch(/verified against: tls\.chain, the service's public chain \(UNABLE/);
  });

  it.each([
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'CN=Intermediate', true],
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', undefined, false],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED', 'CN=Intermediate', false],
  ])('after %s with a last certificate issued by %s name the issuer: %j', (reason, lastIssuer, isNamed) => {
    const fault = { phase: 'connecting', reason, certificateVerdict: 'refused' } as const;
    const { hint = '' } = faulty(fault, { lastIssuer });
    expect(/lack the certificate of "CN=Intermediate"/.test(hint)).toBe(isNamed);
  });

  it.each([
    ['over TLS 1.3', 'sent', 'secp256k1', true],
    ['over TLS 1.2', 'connecting', 'secp256k1', false],
    ['over TLS 1.3', 'sent', 'P-256', false],
  ] as const)(
    'after the certificate alert %s, %s, with a key of type %s say that the certificate was not sent: %s',
    (_, phase, keyType, isUnsent) => {
      const reason = 'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE';
      const handshake = { isOverForUs: phase === 'sent', isPending: true };
      const certificateVerdict = verdictOfEnd({ alert: 42 }, { keyType }, handshake);
      const fault = { phase, reason, certificateVerdict, handshakeRefused: true };
      const { message, hint = '' } = faulty(fault, { keyType });
      expect(message.includes(`accepts no key of this type (${keyType})`)).toBe(isUnsent);
      expect(/^TLS 1\.3 has no signature for such a key/.test(hint)).toBe(isUnsent);
      expect(message).toContain(reason);
    },
  );

  it.each<[string, Partial<ExchangeFaultDetails>, boolean]>([
    ['GET', { kind: 'reset' }, false],
    ['POST', { kind: 'reset' }, true],
    ['DELETE', { kind: 'timeout', phase: 'reading' }, true],
    ['POST', { kind: 'reset', phase: 'connecting' }, false],
    ['POST', { certificateVerdict: 'refused' }, true],
  ])('of a %s after %j have outcomeUnknown %p', (method, fault, outcomeUnknown) => {
    expect(faulty(fault, { method })).toMatchObject({ outcomeUnknown, method, path: '/banks/v1' });
  });
});

const unavailable = 'The service cannot be reached at the moment.';
const failed = 'The service failed to answer this call.';
const doubt = ' The request may have been executed all the same.';

const api = (status: number, more: object = {}): ServiceApiError =>
  new ServiceApiError({ message: 'ours', status, method: 'GET', path: '/a', ...more });
const connection = (
  kind: ConnectionErrorKind,
  outcomeUnknown = false,
  message = 'ours',
): ServiceConnectionError =>
  new ServiceConnectionError({ kind, outcomeUnknown, correlationId: 'id-1', message });
const input = ServiceRequestError.of('path', 'must be a string');
const limited = new ServiceTokenError({ code: 'token_rate_limited', message: 'later', retryAfter: 1.2 });

/** What the filter returns or throws in applications that do not serve HTTP. */
function caught(
  thrown: ServiceError,
  kind: string,
  more: object = {},
  filter = new ServiceExceptionFilter(),
) {
  try {
    const host = { getType: () => kind, getArgs: () => [], ...more } as unknown as ArgumentsHost;
    return filter.catch(thrown, host);
  } catch (error) {
    return error;
  }
}

const onGateway = (client: unknown): object => ({
  switchToWs: () => ({ getClient: () => client, getPattern: () => 'ask' }),
});

describe('The answer to the callers of the host application', () => {
  class OtherError extends ServiceError {
    readonly code = 'other' as never;
  }
  beforeAll(() => Logger.overrideLogger(false));
  afterAll(() => Logger.overrideLogger(undefined as never));

  type Row = [string, ServiceError, Partial<ExceptionAnswer>];
  const theirs = { body: { message: 'theirs' } };
  const NAME = 'CONSENT_EXPIRED';
  const named = (status: unknown = NAME) => ({ body: { status, message: 'theirs' } });
  const refused = { ...named(), credentialFault: true };

  it.each<Row>([
    ...[400, 404, 409, 422].flatMap((status): Row[] => [
      [`${status}`, api(status, theirs), { status, message: 'theirs' }],
      [`${status}, named`, api(status, named()), { status, message: 'theirs', serviceStatus: NAME }],
    ]),
    ...['expired', 'A', 'A B', `A${'B'.repeat(64)}`, 'A<B', 409].map((name): Row => [
      `409 with ${name}, which is no name`,
      api(409, named(name)),
      { status: 409, message: 'theirs' },
    ]),
    ['409 without a message', api(409), { status: 409, message: 'The service answered 409.' }],
    [
      '400 about our credentials',
      api(400, { ...theirs, credentialFault: true }),
      { status: 502, message: failed },
    ],
    ['404 of a path of ours', api(404, { ...theirs, hint: 'check it' }), { status: 502, message: failed }],
    ['401', api(401, refused), { status: 502, message: failed }],
    ['403 of another name', api(403, { ...refused, ...named('OTHER') }), { status: 502, message: failed }],
    ['403 of a name in passOn', api(403, refused), { status: 403, message: 'theirs', serviceStatus: NAME }],
    ['418', api(418, theirs), { status: 502, message: failed }],
    ['500', api(500, named()), { status: 502, message: failed }],
    [
      '422 of a body that is no JSON',
      api(422, { code: 'invalid_response' }),
      { status: 502, message: failed },
    ],
    [
      '429',
      api(429, { retryAfter: 5 }),
      { status: 503, message: 'The service is busy at the moment.', retryAfter: 5 },
    ],
    [
      '429 of a name in passOn',
      api(429, { ...named(), retryAfter: 5 }),
      { status: 429, message: 'theirs', serviceStatus: NAME, retryAfter: 5 },
    ],
    ...[400, 401, 403, 404, 409, 422, 429, 500].map((status): Row => [
      `${status} after a lost attempt`,
      api(status, { ...named(), outcomeUnknown: true, retryAfter: 5 }),
      { status: 502, message: failed + doubt },
    ]),
    [
      'a page after a POST',
      api(200, { outcomeUnknown: true, code: 'invalid_response' }),
      { status: 502, message: failed + doubt },
    ],
    ['input', input, { status: 400, message: 'path must be a string' }],
    [
      "input of the application's own code",
      ServiceRequestError.ofMisuse('timeout', 'must be a number'),
      { status: 500, message: 'Internal server error' },
    ],
    ['a time-out', connection('timeout'), { status: 504, message: 'The service did not answer in time.' }],
    [
      'a time-out in doubt',
      connection('timeout', true),
      { status: 504, message: `The service did not answer in time.${doubt}` },
    ],
    ['a reset that changed nothing', connection('reset'), { status: 503, message: unavailable }],
    ...(['reset', 'closed', 'redirect', 'too_large'] as const).map((kind): Row => [
      `${kind} in doubt`,
      connection(kind, true),
      { status: 502, message: failed + doubt },
    ]),
    ['a token', limited, { status: 503, message: unavailable, retryAfter: 1.2 }],
    ['a certificate', new ServiceCertificateError([]), { status: 503, message: unavailable }],
    ['any other error', new OtherError('ours'), { status: 500, message: 'Internal server error' }],
  ])('has status and message of the table for: %s', (_, thrown, expected) => {
    const passOn = [NAME];
    const { code } = thrown;
    expect(answerOf(thrown, { passOn })).toEqual({ ...expected, code });

    const { status: statusCode, retryAfter: __, ...explanation } = expected;
    const body = { statusCode, ...explanation, code };
    const exception = toHttpException(thrown, { passOn });
    expect(exception.getStatus()).toBe(statusCode);
    expect(exception.getResponse()).toStrictEqual(body);
    expect(exception.cause).toBe(thrown);
    expect(Object.keys(exception)).not.toContain('cause');

    const filter = new ServiceExceptionFilter({ passOn });
    const client = { emit: jest.fn() };
    caught(thrown, 'ws', onGateway(client), filter);
    const cause = { pattern: 'ask' };
    expect(client.emit.mock.calls).toEqual([['exception', { status: 'error', ...body, cause }]]);
    const { message, ...extensions } = body;
    expect(caught(thrown, 'graphql', {}, filter)).toMatchObject({ message, extensions });
  });

  it('does not pass on a 403 or 429 without passOn', () => {
    expect(answerOf(api(403, refused))).toMatchObject({ status: 502, message: failed });
    expect(answerOf(api(429, named()))).toMatchObject({ status: 503 });
  });

  it.each<[string, unknown, unknown]>([
    ['a text', 'BANK_DOWN', 'BANK_DOWN'],
    ['an empty text', '', ''],
    ['a text over several lines', 'a\r\nb\u202e', 'a b'],
    ['a text of 200 characters', 'x'.repeat(200), 'x'.repeat(200)],
    ['a longer text', 'x'.repeat(201), `${'x'.repeat(199)}…`],
    ['a number', -1.5, -1.5],
    ['an infinite number', Infinity, undefined],
    ['a boolean', true, undefined],
    ['null', null, undefined],
    ['a list', ['x'], undefined],
    ['an object', { x: 'x' }, undefined],
  ])('passes on a named field only if it is a text or a number: %s', (_, value, shown) => {
    const answer = { status: 409, headers: {}, data: { status_detail: value, other: 'x' } };
    const error = api(409, { ...named(), response: () => answer });
    const fields = shown === undefined ? undefined : { status_detail: shown };
    const options = { fields: ['status_detail', 'constructor', '__proto__'] };
    expect(answerOf(error, options).fields).toEqual(fields);
    const body = { statusCode: 409, message: 'theirs', code: 'api_error', serviceStatus: NAME };
    const withFields = fields ? { ...body, fields } : body;
    expect(toHttpException(error, options).getResponse()).toStrictEqual(withFields);
    const filter = new ServiceExceptionFilter(options);
    const client = { emit: jest.fn() };
    caught(error, 'ws', onGateway(client), filter);
    const cause = { pattern: 'ask' };
    expect(client.emit.mock.calls).toEqual([['exception', { status: 'error', ...withFields, cause }]]);
    const { message, ...extensions } = withFields;
    expect(caught(error, 'graphql', {}, filter)).toMatchObject({ message, extensions });
    expect(answerOf(error)).not.toHaveProperty('fields.status_detail');
  });

  it.each<[string, unknown]>([
    ['no body', undefined],
    ['text', 'status_detail'],
    ['null', null],
    ['a list', ['status_detail']],
  ])('passes on no field of a response with %s', (_, data) => {
    const error = api(409, { response: () => ({ status: 409, headers: {}, data }) });
    expect(answerOf(error, { fields: ['status_detail'] }).fields).toBeUndefined();
    expect(answerOf(api(409), { fields: ['status_detail'] }).fields).toBeUndefined();
  });

  it.each([
    ['an Error', new Error('no')],
    ['an HttpException', new HttpException('no', 409)],
    ['an object that looks like one', { ...api(409), name: 'ServiceApiError', message: 'no' }],
    ['null', null],
    ['undefined', undefined],
  ])('is undefined for %s', (_, thrown) => {
    expect(answerOf(thrown)).toBeUndefined();
    expect(toHttpException(thrown)).toBeUndefined();
  });

  it.each([
    ['open', 1, 1],
    ['closing', 2, 0],
    ['closed', 3, 0],
  ])('is sent to a WebSocket only while it is open: %s', (_, readyState, times) => {
    const client = { readyState, send: jest.fn(), emit: jest.fn() };
    caught(input, 'ws', onGateway(client));
    const answer = { status: 'error', statusCode: 400, message: 'path must be a string', code: input.code };
    const data = { ...answer, cause: { pattern: 'ask' } };
    const sent = client.send.mock.calls.map(([text]) => JSON.parse(String(text)) as unknown);
    expect(sent).toEqual(Array(times).fill({ event: 'exception', data }));
    expect(client.emit).not.toHaveBeenCalled();
    expect(caught(input, 'ws', onGateway(undefined))).toBeUndefined();
  });

  it('is the error of the reply in a microservice', async () => {
    const reply = caught(input, 'rpc') as Observable<never>;
    await expect(lastValueFrom(reply)).rejects.toEqual({
      status: 'error',
      statusCode: 400,
      message: 'path must be a string',
      code: 'invalid_request',
    });
  });

  it.each<[string, ServiceError, number]>([
    ['a refused input', input, 3],
    ['a 400 of the service', api(400), 3],
    ['a 404', api(404), 5],
    ['a 409', api(409), 6],
    ['a 422', api(422), 3],
    ['a 403', api(403), 2],
    ['a 429', api(429), 14],
    ['a time-out', connection('timeout'), 4],
    ['a refused connection', connection('refused'), 14],
    ['a change in doubt after a reset', connection('reset', true), 2],
    ['a change in doubt after a time-out', connection('timeout', true), 4],
    ['a token that is limited', limited, 14],
    ['an error of our configuration', new OtherError('ours'), 13],
  ])('is an integer code and the message over gRPC: %s', async (_, error, code) => {
    const { message } = answerOf(error);
    for (const args of [
      [{}, {}, { sendMetadata: () => undefined }],
      // The arguments of a handler with @GrpcStreamCall().
      [{ sendMetadata: () => undefined }, () => undefined],
    ]) {
      const reply = caught(error, 'rpc', { getArgs: () => args }) as Observable<never>;
      await expect(lastValueFrom(reply)).rejects.toEqual({ code, message });
    }
  });

  it.each([
    [403, 7],
    [429, 8],
  ])('over gRPC is the code of a %d that passOn names', async (status, code) => {
    const filter = new ServiceExceptionFilter({ passOn: ['CONSENT_EXPIRED'] });
    const error = api(status, { body: { status: 'CONSENT_EXPIRED', message: 'ask again' } });
    const call = { getArgs: () => [{}, {}, { sendMetadata: () => undefined }] };
    const reply = caught(error, 'rpc', call, filter) as Observable<never>;
    await expect(lastValueFrom(reply)).rejects.toEqual({ code, message: 'ask again' });
  });

  it('is all that GraphQL shows of the error; applications of other kinds get the error itself', () => {
    const secret = api(403, {
      message: 'GET /banks/v1 answered 403: secret reason',
      body: { status: 403, message: 'secret reason' },
      path: '/banks/v1',
      correlationId: 'id-1',
      hint: 'check SERVICE_APP_TOKEN',
      credentialFault: true,
    });
    const thrown = caught(secret, 'graphql') as HttpException;
    expect(thrown).toBeInstanceOf(HttpException);
    const shown = [
      JSON.stringify(thrown),
      inspect({ ...thrown }, { depth: 9 }),
      String(thrown),
      thrown.stack,
    ];
    expect(shown.join()).not.toMatch(/secret reason|SERVICE_|banks|id-1|filter/);
    expect(caught(secret, 'commander')).toBe(secret);
  });
});

describe('ServiceExceptionFilter over HTTP', () => {
  const HTTP1 = { httpVersionMajor: 1 };
  const closed = connection('closed', false, 'The module was shut down');
  const lines: string[] = [];
  beforeAll(() => {
    const error = (...line: string[]): void => void lines.push(line.filter(Boolean).join(' | '));
    Logger.overrideLogger({ log: () => undefined, warn: () => undefined, error });
  });
  afterAll(() => Logger.overrideLogger(undefined as never));

  /** The calls of the filter on a reply of the HTTP adapter. */
  function answered(thrown: ServiceError, request: object = HTTP1, more: object = {}, options?: object) {
    const replyCalls: unknown[] = [];
    const reply = {
      ...more,
      header: (name: string, value: string) => void replyCalls.push(`${name}: ${value}`),
      status: (code: number) => (replyCalls.push(code), reply),
      send: () => undefined,
    };
    const http = { getResponse: () => reply, getRequest: () => request };
    caught(thrown, 'http', { switchToHttp: () => http }, new ServiceExceptionFilter(options));
    return replyCalls;
  }

  const endless = new ServiceTokenError({ code: 'token_rate_limited', message: 'x', retryAfter: 9_999_999 });
  it.each<[string, ServiceError, object, unknown[]]>([
    ['at shutdown', closed, HTTP1, ['Connection: close', 503]],
    ['at shutdown, in doubt', connection('closed', true), HTTP1, ['Connection: close', 502]],
    ['at shutdown, on Fastify', closed, { raw: HTTP1 }, ['Connection: close', 503]],
    ['at shutdown, over HTTP/2', closed, { httpVersionMajor: 2 }, [503]],
    ['with Retry-After of over a day', endless, HTTP1, ['Retry-After: 86400', 503]],
    ['with Retry-After', limited, HTTP1, ['Retry-After: 2', 503]],
    ['of the caller', input, HTTP1, [400]],
  ])('sends headers and status for an error %s', (_, thrown, request, expected) => {
    expect(answered(thrown, request)).toEqual(expected);
  });

  it('answers refused input with invalidRequestStatus', () => {
    const options = { invalidRequestStatus: 422 };
    expect(answerOf(input, options)).toMatchObject({ status: 422, message: 'path must be a string' });
    expect(toHttpException(input, options).getStatus()).toBe(422);
    expect(answered(input, HTTP1, {}, options)).toEqual([422]);
    expect(answered(limited, HTTP1, {}, options)).toEqual(['Retry-After: 2', 503]);
  });

  it.each([399, 500, NaN, '422'])('refuses %p as invalidRequestStatus', (invalidRequestStatus) => {
    const options = { invalidRequestStatus } as { invalidRequestStatus: number };
    expect(() => new ServiceExceptionFilter(options)).toThrow(
      /^invalidRequestStatus must be a status from 400 to 499(; it is a string: use Number\(\))?$/,
    );
  });

  it.each(['headersSent', 'sent'])('only ends an answer that has already begun: %s', (begun) => {
    const end = jest.fn();
    expect(answered(closed, {}, { [begun]: true, end })).toEqual([]);
    expect(answered(closed, {}, { [begun]: true, raw: { end } })).toEqual([]);
    expect(end).toHaveBeenCalledTimes(2);
    expect(answered(closed, {}, { [begun]: true })).toEqual([]);
  });

  it('logs errors that the caller cannot correct, but not each call that the shutdown ends', () => {
    lines.length = 0;
    for (const thrown of [closed, input, limited]) answered(thrown);
    expect(lines).toEqual(['503: token_rate_limited: later | ServiceExceptionFilter']);
  });

  it.each([
    [
      'with its call and hint',
      api(400, { ...{ correlationId: 'id-2', hint: 'check it' } }),
      'api_error: ours; correlation id id-2. check it',
    ],
    [
      'with the doubt',
      connection('timeout', true),
      `connection_timeout: ours; correlation id id-1. The request may have been executed: find out whether it was before you send it again (${GUIDES}/troubleshooting.md#an-unknown-outcome).`,
    ],
    ['without a doubt', connection('timeout'), 'connection_timeout: ours; correlation id id-1'],
    ['of a body', api(200, { code: 'invalid_response' }), 'invalid_response: ours'],
  ])('describes an error for the log %s', (_, thrown, line) => {
    expect(describeError(thrown)).toBe(line);
  });

  describe('with a ConsoleLogger', () => {
    const nest = Logger as unknown as { staticInstanceRef: never };
    const logging = (logger: ConsoleLogger): unknown[] => {
      const before = nest.staticInstanceRef;
      Logger.overrideLogger(logger);
      try {
        return answered(connection('reset', false, 'gone'));
      } finally {
        Logger.overrideLogger(before);
      }
    };

    const TEXT = '503: connection_reset: gone; correlation id id-1';
    const FIELDS = { code: 'connection_reset', status: 503, correlationId: 'id-1' };
    /** What the logger writes to stderr. */
    const linesOf = (logger: ConsoleLogger): string[] => {
      const written: string[] = [];
      const console = jest
        .spyOn(globalThis.console, 'error')
        .mockImplementation((line) => void written.push(String(line)));
      logging(logger);
      console.mockRestore();
      return written;
    };

    it('logs the text as message and the fields as params if the logger of NestJS 12 writes JSON', () => {
      const lines = linesOf(new ConsoleLogger({ json: true, forceConsole: true }));
      expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
        {
          level: 'error',
          pid: process.pid,
          timestamp: expect.any(Number),
          context: 'ServiceExceptionFilter',
          message: TEXT,
          params: FIELDS,
        },
      ]);
    });

    it.each<[string, ConsoleLogger]>([
      ['of NestJS 11', new ConsoleLogger({ json: true, forceConsole: true })],
      [
        'with structuredParams: false',
        new ConsoleLogger({ json: true, forceConsole: true, structuredParams: false }),
      ],
    ])(
      'logs one line of JSON with text and fields as message if the logger %s knows no params',
      (kind, logger) => {
        const { prototype } = ConsoleLogger as unknown as { prototype: { stringifyParams?: unknown } };
        const { stringifyParams } = prototype;
        if (kind === 'of NestJS 11') delete prototype.stringifyParams;
        const lines = linesOf(logger);
        prototype.stringifyParams = stringifyParams;
        expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
          expect.objectContaining({ level: 'error', message: { message: TEXT, ...FIELDS } }),
        ]);
      },
    );

    it('logs the text alone if the logger writes lines', () => {
      const [line, ...others] = linesOf(new ConsoleLogger({ colors: false, forceConsole: true }));
      expect(line?.endsWith(`[ServiceExceptionFilter] ${TEXT}`)).toBe(true);
      expect(others).toEqual([]);
    });

    it.each<[string, PropertyDescriptor]>([
      ['undefined', { value: undefined }],
      [
        'unreadable',
        {
          get: () => {
            throw new Error('of the host');
          },
        },
      ],
    ])("logs and answers if the host application's logger has options that are %s", (_, options) => {
      const written: unknown[] = [];
      class HostLogger extends ConsoleLogger {
        override error(...line: unknown[]): void {
          written.push(...line.filter(Boolean));
        }
      }
      expect(logging(Object.defineProperty(new HostLogger(), 'options', options))).toEqual([503]);
      expect(written).toEqual(['503: connection_reset: gone; correlation id id-1', 'ServiceExceptionFilter']);
    });
  });
});

const HINT = 'Check oauth.clientId and oauth.clientSecret: both of the application of this environment.';
const refused = (hint: string | undefined = HINT, options = ['oauth.clientSecret', 'oauth.clientId']) =>
  new ServiceTokenError({ code: 'token_refused', message: 'It refuses them.', hint, options });

describe('The hint of an error', () => {
  it('is a field, and a line of the stack below the message, but not a part of the message', () => {
    const error = refused();
    expect(error.message).toBe('It refuses them.');
    expect(error.toJSON()).toMatchObject({ hint: HINT, options: ['oauth.clientSecret', 'oauth.clientId'] });
    expect(error.stack).toMatch(/^\w*Error: It refuses them\.\nCheck oauth\.clientId and [^\n]+\.\n/);
    expect(inspect(error)).toContain(HINT);
  });

  it('lists the options that it names, each once with its variable', () => {
    const names = {
      option: 'urls.authUrl',
      apiOption: 'urls.baseUrl',
      describeOption: describeOption('ksa'),
    };
    expect(explain(['token response 401 json token_unavailable'], { said: 'HTTP 401' }, names)).toEqual({
      words: 'token response 401 json token_unavailable',
      message: expect.stringMatching(/^The response does not come from the token endpoint.* \(HTTP 401\)\.$/),
      hint: expect.stringMatching(
        /^Check urls\.authUrl \(SERVICE_KSA_AUTH_URL\) and urls\.baseUrl \(SERVICE_KSA_BASE_URL\): they may be swapped\. urls\.authUrl is written/,
      ),
      options: ['urls.authUrl', 'urls.baseUrl', 'oauth.mtls', 'oauth.clientId', 'oauth.clientSecret'],
    });
  });

  it('inserts a text from outside as it is, also if the text looks like a name of the table', () => {
    const said = 'HTTP 400, {credentials} <host> {http.proxy} $& $1';
    const { message, options } = explain(['token response 400 json token_refused'], { said, host: 'h' });
    expect(message).toBe(`The token endpoint refuses a token (${said}).`);
    expect(options).toEqual(['address', 'oauth.clientId']);
  });

  it('is absent if there is nothing to do', () => {
    const error = new ServiceTokenError({ code: 'token_refused', message: 'It refuses them.' });
    expect(Object.keys(error)).not.toEqual(expect.arrayContaining(['hint']));
    expect(error.stack).not.toContain('Check');
  });
});

describe('The log line of an error', () => {
  it('contains the call, what happened, the correlation id and what to do', () => {
    const call = { method: 'GET', path: '/banks/v1', correlationId: 'id-1' };
    const message = 'GET /banks/v1: HTTP 503: the service is out of order.';
    const api = new ServiceApiError({ ...call, status: 503, message, hint: 'Try again later.' });
    expect(describeError(api)).toBe(
      'api_error: GET /banks/v1: HTTP 503: the service is out of order; correlation id id-1. Try again later.',
    );
    expect(describeError(refused())).toBe(`token_refused: It refuses them. ${HINT}`);
    const closed = new ServiceConnectionError({
      kind: 'closed',
      message: 'Shut down.',
      outcomeUnknown: true,
    });
    expect(describeError(closed)).toBe(
      `connection_closed: Shut down. The request may have been executed: find out whether it was before you send it again (${GUIDES}/troubleshooting.md#an-unknown-outcome).`,
    );
  });
});
