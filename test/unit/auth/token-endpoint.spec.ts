import { Agent } from 'node:http';
import * as https from 'node:https';
import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type TokenGrant } from '../../../lib/auth/access-token.js';
import { rotatingClientSecret, TokenEndpoint } from '../../../lib/auth/endpoint/token-endpoint.js';
import { Secret } from '../../../lib/config/secret.js';
import { type Identity } from '../../../lib/tls/client-identity.js';
import {
  ServiceCertificateError,
  ServiceConnectionError,
  type ServiceError,
  ServiceTokenError,
} from '../../../lib/errors/index.js';
import { exchange as systemExchange } from '../../../lib/exchange/exchange.js';
import { type Exchange, type ExchangeRequest } from '../../../lib/exchange/io.js';
import { ExchangeFault, type ExchangeFaultDetails } from '../../../lib/exchange/fault.js';
import { type OnCall, type ServiceCallEvent } from '../../../lib/telemetry/telemetry.js';
import { alertingServer } from '../../helpers/alerting-server.js';
import { createAuthority, type Authority, type Issued } from '../../helpers/certificates.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { silentAddress } from '../../helpers/silent-address.js';
import { mtlsServer } from '../../helpers/mtls-server.js';
import { rotating, unchanging } from '../../helpers/rotating-certificate.js';
import { until } from '../../helpers/until.js';
import { makeCache } from './fakes.js';
import { type ArrivedRequest, granted, type CannedResponse, tokenServer } from './token-server.js';

const CLIENT_ID = '7d9f3c1e-0000-4000-8000-000000000001';
const SECRET = 's+/&=% ü€"\\end';

const cleanUp: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0)) await undo();
});

type RefusedIdentity = Pick<Identity, 'certificate' | 'rotation' | 'findOther'>;

interface EndpointSetUp {
  url: string;
  exchange?: Exchange;
  onCall?: OnCall;
  agent?: Agent;
  identity?: RefusedIdentity;
  source?: () => string | Promise<string>;
  hasChain?: boolean;
  sourceKind?: 'text' | 'file' | 'function';
}

/** Creates a TokenEndpoint for the given address. */
function endpointAt({
  url,
  agent = new Agent(),
  source = () => SECRET,
  identity,
  hasChain,
  sourceKind = 'file',
  exchange = systemExchange,
  onCall,
}: EndpointSetUp) {
  const clock = new FakeClock();
  const secret = { clientSecret: async () => new Secret(await source()), clientSecretIn: sourceKind };
  const clientSecret = rotatingClientSecret(secret, clock, String);
  const place = {
    url: new URL(url),
    option: 'urls.authUrl',
    apiOption: 'urls.baseUrl',
    describeOption: String,
    hasChain,
  };
  const common = { userAgent: 'spec/1', clientId: CLIENT_ID, clientSecret, exchange, onCall };
  const endpoint = new TokenEndpoint({
    ...common,
    place,
    agent,
    identity: identity as Identity | undefined,
    clock,
  });
  cleanUp.push(() => agent.destroy());
  /** Each request has a signal of its own, like the requests of the token cache. */
  const request = (scope = 'api', context = {}): Promise<TokenGrant> => {
    const { signal } = new AbortController();
    const wait = { signal, timeoutMs: 5_000, accepts: () => true, isAwaited: () => true };
    return endpoint.request(scope, { ...wait, ...context });
  };
  return { clock, endpoint, request };
}

/** Creates a TokenEndpoint, and a server on loopback that responds to it. */
async function setUp({
  respond,
  ...given
}: Omit<EndpointSetUp, 'url'> & { respond: (request: ArrivedRequest, number: number) => CannedResponse }) {
  const server = await tokenServer(respond);
  const made = endpointAt({ url: server.url, agent: new Agent({ keepAlive: true }), ...given });
  cleanUp.push(server.close);
  return { server, ...made };
}

/** Responds with a token to the right secret, and with invalid_client to any other. */
function acceptOnly(secret: { right: string }): (request: ArrivedRequest, number: number) => CannedResponse {
  return ({ form }, number) =>
    form.get('client_secret') === secret.right
      ? granted(form.get('scope'), `token-${number}`)
      : { status: 401, body: { error: 'invalid_client' } };
}

type TokenFailure = ServiceError &
  Pick<ServiceTokenError, 'error' | 'error_description' | 'status' | 'retryAfter'>;

async function rejectionOf(promise: Promise<unknown>): Promise<TokenFailure> {
  try {
    await promise;
  } catch (error) {
    return error as TokenFailure;
  }
  throw new Error('It did not fail');
}

/** The message and the hint of an error. */
const textOfError = ({ message, hint }: ServiceError): string => [message, hint].filter(Boolean).join(' ');

it('TokenEndpoint sends the token request as the form that docs/service.md shows, and encodes a secret with special characters correctly', async () => {
  const { server, request } = await setUp({ respond: ({ form }) => granted(form.get('scope')) });
  expect(await request('customer.a+b@c')).toMatchObject({ accessToken: 'token', scope: 'customer.a+b@c' });
  const [{ method, url, headers, form }] = server.arrived;
  expect([method, url]).toEqual(['POST', '/oauth2/token']);
  expect(headers).toMatchObject({
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
    'user-agent': 'spec/1',
  });
  expect(Object.fromEntries(form)).toEqual({
    grant_type: 'client_credentials',
    client_id: CLIENT_ID,
    client_secret: SECRET,
    scope: 'customer.a+b@c',
  });
});

it('TokenEndpoint rejects a caller that aborts with the abort reason of the caller', async () => {
  const controller = new AbortController();
  const reason = new Error('changed my mind');
  const { request } = await setUp({ respond: () => (controller.abort(reason), { fault: 'silent' }) });
  await expect(request('api', { signal: controller.signal })).rejects.toBe(reason);
});

