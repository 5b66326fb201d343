import { Agent } from 'node:http';
import * as https from 'node:https';
import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type TokenGrant } from '../../../lib/auth/access-token.js';
import { ClientSecret } from '../../../lib/auth/endpoint/client-secret.js';
import { TokenEndpoint } from '../../../lib/auth/endpoint/token-endpoint.js';
import { Secret } from '../../../lib/config/secret.js';
import { type Identity } from '../../../lib/tls/client-identity.js';
import {
  ServiceCertificateError,
  ServiceConnectionError,
  type ServiceError,
  ServiceTokenError,
} from '../../../lib/errors/index.js';
import { exchange as systemExchange } from '../../../lib/exchange/exchange.js';
import {
  type Exchange,
  ExchangeFault,
  type ExchangeFaultDetails,
  type ExchangeRequest,
} from '../../../lib/exchange/exchange.types.js';
import { type OnCall, type ServiceCallEvent } from '../../../lib/telemetry/call-event.js';
import { alertingServer } from '../../helpers/alerting-server.js';
import { createAuthority, type Authority, type Issued } from '../../helpers/certificates.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { silentAddress } from '../../helpers/silent-address.js';
import { mtlsServer } from '../../helpers/mtls-server.js';
import { until } from '../../helpers/until.js';
import { type ArrivedRequest, granted, type ServerAnswer, tokenServer } from './token-server.js';

const CLIENT_ID = '7d9f3c1e-0000-4000-8000-000000000001';
const SECRET = 's+/&=% ü€"\\end';

const cleanUp: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0)) await undo();
});

type RefusedIdentity = Pick<Identity, 'certificate' | 'reloadAfterRefusal'>;

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

/** A token endpoint at that address. */
function endpointAt({
  url,
  agent = new Agent(),
  source = () => SECRET,
  identity,
  hasChain,
  sourceKind,
  exchange = systemExchange,
  onCall,
}: EndpointSetUp) {
  const clock = new FakeClock();
  const clientSecret = new ClientSecret(async () => new Secret(await source()), clock, String, sourceKind);
  const place = {
    url: new URL(url),
    option: 'urls.authUrl',
    apiOption: 'urls.baseUrl',
    describeOption: String,
    hasChain,
  };
  const common = { userAgent: 'spec/1', clientId: CLIENT_ID, clientSecret, exchange, onCall };
  const endpoint = new TokenEndpoint({ ...common, place, agent, identity: identity as Identity, clock });
  cleanUp.push(() => agent.destroy());
  /** Each request has a signal of its own, as those of the cache have. */
  const request = (scope = 'api', context = {}): Promise<TokenGrant> => {
    const { signal } = new AbortController();
    const wait = { signal, timeoutMs: 5_000, accepts: () => true, isAwaited: () => true };
    return endpoint.request(scope, { ...wait, ...context });
  };
  return { clock, request };
}

/** The same, where a server on loopback answers. */
async function setUp({
  answer,
  ...given
}: Omit<EndpointSetUp, 'url'> & { answer: (request: ArrivedRequest, number: number) => ServerAnswer }) {
  const server = await tokenServer(answer);
  const made = endpointAt({ url: server.url, agent: new Agent({ keepAlive: true }), ...given });
  cleanUp.push(server.close);
  return { server, ...made };
}

/** Answers a right secret with a token, every other with invalid_client. */
function demanding(secret: { right: string }): (request: ArrivedRequest, number: number) => ServerAnswer {
  return ({ form }, number) =>
    form.get('client_secret') === secret.right
      ? granted(form.get('scope'), `token-${number}`)
      : { status: 401, body: { error: 'invalid_client' } };
}

type TokenFailure = ServiceError &
  Pick<ServiceTokenError, 'error' | 'error_description' | 'status' | 'retryAfter'>;

async function failure(promise: Promise<unknown>): Promise<TokenFailure> {
  try {
    await promise;
  } catch (error) {
    return error as TokenFailure;
  }
  throw new Error('It did not fail');
}

/** What happened, and what to do. */
const said = ({ message, hint }: ServiceError): string => [message, hint].filter(Boolean).join(' ');

it('the request is the form that docs/service.md shows, and a secret of any characters arrives intact', async () => {
  const { server, request } = await setUp({ answer: ({ form }) => granted(form.get('scope')) });
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

it('a caller that aborts gets its own reason', async () => {
  const controller = new AbortController();
  const reason = new Error('changed my mind');
  const { request } = await setUp({ answer: () => (controller.abort(reason), { fault: 'silent' }) });
  await expect(request('api', { signal: controller.signal })).rejects.toBe(reason);
});

describe('the answer with a token', () => {
  const SCOPE = 'customer.c1';
  const WHOLE = { access_token: 'abc', token_type: 'bearer', expires_in: 600, scope: SCOPE };
  const GRANT = { accessToken: 'abc', scope: SCOPE, expiresIn: 600 };
  const jwt = (claims: unknown): string =>
    ['{"alg":"RS256"}', JSON.stringify(claims), 'signature']
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.');

  it.each<[string, unknown, object]>([
    ['as docs/service.md shows it', WHOLE, {}],
    ['after a byte order mark', `\uFEFF${JSON.stringify(WHOLE)}`, {}],
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
      `scope ${scope}: the one asked for`,
      { ...WHOLE, scope },
      {},
    ]),
    // Nobody reads the claims.
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
  ])('is accepted: %s', async (_name, body, expected) => {
    const { request } = await setUp({ answer: () => ({ body }) });
    expect(await request(SCOPE)).toMatchObject({ ...GRANT, ...expected });
  });

  it.each<[string, unknown]>([
    ['HTML', '<html>SECRET</html>'],
    ['truncated JSON', '{"access_token":"SECRET'],
    ['null', 'null'],
    ['a list', '[]'],
    ['a text', '"SECRET"'],
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
  ])('is refused, and not quoted: %s', async (_name, body) => {
    const { request } = await setUp({ answer: () => ({ body }) });
    const error = await failure(request(SCOPE));
    expect(error).toBeInstanceOf(ServiceTokenError);
    expect(error).toMatchObject({ code: 'invalid_token_response', status: 200, scope: 'customer.{}' });
    expect(inspect(error)).not.toMatch(/SECRET|CRET\b/);
  });
});

