import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { decodeJwt } from 'jose';
import { once } from 'node:events';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { inspect } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { routeOf } from '../../../lib/http/call-url.js';
import { type AnswerFault, type FaultRule } from '../../../lib/testing/faults.js';
import { knownApiRoutes } from '../../../lib/testing/known-api-routes.js';
import { type SimulatorFace } from '../../../lib/testing/request-log.js';
import { type ServiceSimulator } from '../../../lib/testing/simulator.js';
import { type SimulatorAddress } from '../../../lib/testing/simulator.options.js';
import { TLS_ALERTS, type TlsAlert } from '../../../lib/testing/servers/client-certificate.js';
import { TokenIssuer, type TokenSubject } from '../../../lib/testing/token-issuer.js';
import { deadPort } from '../../helpers/loopback.js';
import { onBun } from '../../helpers/on-bun.js';
import {
  sendWithoutClient,
  type CallOptions,
  failCode,
  keptAliveAgent,
  requestToken,
} from '../../helpers/plain-client.js';
import { simulatorsOfBlock } from '../../helpers/simulators.js';
import { TimerCount } from '../../helpers/timer-count.js';

/** The body of an error answer, as the service's. */
const FAILURE = {
  timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  status: expect.any(String),
  message: expect.any(String),
  metadata: null,
};

type Headers = Record<string, string>;
type MadeHeaders = () => Headers | Promise<Headers>;

const start = simulatorsOfBlock();
let simulator: ServiceSimulator;
let appToken: Headers;

beforeAll(async () => {
  simulator = await start();
  appToken = { 'service-app-token': simulator.appToken };
});
afterEach(() => {
  simulator.clearFaults();
  simulator.clearRequests();
});

const bearer = async (...parameters: Parameters<ServiceSimulator['issueToken']>) => ({
  authorization: `Bearer ${await simulator.issueToken(...parameters)}`,
});

/** A call of the sandbox, with the app token. */
const send = (path: string, { headers, ...options }: CallOptions = {}) =>
  sendWithoutClient(simulator, simulator.urls.sandboxUrl + path, {
    headers: { ...appToken, ...headers },
    ...options,
  });

