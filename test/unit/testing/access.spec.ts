import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type ServiceSimulator } from '../../../lib/testing/simulator.js';
import { simulatorsOfBlock } from '../../helpers/simulators.js';
import { call, requestToken } from '../../helpers/plain-client.js';

/** The body of an error answer, as the service's. */
const FAILURE = {
  timestamp: expect.any(String),
  status: expect.any(String),
  message: expect.any(String),
  metadata: null,
};

describe('the API of ServiceSimulator', () => {
  let simulator: ServiceSimulator;
  let sandbox: string;
  let base: string;
  let appToken: Record<string, string>;
  const start = simulatorsOfBlock();
  beforeAll(async () => {
    simulator = await start();
    sandbox = simulator.urls.sandboxUrl;
    base = simulator.urls.baseUrl;
    appToken = { 'service-app-token': simulator.appToken };
  });
  afterEach(() => simulator.clearRequests());

  const bearer = async (...request: Parameters<ServiceSimulator['issueToken']>) => ({
    authorization: `Bearer ${await simulator.issueToken(...request)}`,
  });

  describe('takes', () => {
    it('the app token on {sandbox_url}, without a certificate', async () => {
      expect((await call(simulator, `${sandbox}/banks/v1`, { headers: appToken })).status).toBe(200);
    });

    it('a bearer of the environment on every address', async () => {
      const production = await bearer();
      const certificate = simulator.application;
      const test = await bearer({ environment: 'sandbox' });
      const { baseUrl, oauthBaseUrl, sandboxUrl, sandboxMtlsUrl } = simulator.urls;
      for (const [url, headers] of [
        [baseUrl, production],
        [oauthBaseUrl, production],
        [sandboxUrl, test],
      ] as const) {
        expect((await call(simulator, `${url}/banks/v1`, { headers })).status).toBe(200);
      }
      const mutual = { headers: test, certificate };
      expect((await call(simulator, `${sandboxMtlsUrl}/banks/v1`, mutual)).status).toBe(200);
      expect(simulator.apiRequests.map((request) => request.face)).toEqual([
        'base',
        'oauth-base',
        'sandbox',
        'sandbox-mtls',
      ]);
    });

    it('a token of the token endpoint', async () => {
      const { json } = await requestToken(simulator);
      const headers = { authorization: `bearer ${json.access_token}` };
      expect((await call(simulator, `${base}/banks/v1`, { headers })).status).toBe(200);
    });
  });

  describe('refuses with status and message', () => {
    it.each([
      ['no app token', {}, 401],
      ['a wrong app token', { 'service-app-token': 'wrong' }, 403],
      ['another scheme', { authorization: 'Basic eDp5' }, 401],
      ['a bearer that is no token', { authorization: 'Bearer x.y.z' }, 401],
      ['two words', { authorization: 'Bearer x y' }, 401],
    ])('%s', async (_, headers, status) => {
      const refused = await call(simulator, `${sandbox}/banks/v1`, { headers });
      expect(refused.status).toBe(status);
      expect(refused.json).toEqual(FAILURE);
      expect(simulator.requests).toMatchObject([{ status }]);
    });

    it.each([
      ['an expired bearer', { lifetime: -1 }, 401],
      ['a foreign bearer', { foreign: true }, 401],
      ['a bearer of the other environment', { environment: 'sandbox' }, 401],
      ['a customer token', { scope: 'customer.c-1' }, 403],
    ] as const)('%s', async (_, request, status) => {
      const refused = await call(simulator, `${base}/banks/v1`, { headers: await bearer(request) });
      expect([refused.status, refused.json]).toEqual([status, FAILURE]);
      expect(refused.headers['www-authenticate']).toMatch(/^Bearer error=/);
    });

    it('an app token beside a bearer, on every address, and names its header', async () => {
      const { appToken: token, urls } = simulator;
      for (const [url, environment] of [
        [base, 'production'],
        [urls.oauthBaseUrl, 'production'],
        [sandbox, 'sandbox'],
        [urls.sandboxMtlsUrl, 'sandbox'],
      ] as const) {
        const headers = { 'service-app-token': token, ...(await bearer({ environment })) };
        const certificate = simulator.application;
        const refused = await call(simulator, `${url}/banks/v1`, { headers, certificate });
        expect([refused.status, refused.json]).toEqual([
          400,
          {
            timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
            status: 'INVALID_PARAMETERS',
            message: "Do not supply a 'service-app-token' header when providing an 'Authorization' header",
            metadata: null,
          },
        ]);
      }
    });

    it('an app token on {oauth_base_url}', async () => {
      const url = `${simulator.urls.oauthBaseUrl}/banks/v1`;
      const refused = await call(simulator, url, { headers: appToken, certificate: simulator.application });
      expect(refused.status).toBe(401);
    });

    it('an unknown path, and a wrong method', async () => {
      const unknown = await call(simulator, `${sandbox}/accounts/v1`, { headers: appToken });
      expect([unknown.status, unknown.json.status]).toEqual([404, 'NOT_FOUND']);
      const wrong = await call(simulator, `${sandbox}/banks/v1`, { headers: appToken, method: 'DELETE' });
      expect([wrong.status, wrong.headers.allow]).toEqual([405, 'GET']);
    });

    it.each(['//elsewhere/banks/v1', '/x/../banks/v1', '/x/%2e%2e/banks/v1', '/./banks/v1', '//banks/v1'])(
      'the path %s, which is no /banks/v1: it is taken as it came',
      async (path) => {
        const certificate = simulator.application;
        const { hostname, port } = new URL(base);
        const options = { path, hostname, port, headers: appToken, certificate };
        expect((await call(simulator, base, options)).status).toBe(404);
        expect(simulator.requests).toMatchObject([{ path }]);
      },
    );
  });

  it('refuses a token with a part more, and tokens once revoked, and takes later ones', async () => {
    const one = await simulator.issueToken();
    const two = await simulator.issueToken();
    const status = async (token: string) =>
      (await call(simulator, `${base}/banks/v1`, { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await status(`${one}.x`)).toBe(401);
    expect([await status(one), await status(two)]).toEqual([200, 200]);
    simulator.revokeTokens();
    expect([await status(one), await status(two), await status(await simulator.issueToken())]).toEqual([
      401, 401, 200,
    ]);
  });

  it('refuses a token when its life is over, though it was accepted before', async () => {
    const token = await simulator.issueToken({ lifetime: 1 });
    const end = Date.now() + 1_000;
    const headers = { authorization: `Bearer ${token}` };
    const before = await call(simulator, `${base}/banks/v1`, { headers });
    if (simulator.requests[0].receivedAt < end - 50) expect(before.status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, end - Date.now() + 1));
    expect((await call(simulator, `${base}/banks/v1`, { headers })).status).toBe(401);
  });

  it('creates customers, and asks for app_user_id', async () => {
    const create = (body?: string, type = 'application/json') =>
      call(simulator, `${sandbox}/customers/v1`, {
        method: 'POST',
        headers: { ...appToken, 'content-type': type },
        body,
      });
    const created = await create('{"app_user_id":"u-1"}');
    expect(created.status).toBe(201);
    expect(created.json).toMatchObject({ app_user_id: 'u-1', customer_id: expect.any(String) });
    expect(simulator.customers).toEqual([created.json]);
    for (const body of [undefined, '{}', '[]', '{"app_user_id":""}', '{"app_user_id":1}', '{not json']) {
      expect((await create(body)).status).toBe(400);
    }
    expect((await create('{"app_user_id":"u-1"}', 'text/plain')).status).toBe(400);
    expect(simulator.customers).toHaveLength(1);
  });

  it('refuses a second customer of one app_user_id in an environment', async () => {
    const create = (url: string, headers: Record<string, string>) =>
      call(simulator, `${url}/customers/v1`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: '{"app_user_id":"u-twice"}',
      });
    const known = simulator.customers.length;
    expect((await create(sandbox, appToken)).status).toBe(201);
    expect(await create(sandbox, appToken)).toMatchObject({
      status: 409,
      json: { ...FAILURE, status: 'CUSTOMER_ALREADY_EXISTS' },
    });
    expect((await create(base, await bearer())).status).toBe(201);
    expect(simulator.customers).toHaveLength(known + 2);
  });

  it('lists banks, under both spellings of the path', async () => {
    for (const path of ['/banks/v1', '/banks/v1/', '/banks/v1?limit=1']) {
      const { status, json } = await call(simulator, `${sandbox}${path}`, { headers: appToken });
      expect([status, json.length]).toEqual([200, 10]);
    }
    expect(simulator.requests.map((request) => request.path)).toEqual([
      '/banks/v1',
      '/banks/v1/',
      '/banks/v1?limit=1',
    ]);
  });

  it('echoes any method, without the credentials', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      const { json } = await call(simulator, `${sandbox}/echo/v1/deeper?a=1`, {
        method,
        headers: { ...appToken, 'x-own': 'y', 'content-type': 'application/json' },
        body: method === 'GET' ? undefined : '{"b":2}',
      });
      expect(json).toMatchObject({
        method,
        path: '/echo/v1/deeper',
        query: { a: '1' },
        headers: { 'x-own': 'y' },
      });
      expect(json.json).toEqual(method === 'GET' ? undefined : { b: 2 });
      expect(JSON.stringify(json)).not.toContain(simulator.appToken);
    }
    const head = await call(simulator, `${sandbox}/echo/v1`, { method: 'HEAD', headers: appToken });
    expect([head.status, head.body]).toEqual([200, '']);
  });

  it('answers HEAD as GET', async () => {
    for (const [path, status] of [
      ['/banks/v1', 200],
      ['/customers/v1', 405],
      ['/none/v1', 404],
    ] as const) {
      const head = await call(simulator, `${sandbox}${path}`, { method: 'HEAD', headers: appToken });
      expect([head.status, head.body]).toEqual([status, '']);
    }
    expect(simulator.requests).toMatchObject([
      { method: 'HEAD', status: 200 },
      { status: 405 },
      { status: 404 },
    ]);
  });

  it('echoes with the status asked for', async () => {
    const echo = (status: string) =>
      call(simulator, `${sandbox}/echo/v1?status=${status}`, { headers: appToken });
    expect(await echo('204')).toMatchObject({ status: 204, body: '' });
    expect(await echo('422')).toMatchObject({ status: 422, json: { status: 'ECHO_422' } });
    expect((await echo('599')).status).toBe(599);
    for (const none of ['x', '199', '600', '200.5']) expect((await echo(none)).status).toBe(400);
  });

  it('checks both credentials where told to take both', async () => {
    const other = await start({ refuseBoth: false });
    const status = async (token: string, request = {}) => {
      const headers = {
        'service-app-token': token,
        authorization: `Bearer ${await other.issueToken(request)}`,
      };
      return (await call(other, `${other.urls.baseUrl}/banks/v1`, { headers })).status;
    };
    expect(await status(other.appToken)).toBe(200);
    expect(await status(other.appToken, { foreign: true })).toBe(401);
    expect(await status('wrong')).toBe(403);
  });

  it('takes another header, a base path and banks of the test where told to', async () => {
    const other = await start({
      appTokenHeader: 'X-App',
      basePath: '/api/',
      banks: false,
    });
    const headers = { 'x-app': other.appToken };
    expect(other.urls.baseUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/api$/);
    const certificate = other.application;
    const reply = await call(other, `${other.urls.baseUrl}/banks/v1`, { headers, certificate });
    expect([reply.status, reply.json]).toEqual([200, false]);
    expect((await call(other, `${new URL(other.urls.baseUrl).origin}/banks/v1`, { headers })).status).toBe(
      404,
    );
  });
});