describe('Token endpoint: token responses', () => {
  const SCOPE = 'customer.c1';
  const WHOLE = { access_token: 'abc', token_type: 'bearer', expires_in: 600, scope: SCOPE };
  const GRANT = { accessToken: 'abc', scope: SCOPE, expiresIn: 600 };
  const jwt = (claims: unknown): string =>
    ['{"alg":"RS256"}', JSON.stringify(claims), 'signature']
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.');

  it.each<[string, unknown, object]>([
    ['the fields that docs/service.md shows', WHOLE, {}],
    ['a byte order mark before the JSON', `\uFEFF${JSON.stringify(WHOLE)}`, {}],
    ...['Bearer', 'BEARER'].map((token_type): [string, unknown, object] => [
      `token_type ${token_type}`,
      { ...WHOLE, token_type },
      {},
    ]),
    ...(
      [
        ['600', 600],
        [undefined, 0],
        [null, 0],
        [0, 0],
        ['0', 0],
        [2.9, 2],
        [1e15, 2_147_483],
        ['9'.repeat(400), 2_147_483],
      ] as const
    ).map(([expires_in, expiresIn]): [string, unknown, object] => [
      `expires_in ${String(expires_in).slice(0, 20)}`,
      { ...WHOLE, expires_in },
      { expiresIn },
    ]),
    ['expires_in 1e400', JSON.stringify(WHOLE).replace('600', '1e400'), { expiresIn: 2_147_483 }],
    ...[undefined, null].map((scope): [string, unknown, object] => [
      `scope ${scope}, which means the requested one`,
      { ...WHOLE, scope },
      {},
    ]),
    // The claims inside an access token are never read.
    ...[
      'b7Q~x/+=',
      'S'.repeat(16_384),
      'bm90.anNvbg.x',
      jwt({ jti: '1' }),
      jwt({ scope: 'api', customer_id: 'c2', iat: 900, exp: 901 }),
    ].map((access_token): [string, unknown, object] => [
      `access_token ${access_token.slice(0, 20)}`,
      { ...WHOLE, access_token },
      { accessToken: access_token },
    ]),
  ])('accepts a token response with %s', async (_name, body, expected) => {
    const { request } = await setUp({ respond: () => ({ body }) });
    expect(await request(SCOPE)).toMatchObject({ ...GRANT, ...expected });
  });

  it.each<[string, unknown]>([
    ['an HTML body', '<html>SECRET</html>'],
    ['truncated JSON', '{"access_token":"SECRET'],
    ['null as body', 'null'],
    ['a list as body', '[]'],
    ['a string as body', '"SECRET"'],
    ['an empty object', {}],
    ...[undefined, null, '', 7, {}, ['SECRET'], 'SE\r\nCRET', 'SE CRET', 'SÉCRET', 'SECRET\n']
      .concat('S'.repeat(16_385))
      .map((access_token): [string, unknown] => [
        `access_token ${inspect(access_token).slice(0, 30)}`,
        { ...WHOLE, access_token },
      ]),
    ...[-1, '-1', 'NaN', '', '1e3', '6 0', {}, [], true, '2030-01-01T00:00:00Z'].map(
      (expires_in): [string, unknown] => [`expires_in ${inspect(expires_in)}`, { ...WHOLE, expires_in }],
    ),
    ...[undefined, null, '', 'mac', 'DPoP', 7].map((token_type): [string, unknown] => [
      `token_type ${inspect(token_type)}`,
      { ...WHOLE, token_type },
    ]),
    ...['', 'api', `${SCOPE} api`, 'customer.c', 'customer.c12', [SCOPE], 7].map(
      (scope): [string, unknown] => [`scope ${inspect(scope)}`, { ...WHOLE, scope }],
    ),
  ])('rejects a token response with %s and does not quote it in the error', async (_name, body) => {
    const { request } = await setUp({ respond: () => ({ body }) });
    const error = await rejectionOf(request(SCOPE));
    expect(error).toBeInstanceOf(ServiceTokenError);
    expect(error).toMatchObject({ code: 'invalid_token_response', status: 200, scope: 'customer.{}' });
    expect(inspect(error)).not.toMatch(/SECRET|CRET\b/);
  });
});