describe('Start and stop of ServiceSimulator', () => {
  const sockets = () => process.getActiveResourcesInfo().filter((name) => /TCP|TLS/.test(name)).length;

  it('stop() ends connections, hanging requests and timers, and can be called again', async () => {
    const socketsBefore = sockets();
    const timers = new TimerCount();
    const own = await start({ delayMs: { 'sandbox-mtls': 60_000 } });
    const agent = keptAliveAgent(own, own.application);
    await sendWithoutClient(own, `${own.urls.sandboxUrl}/echo/v1`, { agent });
    own.fail({ fault: 'hang' });
    const hanging = failCode(sendWithoutClient(own, `${own.urls.baseUrl}/echo/v1`));
    await own.waitForRequest(({ face }) => face === 'base');
    own.fail({ fault: { trickleMs: 10 } });
    const trickling = failCode(sendWithoutClient(own, `${own.urls.baseUrl}/echo/v1`));
    const delayed = failCode(
      sendWithoutClient(own, `${own.urls.sandboxMtlsUrl}/echo/v1`, { certificate: own.application }),
    );
    await own.waitForRequest(({ face }) => face === 'sandbox-mtls');
    await own.waitForRequest(({ status }) => status === undefined);
    const waiting = own.waitForRequest(() => false).catch((error: Error) => error.message);
    expect(own.openConnections).toBeGreaterThanOrEqual(3);
    own.fail({ face: 'sandbox', fault: { tlsAlert: 'unknown_ca' } });
    expect(await failCode(sendWithoutClient(own, own.urls.sandboxUrl))).toContain('UNKNOWN_CA');
    // The timers of the late response, of the trickle, of waitForRequest() and of the alert.
    expect(timers.running).toBeGreaterThanOrEqual(4);

    await Promise.all([own.stop(), own.stop()]);
    await own[Symbol.asyncDispose]();
    agent.destroy();
    expect(await Promise.all([hanging, trickling, delayed])).toEqual(Array(3).fill('ECONNRESET'));
    expect(await waiting).toBe('The simulator was stopped');
    expect([own.openConnections, timers.running]).toEqual([0, 0]);
    timers.restore();
    // Node closes them in its own time.
    while (sockets() > socketsBefore) await new Promise(setImmediate);
    expect(await failCode(sendWithoutClient(own, own.urls.baseUrl))).toBe('ECONNREFUSED');
    expect(own.requests.length).toBeGreaterThan(0);
  });

  it('start() uses the given ports and credentials', async () => {
    const port = await deadPort();
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    await expect(start({ ports: { sandboxUrl: port } })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await new Promise((resolve) => server.close(resolve));
    const clientId = '7d6e7a5e-58a5-4f6d-9d29-02c2cf0a2d0f';
    const given = { clientId, clientSecret: 'secret', appToken: 'token' };
    const own = await start({ ports: { sandboxUrl: port }, ...given });
    expect(own.urls.sandboxUrl).toBe(`https://127.0.0.1:${port}`);
    expect(own).toMatchObject(given);
  });

  const hasIPv6 = Object.values(networkInterfaces())
    .flat()
    .some((each) => each?.address === '::1');
  it.each([
    [undefined, '127.0.0.1'],
    ['127.0.0.2', '127.0.0.2'],
    ...(hasIPv6 ? [['::1', '[::1]'] as const, ['::', '127.0.0.1'] as const] : []),
  ])('with host %s listens at its own addresses only', async (host, inAddresses) => {
    const own = await start({ host });
    const { sandboxUrl } = own.urls;
    expect(sandboxUrl).toMatch(`https://${inAddresses}:`);
    expect((await sendWithoutClient(own, sandboxUrl)).status).toBe(401);
    const elsewhere = failCode(sendWithoutClient(own, sandboxUrl.replace(/\/\/.*:/, '//127.0.0.3:')));
    expect(await elsewhere).toBe(host === '::' ? 'ERR_TLS_CERT_ALTNAME_INVALID' : 'ECONNREFUSED');
  });

  it.each([{ host: 'localhost' }, { serverNames: ['a', 'one,two'] }])(
    'start() refuses %j',
    async (options) => {
      await expect(start(options)).rejects.toThrow(/^(host|serverNames).* not '(localhost|one,two)'\./);
    },
  );

  it('two simulators share nothing', async () => {
    const other = await start();
    const headers = await bearer();
    expect((await sendWithoutClient(other, `${other.urls.baseUrl}/banks/v1`, { headers })).status).toBe(401);
    expect([simulator.requests.length, other.requests.length]).toEqual([0, 1]);
    expect(other.clientId).not.toBe(simulator.clientId);
    expect(other.appToken).not.toBe(simulator.appToken);
  });

  it('goes on if a callback throws, and reports the error', async () => {
    const mistake = () => {
      throw new Error('mistake of the test');
    };
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const own = await start({ onRequest: mistake, onRefusal: mistake });
    const waiting = expect(own.waitForRequest(mistake)).rejects.toThrow('mistake of the test');
    expect((await sendWithoutClient(own, `${own.urls.sandboxUrl}/banks/v1`)).status).toBe(401);
    await waiting;
    await expect(own.waitForRequest(mistake)).rejects.toThrow('mistake of the test');
    expect(await failCode(sendWithoutClient(own, own.urls.sandboxMtlsUrl))).toContain('CERTIFICATE_REQUIRED');
    for (const name of ['onRequest', 'onRefusal']) {
      const text = `${name} of ServiceSimulator threw: Error: mistake of the test`;
      while (!warned.mock.calls.some(([warning]) => String(warning).startsWith(text)))
        await new Promise(setImmediate);
    }
    warned.mockRestore();
  });

  it('prints no keys except that of the application certificate', () => {
    const printed = inspect(simulator, { depth: 20, showHidden: true });
    expect(printed).not.toContain(simulator.clientSecret);
    expect(printed.match(/PRIVATE KEY/g)?.length ?? 0).toBeLessThanOrEqual(2);
  });
});

describe('Recorded requests of ServiceSimulator', () => {
  it('resolve waitForRequest() for past and future requests, within a time limit', async () => {
    const coming = simulator.waitForRequest(({ path }) => path === '/second');
    await send('/first', { headers: { 'service-app-token': 'wrong' } });
    await send('/second');
    expect((await coming).path).toBe('/second');
    expect((await simulator.waitForRequest(({ path }) => path === '/first')).status).toBe(403);
    await expect(simulator.waitForRequest(() => false, 10)).rejects.toThrow(
      'No matching request arrived within 10 ms. The last requests: sandbox GET /first, sandbox GET /second',
    );
  });

  it('are limited in number, live, and as they arrived', async () => {
    const own = await start({ maxRequests: 4 });
    const { requests } = own;
    for (const path of ['/1', '/2', '/3', '/4', '/5?q=%20'])
      await sendWithoutClient(own, own.urls.sandboxUrl + path, { headers: { 'X-Mixed': 'Case' } });
    expect(requests.map(({ path }) => path)).toEqual(['/3', '/4', '/5?q=%20']);
    expect(requests[0]).toMatchObject({ status: 401, headers: { 'x-mixed': 'Case' } });
    expect(requests[0].rawHeaders).toContain('X-Mixed');
    own.clearRequests();
    expect(requests).toEqual([]);
  });

  it('contain the form of a token request as it arrived', async () => {
    await requestToken(simulator);
    const { clientId: client_id, clientSecret: client_secret } = simulator;
    const form = { client_id, client_secret, grant_type: 'client_credentials', scope: 'api' };
    expect(simulator.tokenRequests).toMatchObject([
      { method: 'POST', path: '/oauth2/token', form, status: 200 },
    ]);
  });
});

describe('moduleOptions() and env() of ServiceSimulator', () => {
  it('are complete for production mTLS by default, with the same values in env(), each on one line', () => {
    const { certificate, privateKey } = simulator.application;
    expect(simulator.moduleOptions()).toEqual({
      environment: 'production',
      authentication: 'mtls',
      urls: simulator.urls,
      appToken: simulator.appToken,
      tls: { certificate, privateKey, chain: simulator.chain },
      webhook: { secret: simulator.webhookSecret },
    });
    expect(new Set(Object.values(simulator.urls)).size).toBe(6);
    const env = simulator.env();
    expect(env).toEqual({
      SERVICE_ENVIRONMENT: 'production',
      SERVICE_AUTHENTICATION: 'mtls',
      SERVICE_BASE_URL: simulator.urls.baseUrl,
      SERVICE_SANDBOX_URL: simulator.urls.sandboxUrl,
      SERVICE_SANDBOX_MTLS_URL: simulator.urls.sandboxMtlsUrl,
      SERVICE_AUTH_URL: simulator.urls.authUrl,
      SERVICE_SANDBOX_AUTH_URL: simulator.urls.sandboxAuthUrl,
      SERVICE_APP_TOKEN: simulator.appToken,
      SERVICE_CLIENT_ID: simulator.clientId,
      SERVICE_CLIENT_SECRET: simulator.clientSecret,
      SERVICE_TLS_CERTIFICATE: certificate.replaceAll('\n', '\\n'),
      SERVICE_TLS_PRIVATE_KEY: privateKey.replaceAll('\n', '\\n'),
      SERVICE_TLS_CHAIN: simulator.chain.replaceAll('\n', '\\n'),
      SERVICE_WEBHOOK_SECRET: simulator.webhookSecret,
    });
    expect(Object.values(env).join('')).not.toContain('\n');
    const named = simulator.env({ environment: 'sandbox', name: 'ksa' });
    expect(named.SERVICE_KSA_AUTHENTICATION).toBe('app-token');
    expect(Object.keys(named).every((key) => key.startsWith('SERVICE_KSA_'))).toBe(true);
  });

  it.each([
    [{ environment: 'sandbox' }, 'app-token', false, false],
    [{ environment: 'sandbox', authentication: 'mtls' }, 'mtls', false, true],
    [{ environment: 'sandbox', authentication: 'oauth' }, 'oauth', true, false],
    [{ environment: 'sandbox', authentication: 'oauth', clientCertificate: true }, 'oauth', true, true],
    [{ environment: 'production', oauth: true }, 'mtls', true, true],
    [{ environment: 'production', authentication: 'oauth' }, 'oauth', true, false],
  ] as const)('fit the mode %j', (mode, authentication, oauth, certificate) => {
    const options = simulator.moduleOptions(mode);
    expect(options).toMatchObject({ environment: mode.environment, authentication });
    const { clientId, clientSecret } = simulator;
    expect(options.oauth).toEqual(oauth ? { clientId, clientSecret } : undefined);
    expect(Object.keys(options.tls).sort()).toEqual(
      certificate ? ['certificate', 'chain', 'privateKey'] : ['chain'],
    );
    // All credentials in each mode.
    const { SERVICE_ENVIRONMENT, SERVICE_AUTHENTICATION, ...rest } = simulator.env(mode);
    expect([SERVICE_ENVIRONMENT, SERVICE_AUTHENTICATION]).toEqual([mode.environment, authentication]);
    expect(simulator.env()).toMatchObject(rest);
  });

  it('accept another certificate and mTLS for the token endpoint, and leave out what the mode excludes', async () => {
    const given = await simulator.issueCertificate({ passphrase: 'pass' });
    const mode = { authentication: 'oauth', certificate: given, oauthMtls: true } as const;
    const { certificate, privateKey, passphrase } = given;
    const options = simulator.moduleOptions({ ...mode, oauthBaseUrl: false });
    expect(options.tls).toEqual({ certificate, privateKey, passphrase, chain: simulator.chain });
    expect(options.oauth).toMatchObject({ mtls: true });
    expect(options.urls).not.toHaveProperty('oauthBaseUrl');
    expect(simulator.env(mode).SERVICE_TLS_CERTIFICATE).toBe(certificate.replaceAll('\n', '\\n'));
    const without = { oauth: false, clientCertificate: false } as const;
    const less = simulator.env({ environment: 'sandbox', ...without, oauthBaseUrl: true });
    expect(less).toHaveProperty('SERVICE_OAUTH_BASE_URL', simulator.urls.oauthBaseUrl);
    expect(Object.keys(less).filter((name) => /_CLIENT_|_TLS_/.test(name))).toEqual(['SERVICE_TLS_CHAIN']);
    const withoutOAuth = await start({ oauth: { enabled: false } });
    expect(withoutOAuth.env()).not.toHaveProperty('SERVICE_CLIENT_ID');
  });
});

describe('API of ServiceSimulator', () => {
  it.each<[SimulatorAddress, SimulatorFace, string, MadeHeaders]>([
    ['sandboxUrl', 'sandbox', 'the app token', () => appToken],
    ['baseUrl', 'base', 'a bearer', () => bearer()],
    ['oauthBaseUrl', 'oauth-base', 'a bearer', () => bearer()],
    ['sandboxUrl', 'sandbox', 'a bearer', () => bearer({ environment: 'sandbox' })],
    ['sandboxMtlsUrl', 'sandbox-mtls', 'a bearer', () => bearer({ environment: 'sandbox' })],
  ])('accepts at %s, the face %s, %s', async (address, face, _, made) => {
    const headers = await made();
    const certificate = face === 'sandbox-mtls' ? simulator.application : undefined;
    const url = `${simulator.urls[address]}/banks/v1`;
    expect((await sendWithoutClient(simulator, url, { headers, certificate })).status).toBe(200);
    expect(simulator.apiRequests.map((each) => each.face)).toEqual([face]);
  });

  it.each<[string, SimulatorAddress, MadeHeaders, number]>([
    ['no app token', 'sandboxUrl', () => ({}), 401],
    ['a wrong app token', 'sandboxUrl', () => ({ 'service-app-token': 'wrong' }), 403],
    ['another scheme', 'sandboxUrl', () => ({ authorization: 'Basic eDp5' }), 401],
    ['two words', 'sandboxUrl', () => ({ authorization: 'Bearer x y' }), 401],
    ['a bearer that is no token', 'baseUrl', () => ({ authorization: 'Bearer x.y.z' }), 401],
    ['an expired bearer', 'baseUrl', () => bearer({ lifetime: -1 }), 401],
    ['a foreign bearer', 'baseUrl', () => bearer({ foreign: true }), 401],
    ['a bearer of the other environment', 'baseUrl', () => bearer({ environment: 'sandbox' }), 401],
    ['a customer token', 'baseUrl', () => bearer({ scope: 'customer.c-1' }), 403],
    ['an app token', 'oauthBaseUrl', () => appToken, 401],
  ])('refuses %s at %s', async (_, address, made, status) => {
    const headers = await made();
    const refused = await sendWithoutClient(simulator, `${simulator.urls[address]}/banks/v1`, { headers });
    expect([refused.status, refused.json]).toEqual([status, FAILURE]);
    if (address === 'baseUrl') expect(refused.headers['www-authenticate']).toMatch(/^Bearer error=/);
    expect(simulator.requests).toMatchObject([{ status }]);
  });

  it('refuses app token and bearer together at every address, and names the header', async () => {
    for (const [address, environment] of [
      ['baseUrl', 'production'],
      ['oauthBaseUrl', 'production'],
      ['sandboxUrl', 'sandbox'],
      ['sandboxMtlsUrl', 'sandbox'],
    ] as const) {
      const headers = { ...appToken, ...(await bearer({ environment })) };
      const certificate = simulator.application;
      const url = `${simulator.urls[address]}/banks/v1`;
      const message = "Do not supply a 'service-app-token' header when providing an 'Authorization' header";
      expect(await sendWithoutClient(simulator, url, { headers, certificate })).toMatchObject({
        status: 400,
        json: { ...FAILURE, status: 'INVALID_PARAMETERS', message },
      });
    }
  });

  it.each(['//elsewhere/banks/v1', '/x/../banks/v1', '/x/%2e%2e/banks/v1', '/./banks/v1', '//banks/v1'])(
    'responds with 404 to %s, because it does not normalise paths',
    async (path) => {
      expect((await send('', { path })).status).toBe(404);
      expect(simulator.requests).toMatchObject([{ path }]);
    },
  );

  it('refuses a token with an additional part and revoked tokens, and accepts later ones', async () => {
    const status = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      return (await sendWithoutClient(simulator, `${simulator.urls.baseUrl}/banks/v1`, { headers })).status;
    };
    const [one, two] = [await simulator.issueToken(), await simulator.issueToken()];
    expect([await status(one), await status(two), await status(`${one}.x`)]).toEqual([200, 200, 401]);
    simulator.revokeTokens();
    const later = await simulator.issueToken();
    expect([await status(one), await status(two), await status(later)]).toEqual([401, 401, 200]);
  });

  const json = { 'content-type': 'application/json' };
  const create = (body: string | undefined, headers = json) =>
    send('/customers/v1', { method: 'POST', headers, body });

  it('creates one customer for each app_user_id and environment', async () => {
    const body = '{"app_user_id":"u-1"}';
    const created = await create(body);
    expect(created.status).toBe(201);
    expect(created.json).toMatchObject({ app_user_id: 'u-1', customer_id: expect.any(String) });
    for (const wrong of [undefined, '{}', '[]', '{"app_user_id":""}', '{"app_user_id":1}', '{not json'])
      expect((await create(wrong)).status).toBe(400);
    expect((await create(body, { 'content-type': 'text/plain' })).status).toBe(400);
    expect(simulator.customers).toEqual([created.json]);
    expect(await create(body)).toMatchObject({
      status: 409,
      json: { ...FAILURE, status: 'CUSTOMER_ALREADY_EXISTS' },
    });
    const certificate = simulator.application;
    const production = { method: 'POST', headers: { ...appToken, ...json }, body, certificate };
    expect(
      (await sendWithoutClient(simulator, `${simulator.urls.baseUrl}/customers/v1`, production)).status,
    ).toBe(201);
    expect(simulator.customers).toHaveLength(2);
  });

  it('lists banks with and without a slash at the end of the path', async () => {
    for (const path of ['/banks/v1', '/banks/v1/', '/banks/v1?limit=1'])
      expect((await send(path)).json).toHaveLength(10);
    expect(simulator.requests.map(({ path }) => path)).toEqual([
      '/banks/v1',
      '/banks/v1/',
      '/banks/v1?limit=1',
    ]);
  });

  it.each([
    ['DELETE', '/banks/v1', 405, 'GET'],
    ['GET', '/accounts/v1', 404, undefined],
    ['HEAD', '/banks/v1', 200, undefined],
    ['HEAD', '/customers/v1', 405, 'POST'],
    ['HEAD', '/none/v1', 404, undefined],
    ['HEAD', '/echo/v1', 200, undefined],
  ])('responds to %s %s with %d', async (method, path, status, allow) => {
    const response = await send(path, { method });
    expect([response.status, response.headers.allow]).toEqual([status, allow]);
    if (method === 'HEAD') expect(response.body).toBe('');
    expect(simulator.requests).toMatchObject([{ method, status }]);
  });

  it('echoes requests of any method, without credentials and with the requested status', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      const [body, json] = method === 'GET' ? [] : ['{"b":2}', { b: 2 }];
      const headers = { 'x-own': 'y', 'content-type': 'application/json' };
      const echoed = (await send('/echo/v1/deeper?a=1', { method, headers, body })).json;
      const shown = { method, path: '/echo/v1/deeper', query: { a: '1' }, headers: { 'x-own': 'y' } };
      expect(echoed).toMatchObject(shown);
      expect(echoed.json).toEqual(json);
      expect(JSON.stringify(echoed)).not.toContain(simulator.appToken);
    }
    const echo = (status: string) => send(`/echo/v1?status=${status}`);
    expect(await echo('204')).toMatchObject({ status: 204, body: '' });
    expect(await echo('422')).toMatchObject({ status: 422, json: { status: 'ECHO_422' } });
    for (const none of ['x', '199', '600', '200.5']) expect((await echo(none)).status).toBe(400);
  });

  it('checks both credentials if it is configured to accept both', async () => {
    const other = await start({ refuseBoth: false });
    const status = async (token: string, subject = {}) => {
      const authorization = `Bearer ${await other.issueToken(subject)}`;
      const headers = { 'service-app-token': token, authorization };
      return (await sendWithoutClient(other, `${other.urls.baseUrl}/banks/v1`, { headers })).status;
    };
    expect(await status(other.appToken)).toBe(200);
    expect(await status(other.appToken, { foreign: true })).toBe(401);
    expect(await status('wrong')).toBe(403);
  });

  it('uses another header, a base path and other banks if configured', async () => {
    const other = await start({ appTokenHeader: 'X-App', basePath: '/api/', banks: false });
    const headers = { 'x-app': other.appToken };
    const { sandboxUrl } = other.urls;
    expect(sandboxUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/api$/);
    expect(await sendWithoutClient(other, `${sandboxUrl}/banks/v1`, { headers })).toMatchObject({
      status: 200,
      json: false,
    });
    expect(
      (await sendWithoutClient(other, `${new URL(sandboxUrl).origin}/banks/v1`, { headers })).status,
    ).toBe(404);
    other.answer('GET', '/own/v1', { json: 'own' });
    other.fail({ path: '/api/own/v1', fault: { delayMs: 1 } });
    expect((await sendWithoutClient(other, `${sandboxUrl}/own/v1`, { headers })).json).toBe('own');
  });
});