describe('a scope that is not the one asked for', () => {
  it.each([
    ['api', 'api payments', /scope is "api payments", not the one asked for/],
    ['api', '', /scope is "", not the one asked for/],
    ['api', SECRET, /scope is "\[not shown: /],
    ['api', ['api', 'x'], /scope is not the one asked for/],
    [
      'customer.c-17',
      'customer.c-17 customer.d%2B4 api',
      /scope is "customer\.\{\} customer\.\{\} api", not/,
    ],
    ['customer.c-17', 'customer.c-18', /scope is that of another customer, not/],
  ])('asked for %s, given %j: is shown without ids and secrets', async (asked, scope, words) => {
    const body = { access_token: 'abc', token_type: 'bearer', expires_in: 600, scope };
    const { request } = await setUp({ answer: () => ({ body }) });
    const refused = await failure(request(asked));
    expect(refused.message).toMatch(words);
    expect(inspect(refused)).not.toMatch(/c-1|d%2B4/);
  });
});

describe('a customer whom the endpoint does not know', () => {
  it.each([
    [400, 'invalid_scope'],
    [403, 'scope_invalid'], // Glewlwyd
  ])('%d %s: the hint names the environment, and no id is shown', async (status, error) => {
    const id = 'a+7@bank.example';
    const said = [
      'customer.a+7@bank.example',
      `${encodeURIComponent(id)} is unknown`,
      `not ${id.toUpperCase()}: A+7`,
    ];
    for (const error_description of said) {
      const { request } = await setUp({ answer: () => ({ status, body: { error, error_description } }) });
      const refused = await failure(request(`customer.${id}`));
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
  });

  it('a short id is hidden as a word, and in an error code', async () => {
    const body = { error: 'customer.7', error_description: 'HTTP 17: 7 is unknown, so is customer.7.' };
    const { request } = await setUp({ answer: () => ({ status: 400, body }) });
    const refused = await failure(request('customer.7'));
    expect([refused.error, refused.error_description]).toEqual([
      undefined,
      'HTTP 17: {} is unknown, so is customer.{}',
    ]);
  });

  it('the scope of calls is another matter: the hint names the address', async () => {
    const { request } = await setUp({ answer: () => ({ status: 400, body: { error: 'scope_invalid' } }) });
    expect((await failure(request('api'))).hint).toMatch(/^Check urls\.authUrl/);
  });
});

describe('an answer without a token', () => {
  const PAGE = { headers: { 'content-type': 'text/html' }, body: '<h1>oops</h1>' };
  const SWAPPED =
    /Check urls\.authUrl and urls\.baseUrl: they may be swapped\..* without .*firewall.*oauth\.mtls.*oauth\.clientSecret/;
  const ADDRESS =
    /refuses a token .*Check urls\.authUrl, which is written without \/oauth2\/token, and that OAuth is/;
  const error = (code: string) => ({ body: { error: code } });
  const retryAfter = (value: string) => ({ headers: { 'retry-after': value } });
  /** So many seconds after the time of this machine. */
  const dateIn = (seconds: number) => new Date(new FakeClock().now() + seconds * 1_000).toUTCString();
  const clockAhead = { date: dateIn(120), 'retry-after': dateIn(150) };

  it.each<[number, ServerAnswer, object, RegExp]>([
    [200, error('invalid_scope'), { code: 'token_refused', error: 'invalid_scope' }, ADDRESS],
    [200, PAGE, { code: 'invalid_token_response' }, SWAPPED],
    [400, error('invalid_scope'), { code: 'token_refused' }, /\(HTTP 400, invalid_scope\)\./],
    [400, {}, { code: 'token_refused' }, ADDRESS],
    [404, {}, { code: 'token_refused' }, ADDRESS],
    [405, {}, { code: 'token_refused' }, ADDRESS],
    [499, {}, { code: 'token_refused' }, ADDRESS],
    [403, error('invalid_scope'), { code: 'token_refused' }, ADDRESS],
    // Of a gateway, or what stands at a wrong address.
    [401, {}, { code: 'token_unavailable' }, /not come from the token endpoint.*\(HTTP 401\)/],
    [403, error('Forbidden'), { code: 'token_unavailable' }, /in front of it .*\(HTTP 403, Forbidden\)/],
    [403, PAGE, { code: 'token_unavailable' }, SWAPPED],
    [404, PAGE, { code: 'token_unavailable' }, /\(HTML, HTTP 404\)/],
    [500, { body: {} }, { code: 'token_unavailable' }, /out of order.* nothing to correct/],
    // The address is one of loopback: what answers is a sidecar.
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
  ])('%d %j', async (status, answer, expected, words) => {
    const { request } = await setUp({ answer: () => ({ status, ...answer }) });
    const refused = await failure(request());
    expect(refused).toBeInstanceOf(ServiceTokenError);
    expect(refused).toMatchObject({ status, scope: 'api', ...expected });
    expect(said(refused)).toMatch(words);
    expect(inspect(refused)).not.toContain('oops');
  });

  const long = 'e'.repeat(65);
  it.each([
    ['invalid_scope', 'it is not for this client', 'invalid_scope', 'it is not for this client'],
    ['a b', 7, undefined, undefined],
    [long, '', undefined, ''],
    [7, undefined, undefined, undefined],
  ])('with error %j, error_description %j: shows what RFC 6749 allows', async (given, text, code, shown) => {
    const body = { error: given, error_description: text };
    const { request } = await setUp({ answer: () => ({ status: 400, body }) });
    const refused = await failure(request());
    expect([refused.error, refused.error_description]).toEqual([code, shown]);
  });

  const forms = [
    SECRET,
    encodeURIComponent(SECRET),
    new URLSearchParams({ s: SECRET }).toString().slice(2),
    SECRET.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('/', '&#x2F;'),
    JSON.stringify(JSON.stringify(SECRET)),
    `${SECRET.slice(0, 7)}\n${SECRET.slice(7)}`,
    's+/\u200b&=% ü€"\\end',
  ];
  it.each(forms)('that echoes the secret as %s shows none of it', async (echo) => {
    const error_description = `bad\r\n\u0000secret ${echo} ${'x'.repeat(500)}`;
    const { request } = await setUp({
      answer: () => ({ status: 400, body: { error: echo, error_description } }),
    });
    const refused = await failure(request());
    const printed =
      inspect(refused, { depth: 20, showHidden: true }) + JSON.stringify(refused) + refused.stack;
    for (const form of forms) expect(printed).not.toContain(form);
    expect(refused.error_description).toMatch(/^\[not shown: /);
    expect(refused.error).toBeUndefined();
  });
});

describe('no whole answer', () => {
  it.each<[string, ServerAnswer, object, RegExp]>([
    [
      'a dropped connection',
      { fault: 'drop' },
      { kind: 'reset' },
      /log of the program that listens at urls\.authUrl/,
    ],
    [
      'silence',
      { fault: 'silent' },
      { kind: 'timeout', options: [] },
      /no response began .* endpoint is slow/,
    ],
    ['a body that trickles', { fault: 'trickle' }, { kind: 'timeout' }, /the rest of it did not arrive/],
    ['a body over 1 MiB', { body: ' '.repeat(1024 * 1024 + 1) }, { kind: 'too_large' }, /too large\.$/],
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
      'a choice of addresses, though with a token',
      { ...granted('api'), status: 300 },
      { kind: 'redirect' },
      /\(HTTP_300\)/,
    ],
  ])('%s', async (_name, answer, expected, words) => {
    const { server, request } = await setUp({ answer: () => answer });
    const isSlow = 'fault' in answer && answer.fault !== 'drop';
    const error = await failure(request('api', { timeoutMs: isSlow ? 1_000 : 10_000 }));
    expect(error).toBeInstanceOf(ServiceConnectionError);
    expect(error).toMatchObject({ ...expected, method: 'POST', path: '/oauth2/token' });
    expect(said(error)).toMatch(words);
    // A sidecar does TLS.
    expect(said(error)).not.toMatch(/TLS|tls\./);
    expect(server.arrived).toHaveLength(1);
  });

  it.each([
    [
      'http://127.0.0.1:1',
      /at 127\.0\.0\.1:1: .*refused \(ECONNREFUSED\).*Check host and port of urls\.authUrl/,
    ],
    [
      'http://auth.invalid',
      /at auth\.invalid: the name auth\.invalid could not be looked up .*Check the spelling/,
    ],
  ])('%s: names it and the option with its address', async (address, words) => {
    const error = await failure(endpointAt({ url: `${address}/oauth2/token` }).request());
    expect(said(error)).toMatch(words);
    expect(error.options).toEqual(['urls.authUrl']);
  });

  it('has the time that reading the secret left, half of it to connect', async () => {
    const silent = await silentAddress('127.0.0.1');
    cleanUp.push(silent.stop);
    const { clock, request } = endpointAt({
      url: `http://127.0.0.1:${silent.port}/oauth2/token`,
      source: async () => (await clock.advance(2_000), SECRET),
    });
    const error = await failure(request('api', { timeoutMs: 2_300 }));
    expect(error).toMatchObject({ kind: 'timeout' });
    expect(said(error)).toMatch(/no connection to 127\.0\.0\.1, port \d+, within 150 ms/);
  });

  it('not trusted: names what it is verified against; not the host: says so', async () => {
    const authority = await createAuthority();
    const live = await mtlsServer(authority, { demandCertificate: false });
    cleanUp.push(() => live.close());
    const textOf = async (agent: Agent, hasChain = false) =>
      said(await failure(endpointAt({ url: live.url, agent, hasChain }).request()));
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
    'a certificate that it asks for and is not shown, %s: names oauth.mtls',
    async (maxVersion) => {
      const authority = await createAuthority();
      const live = await mtlsServer(authority, { maxVersion });
      cleanUp.push(() => live.close());
      const agent = new https.Agent({ ca: authority.chain });
      const error = await failure(endpointAt({ url: live.url, agent }).request());
      expect(said(error)).toMatch(/may ask for a client certificate.*Set oauth\.mtls/);
      expect(error.options?.[0]).toBe('oauth.mtls');
    },
  );

  it('a proxy that fails: names http.proxy', async () => {
    const agent = new Agent();
    agent.createConnection = (_, callback) => {
      const error = Object.assign(new Error('407'), { code: 'ERR_PROXY_TUNNEL_407' });
      setImmediate(() => callback?.(error, undefined as never));
      return undefined;
    };
    const error = await failure(endpointAt({ url: 'http://127.0.0.1:1/oauth2/token', agent }).request());
    expect(said(error)).toMatch(/ERR_PROXY_TUNNEL_407.*Check http\.proxy/);
  });
});

describe('a refused secret', () => {
  it.each([
    [400, { error: 'unauthorized_client' }],
    [401, { error: 'invalid_client' }],
    [429, { error: 'unauthorized_client' }],
    [503, { error: 'invalid_client' }],
    [200, { error: 'invalid_client' }],
  ])(
    '%d %j: one request, an error that says what to check, remembered for 10 s for all scopes',
    async (status, body) => {
      const { server, request, clock } = await setUp({ answer: () => ({ status, body }) });
      const error = await failure(request());
      expect(error).toMatchObject({ code: 'token_refused', ...body, status });
      expect(said(error)).toMatch(
        /refuses the credentials .*oauth\.clientId.*oauth\.clientSecret.*developer portal.*secret.* the previous one is invalid.*value with # needs quotes, and with expandVariables .* a \$ needs a backslash before it; docker run --env-file keeps/,
      );
      expect(error.options).toEqual(['oauth.clientSecret', 'oauth.clientId']);
      for (let call = 0; call < 50; call += 1) {
        expect(await failure(request(`customer.c${call}`))).toMatchObject({
          code: 'token_refused',
          retryAfter: 10,
          hint: error.hint,
        });
      }
      expect(server.arrived).toHaveLength(1);
      await clock.advance(10_000);
      await failure(request());
      expect(server.arrived).toHaveLength(2);
    },
  );

  it.each([
    [400, { error: 'invalid_scope' }],
    [401, { message: 'of a gateway' }],
    [403, 'a page'],
  ])('is not what %d %j says: the secret is neither read again nor remembered', async (status, body) => {
    let asked = 0;
    const { server, request } = await setUp({
      answer: ({ form }) =>
        form.get('scope') === 'customer.bad' ? { status, body } : granted(form.get('scope')),
      source: () => ((asked += 1), SECRET),
    });
    await failure(request('customer.bad'));
    await failure(request('customer.bad'));
    expect([server.arrived.length, asked]).toEqual([2, 1]);
    expect(await request('customer.good')).toMatchObject({ scope: 'customer.good' });
  });

  it('is asked for again once, and the new one is tried at once', async () => {
    const right = { right: 'new' };
    const secrets = ['old', 'new'];
    const { server, request } = await setUp({
      answer: demanding(right),
      source: () => secrets.shift() ?? 'new',
    });
    const { accessToken, requestedWith } = await request();
    expect([accessToken, requestedWith?.secret.reveal()]).toEqual(['token-2', 'new']);
    expect(server.arrived.map(({ form }) => form.get('client_secret'))).toEqual(['old', 'new']);
  });

  it('stays the outcome where it cannot be read again', async () => {
    const answers = ['old'];
    const { server, request } = await setUp({
      answer: demanding({ right: 'new' }),
      source: () => answers.pop() ?? Promise.reject(new Error('the vault is sealed')),
    });
    expect(await failure(request())).toMatchObject({ code: 'token_refused', error: 'invalid_client' });
    expect(server.arrived).toHaveLength(1);
  });

  it('that is still the same is not sent again', async () => {
    let asked = 0;
    const { server, request } = await setUp({
      answer: demanding({ right: 'new' }),
      source: () => ((asked += 1), 'old'),
    });
    expect(await failure(request())).toMatchObject({ code: 'token_refused', error: 'invalid_client' });
    expect([server.arrived.length, asked]).toEqual([1, 2]);
  });

  it('refused to many at once is asked for again once', async () => {
    let asked = 0;
    const { request } = await setUp({
      answer: demanding({ right: 'new' }),
      source: () => ((asked += 1), asked === 1 ? 'old' : 'new'),
    });
    await Promise.all(Array.from({ length: 20 }, (_, n) => request(`customer.c${n}`)));
    expect(asked).toBe(2);
  });

  it('fails no caller that comes while it is read again: they share the reading', async () => {
    const secret = { right: 'old' };
    const readings: ((secret: string) => void)[] = [];
    let reads = (): void => undefined;
    const { server, request } = await setUp({
      answer: demanding(secret),
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
    expect([readings.length, sent]).toEqual([2, ['old', 'old', 'new', 'new', 'new', 'new']]);
  });

  it('two wrong ones are two requests, and no more for 10 s', async () => {
    let asked = 0;
    const { server, request, clock } = await setUp({
      answer: demanding({ right: 'new' }),
      source: () => ((asked += 1), asked === 1 ? 'old' : 'older'),
    });
    await failure(request());
    await clock.advance(5_000);
    await failure(request('customer.c1'));
    expect(server.arrived).toHaveLength(2);
  });

  it('health checks send it again after 60 s, another one at once, and read the source once each time', async () => {
    const secret = { right: 'new', source: 'old', asked: 0 };
    const { server, request, clock } = await setUp({
      answer: demanding(secret),
      source: () => ((secret.asked += 1), secret.source),
    });
    const probe = () => request('api', { isProbe: true });
    await failure(probe());
    const asked = secret.asked;
    for (let number = 0; number < 11; number += 1) {
      await clock.advance(5_000);
      expect(await failure(probe())).toMatchObject({ code: 'token_refused', status: 401 });
    }
    expect([secret.asked - asked, server.arrived.length]).toEqual([11, 1]);
    await clock.advance(5_000);
    await failure(probe());
    expect(server.arrived).toHaveLength(2);
    secret.source = 'new';
    await clock.advance(5_000);
    expect(await probe()).toMatchObject({ scope: 'api' });
  });

  it('being remembered does not hold up another one, and the source is asked once a second', async () => {
    const secret = { right: 'new', source: 'old', asked: 0 };
    const { server, request, clock } = await setUp({
      answer: demanding(secret),
      source: () => ((secret.asked += 1), secret.source),
    });
    await failure(request());
    secret.source = 'new';
    const asked = secret.asked;
    for (let call = 0; call < 100; call += 1) await failure(request(`customer.c${call}`));
    expect([secret.asked, server.arrived.length]).toEqual([asked, 1]);
    await clock.advance(1_000);
    expect(await request('customer.c1')).toMatchObject({ scope: 'customer.c1' });
  });
});

describe('a secret that has worked, and is refused because the endpoint has the new one first', () => {
  /** The right secret is replaced when a token was granted for it. */
  async function setUpRotated(sourceKind?: EndpointSetUp['sourceKind']) {
    const state = { right: 'old', source: 'old', readings: 0 };
    const made = await setUp({
      answer: (request, number) => demanding(state)(request, number),
      source: () => ((state.readings += 1), state.source),
      sourceKind,
    });
    await made.request();
    await made.clock.advance(1_000);
    Object.assign(state, { right: 'new', readings: 0 });
    const refusals = () =>
      made.server.arrived.filter(({ form }) => form.get('client_secret') !== state.right);
    /** Of the calls that began now, once their request was answered. */
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

  it('is waited for without sending, and read once a second for 2 s', async () => {
    const { state, begin, request, refusals, clock } = await setUpRotated();
    const all = await begin('api');
    const sent = refusals().length;
    all.push({ ends: request('customer.c1'), isOver: false });
    await clock.advance(999);
    // At the beginning, and after the refusal.
    expect([state.readings, all.some(({ isOver }) => isOver)]).toEqual([2, false]);
    await clock.advance(900);
    state.source = 'new';
    await clock.advance(101);
    for (const { ends } of all)
      expect(await ends).toMatchObject({ accessToken: expect.stringMatching(/^token/) });
    expect([state.readings, refusals().length]).toEqual([4, sent]);
  });

  it('fails after 2 s if there is none, and from then on at once', async () => {
    const { state, begin, request, refusals, clock } = await setUpRotated();
    const [call] = await begin('api');
    const failed = failure(call.ends);
    await clock.advance(2_000);
    expect(await failed).toMatchObject({ code: 'token_refused', error: 'invalid_client' });
    const sent = refusals().length;
    expect(await failure(request('customer.c1'))).toMatchObject({ error: 'invalid_client' });
    expect(refusals()).toHaveLength(sent);
    // Sent once more after 10 s, and not waited for again.
    await clock.advance(8_000);
    expect(await failure(request())).toMatchObject({ error: 'invalid_client' });
    expect(refusals()).toHaveLength(sent + 1);
    state.source = 'new';
    await clock.advance(1_000);
    expect(await request()).toMatchObject({ scope: 'api' });
  });

  it('is waited for no longer than the request has time, or its signal allows', async () => {
    const { state, request, clock } = await setUpRotated();
    const controller = new AbortController();
    const short = failure(request('api', { timeoutMs: 1_500 }));
    const aborted = failure(request('customer.c1', { signal: controller.signal }));
    await until(() => state.readings > 1);
    await settle();
    const reason = new Error('changed my mind');
    controller.abort(reason);
    expect(await aborted).toBe(reason);
    await clock.advance(1_500);
    expect(await short).toMatchObject({ error: 'invalid_client' });
  });

  it('of a function is asked for once in 10 s, and nobody waits for it', async () => {
    const { state, begin, request, clock } = await setUpRotated('function');
    const [call] = await begin('api');
    expect(await failure(call.ends)).toMatchObject({ error: 'invalid_client' });
    expect(state.readings).toBe(2);
    for (let second = 1; second <= 9; second += 1) {
      await clock.advance(1_000);
      await failure(request(`customer.c${second}`));
    }
    expect(state.readings).toBe(2);
    state.source = 'new';
    await clock.advance(1_000);
    expect(await request()).toMatchObject({ scope: 'api' });
    expect(state.readings).toBe(3);
  });

  it('of a text cannot change: nobody waits for it', async () => {
    const { begin } = await setUpRotated('text');
    const [call] = await begin('api');
    expect(await failure(call.ends)).toMatchObject({ error: 'invalid_client' });
  });
});

describe('the source of the secret', () => {
  it.each<[string, () => string | Promise<string>]>([
    [
      'throws',
      () => {
        throw new Error(`vault says ${SECRET}`);
      },
    ],
    ['rejects', () => Promise.reject(new Error(`vault says ${SECRET}`))],
    ['gives nothing', () => ''],
    ['gives no text', () => undefined as unknown as string],
  ])('%s: an error of ours, without its words', async (_name, source) => {
    const { server, request } = await setUp({ answer: () => granted('api'), source });
    const error = await failure(request());
    expect(error).toMatchObject({ code: 'client_secret_unavailable' });
    expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/vault/);
    expect(server.arrived).toHaveLength(0);
  });

  it('does not answer: given up after 8 s', async () => {
    const { request, clock } = await setUp({
      answer: () => granted('api'),
      source: () => new Promise(() => undefined),
    });
    const waiting = failure(request());
    await clock.advance(7_999);
    expect(clock.timers).toBe(1);
    await clock.advance(1);
    const error = await waiting;
    expect(error).toMatchObject({ code: 'client_secret_unavailable' });
    expect(String(error)).toContain('longer than 8 s');
    expect(clock.timers).toBe(0);
  });

  it('is asked once by callers that come together', async () => {
    let asked = 0;
    const { request } = await setUp({
      answer: ({ form }) => granted(form.get('scope')),
      source: async () => ((asked += 1), SECRET),
    });
    await Promise.all(Array.from({ length: 20 }, (_, n) => request(`customer.c${n}`)));
    expect(asked).toBe(1);
  });
});

describe('a secret that is read again after a refusal', () => {
  /** A vault that answers each reading when the test says so. */
  function setUp() {
    const readings: { answer: (secret: string) => void; fail: () => void }[] = [];
    const clock = new FakeClock();
    const read = () =>
      new Promise<Secret>((resolve, reject) => {
        const answer = (secret: string): void => resolve(new Secret(secret));
        readings.push({ answer, fail: () => reject(new Error('sealed')) });
      });
    const secret = new ClientSecret(read, clock, String);
    /** It has been read, and was refused: a reading `ageMs` later begins anew. */
    const refusedAfter = async (ageMs: number): Promise<Secret> => {
      const first = secret.read();
      await settle();
      readings[0].answer('old');
      await clock.advance(ageMs);
      return first;
    };
    return { clock, readings, secret, refusedAfter };
  }

  it('a refused secret that was read again meanwhile, for another scope, is read once more', async () => {
    const { readings, secret, refusedAfter } = setUp();
    const refused = await refusedAfter(1_500);
    const second = secret.read();
    await settle();
    readings[1].answer('old');
    await second;
    const renewed = secret.readAfterRefusal(refused);
    await settle();
    readings[2].answer('new');
    expect((await renewed).reveal()).toBe('new');
  });

  it('a reading that was under way when the secret was refused may be older than the rotation', async () => {
    const { readings, secret, refusedAfter } = setUp();
    const refused = await refusedAfter(1_500);
    const underWay = secret.read();
    await settle();
    const both = [secret.readAfterRefusal(refused), secret.readAfterRefusal(refused)];
    readings[1].answer('old');
    await underWay;
    await settle();
    // One for both.
    expect(readings).toHaveLength(3);
    readings[2].answer('new');
    for (const renewed of both) expect((await renewed).reveal()).toBe('new');
  });

  it('a reading under way that brings another secret is enough', async () => {
    const { readings, secret, refusedAfter } = setUp();
    const refused = await refusedAfter(1_500);
    void secret.read();
    const renewed = secret.readAfterRefusal(refused);
    await settle();
    readings[1].answer('new');
    expect((await renewed).reveal()).toBe('new');
    expect((await secret.readAfterRefusal(refused)).reveal()).toBe('new');
    expect(readings).toHaveLength(2);
  });

  it('a source that fails is not asked twice: the refusal stays the outcome', async () => {
    const { readings, secret, refusedAfter } = setUp();
    const refused = await refusedAfter(1_500);
    const underWay = secret.read();
    const renewed = secret.readAfterRefusal(refused).catch(() => 'failed');
    await settle();
    readings[1].fail();
    expect([await underWay, await renewed]).toEqual([refused, 'failed']);
    expect(readings).toHaveLength(2);
  });

  it('a source that fails between two refusals leaves the last secret in use, and is asked by the next request', async () => {
    const { readings, secret, refusedAfter } = setUp();
    const last = await refusedAfter(1_500);
    for (const reading of [1, 2]) {
      const read = secret.read();
      await settle();
      readings[reading].fail();
      expect(await read).toBe(last);
    }
    const read = secret.read();
    await settle();
    readings[3].answer('new');
    expect((await read).reveal()).toBe('new');
  });

  it('of a refusal that is remembered, one reading since is enough, also one that failed', async () => {
    const { clock, readings, secret, refusedAfter } = setUp();
    const refused = await refusedAfter(100);
    const refusedAt = clock.monotonic();
    const both = [secret.readAfterRefusal(refused), secret.readAfterRefusal(refused, refusedAt)];
    await settle();
    expect(readings).toHaveLength(2);
    readings[1].answer('old');
    for (const renewed of both) expect((await renewed).reveal()).toBe('old');
    await clock.advance(2_000);
    for (let caller = 0; caller < 100; caller += 1) await secret.readAfterRefusal(refused, refusedAt);
    expect(readings).toHaveLength(2);
    const again = secret.readAfterRefusal(refused, clock.monotonic()).catch(() => 'failed');
    await settle();
    readings[2].fail();
    expect(await again).toBe('failed');
    expect((await secret.readAfterRefusal(refused, clock.monotonic())).reveal()).toBe('old');
    expect(readings).toHaveLength(3);
  });

  it('a reading that began before the remembered refusal is followed by one, which all share', async () => {
    const { clock, readings, secret, refusedAfter } = setUp();
    const refused = await refusedAfter(1_500);
    void secret.read();
    await clock.advance(100);
    const refusedAt = clock.monotonic();
    const all = [
      secret.readAfterRefusal(refused),
      ...[1, 2].map(() => secret.readAfterRefusal(refused, refusedAt)),
    ];
    await settle();
    readings[1].answer('old');
    await settle();
    expect(readings).toHaveLength(3);
    readings[2].answer('new');
    for (const renewed of all) expect((await renewed).reveal()).toBe('new');
  });
});

describe('an idle connection that is dead', () => {
  const closed = { kind: 'reset', phase: 'sent', reusedSocket: true } as const;
  const silent = { kind: 'timeout', phase: 'sent', reason: 'ERR_OLD_CONNECTION_TIMEOUT' } as const;

  const failingFirst = (...faults: ExchangeFaultDetails[]) => {
    const requests: ExchangeRequest[] = [];
    const events: ServiceCallEvent[] = [];
    const exchange: Exchange = async (asked) => {
      requests.push(asked);
      const fault = faults.shift();
      if (fault) throw new ExchangeFault(fault);
      const body = Buffer.from(JSON.stringify(granted('api').body));
      return { status: 200, statusText: '', headers: {}, body, untilClose: false };
    };
    const onCall = (event: ServiceCallEvent) => void events.push(event);
    return { ...endpointAt({ url: 'https://auth.example', exchange, onCall }), requests, events };
  };

  it.each([
    ['closed by the server', closed],
    ['silent for 5 s', silent],
  ])(
    '%s: the request is made again at once, on one that is surely alive; the event counts both',
    async (_, fault) => {
      const { request, requests, events } = failingFirst(fault);
      expect(await request()).toMatchObject({ accessToken: 'token' });
      expect(
        requests.map(({ mayRepeat, oldConnectionTimeoutMs }) => [mayRepeat, oldConnectionTimeoutMs]),
      ).toEqual([
        [true, 5_000],
        [false, 5_000],
      ]);
      expect(events).toMatchObject([{ kind: 'token', attempts: 2, status: 200 }]);
    },
  );

  it.each([
    ['twice', [closed, closed], 2],
    ['but it was a new one', [{ ...closed, reusedSocket: false }], 1],
    ['but an answer had begun', [{ ...closed, phase: 'reading' as const }], 1],
  ])('%s: the fault is told', async (_, faults, attempts) => {
    const { request, requests } = failingFirst(...faults);
    expect(await failure(request())).toMatchObject({ kind: 'reset' });
    expect(requests).toHaveLength(attempts);
  });
});

describe('with oauth.mtls', () => {
  interface Shown {
    authority: Authority;
    /** The only one that the endpoint accepts. */
    accepted?: Issued;
    first: Issued;
    /** What is in use after the identity was read again. */
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
    // To a certificate it does not trust, Node's server says nothing: a missing one is what brings an alert.
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
      reloadAfterRefusal: async (certificate) => {
        refused.push(certificate?.subject);
        show(second ?? first);
        return second !== undefined;
      },
    };
    cleanUp.push(() => live.close());
    const { request } = endpointAt({ url: `${live.url}/oauth2/token`, agent, identity });
    return { live, refused, request };
  }

  it('a certificate that is refused is read again once, and the request made again with another one', async () => {
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

  it('with none other, or another that is refused too: an error that names it', async () => {
    const authority = await createAuthority();
    const [first, second] = await Promise.all([authority.client('old'), authority.client('new')]);
    for (const [after, named] of [
      [undefined, 'CN=old'],
      [second, 'CN=new'],
    ] as const) {
      const { refused, request } = await setUpMtls({ authority, first, second: after });
      const error = await failure(request());
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect(error).toMatchObject({ code: 'certificate_refused', certificate: { subject: named } });
      expect(error.message).toMatch(/ALERT|EPROTO/);
      expect(refused).toEqual(['CN=old']);
    }
  });
});

describe('with oauth.mtls, a handshake that ends without a word about the certificate', () => {
  /** Ends each handshake, with the alert if there is one, before a session ticket. */
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
    const reloadAfterRefusal: RefusedIdentity['reloadAfterRefusal'] = (refused, ...how) => {
      again.push([refused?.subject, ...how]);
      return identity.reloadAfterRefusal(refused, ...how);
    };
    const endpoint = endpointAt({
      url: `${live.url}/oauth2/token`,
      agent: new https.Agent({ ca }),
      identity: Object.defineProperty(Object.create(identity) as RefusedIdentity, 'reloadAfterRefusal', {
        value: reloadAfterRefusal,
      }),
    });
    return { ...endpoint, again };
  }

  it('40 (Erlang/OTP): the certificate is refused, and read again once', async () => {
    const { request } = await setUpAlert(40, ['old', 'new']);
    const error = await failure(request());
    expect(error).toMatchObject({ code: 'certificate_refused', certificate: { fingerprint256: 'new' } });
  });

  it('80 (stunnel): the certificate is read again, and the hint names it', async () => {
    const { request } = await setUpAlert(80, ['only']);
    const error = await failure(request());
    expect(error).toMatchObject({ code: 'connection_tls', options: ['tls.certificate'] });
    expect(said(error)).toMatch(/may have refused the client certificate.*Check tls\.certificate/);
  });

  it('no alert (Node, uvicorn): the files are read again, and the message names both causes', async () => {
    const { request, again } = await setUpAlert(undefined, ['old', 'new']);
    const error = await failure(request());
    expect(error).toMatchObject({ code: 'connection_reset', options: ['tls.certificate'], retryable: true });
    expect(said(error)).toMatch(/refused the client certificate .*, or it crashed or restarted/);
    // A function is not called for it.
    expect(again).toEqual([['CN=old', false, true]]);
  });
});

/** The identity of oauth.mtls; it has the next certificate in use once it was read again. */
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
    reloadAfterRefusal: async () => certificates.length > 1 && certificates.shift() !== undefined,
  };
}

describe('a proxy before the endpoint that answers with a page', () => {
  const HTML = { 'content-type': 'text/html' };
  const denied: ServerAnswer = { status: 403, headers: HTML, body: '<h1>403 Forbidden</h1>' };
  const missing: ServerAnswer = { status: 496, headers: HTML, body: '<h1>496</h1>' };
  const named: ServerAnswer = { status: 400, headers: HTML, body: 'No required SSL certificate was sent' };

  it.each([
    ['496', missing],
    ['400 that names the certificate', named],
    ['403 that does not say why', denied],
  ])('%s: the certificate is read again, and the request made again with another one', async (_, page) => {
    const identity = identityOf('old', 'new');
    const { server, request } = await setUp({
      answer: ({ form }, number) => (number === 1 ? page : granted(form.get('scope'))),
      identity,
    });
    expect(await request()).toMatchObject({ accessToken: 'token' });
    expect(server.arrived).toHaveLength(2);
  });

  it('of a certificate that has worked: all requests wait for the next one, without sending', async () => {
    const validTo = new Date(Date.now() + 86_400_000);
    const reloads: [string | undefined, boolean | undefined][] = [];
    let found = (): void => undefined;
    const identity = {
      certificate: { subject: 'CN=a', issuer: 'CN=i', fingerprint256: 'old', validFrom: new Date(), validTo },
      reloadAfterRefusal: (refused?: { fingerprint256: string }, mayWait?: boolean) => {
        reloads.push([refused?.fingerprint256, mayWait]);
        return new Promise<boolean>((resolve) => (found = () => resolve(true)));
      },
    };
    const { server, request } = await setUp({
      answer: ({ form }, number) =>
        number > 1 && identity.certificate.fingerprint256 === 'old' ? missing : granted(form.get('scope')),
      identity,
    });
    await request();
    const first = request('customer.c1');
    await until(() => reloads.length === 1);
    const second = request('customer.c2');
    for (let turn = 0; turn < 20; turn += 1) await settle();
    expect([reloads, server.arrived.length]).toEqual([[['old', true]], 2]);
    identity.certificate = { ...identity.certificate, fingerprint256: 'new' };
    found();
    expect([(await first).scope, (await second).scope]).toEqual(['customer.c1', 'customer.c2']);
    expect(server.arrived).toHaveLength(4);
  });

  it.each([
    ['496', missing],
    ['400 that names the certificate', named],
  ])('%s, and no other certificate: a credential fault that names it', async (_, page) => {
    const { server, request } = await setUp({ answer: () => page, identity: identityOf('only') });
    const error = await failure(request());
    expect(error).toMatchObject({ code: 'certificate_refused', certificate: { fingerprint256: 'only' } });
    expect(error.message).toMatch(/CN=only.*HTTP 4/);
    expect(server.arrived).toHaveLength(1);
  });

  it('403 of Apache, which asks for the certificate after the request: names that cause', async () => {
    const body = '<h1>Forbidden</h1>Reason: Cannot perform Post-Handshake Authentication.';
    const { request } = await setUp({ answer: () => ({ ...denied, body }) });
    const error = await failure(request());
    expect(error).toMatchObject({ code: 'token_unavailable', options: ['urls.authUrl'] });
    expect(said(error)).toMatch(/asks for the client certificate after the request.*SSLVerifyClient/);
  });

  it.each([
    ['403 that does not say why', denied],
    ['400 that asks for a certificate, and none is offered', named],
  ])('%s: no verdict on the secret; names oauth.mtls', async (_, page) => {
    const { request } = await setUp({ answer: () => page });
    const error = await failure(request());
    expect(error).toMatchObject({ code: 'token_unavailable' });
    expect(said(error)).toMatch(/swapped\..*oauth\.mtls.*oauth\.clientSecret/);
    expect(error.message).not.toContain('Forbidden');
  });
});