describe('Token endpoint: tokens with another scope', () => {
  it.each([
    ['api', 'api payments', /scope is "api payments", not the requested one/],
    ['api', '', /scope is "", not the requested one/],
    ['api', SECRET, /scope is "\[not shown: /],
    ['api', ['api', 'x'], /scope is not the requested one/],
    [
      'customer.c-17',
      'customer.c-17 customer.d%2B4 api',
      /scope is "customer\.\{\} customer\.\{\} api", not/,
    ],
    ['customer.c-17', 'customer.c-18', /scope is that of another customer, not/],
  ])(
    'rejects a token requested for %s whose scope is %j, and hides customer ids and secrets in the error',
    async (requestedScope, scope, words) => {
      const body = { access_token: 'abc', token_type: 'bearer', expires_in: 600, scope };
      const { request } = await setUp({ respond: () => ({ body }) });
      const refused = await rejectionOf(request(requestedScope));
      expect(refused.message).toMatch(words);
      expect(inspect(refused)).not.toMatch(/c-1|d%2B4/);
    },
  );
});

describe('Token endpoint: unknown customers', () => {
  it.each([
    [400, 'invalid_scope'],
    [403, 'scope_invalid'], // Glewlwyd
  ])(
    'names the environment as likely cause of %d %s for a customer, and hides the customer id in the error',
    async (status, error) => {
      const id = 'a+7@bank.example';
      const descriptions = [
        'customer.a+7@bank.example',
        `${encodeURIComponent(id)} is unknown`,
        `not ${id.toUpperCase()}: A+7`,
      ];
      for (const error_description of descriptions) {
        const { request } = await setUp({ respond: () => ({ status, body: { error, error_description } }) });
        const refused = await rejectionOf(request(`customer.${id}`));
        expect(refused).toMatchObject({
          code: 'token_refused',
          error,
          scope: 'customer.{}',
          options: ['environment'],
        });
        expect(refused.message).toMatch(/refuses a token of this customer \(HTTP \d+, \w+, .*\{\}/);
        expect(refused.hint).toMatch(
          /does not know this customer in this environment\. .*check environment\.$/,
        );
        const printed = inspect(refused, { showHidden: true }) + JSON.stringify(refused) + refused.stack;
        expect(printed).not.toMatch(/bank\.example/i);
      }
    },
  );

  it('hides a short customer id only where it is a word of its own, and drops an error code that contains the id', async () => {
    const body = { error: 'customer.7', error_description: 'HTTP 17: 7 is unknown, so is customer.7.' };
    const { request } = await setUp({ respond: () => ({ status: 400, body }) });
    const refused = await rejectionOf(request('customer.7'));
    expect([refused.error, refused.error_description]).toEqual([
      undefined,
      'HTTP 17: {} is unknown, so is customer.{}',
    ]);
  });

  it('names the address of the token endpoint when the scope api is refused', async () => {
    const { request } = await setUp({ respond: () => ({ status: 400, body: { error: 'scope_invalid' } }) });
    expect((await rejectionOf(request('api'))).hint).toMatch(/^Check urls\.authUrl/);
  });
});

describe('Token endpoint: responses without a token', () => {
  const PAGE = { headers: { 'content-type': 'text/html' }, body: '<h1>oops</h1>' };
  const SWAPPED =
    /Check urls\.authUrl and urls\.baseUrl: they may be swapped\..* without .*firewall.*oauth\.mtls.*oauth\.clientSecret/;
  const ADDRESS =
    /refuses a token .*Check urls\.authUrl, which is written without \/oauth2\/token, and that OAuth is/;
  const error = (code: string) => ({ body: { error: code } });
  const retryAfter = (value: string) => ({ headers: { 'retry-after': value } });
  /** An HTTP date that is this many seconds ahead of the clock of this machine. */
  const dateIn = (seconds: number) => new Date(new FakeClock().now() + seconds * 1_000).toUTCString();
  const clockAhead = { date: dateIn(120), 'retry-after': dateIn(150) };
  const sinceEpoch = { ...clockAhead, 'retry-after': `${Date.parse(dateIn(150)) / 1_000}` };

  it.each<[number, CannedResponse, object, RegExp]>([
    [200, error('invalid_scope'), { code: 'token_refused', error: 'invalid_scope' }, ADDRESS],
    [200, PAGE, { code: 'invalid_token_response' }, SWAPPED],
    [400, error('invalid_scope'), { code: 'token_refused' }, /\(HTTP 400, invalid_scope\)\./],
    [400, {}, { code: 'token_refused' }, ADDRESS],
    [404, {}, { code: 'token_refused' }, ADDRESS],
    [405, {}, { code: 'token_refused' }, ADDRESS],
    [499, {}, { code: 'token_refused' }, ADDRESS],
    [403, error('invalid_scope'), { code: 'token_refused' }, ADDRESS],
    // These responses come from a gateway, or from another server at a wrong address.
    [401, {}, { code: 'token_unavailable' }, /not come from the token endpoint.*\(HTTP 401\)/],
    [403, error('Forbidden'), { code: 'token_unavailable' }, /in front of it .*\(HTTP 403, Forbidden\)/],
    [403, PAGE, { code: 'token_unavailable' }, SWAPPED],
    [404, PAGE, { code: 'token_unavailable' }, /\(HTML, HTTP 404\)/],
    [500, { body: {} }, { code: 'token_unavailable' }, /out of order.* nothing to correct/],
    // The address is on loopback, so a sidecar proxy sent the response.
    [500, {}, { code: 'token_unavailable' }, /sidecar on this machine .* client certificate of the sidecar/],
    [502, PAGE, { code: 'token_unavailable' }, /sidecar on this machine .* \(HTML, HTTP 502\)/],
    [504, {}, { code: 'token_unavailable' }, /out of order/],
    [503, { body: 'oops', ...retryAfter('9') }, { code: 'token_unavailable', retryAfter: 9 }, /HTTP 503/],
    [599, {}, { code: 'token_unavailable' }, /out of order/],
    [408, {}, { code: 'token_unavailable' }, /out of order/],
    [425, {}, { code: 'token_unavailable' }, /out of order/],
    [400, error('temporarily_unavailable'), { code: 'token_unavailable' }, /out of order/],
    [400, error('server_error'), { code: 'token_unavailable' }, /out of order/],
    [
      429,
      {},
      { code: 'token_rate_limited', retryAfter: undefined },
      /got too many requests.*Try again later/,
    ],
    [429, retryAfter('7'), { code: 'token_rate_limited', retryAfter: 7 }, /Try again in 7 s/],
    [429, retryAfter('86400'), { retryAfter: 3600 }, /too many requests/],
    [429, { headers: clockAhead }, { code: 'token_rate_limited', retryAfter: 30 }, /too many requests/],
    [429, { headers: sinceEpoch }, { code: 'token_rate_limited', retryAfter: 30 }, /too many requests/],
  ])(
    'turns a response with status %d and %j into an error with %j',
    async (status, response, expected, words) => {
      const { request } = await setUp({ respond: () => ({ status, ...response }) });
      const refused = await rejectionOf(request());
      expect(refused).toBeInstanceOf(ServiceTokenError);
      expect(refused).toMatchObject({ status, scope: 'api', ...expected });
      expect(textOfError(refused)).toMatch(words);
      expect(inspect(refused)).not.toContain('oops');
    },
  );

  const long = 'e'.repeat(65);
  it.each([
    ['invalid_scope', 'it is not for this client', 'invalid_scope', 'it is not for this client'],
    ['a b', 7, undefined, undefined],
    [long, '', undefined, ''],
    [7, undefined, undefined, undefined],
  ])(
    'shows error %j and error_description %j only as far as RFC 6749 allows them',
    async (given, text, code, shown) => {
      const body = { error: given, error_description: text };
      const { request } = await setUp({ respond: () => ({ status: 400, body }) });
      const refused = await rejectionOf(request());
      expect([refused.error, refused.error_description]).toEqual([code, shown]);
    },
  );

  const forms = [
    SECRET,
    encodeURIComponent(SECRET),
    new URLSearchParams({ s: SECRET }).toString().slice(2),
    SECRET.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('/', '&#x2F;'),
    JSON.stringify(JSON.stringify(SECRET)),
    `${SECRET.slice(0, 7)}\n${SECRET.slice(7)}`,
    's+/\u200b&=% ü€"\\end',
  ];
  it.each(forms)('shows no part of an error response that echoes the secret as %s', async (echo) => {
    const error_description = `bad\r\n\u0000secret ${echo} ${'x'.repeat(500)}`;
    const { request } = await setUp({
      respond: () => ({ status: 400, body: { error: echo, error_description } }),
    });
    const refused = await rejectionOf(request());
    const printed =
      inspect(refused, { depth: 20, showHidden: true }) + JSON.stringify(refused) + refused.stack;
    for (const form of forms) expect(printed).not.toContain(form);
    expect(refused.error_description).toMatch(/^\[not shown: /);
    expect(refused.error).toBeUndefined();
  });
});

describe('Token endpoint: connection faults', () => {
  it.each<[string, CannedResponse, object, RegExp]>([
    [
      'a dropped connection',
      { fault: 'drop' },
      { kind: 'reset' },
      /log of the program that listens at urls\.authUrl/,
    ],
    [
      'no response',
      { fault: 'silent' },
      { kind: 'timeout', options: [] },
      /no response began .* endpoint is slow/,
    ],
    ['a body that never ends', { fault: 'trickle' }, { kind: 'timeout' }, /the rest of it did not arrive/],
    [
      'a body over 1 MiB',
      { body: ' '.repeat(1024 * 1024 + 1) },
      { kind: 'too_large' },
      /too large: it has more than 1048576 bytes\.$/,
    ],
    [
      'a redirect',
      { status: 302, headers: { location: 'https://elsewhere.example/x?y' } },
      { kind: 'redirect', options: ['urls.authUrl'] },
      /responds with a redirect to https:\/\/elsewhere\.example\/x, which is never followed \(HTTP_302\).*into urls\.authUrl/,
    ],
    [
      'a redirect that adds a slash',
      { status: 308, headers: { location: '/oauth2/token/' } },
      { kind: 'redirect' },
      /a redirect to http:\/\/127\.0\.0\.1:\d+\/oauth2\/token\/, .*\(HTTP_308\).*only adds a slash at the end/,
    ],
    [
      'a redirect with a secret in its path',
      { status: 302, headers: { location: `/login/${encodeURIComponent(SECRET)}` } },
      { kind: 'redirect' },
      /a redirect to \[not shown: /,
    ],
    [
      'a redirect without a usable address',
      { status: 301, headers: { location: 'http://[' } },
      { kind: 'redirect' },
      /a redirect, which is never followed/,
    ],
    [
      'a response with status 300 and a token',
      { ...granted('api'), status: 300 },
      { kind: 'redirect' },
      /\(HTTP_300\)/,
    ],
  ])(
    'reports %s as a connection fault after a single request, with the cause in message or hint',
    async (_name, response, expected, words) => {
      const { server, request } = await setUp({ respond: () => response });
      const isSlow = 'fault' in response && response.fault !== 'drop';
      const error = await rejectionOf(request('api', { timeoutMs: isSlow ? 1_000 : 10_000 }));
      expect(error).toBeInstanceOf(ServiceConnectionError);
      expect(error).toMatchObject({ ...expected, method: 'POST', path: '/oauth2/token' });
      expect(textOfError(error)).toMatch(words);
      // On loopback a sidecar does TLS, so tls.* options cannot be the cause.
      expect(textOfError(error)).not.toMatch(/TLS|tls\./);
      expect(server.arrived).toHaveLength(1);
    },
  );

  it.each([
    [
      'http://127.0.0.1:1',
      /at 127\.0\.0\.1:1: .*refused \(ECONNREFUSED\).*Check host and port of urls\.authUrl/,
    ],
    [
      'http://auth.invalid',
      /at auth\.invalid: the name auth\.invalid could not be looked up .*Check the spelling/,
    ],
  ])(
    'names the address %s, the cause and urls.authUrl when no connection can be made',
    async (address, words) => {
      const error = await rejectionOf(endpointAt({ url: `${address}/oauth2/token` }).request());
      expect(textOfError(error)).toMatch(words);
      expect(error.options).toEqual(['urls.authUrl']);
    },
  );

  it('gives the request the time that is left after reading the secret, and half of that time for connecting', async () => {
    const silent = await silentAddress('127.0.0.1');
    cleanUp.push(silent.stop);
    const { clock, request } = endpointAt({
      url: `http://127.0.0.1:${silent.port}/oauth2/token`,
      source: async () => (await clock.advance(2_000), SECRET),
    });
    const error = await rejectionOf(request('api', { timeoutMs: 2_300 }));
    expect(error).toMatchObject({ kind: 'timeout' });
    expect(textOfError(error)).toMatch(/no connection to 127\.0\.0\.1, port \d+, within 150 ms/);
  });

  it('names the trusted roots when the certificate of the server is not trusted, and the host name when the certificate is for another host', async () => {
    const authority = await createAuthority();
    const live = await mtlsServer(authority, { demandCertificate: false });
    cleanUp.push(() => live.close());
    const textOf = async (agent: Agent, hasChain = false) =>
      textOfError(await rejectionOf(endpointAt({ url: live.url, agent, hasChain }).request()));
    expect(await textOf(new https.Agent())).toMatch(
      /verified against: Node's public roots \(.* whole chain .* put it into tls\.chain/,
    );
    expect(await textOf(new https.Agent(), true)).toMatch(
      /verified against: Node's public roots and tls\.chain, the service's public chain/,
    );
    const named = new https.Agent({ ca: authority.chain, servername: 'elsewhere.example' });
    expect(await textOf(named)).toMatch(
      /the server's certificate is for another host name, not for 127\.0\.0\.1 \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
    );
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'suggests oauth.mtls when the server requires a client certificate over %s and none is configured',
    async (maxVersion) => {
      const authority = await createAuthority();
      const live = await mtlsServer(authority, { maxVersion });
      cleanUp.push(() => live.close());
      const agent = new https.Agent({ ca: authority.chain });
      const error = await rejectionOf(endpointAt({ url: live.url, agent }).request());
      expect(textOfError(error)).toMatch(/may ask for a client certificate.*Set oauth\.mtls/);
      expect(error.options?.[0]).toBe('oauth.mtls');
    },
  );

  it('suggests http.proxy when the proxy fails', async () => {
    const agent = new Agent();
    agent.createConnection = (_, callback) => {
      const error = Object.assign(new Error('407'), { code: 'ERR_PROXY_TUNNEL_407' });
      setImmediate(() => callback?.(error, undefined as never));
      return undefined;
    };
    const error = await rejectionOf(endpointAt({ url: 'http://127.0.0.1:1/oauth2/token', agent }).request());
    expect(textOfError(error)).toMatch(/ERR_PROXY_TUNNEL_407.*Check http\.proxy/);
  });
});

describe('Token endpoint: refused client secret', () => {
  it.each([
    [400, { error: 'unauthorized_client' }],
    [401, { error: 'invalid_client' }],
    [429, { error: 'unauthorized_client' }],
    [503, { error: 'invalid_client' }],
    [200, { error: 'invalid_client' }],
  ])(
    'remembers a refusal with %d %j for 10 s for all scopes, and says in the error what to check',
    async (status, body) => {
      const { server, request, clock } = await setUp({ respond: () => ({ status, body }) });
      const error = await rejectionOf(request());
      expect(error).toMatchObject({ code: 'token_refused', ...body, status });
      expect(textOfError(error)).toMatch(
        /refuses the credentials .*oauth\.clientSecret.*oauth\.clientId.*developer portal.*secret.* the previous one is invalid.*value with # needs quotes, and with expandVariables .* a \$ needs a backslash before it; docker run --env-file keeps/,
      );
      expect(error.options).toEqual(['oauth.clientSecret', 'oauth.clientId']);
      for (let call = 0; call < 50; call += 1) {
        expect(await rejectionOf(request(`customer.c${call}`))).toMatchObject({
          code: 'token_refused',
          retryAfter: 10,
          hint: error.hint,
        });
      }
      expect(server.arrived).toHaveLength(1);
      await clock.advance(10_000);
      await rejectionOf(request());
      expect(server.arrived).toHaveLength(2);
    },
  );

  it.each([
    [400, { error: 'invalid_scope' }],
    [401, { message: 'of a gateway' }],
    [403, 'a page'],
  ])(
    'does not take %d %j as a refusal of the secret, so the secret is neither read again nor held back',
    async (status, body) => {
      let sourceReads = 0;
      const { server, request } = await setUp({
        respond: ({ form }) =>
          form.get('scope') === 'customer.bad' ? { status, body } : granted(form.get('scope')),
        source: () => ((sourceReads += 1), SECRET),
      });
      await rejectionOf(request('customer.bad'));
      await rejectionOf(request('customer.bad'));
      expect([server.arrived.length, sourceReads]).toEqual([2, 1]);
      expect(await request('customer.good')).toMatchObject({ scope: 'customer.good' });
    },
  );

  it('reads a refused secret again once, and tries the new secret at once', async () => {
    const right = { right: 'new' };
    const secrets = ['old', 'new'];
    const { server, request } = await setUp({
      respond: acceptOnly(right),
      source: () => secrets.shift() ?? 'new',
    });
    const { accessToken, requestedWith } = await request();
    expect([accessToken, requestedWith?.secret.reveal()]).toEqual(['token-2', 'new']);
    expect(server.arrived.map(({ form }) => form.get('client_secret'))).toEqual(['old', 'new']);
  });

  it('reports the refusal if the secret cannot be read again', async () => {
    const secrets = ['old'];
    const { server, request } = await setUp({
      respond: acceptOnly({ right: 'new' }),
      source: () => secrets.pop() ?? Promise.reject(new Error('the vault is sealed')),
    });
    expect(await rejectionOf(request())).toMatchObject({ code: 'token_refused', error: 'invalid_client' });
    expect(server.arrived).toHaveLength(1);
  });

  it('does not send a refused secret again if reading it again returns the same secret', async () => {
    let sourceReads = 0;
    const { server, request } = await setUp({
      respond: acceptOnly({ right: 'new' }),
      source: () => ((sourceReads += 1), 'old'),
    });
    expect(await rejectionOf(request())).toMatchObject({ code: 'token_refused', error: 'invalid_client' });
    expect([server.arrived.length, sourceReads]).toEqual([1, 2]);
  });

  it('reads the secret again only once when many requests are refused at the same time', async () => {
    let sourceReads = 0;
    const { request } = await setUp({
      respond: acceptOnly({ right: 'new' }),
      source: () => ((sourceReads += 1), sourceReads === 1 ? 'old' : 'new'),
    });
    await Promise.all(Array.from({ length: 20 }, (_, n) => request(`customer.c${n}`)));
    expect(sourceReads).toBe(2);
  });

  it('lets callers that arrive while a refused secret is read again wait for the new secret instead of failing', async () => {
    const secret = { right: 'old' };
    const readings: ((secret: string) => void)[] = [];
    let reads = (): void => undefined;
    const { server, request } = await setUp({
      respond: acceptOnly(secret),
      source: () => new Promise((resolve) => (readings.push(resolve), reads())),
    });
    const reading = (): Promise<void> => new Promise((resolve) => (reads = resolve));
    const first = request('customer.first');
    readings[0]('old');
    await first;
    secret.right = 'new';
    const readAgain = reading();
    const refused = request('customer.refused');
    await readAgain;
    const later = [1, 2, 3].map((n) => request(`customer.c${n}`));
    await settle();
    readings[1]('new');
    for (const { accessToken } of await Promise.all([refused, ...later]))
      expect(accessToken).toMatch(/^token/);
    const sent = server.arrived.map(({ form }) => form.get('client_secret'));
    // The refusal of a second scope shows that the secret is wrong for all of them.
    expect([readings.length, sent]).toEqual([2, ['old', 'old', 'old', 'new', 'new', 'new', 'new']]);
  });

  it('sends two wrong secrets once each, and no further request 5 s later', async () => {
    let sourceReads = 0;
    const { server, request, clock } = await setUp({
      respond: acceptOnly({ right: 'new' }),
      source: () => ((sourceReads += 1), sourceReads === 1 ? 'old' : 'older'),
    });
    await rejectionOf(request());
    await clock.advance(5_000);
    await rejectionOf(request('customer.c1'));
    expect(server.arrived).toHaveLength(2);
  });

  it('lets a health check send a refused secret again after 60 s, reads the secret once per check, and sends a new secret at once', async () => {
    const secret = { right: 'new', source: 'old', sourceReads: 0 };
    const { server, request, clock } = await setUp({
      respond: acceptOnly(secret),
      source: () => ((secret.sourceReads += 1), secret.source),
    });
    const probe = () => request('api', { isProbe: true });
    await rejectionOf(probe());
    const readsBefore = secret.sourceReads;
    for (let number = 0; number < 11; number += 1) {
      await clock.advance(5_000);
      expect(await rejectionOf(probe())).toMatchObject({ code: 'token_refused', status: 401 });
    }
    expect([secret.sourceReads - readsBefore, server.arrived.length]).toEqual([11, 1]);
    await clock.advance(5_000);
    await rejectionOf(probe());
    expect(server.arrived).toHaveLength(2);
    secret.source = 'new';
    await clock.advance(5_000);
    expect(await probe()).toMatchObject({ scope: 'api' });
  });

  it('reads the secret again at most once a second while a refusal is remembered, and sends a new secret without waiting for 10 s', async () => {
    const secret = { right: 'new', source: 'old', sourceReads: 0 };
    const { server, request, clock } = await setUp({
      respond: acceptOnly(secret),
      source: () => ((secret.sourceReads += 1), secret.source),
    });
    await rejectionOf(request());
    secret.source = 'new';
    const readsBefore = secret.sourceReads;
    for (let call = 0; call < 100; call += 1) await rejectionOf(request(`customer.c${call}`));
    expect([secret.sourceReads, server.arrived.length]).toEqual([readsBefore, 1]);
    await clock.advance(1_000);
    expect(await request('customer.c1')).toMatchObject({ scope: 'customer.c1' });
  });
});

describe('Token endpoint: secret refused for some scopes', () => {
  /** The endpoint refuses the scopes in `refused`. The api scope has had a token. */
  async function setUpAccepted() {
    const refused = new Set<string>();
    const made = await setUp({
      respond: ({ form }) => {
        const scope = form.get('scope') ?? '';
        return refused.has(scope) ? { status: 400, body: { error: 'unauthorized_client' } } : granted(scope);
      },
      sourceKind: 'text',
    });
    await made.request();
    const { arrived } = made.server;
    arrived.length = 0;
    const requested = () => arrived.splice(0).map(({ form }) => form.get('scope'));
    const refuse = async (scope: string) => {
      refused.add(scope);
      expect(await rejectionOf(made.request(scope))).toMatchObject({ error: 'unauthorized_client' });
    };
    return { ...made, refused, requested, refuse };
  }

  it('pauses for a single customer only, for 1 s, doubling to 30 s, if the secret has been accepted', async () => {
    const { request, requested, refuse, refused, clock } = await setUpAccepted();
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      await refuse('customer.bad');
      expect(requested()).toEqual(['customer.bad']);
      await clock.advance(seconds * 1_000 - 1);
      expect(await rejectionOf(request('customer.bad'))).toMatchObject({
        retryAfter: 1,
        scope: 'customer.{}',
      });
      for (const scope of ['api', 'customer.good']) expect(await request(scope)).toMatchObject({ scope });
      expect(requested()).toEqual(['api', 'customer.good']);
      await clock.advance(1);
    }
    refused.clear();
    expect(await request('customer.bad')).toMatchObject({ scope: 'customer.bad' });
    // A granted token ends the doubling.
    requested();
    await refuse('customer.bad');
    await clock.advance(1_000);
    await refuse('customer.bad');
    expect(requested()).toEqual(['customer.bad', 'customer.bad']);
  });

  it('refuses all customers for 10 s after two scopes were refused within 10 s without a granted token in between, and asks for the API token itself', async () => {
    const { request, requested, refuse, refused, clock } = await setUpAccepted();
    await refuse('customer.1');
    await request('customer.good');
    await refuse('customer.2');
    await clock.advance(10_000);
    await refuse('customer.3');
    await refuse('customer.4');
    requested();
    await clock.advance(9_000);
    for (const scope of ['customer.good', 'customer.new'])
      expect(await rejectionOf(request(scope))).toMatchObject({
        error: 'unauthorized_client',
        retryAfter: 1,
      });
    expect(requested()).toEqual([]);
    // The endpoint grants the API token, so the secret is right.
    expect(await request()).toMatchObject({ scope: 'api' });
    expect(await request('customer.new')).toMatchObject({ scope: 'customer.new' });
    await refuse('customer.5');
    await refuse('customer.6');
    requested();
    // It refuses the API token, so the secret is wrong for all.
    await clock.advance(5_000);
    await refuse('api');
    await clock.advance(9_000);
    refused.clear();
    for (const scope of ['api', 'customer.new'])
      expect(await rejectionOf(request(scope))).toMatchObject({
        error: 'unauthorized_client',
        retryAfter: 1,
      });
    expect(requested()).toEqual(['api']);
    await clock.advance(1_000);
    expect(await request('customer.new')).toMatchObject({ scope: 'customer.new' });
  });

  it('refuses all customers after the first refusal of a secret that has never been accepted, but asks for the API token itself', async () => {
    const { server, request } = await setUp({
      respond: ({ form }) =>
        form.get('scope') === 'api' ? granted('api') : { status: 401, body: { error: 'invalid_client' } },
      sourceKind: 'text',
    });
    for (const scope of ['customer.1', 'customer.2', 'customer.3'])
      expect(await rejectionOf(request(scope))).toMatchObject({ error: 'invalid_client' });
    expect(server.arrived).toHaveLength(1);
    expect(await request()).toMatchObject({ scope: 'api' });
    expect(await rejectionOf(request('customer.2'))).toMatchObject({ error: 'invalid_client' });
    expect(server.arrived).toHaveLength(3);
  });

  it('sends requests one at a time while the secret is in doubt, but does not let the API token wait', async () => {
    const { server, request, refuse, requested } = await setUpAccepted();
    await refuse('customer.bad');
    requested();
    const all = ['customer.1', 'customer.2', 'customer.3', 'api'].map((scope) => request(scope));
    await until(() => server.arrived.length >= 2);
    const [first, second, ...others] = requested();
    expect([first, second]).toEqual(['customer.1', 'api']);
    for (const token of await Promise.all(all)) expect(token.accessToken).toBe('token');
    expect([...others, ...requested()].sort()).toEqual(['customer.2', 'customer.3']);
  });

  it('sends at most 3 wrong secrets, beside those in flight, for 10,000 callers during a rotation that is seen after 1 s', async () => {
    const state = { right: 'old', source: 'old', readings: 0 };
    const { server, endpoint, clock } = await setUp({
      respond: (request, number) => acceptOnly(state)(request, number),
      source: () => ((state.readings += 1), state.source),
    });
    const cache = makeCache({ source: endpoint, clock, maxEntries: 10_000, customerRequests: 5 });
    await cache.scope('api').get();
    await clock.advance(2_000);
    Object.assign(state, { right: 'new', readings: 0 });
    server.arrived.length = 0;
    cache.invalidate(cache.scope('api').getCached()?.accessToken ?? '');
    const callers = Array.from({ length: 10_000 }, (_, n) =>
      cache.scope(n % 2 === 0 ? 'api' : `customer.${n % 500}`).get(),
    );
    const tokens = Promise.all(callers);
    await until(() => server.arrived.length >= 6 && state.readings > 1);
    await clock.advance(1_000);
    state.source = 'new';
    await clock.advance(1_000);
    expect(await tokens).toHaveLength(10_000);
    const wrong = server.arrived.filter(({ form }) => form.get('client_secret') === 'old');
    // 5 customers and the api scope were in flight.
    expect(wrong.length).toBeLessThanOrEqual(6 + 3);
    cache.close();
  });
});

describe('Token endpoint: secret rotated at the endpoint first', () => {
  /** Gets a token with the old secret, and then lets the endpoint accept only the new one. */
  async function setUpRotated(sourceKind?: EndpointSetUp['sourceKind']) {
    const state = { right: 'old', source: 'old', readings: 0 };
    const made = await setUp({
      respond: (request, number) => acceptOnly(state)(request, number),
      source: () => ((state.readings += 1), state.source),
      sourceKind,
    });
    await made.request();
    await made.clock.advance(1_000);
    Object.assign(state, { right: 'new', readings: 0 });
    const refusals = () =>
      made.server.arrived.filter(({ form }) => form.get('client_secret') !== state.right);
    /** Starts a call for each scope, and waits until the secret has been read again after the refusal. */
    const begin = async (...scopes: string[]) => {
      const all = scopes.map((scope) => ({ ends: made.request(scope), isOver: false }));
      for (const call of all)
        call.ends.then(...Array(2).fill(() => (call.isOver = true))).catch(() => undefined);
      await until(() => state.readings > 1);
      await settle();
      return all;
    };
    return { ...made, state, begin, refusals };
  }

  it('reads the secret once a second for 2 s without sending requests, and uses the new secret as soon as it appears', async () => {
    const { state, begin, request, refusals, clock } = await setUpRotated();
    const all = await begin('api');
    const sent = refusals().length;
    all.push({ ends: request('customer.c1'), isOver: false });
    await clock.advance(999);
    // One reading when the call began and one after the refusal.
    expect([state.readings, all.some(({ isOver }) => isOver)]).toEqual([2, false]);
    await clock.advance(900);
    state.source = 'new';
    await clock.advance(101);
    for (const { ends } of all)
      expect(await ends).toMatchObject({ accessToken: expect.stringMatching(/^token/) });
    expect([state.readings, refusals().length]).toEqual([4, sent]);
  });

  it('fails after 2 s if no new secret appears, and fails later requests at once', async () => {
    const { state, begin, request, refusals, clock } = await setUpRotated();
    const [call] = await begin('api');
    const failed = rejectionOf(call.ends);
    await clock.advance(2_000);
    expect(await failed).toMatchObject({ code: 'token_refused', error: 'invalid_client' });
    const sent = refusals().length;
    expect(await rejectionOf(request('customer.c1'))).toMatchObject({ error: 'invalid_client' });
    expect(refusals()).toHaveLength(sent);
    // After 10 s the secret is sent once more, but nothing waits for a new secret again.
    await clock.advance(8_000);
    expect(await rejectionOf(request())).toMatchObject({ error: 'invalid_client' });
    expect(refusals()).toHaveLength(sent + 1);
    state.source = 'new';
    await clock.advance(1_000);
    expect(await request()).toMatchObject({ scope: 'api' });
  });

  it('waits for the new secret no longer than the timeout of the request, and stops when its signal aborts', async () => {
    const { state, request, clock } = await setUpRotated();
    const controller = new AbortController();
    const short = rejectionOf(request('api', { timeoutMs: 1_500 }));
    const aborted = rejectionOf(request('customer.c1', { signal: controller.signal }));
    await until(() => state.readings > 1);
    await settle();
    const reason = new Error('changed my mind');
    controller.abort(reason);
    expect(await aborted).toBe(reason);
    await clock.advance(1_500);
    expect(await short).toMatchObject({ error: 'invalid_client' });
  });

  it('reads a secret from a function at most once in 10 s after a refusal, and does not wait for a new one', async () => {
    const { state, begin, request, clock } = await setUpRotated('function');
    const [call] = await begin('api');
    expect(await rejectionOf(call.ends)).toMatchObject({ error: 'invalid_client' });
    expect(state.readings).toBe(2);
    for (let second = 1; second <= 9; second += 1) {
      await clock.advance(1_000);
      await rejectionOf(request(`customer.c${second}`));
    }
    expect(state.readings).toBe(2);
    state.source = 'new';
    await clock.advance(1_000);
    expect(await request()).toMatchObject({ scope: 'api' });
    expect(state.readings).toBe(3);
  });

  it('does not wait for a new secret if the secret is a fixed text', async () => {
    const { begin } = await setUpRotated('text');
    const [call] = await begin('api');
    expect(await rejectionOf(call.ends)).toMatchObject({ error: 'invalid_client' });
  });
});

describe('Token endpoint: source of the secret', () => {
  it.each<[string, () => string | Promise<string>]>([
    [
      'throws',
      () => {
        throw new Error(`vault says ${SECRET}`);
      },
    ],
    ['rejects', () => Promise.reject(new Error(`vault says ${SECRET}`))],
    ['returns an empty string', () => ''],
    ['returns undefined', () => undefined as unknown as string],
  ])(
    'rejects with client_secret_unavailable, without the words of the source, if the source %s',
    async (_name, source) => {
      const { server, request } = await setUp({ respond: () => granted('api'), source });
      const error = await rejectionOf(request());
      expect(error).toMatchObject({ code: 'client_secret_unavailable' });
      expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/vault/);
      expect(server.arrived).toHaveLength(0);
    },
  );

  it('gives up a source that does not respond after 8 s', async () => {
    const { request, clock } = await setUp({
      respond: () => granted('api'),
      source: () => new Promise(() => undefined),
    });
    const waiting = rejectionOf(request());
    await clock.advance(7_999);
    expect(clock.timers).toBe(1);
    await clock.advance(1);
    const error = await waiting;
    expect(error).toMatchObject({ code: 'client_secret_unavailable' });
    expect(String(error)).toContain('longer than 8 s');
    expect(clock.timers).toBe(0);
  });

  it('reads the source once for callers that arrive together', async () => {
    let sourceReads = 0;
    const { request } = await setUp({
      respond: ({ form }) => granted(form.get('scope')),
      source: async () => ((sourceReads += 1), SECRET),
    });
    await Promise.all(Array.from({ length: 20 }, (_, n) => request(`customer.c${n}`)));
    expect(sourceReads).toBe(1);
  });
});

describe('Token endpoint: stale keep-alive connections', () => {
  const closed = { kind: 'reset', phase: 'sent', reusedSocket: true } as const;
  const silent = { kind: 'timeout', phase: 'sent', reason: 'ERR_IDLE_CONNECTION_TIMEOUT' } as const;

  const failingFirst = (...faults: ExchangeFaultDetails[]) => {
    const requests: ExchangeRequest[] = [];
    const events: ServiceCallEvent[] = [];
    const exchange: Exchange = async (sent) => {
      requests.push(sent);
      const fault = faults.shift();
      if (fault) throw new ExchangeFault(fault);
      const body = Buffer.from(JSON.stringify(granted('api').body));
      return { status: 200, statusText: '', headers: {}, body, untilClose: false };
    };
    const onCall = (event: ServiceCallEvent) => void events.push(event);
    return { ...endpointAt({ url: 'https://auth.example', exchange, onCall }), requests, events };
  };

  it.each([
    ['was closed by the server', closed],
    ['brought no response for 5 s', silent],
  ])(
    'sends the request once more, with mayUseOlderConnection: false, when the reused connection %s, and counts 2 attempts in the event',
    async (_, fault) => {
      const { request, requests, events } = failingFirst(fault);
      expect(await request()).toMatchObject({ accessToken: 'token' });
      expect(
        requests.map(({ mayUseOlderConnection, idleConnectionTimeoutMs }) => [
          mayUseOlderConnection,
          idleConnectionTimeoutMs,
        ]),
      ).toEqual([
        [true, 5_000],
        [false, 5_000],
      ]);
      expect(events).toMatchObject([{ kind: 'token', attempts: 2, status: 200 }]);
    },
  );

  it.each([
    ['the server closes two reused connections', [closed, closed], 2],
    ['the connection was a new one', [{ ...closed, reusedSocket: false }], 1],
    ['a response had already begun', [{ ...closed, phase: 'reading' as const }], 1],
  ])('rejects with the fault if %s', async (_, faults, attempts) => {
    const { request, requests } = failingFirst(...faults);
    expect(await rejectionOf(request())).toMatchObject({ kind: 'reset' });
    expect(requests).toHaveLength(attempts);
  });
});

describe('Token endpoint: client certificate refused in the handshake', () => {
  interface Shown {
    authority: Authority;
    /** The only certificate that the endpoint accepts. */
    accepted?: Issued;
    first: Issued;
    /** The certificate in use after the reload. */
    second?: Issued;
  }

  const summary = ({ x509, certificate }: Issued) => ({
    subject: x509.subject,
    issuer: x509.issuer,
    fingerprint256: certificate.slice(100, 150),
    validFrom: x509.notBefore,
    validTo: x509.notAfter,
  });

  async function setUpMtls({ authority, accepted, first, second }: Shown) {
    const live = await mtlsServer(authority, {
      onRequest: (_request, response) =>
        response.setHeader('content-type', 'application/json').end(JSON.stringify(granted('api').body)),
    });
    // Node's server sends no alert for an untrusted certificate. It sends one only if no certificate is offered.
    const agent = new https.Agent({ ca: authority.chain });
    let shown: Issued;
    const show = (issued: Issued) => {
      shown = issued;
      if (issued === accepted) Object.assign(agent.options, { cert: issued.certificate, key: issued.key });
    };
    show(first);
    const refused: unknown[] = [];
    const identity: RefusedIdentity = {
      get certificate() {
        return summary(shown);
      },
      ...unchanging(async (certificate) => {
        refused.push(certificate?.subject);
        show(second ?? first);
        return second !== undefined;
      }),
    };
    cleanUp.push(() => live.close());
    const { request } = endpointAt({ url: `${live.url}/oauth2/token`, agent, identity });
    return { live, refused, request };
  }

  it('reloads a refused certificate once, and repeats the request with the new one', async () => {
    const authority = await createAuthority();
    const [first, second] = await Promise.all([authority.client('old'), authority.client('new')]);
    const { live, refused, request } = await setUpMtls({ authority, accepted: second, first, second });
    expect(await request()).toMatchObject({
      accessToken: 'token',
      requestedWith: { fingerprint256: summary(second).fingerprint256 },
    });
    expect(refused).toEqual(['CN=old']);
    expect(live.subjects).toEqual(['new']);
  });

  it('rejects with certificate_refused and names the certificate if there is no other one or the other is refused too', async () => {
    const authority = await createAuthority();
    const [first, second] = await Promise.all([authority.client('old'), authority.client('new')]);
    for (const [after, named] of [
      [undefined, 'CN=old'],
      [second, 'CN=new'],
    ] as const) {
      const { refused, request } = await setUpMtls({ authority, first, second: after });
      const error = await rejectionOf(request());
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect(error).toMatchObject({ code: 'certificate_refused', certificate: { subject: named } });
      expect(error.message).toMatch(/ALERT|EPROTO/);
      expect(refused).toEqual(['CN=old']);
    }
  });
});

describe('Token endpoint: handshake ended without a certificate alert', () => {
  /** Ends each handshake before the session ticket, with the given alert if there is one. */
  async function setUpAlert(alert: number | undefined, certificates: string[]) {
    const { serverChain: cert, server, chain: ca } = await createAuthority();
    const live = await alertingServer(
      'TLSv1.3',
      { cert, key: server.key, ca, requestCert: true, rejectUnauthorized: false },
      () => undefined,
      (send) => send(alert),
    );
    cleanUp.push(() => live.close());
    const identity = identityOf(...certificates);
    const again: unknown[] = [];
    const findOther: RefusedIdentity['findOther'] = (refused, outcome, server) => {
      again.push([refused?.subject, outcome.fault?.kind]);
      return identity.findOther(refused, outcome, server);
    };
    const endpoint = endpointAt({
      url: `${live.url}/oauth2/token`,
      agent: new https.Agent({ ca }),
      identity: Object.defineProperty(Object.create(identity) as RefusedIdentity, 'findOther', {
        value: findOther,
      }),
    });
    return { ...endpoint, again };
  }

  it('treats alert 40 (Erlang/OTP) as a refusal of the client certificate, and reloads the certificate', async () => {
    const { request } = await setUpAlert(40, ['old', 'new']);
    const error = await rejectionOf(request());
    expect(error).toMatchObject({ code: 'certificate_refused', certificate: { fingerprint256: 'new' } });
  });

  it('names tls.certificate in the hint after alert 80 (stunnel), which may mean a refused certificate', async () => {
    const { request } = await setUpAlert(80, ['only']);
    const error = await rejectionOf(request());
    expect(error).toMatchObject({ code: 'connection_tls', options: ['tls.certificate'] });
    expect(textOfError(error)).toMatch(/may have refused the client certificate.*Check tls\.certificate/);
  });

  it('reloads the certificate files after an end without an alert (Node, uvicorn), and names both possible causes in the message', async () => {
    const { request, again } = await setUpAlert(undefined, ['old', 'new']);
    const error = await rejectionOf(request());
    expect(error).toMatchObject({ code: 'connection_reset', options: ['tls.certificate'], retryable: true });
    expect(textOfError(error)).toMatch(/refused the client certificate .*, or it crashed or restarted/);
    expect(again).toEqual([['CN=old', 'reset']]);
  });
});

/** The client identity of oauth.mtls. Each reload brings the next certificate into use. */
function identityOf(...fingerprints: string[]): RefusedIdentity {
  const validFrom = new Date();
  const validTo = new Date(Date.now() + 86_400_000);
  const certificates = fingerprints.map((fingerprint256) => {
    return { subject: `CN=${fingerprint256}`, issuer: 'CN=issuer', fingerprint256, validFrom, validTo };
  });
  return {
    get certificate() {
      return certificates[0];
    },
    ...unchanging(async () => certificates.length > 1 && certificates.shift() !== undefined),
  };
}

describe('Token endpoint: certificate refused by a proxy with an HTML page', () => {
  const HTML = { 'content-type': 'text/html' };
  const denied: CannedResponse = { status: 403, headers: HTML, body: '<h1>403 Forbidden</h1>' };
  const missing: CannedResponse = { status: 496, headers: HTML, body: '<h1>496</h1>' };
  const named: CannedResponse = { status: 400, headers: HTML, body: 'No required SSL certificate was sent' };

  it.each([
    ['496 page', missing],
    ['400 page that names the certificate', named],
    ['403 page that does not say why', denied],
  ])(
    'reloads the certificate after a %s, and repeats the request with the new certificate',
    async (_, page) => {
      const identity = identityOf('old', 'new');
      const { server, request } = await setUp({
        respond: ({ form }, number) => (number === 1 ? page : granted(form.get('scope'))),
        identity,
      });
      expect(await request()).toMatchObject({ accessToken: 'token' });
      expect(server.arrived).toHaveLength(2);
    },
  );

  it('lets all requests wait for a new certificate, without sending, after the proxy refuses a certificate that has worked', async () => {
    const validTo = new Date(Date.now() + 86_400_000);
    let readings = 0;
    let found = (): void => undefined;
    const identity = {
      certificate: { subject: 'CN=a', issuer: 'CN=i', fingerprint256: 'old', validFrom: new Date(), validTo },
      ...rotating('old', () => {
        readings += 1;
        return new Promise<string>((resolve) => (found = () => resolve('new')));
      }),
    };
    const { server, request } = await setUp({
      respond: ({ form }, number) =>
        number > 1 && identity.certificate.fingerprint256 === 'old' ? missing : granted(form.get('scope')),
      identity,
    });
    await request();
    const first = request('customer.c1');
    await until(() => readings === 1);
    const second = request('customer.c2');
    for (let turn = 0; turn < 20; turn += 1) await settle();
    expect([readings, server.arrived.length]).toEqual([1, 2]);
    identity.certificate = { ...identity.certificate, fingerprint256: 'new' };
    found();
    expect([(await first).scope, (await second).scope]).toEqual(['customer.c1', 'customer.c2']);
    expect(server.arrived).toHaveLength(4);
  });

  it.each([
    ['496 page', missing],
    ['400 page that names the certificate', named],
  ])(
    'rejects with certificate_refused and names the certificate after a %s, if there is no other certificate',
    async (_, page) => {
      const { server, request } = await setUp({ respond: () => page, identity: identityOf('only') });
      const error = await rejectionOf(request());
      expect(error).toMatchObject({ code: 'certificate_refused', certificate: { fingerprint256: 'only' } });
      expect(error.message).toMatch(/CN=only.*HTTP 4/);
      expect(server.arrived).toHaveLength(1);
    },
  );

  it('names SSLVerifyClient when an Apache 403 says that post-handshake authentication failed', async () => {
    const body = '<h1>Forbidden</h1>Reason: Cannot perform Post-Handshake Authentication.';
    const { request } = await setUp({ respond: () => ({ ...denied, body }) });
    const error = await rejectionOf(request());
    expect(error).toMatchObject({ code: 'token_unavailable', options: ['urls.authUrl'] });
    expect(textOfError(error)).toMatch(/asks for the client certificate after the request.*SSLVerifyClient/);
  });

  it.each([
    ['403 page that does not say why', denied],
    ['400 page that asks for a certificate', named],
  ])(
    'names oauth.mtls before oauth.clientSecret as a possible cause after a %s, if no client certificate is offered',
    async (_, page) => {
      const { request } = await setUp({ respond: () => page });
      const error = await rejectionOf(request());
      expect(error).toMatchObject({ code: 'token_unavailable' });
      expect(textOfError(error)).toMatch(/swapped\..*oauth\.mtls.*oauth\.clientSecret/);
      expect(error.message).not.toContain('Forbidden');
    },
  );
});