describe('Token endpoint of ServiceSimulator', () => {
  it('issues a new token each time, with the configured lifetime', async () => {
    simulator.tokenLifetime = 120;
    const response = await requestToken(simulator);
    expect(response).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
    const access_token: unknown = expect.any(String);
    expect(response.json).toEqual({ access_token, token_type: 'bearer', expires_in: 120, scope: 'api' });
    simulator.tokenLifetime = 7;
    const { json } = await requestToken(simulator);
    expect(json.expires_in).toBe(7);
    expect(json.access_token).not.toBe(response.json.access_token);
    simulator.tokenLifetime = 120;
  });

  it("issues claims like the service's own, without the requested scope", async () => {
    const { clientId } = simulator;
    const ofApi = decodeJwt((await requestToken(simulator)).json.access_token);
    expect(ofApi).toEqual({
      sub: clientId,
      aud: clientId,
      iss: expect.any(String),
      scope: expect.arrayContaining(['customer.read', 'bank.read', 'payment.write']),
      applications: [{ id: clientId }],
      nbf: ofApi.iat,
      iat: expect.any(Number),
      exp: Number(ofApi.iat) + 120,
      jti: expect.any(String),
    });
    const { json } = await requestToken(simulator, { scope: 'customer.c-1' });
    expect(json.scope).toBe('customer.c-1');
    const ofCustomer = decodeJwt(json.access_token);
    expect(ofCustomer).toMatchObject({ sub: clientId, customers: [{ id: 'c-1' }] });
    expect(ofCustomer.scope).toContain('customer.read');
  });

  it('recognises its tokens whatever their payload is', async () => {
    const subjects: TokenSubject[] = [];
    let payload: object | 'opaque' = { jti: 'the same' };
    const other = await start({ tokenClaims: (subject) => (subjects.push(subject), payload) });
    const bare = (await requestToken(other)).json.access_token;
    expect(decodeJwt(bare)).toEqual(payload);
    payload = 'opaque';
    const opaque = (await requestToken(other)).json.access_token;
    expect(opaque).not.toContain('.');
    const ofCustomer = (await requestToken(other, { scope: 'customer.c-1' })).json.access_token;
    const statuses = [bare, opaque, ofCustomer].map(async (token) => {
      const headers = { authorization: `Bearer ${token}` };
      return (await sendWithoutClient(other, `${other.urls.baseUrl}/banks/v1`, { headers })).status;
    });
    expect(await Promise.all(statuses)).toEqual([200, 200, 403]);
    const { clientId } = other;
    const api = { scope: 'api', environment: 'production', clientId };
    expect(subjects).toEqual([api, api, { ...api, scope: 'customer.c-1' }]);
    const issued = () => [bare, opaque, ofCustomer].map((token) => other.issuedFor(token));
    expect(issued()).toMatchObject(subjects);
    expect(issued().every((each) => each && each.expiresAt.getTime() > Date.now())).toBe(true);
    other.revokeTokens();
    expect(issued()).toMatchObject(subjects);
    expect(issued().some((each) => each && each.expiresAt.getTime() > Date.now())).toBe(false);
    expect(other.issuedFor(`${bare}x`)).toBeUndefined();
  });

  it('remembers 50,000 tokens, and then forgets the oldest one', () => {
    const issuer = new TokenIssuer(() => 'opaque');
    const grant = { scope: 'api', environment: 'production', clientId: 'c', lifetime: 60 } as const;
    const tokens = Array.from({ length: 50_001 }, () => issuer.issue(grant));
    const known = tokens.map((token) => issuer.verify(token, 'production') !== undefined);
    expect([known.indexOf(true), known.lastIndexOf(false)]).toEqual([1, 0]);
  });

  it('issues for the environment of its address', async () => {
    const { sandboxAuthUrl, sandboxUrl, baseUrl } = simulator.urls;
    const { json } = await requestToken(simulator, {}, { url: `${sandboxAuthUrl}/oauth2/token` });
    const headers = { authorization: `bearer ${json.access_token}` };
    expect((await sendWithoutClient(simulator, `${sandboxUrl}/banks/v1`, { headers })).status).toBe(200);
    expect((await sendWithoutClient(simulator, `${baseUrl}/banks/v1`, { headers })).status).toBe(401);
    expect(simulator.tokenRequests.at(-1)).toMatchObject({ face: 'token', environment: 'sandbox' });
  });

  it.each([
    ['an unknown client', { client_id: 'b1a3a3f0-0000-4000-8000-000000000000' }, 401, 'invalid_client'],
    ['a wrong secret', { client_secret: 'wrong' }, 401, 'invalid_client'],
    ['no client id', { client_id: undefined }, 400, 'invalid_request'],
    ['no secret', { client_secret: undefined }, 400, 'invalid_request'],
    ['no grant type', { grant_type: undefined }, 400, 'invalid_request'],
    ['no scope', { scope: undefined }, 400, 'invalid_request'],
    ['another grant type', { grant_type: 'password' }, 400, 'unsupported_grant_type'],
    ['an unknown scope', { scope: 'admin' }, 400, 'invalid_scope'],
    ['two scopes', { scope: 'api customer.c-1' }, 400, 'invalid_scope'],
    ['a customer scope without a customer', { scope: 'customer.' }, 400, 'invalid_scope'],
  ])('refuses %s', async (_, fields, status, error) => {
    const refused = await requestToken(simulator, fields);
    expect(refused).toMatchObject({ status, headers: { 'cache-control': 'no-store' } });
    expect(refused.json).toEqual({ error, error_description: expect.any(String) });
  });

  it('refuses another content type, another method and another path', async () => {
    const { clientId, clientSecret } = simulator;
    const url = `${simulator.urls.authUrl}/oauth2/token`;
    const form = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' } };
    const rest = 'grant_type=client_credentials&scope=api';
    const unescaped = { ...form, body: `client_id=${clientId}&client_secret=${clientSecret}&${rest}` };
    expect((await sendWithoutClient(simulator, url, unescaped)).json.error).toBe('invalid_client');
    const repeated = { ...form, body: `client_id=${clientId}&client_id=x&${rest}` };
    expect((await sendWithoutClient(simulator, url, repeated)).json.error).toBe('invalid_request');
    const json = await requestToken(simulator, {}, { headers: { 'content-type': 'application/json' } });
    expect([json.status, json.json.error]).toEqual([400, 'invalid_request']);
    expect(await sendWithoutClient(simulator, url)).toMatchObject({
      status: 405,
      headers: { allow: 'POST' },
    });
    expect((await requestToken(simulator, {}, { url: `${url}s` })).status).toBe(404);
  });

  it('refuses the old secret after a rotation, while its tokens stay valid', async () => {
    const old = simulator.clientSecret;
    const { json } = await requestToken(simulator);
    const secret = simulator.rotateClientSecret();
    expect(secret).not.toBe(old);
    expect(simulator.moduleOptions({ oauth: true }).oauth?.clientSecret).toBe(secret);
    expect((await requestToken(simulator, { client_secret: old })).status).toBe(401);
    expect((await requestToken(simulator, { client_secret: secret })).status).toBe(200);
    const headers = { authorization: `Bearer ${json.access_token}` };
    expect(
      (await sendWithoutClient(simulator, `${simulator.urls.baseUrl}/banks/v1`, { headers })).status,
    ).toBe(200);
    expect(simulator.rotateClientSecret('given')).toBe('given');
    expect((await requestToken(simulator, { client_secret: 'given' })).status).toBe(200);
  });

  it('issues no token and accepts no bearer if OAuth is not enabled', async () => {
    const closed = await start({ oauth: { enabled: false } });
    const refused = await requestToken(closed);
    expect([refused.status, refused.json.error]).toEqual([400, 'unauthorized_client']);
    const headers = { authorization: `Bearer ${await closed.issueToken()}` };
    expect((await sendWithoutClient(closed, `${closed.urls.baseUrl}/banks/v1`, { headers })).status).toBe(
      401,
    );
  });

  it('binds tokens to the client certificate if configured', async () => {
    const bound = await start({ certificateBoundTokens: true });
    const { json } = await requestToken(bound, {}, { certificate: bound.application });
    const headers = { authorization: `Bearer ${json.access_token}` };
    const status = async (certificate?: typeof bound.application) =>
      (await sendWithoutClient(bound, `${bound.urls.baseUrl}/banks/v1`, { headers, certificate })).status;
    expect(await status(bound.application)).toBe(200);
    expect(await status(await bound.issueCertificate())).toBe(401);
    expect(await status()).toBe(401);
  });
});

describe('simulator.answer()', () => {
  const json = { 'content-type': 'application/json' };

  it('passes path parameters, query and body to its function', async () => {
    simulator.answer('put', '/accounts/v1/{id}/notes/{note}', async ({ pathParams, params, data }) => ({
      status: 202,
      headers: { 'x-page': String(params.page) },
      json: { ...pathParams, ids: params.id, data },
    }));
    const path = '/accounts/v1/a%2Fb%20c/notes/%C3%BC/?page=2&id=1&id=2';
    const reply = await send(path, { method: 'PUT', headers: json, body: '{"text":"x"}' });
    expect(reply).toMatchObject({ status: 202, headers: { 'x-page': '2' } });
    expect(reply.json).toEqual({ id: 'a/b c', note: 'ü', ids: ['1', '2'], data: { text: 'x' } });
    expect(simulator.requests).toMatchObject([{ status: 202 }]);
  });

  it('responds after the credentials were checked, and its routes can fail like others', async () => {
    const paths: string[] = [];
    simulator.answer('GET', '/secret/v1', ({ path }) => ({ json: paths.push(path) }));
    expect((await sendWithoutClient(simulator, `${simulator.urls.sandboxUrl}/secret/v1`)).status).toBe(401);
    simulator.fail({ path: '/secret/v1', fault: { status: 503 } });
    expect((await send('/secret/v1')).status).toBe(503);
    expect(paths).toEqual([]);
    expect((await send('/secret/v1')).status).toBe(200);
  });

  it('can respond with bytes or nothing', async () => {
    const headers = { 'content-type': 'application/pdf' };
    simulator.answer('GET', '/statements/v1/{id}', { body: Uint8Array.from([37, 80, 68, 70]), headers });
    simulator.answer('DELETE', '/statements/v1/{id}', { status: 204 });
    expect(await send('/statements/v1/1')).toMatchObject({ status: 200, body: '%PDF', headers });
    expect(await send('/statements/v1/1', { method: 'DELETE' })).toMatchObject({ status: 204, body: '' });
    expect(await send('/statements/v1/1', { method: 'POST' })).toMatchObject({
      status: 405,
      headers: { allow: 'DELETE, GET' },
    });
    for (const path of ['/statements/v1', '/statements/v1/%E0']) expect((await send(path)).status).toBe(404);
  });

  it('replaces earlier routes and those of the simulator, by method', async () => {
    const own = await start();
    const get = async (path: string) =>
      (
        await sendWithoutClient(own, own.urls.sandboxUrl + path, {
          headers: { 'service-app-token': own.appToken },
        })
      ).json;
    own.answer('GET', '/banks/v1', { json: ['One'] });
    own.answer('GET', '/banks/v1', { json: ['Two'] });
    own.answer('GET', '/customers/v1', { json: [] });
    own.answer('GET', '/customers/v1/me', { json: 'me' });
    own.answer('GET', '/customers/v1/{id}', ({ pathParams }) => ({ json: pathParams }));
    own.answer('GET', '/{any}/v1/{thing}.pdf', ({ pathParams }) => ({ json: pathParams }));
    expect(await get('/banks/v1/')).toEqual(['Two']);
    expect(await get('/customers/v1')).toEqual([]);
    expect(await get('/customers/v1/me/')).toBe('me');
    expect(await get('/customers/v1/you')).toEqual({ id: 'you' });
    expect(await get('/files/v1/a.pdf')).toEqual({ any: 'files', thing: 'a' });
    const headers = { 'service-app-token': own.appToken, ...json };
    const post = { method: 'POST', headers, body: '{"app_user_id":"u"}' };
    expect((await sendWithoutClient(own, `${own.urls.sandboxUrl}/customers/v1`, post)).status).toBe(201);
  });

  it('responds to HEAD like to GET, without the body', async () => {
    simulator.answer('GET', '/pages/v1', { json: ['One'], headers: { 'x-pages': '1' } });
    const head = { status: 200, body: '', headers: { 'content-length': '7', 'x-pages': '1' } };
    expect(await send('/pages/v1', { method: 'HEAD' })).toMatchObject(head);
    simulator.answer('HEAD', '/pages/v1', { status: 204 });
    expect((await send('/pages/v1', { method: 'HEAD' })).status).toBe(204);
  });

  it.each<[string, () => object]>([
    ['of the test', () => Promise.reject(new Error('of the test'))],
    ["'no Error'", () => ({ json: AbortSignal.abort('no Error').throwIfAborted() })],
    ["and not 'id'", () => ({ id: 1 })],
    ["and not 'undefined'", () => undefined as unknown as object],
    ["from 200 to 599, not '201'", () => ({ status: '201' })],
  ])('reports a mistake in its function to the test: %s', async (message, mistake) => {
    simulator.answer('GET', '/wrong/v1', mistake);
    expect(await send('/wrong/v1')).toMatchObject({
      status: 500,
      json: { status: 'SIMULATOR_FAULT', message: expect.stringContaining(message) },
    });
    const [{ error } = {}] = simulator.requests;
    expect(error).toContain(message);
    expect(error).toMatch(/^The simulator's route GET \/wrong\/v1 failed: /);
  });

  it.each<[string, string, object, string]>([
    ['GET', 'accounts/v1', {}, "a path must look like '/accounts/v1/{id}', where {id} matches any text"],
    ['GET', '/accounts/v1?a=1', {}, 'a path must look like'],
    ['GET', '/accounts/:id', {}, 'a path must look like'],
    ['GET', '/accounts/{}', {}, 'a path must look like'],
    ['GET', '/x/*', {}, 'a path must look like'],
    ['GET /x', '/x', {}, "'GET /x' is not an HTTP method"],
    ['FETCH', '/x', {}, "'FETCH' is not an HTTP method"],
    ['GET', '/x', { jsn: 1 }, "and not 'jsn'"],
    ['GET', '/x', { json: null, body: '' }, 'an answer has either json or body, and not both'],
    ['GET', '/x', { body: { a: 1 } }, 'body must be text or bytes. To send JSON, use json'],
    ['GET', '/x', { status: 42 }, 'status must be a whole number from 200 to 599, not 42'],
    ['GET', '/x', { status: 200.5 }, ', not 200.5'],
    ['GET', '/x', { status: '201' }, ", not '201'"],
    ['GET', '/x', { headers: { 'x a': '1' } }, 'Header name must'],
    ['GET', '/x', { headers: { 'x-a': 'one\ntwo' } }, 'Invalid character in header'],
  ])('refuses %s %s %j', (method, path, answer, message) => {
    const add = () => simulator.answer(method, path, answer);
    expect(add).toThrow(TypeError);
    expect(add).toThrow('simulator.answer(): ');
    expect(add).toThrow(message);
  });
});

describe('knownApiRoutes()', () => {
  const JSON_BODY = { 'content-type': 'application/json' };
  const post = (path: string, body: object, headers: Headers = {}) =>
    send(path, { method: 'POST', headers: { ...JSON_BODY, ...headers }, body: JSON.stringify(body) });
  const createCustomer = async (app_user_id: string): Promise<string> =>
    (await post('/customers/v1', { app_user_id })).json.customer_id;
  const lengthOf = async (path: string) => (await send(path)).json.data.transactions.length;

  beforeAll(() => simulator.answer(knownApiRoutes()));

  it('finds a customer by app_user_id in the same environment only', async () => {
    const customer_id = await createCustomer('known/1');
    const path = '/customers/v1/app-user-id/known%2F1';
    expect((await send(path)).json).toMatchObject({ customer_id, app_user_id: 'known/1' });
    const { status } = await sendWithoutClient(simulator, simulator.urls.baseUrl + path, {
      headers: await bearer(),
    });
    expect(status).toBe(404);
    expect(await send('/customers/v1/app-user-id/none')).toMatchObject({ status: 404, json: FAILURE });
  });

  it('leads from a customer to entity, accounts, balances and transactions', async () => {
    const customer_id = await createCustomer('known-2');
    const { json: entities } = await send(`/customers/v1/${customer_id}/entities`);
    const [{ entity_id }] = entities.data;
    const { json: accounts } = await send(`/data/v2/accounts?entity_id=${entity_id}`);
    const ids: string[] = accounts.data.accounts.map((each: { account_id: string }) => each.account_id);
    expect(new Set(ids).size).toBe(2);
    const account = `/data/v2/accounts/${ids[0]}`;
    const { json: balances } = await send(`${account}/balances?entity_id=${entity_id}`);
    expect(balances.data.balances).toMatchObject([{ account_id: ids[0], amount: 1250.75 }]);

    const path = `${account}/transactions?entity_id=${entity_id}`;
    const { status, json: pending } = await send(path);
    expect([status, pending]).toEqual([200, expect.objectContaining({ status: 'PENDING' })]);
    const { json: results } = await send(`/data/v2/results/${pending.results_id}`);
    expect(results.data.transactions).toHaveLength(50);
    expect(results.page).toEqual({ number: 0, size: 50, total_elements: 120, total_pages: 3 });
    expect(await Promise.all([0, 1, 2, 3].map((page) => lengthOf(`${path}&page=${page}`)))).toEqual([
      50, 50, 20, 0,
    ]);
    expect(await lengthOf(`${path}&page_number=1&page_size=100`)).toBe(20);
    expect((await send(`${path}&page=-1`)).status).toBe(400);
    expect((await send(`${path}&size=0`)).status).toBe(400);

    expect((await send('/data/v2/accounts')).status).toBe(400);
    for (const unknown of [
      '/customers/v1/none/entities',
      '/data/v2/accounts?entity_id=none',
      `/data/v2/accounts/none/balances?entity_id=${entity_id}`,
      '/data/v2/results/none',
      '/payments/v1/intents/none',
    ])
      expect((await send(unknown)).status).toBe(404);
  });

  it('responds with PENDING and with transactions as often as the options say', async () => {
    const own = await start();
    own.answer(knownApiRoutes({ transactions: 3, pendingReads: 2 }));
    const headers = { 'service-app-token': own.appToken, ...JSON_BODY };
    const get = async (path: string) =>
      (await sendWithoutClient(own, own.urls.sandboxUrl + path, { headers })).json as {
        status: string;
        results_id: string;
        data: { transactions: unknown[] };
      };
    const body = JSON.stringify({ app_user_id: 'u' });
    await sendWithoutClient(own, `${own.urls.sandboxUrl}/customers/v1`, { method: 'POST', headers, body });
    const entity = `entity-${own.customers[0].customer_id}`;
    const path = `/data/v2/accounts/current-${entity}/transactions?entity_id=${entity}`;
    const first = await get(path);
    const results = `/data/v2/results/${first.results_id}`;
    const responses = [first, await get(results), await get(results), await get(path)];
    expect(responses.map(({ status }) => status)).toEqual(['PENDING', 'PENDING', 'OK', 'OK']);
    expect(responses[2].data.transactions).toHaveLength(3);
  });

  it('consists of the words that messages, logs and metrics show of a path', () => {
    for (const route of Object.keys(knownApiRoutes())) {
      const path = route.replace(/^\w+ /, '').replace(/\{\w+\}/g, 'id-1');
      expect(routeOf(path, '')).toBe(path.replaceAll('id-1', '{}'));
    }
  });

  it('creates one payment intent for a key, and none without a key', async () => {
    const payment = { amount: 10, currency: 'AED' };
    expect(await post('/payments/v1/intents', payment)).toMatchObject({ status: 400, json: FAILURE });
    const create = (body: object, key: string) =>
      post('/payments/v1/intents', body, { 'idempotency-key': key });
    const first = await create(payment, 'key-1');
    expect([first.status, first.json]).toEqual([201, expect.objectContaining(payment)]);
    expect((await create(payment, 'key-1')).json).toEqual(first.json);
    expect((await create({ ...payment, amount: 11 }, 'key-1')).status).toBe(400);
    const second = await create(payment, 'key-2');
    expect(second.json.payment_intent_id).not.toBe(first.json.payment_intent_id);
    const { json: list } = await send('/payments/v1/intents?size=1&page=1');
    expect(list).toMatchObject({ content: [second.json], page: { total_pages: 2 } });
    const { json: found } = await send(`/payments/v1/intents/${first.json.payment_intent_id}`);
    expect(found).toEqual(first.json);
  });

  it.each([
    ['GET', "'GET': must be a method, a space and a path."],
    ['GET /a b', "'GET /a b': must be a method, a space and a path."],
    ['GET accounts', "'GET accounts': a path must look like"],
  ])('names a wrong route: %s', (route, message) => {
    const add = () => simulator.answer({ [route]: {} });
    expect(add).toThrow(TypeError);
    expect(add).toThrow(`simulator.answer(): ${message}`);
  });
});

describe('Faults of ServiceSimulator', () => {
  const banks = (path = '/banks/v1') => send(path);

  /** What arrives of an answer, at most so many pieces. */
  const arrives = (pieces = Infinity) =>
    new Promise<{ length?: string; bytes: Buffer; isWhole: boolean }>((resolve, reject) => {
      const outgoing = request(
        simulator.urls.sandboxUrl,
        { ca: simulator.chain, agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk) === pieces && outgoing.destroy());
          response
            .on('error', () => undefined)
            .on('close', () => {
              const length = response.headers['content-length'];
              resolve({ length, bytes: Buffer.concat(chunks), isWhole: response.complete });
            });
        },
      );
      outgoing.on('error', reject).end();
    });

  it.each<[string, AnswerFault, object]>([
    ['a status', { status: 503 }, { status: 503, body: '' }],
    [
      'a status with JSON and headers',
      { status: 429, json: { status: 'X', message: 'y' }, headers: { 'retry-after': '2' } },
      { status: 429, json: { status: 'X', message: 'y' }, headers: { 'retry-after': '2' } },
    ],
    ['a status with a text', { status: 502, body: '<html>' }, { status: 502, body: '<html>' }],
    ['html', 'html', { status: 200, headers: { 'content-type': 'text/html' } }],
    ['empty', 'empty', { status: 200, body: '', headers: { 'content-length': '0' } }],
  ])('respond with %s, once', async (_, fault, expected) => {
    const handle = simulator.fail({ fault });
    const reply = await banks();
    expect(reply).toMatchObject(expected);
    expect(simulator.requests).toMatchObject([{ status: reply.status }]);
    expect(handle.hits).toBe(1);
    expect((await banks()).status).toBe(200);
  });

  it.each<[AnswerFault & string, number | undefined]>([
    ['lost', undefined],
    ['reset', undefined],
    ['reset-after-headers', 200],
    ['truncate', 200],
  ])('end the connection: %s', async (fault, status) => {
    simulator.fail({ fault });
    expect(await failCode(banks())).toBe('ECONNRESET');
    expect(simulator.requests.map((each) => each.status)).toEqual([status]);
    expect((await banks()).status).toBe(200);
  });

  it('execute a call whose response is lost, and not one whose connection is reset', async () => {
    for (const fault of ['reset', 'lost'] as const) {
      simulator.fail({ method: 'POST', path: '/customers/v1', fault });
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ app_user_id: `by-${fault}` });
      expect(await failCode(send('/customers/v1', { method: 'POST', headers, body }))).toBe('ECONNRESET');
    }
    const created = simulator.customers.map(({ app_user_id }) => app_user_id);
    expect(created.filter((id) => id.startsWith('by-'))).toEqual(['by-lost']);
  });

  it('execute a token request whose response is lost', async () => {
    simulator.fail({ face: 'token', fault: 'lost' });
    expect(await failCode(requestToken(simulator))).toBe('ECONNRESET');
    expect(simulator.tokenRequests.map(({ status }) => status)).toEqual([undefined]);
  });

  it('truncate the response after the headers and a part of the body', async () => {
    simulator.fail({ fault: 'truncate' });
    const { length, bytes, isWhole } = await arrives();
    expect([length, bytes.length, isWhole]).toEqual(['200', 100, false]);
  });

  it('send the body byte by byte without end', async () => {
    simulator.fail({ fault: { trickleMs: 5 } });
    expect(await arrives(4)).toMatchObject({ bytes: Buffer.from('{   '), isWhole: false });
  });

  it('send a gzip bomb of the requested size', async () => {
    simulator.fail({ fault: { gzipBombBytes: 3_000_000 } });
    const { bytes } = await arrives();
    expect(bytes.length).toBeLessThan(60_000);
    const text = gunzipSync(bytes).toString();
    expect(text).toHaveLength(3_000_000);
    expect(JSON.parse(text)).toMatch(/^a+$/);
  });

  it('reset the connection before the handshake, so that no request is read and no handshake counted', async () => {
    const { total } = simulator.handshakes.sandbox;
    const handle = simulator.fail({ face: 'sandbox', fault: 'reset-handshake' });
    expect(await failCode(banks())).toBe('ECONNRESET');
    expect([handle.hits, simulator.requests.length]).toEqual([1, 0]);
    expect(simulator.handshakes.sandbox.total).toBe(total);
    expect((await banks()).status).toBe(200);
  });

  it.each(Object.keys(TLS_ALERTS) as TlsAlert[])('send the TLS alert %s', async (tlsAlert) => {
    simulator.fail({ fault: { tlsAlert } });
    const code = await failCode(banks());
    expect(code).toMatch(/^ERR_SSL_.*_ALERT_/);
    expect(code.split('_ALERT_')[1]).toBe(tlsAlert.toUpperCase());
    expect((await banks()).status).toBe(200);
  });

  it('hang until the client leaves', async () => {
    simulator.fail({ fault: 'hang' });
    const client = new AbortController();
    const hanging = expect(send('/banks/v1', { signal: client.signal })).rejects.toThrow(/abort/);
    expect((await simulator.waitForRequest(() => true)).status).toBeUndefined();
    client.abort();
    await hanging;
  });

  it('delay the usual response', async () => {
    simulator.fail({ fault: { delayMs: 80 } });
    const begun = performance.now();
    expect((await banks()).status).toBe(200);
    expect(performance.now() - begun).toBeGreaterThan(75);
  });

  it('change the response of the token endpoint only', async () => {
    const fault = { tokenResponse: { expires_in: '60', scope: undefined } };
    const handle = simulator.fail({ times: 2, fault });
    expect((await banks()).status).toBe(200);
    const { json } = await requestToken(simulator);
    expect(json).toEqual({ access_token: expect.any(String), token_type: 'bearer', expires_in: '60' });
    const refused = await requestToken(simulator, { client_secret: 'wrong' });
    expect(refused.json).not.toHaveProperty('expires_in');
    expect(handle.hits).toBe(2);
  });

  it.each<[boolean, string, Omit<FaultRule, 'fault'>]>([
    [false, '/banks/v1', { face: 'base' }],
    [false, '/banks/v1', { face: ['token', 'base'] }],
    [true, '/banks/v1', { face: ['sandbox'] }],
    [false, '/banks/v1', { method: 'POST' }],
    [true, '/banks/v1', { method: 'get' }],
    [false, '/banks/v1', { path: '/customers/v1' }],
    [true, '/banks/v1/?a=b', { path: '/banks/v1' }],
    [false, '/banks/v1', { path: /^\/echo/ }],
    [true, '/banks/v1', { path: /banks/g }],
    [false, '/banks/v1', { when: ({ headers }) => 'x-absent' in headers }],
    [true, '/banks/v1', { when: ({ path }) => path.endsWith('v1') }],
    [true, '/banks/v1/7?page=2', { path: '/banks/v1/{id}' }],
    [true, '/banks/v1/%C3%BC/', { path: '/banks/v1/{id}' }],
    [false, '/banks/v1', { path: '/banks/v1/{id}' }],
    [false, '/banks/v1/7/notes', { path: '/banks/v1/{id}' }],
  ])('match requests: %s for GET %s with %p', async (matches, path, rule) => {
    const handle = simulator.fail({ ...rule, fault: { status: 418 } });
    expect((await banks(path)).status === 418).toBe(matches);
    expect(handle.hits).toBe(matches ? 1 : 0);
  });

  it('occur as often as configured, until stopped or cleared', async () => {
    const statuses = async (count: number) => {
      const seen: number[] = [];
      while (seen.length < count) seen.push((await banks()).status);
      return seen;
    };
    simulator.fail({ times: 2, fault: { status: 500 } });
    simulator.fail({ fault: { status: 501 } });
    expect(await statuses(4)).toEqual([500, 500, 501, 200]);
    const endless = simulator.fail({ times: Infinity, fault: { status: 500 } });
    expect(await statuses(3)).toEqual([500, 500, 500]);
    endless.stop();
    expect(await statuses(1)).toEqual([200]);
    simulator.fail({ fault: { status: 500 } });
    simulator.clearFaults();
    expect(await statuses(1)).toEqual([200]);
  });

  it.each<[object, string]>([
    [{ fault: 'rest' }, "'rest' is not a fault. A fault is lost, reset, "],
    [{ fault: { stauts: 503 } }, '{ stauts: 503 } is not a fault'],
    [{}, 'undefined is not a fault'],
    [{ fault: { tlsAlert: 'unkown_ca' } }, "{ tlsAlert: 'unkown_ca' } is not a fault"],
    [{ path: 'banks/v1', fault: 'reset' }, "the path 'banks/v1' matches no request"],
    [{ path: '/a/:id', fault: 'reset' }, "a path must look like '/accounts/v1/{id}'"],
    [{ path: '/banks/v1?a', fault: 'reset' }, "the path '/banks/v1?a' matches no"],
    [
      { face: ['base', 'sandbx'], fault: 'reset' },
      "face must be one of base, oauth-base, sandbox, sandbox-mtls, token, not 'sandbx'",
    ],
  ])('are refused if they could never occur: %j', async (rule, message) => {
    const add = () => simulator.fail(rule as FaultRule);
    expect(add).toThrow(TypeError);
    expect(add).toThrow(`simulator.fail(): ${message}`);
    expect((await banks()).status).toBe(200);
  });

  it('report a condition that throws', async () => {
    const when = () => {
      throw new Error('mistake of the test');
    };
    simulator.fail({ when, fault: 'reset' });
    expect(await banks()).toMatchObject({ status: 500, json: { message: 'mistake of the test' } });
  });
});

describe('ServiceSimulator.start() on Bun', () => {
  it('rejects, because no request would be answered, and says what to do', async () => {
    await expect(onBun('1.4.5', start)).rejects.toThrow(
      /^ServiceSimulator does not run on Bun 1\.4\.5, .* Start the simulator with Node, .* or use stubService\(\)\.$/,
    );
  });
});
