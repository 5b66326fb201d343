import { beforeAll, describe, expect, it } from '@jest/globals';
import { decodeJwt } from 'jose';
import { runInNewContext } from 'node:vm';
import { type ServiceSimulator } from '../../../lib/testing/simulator.js';
import { TokenIssuer, type TokenSubject } from '../../../lib/testing/token-issuer.js';
import { simulatorsOfBlock } from '../../helpers/simulators.js';
import { call, requestToken } from '../../helpers/plain-client.js';

describe('the token endpoint of ServiceSimulator', () => {
  let simulator: ServiceSimulator;
  const start = simulatorsOfBlock();
  beforeAll(async () => {
    simulator = await start({ tokenLifetime: 120 });
  });

  it('issues an api token', async () => {
    const { status, headers, json } = await requestToken(simulator);
    expect(status).toBe(200);
    expect(headers['cache-control']).toBe('no-store');
    expect(json).toEqual({
      access_token: expect.any(String),
      token_type: 'bearer',
      expires_in: 120,
      scope: 'api',
    });
  });

  it("has claims as the service's own, and none with the scope that was asked for", async () => {
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

  it('knows its tokens by themselves, whatever their payload is', async () => {
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
      return (await call(other, `${other.urls.baseUrl}/banks/v1`, { headers })).status;
    });
    expect(await Promise.all(statuses)).toEqual([200, 200, 403]);
    const { clientId } = other;
    const api = { scope: 'api', environment: 'production', clientId };
    expect(subjects).toEqual([api, api, { ...api, scope: 'customer.c-1' }]);
    other.revokeTokens();
    expect([bare, opaque, ofCustomer, `${bare}x`].map((token) => other.issuedFor(token))).toEqual([
      ...subjects,
      undefined,
    ]);
  });

  it('remembers 50,000 tokens, and then forgets the oldest one alone', () => {
    const issuer = new TokenIssuer(() => 'opaque');
    const grant = { scope: 'api', environment: 'production', clientId: 'c', lifetime: 60 } as const;
    const tokens = Array.from({ length: 50_001 }, () => issuer.issue(grant));
    const known = tokens.map((token) => issuer.verify(token, 'production') !== undefined);
    expect([known.indexOf(true), known.lastIndexOf(false)]).toEqual([1, 0]);
  });

  it('issues another token each time', async () => {
    const [one, two] = await Promise.all([requestToken(simulator), requestToken(simulator)]);
    expect(one.json.access_token).not.toBe(two.json.access_token);
  });

  it('issues for the environment of its address', async () => {
    const url = `${simulator.urls.sandboxAuthUrl}/oauth2/token`;
    const { json } = await requestToken(simulator, {}, { url });
    const headers = { authorization: `Bearer ${json.access_token}` };
    expect((await call(simulator, `${simulator.urls.sandboxUrl}/banks/v1`, { headers })).status).toBe(200);
    expect((await call(simulator, `${simulator.urls.baseUrl}/banks/v1`, { headers })).status).toBe(401);
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
    expect(refused.status).toBe(status);
    expect(refused.json).toEqual({ error, error_description: expect.any(String) });
    expect(refused.headers['cache-control']).toBe('no-store');
  });

  it('refuses a secret that was not form-encoded', async () => {
    const { clientId, clientSecret } = simulator;
    const body = `client_id=${clientId}&client_secret=${clientSecret}&grant_type=client_credentials&scope=api`;
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const url = `${simulator.urls.authUrl}/oauth2/token`;
    expect((await call(simulator, url, { method: 'POST', headers, body })).json.error).toBe('invalid_client');
  });

  it('refuses a repeated field, JSON, another method and another path', async () => {
    const url = `${simulator.urls.authUrl}/oauth2/token`;
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const body = new URLSearchParams({ client_id: simulator.clientId, scope: 'api' }).toString();
    const repeated = await call(simulator, url, { method: 'POST', headers, body: `${body}&client_id=x` });
    expect([repeated.status, repeated.json.error]).toEqual([400, 'invalid_request']);
    const json = await requestToken(simulator, {}, { headers: { 'content-type': 'application/json' } });
    expect([json.status, json.json.error]).toEqual([400, 'invalid_request']);
    const read = await call(simulator, url);
    expect([read.status, read.headers.allow]).toEqual([405, 'POST']);
    expect((await requestToken(simulator, {}, { url: `${url}s` })).status).toBe(404);
  });

  it('refuses the old secret as soon as it is rotated; its tokens stay valid', async () => {
    const old = simulator.clientSecret;
    const { json } = await requestToken(simulator);
    const secret = simulator.rotateClientSecret();
    expect(secret).not.toBe(old);
    expect(simulator.clientSecret).toBe(secret);
    expect((await requestToken(simulator, { client_secret: old })).status).toBe(401);
    expect((await requestToken(simulator, { client_secret: secret })).status).toBe(200);
    const headers = { authorization: `Bearer ${json.access_token}` };
    expect((await call(simulator, `${simulator.urls.baseUrl}/banks/v1`, { headers })).status).toBe(200);
    expect(simulator.rotateClientSecret('given')).toBe('given');
    expect((await requestToken(simulator, { client_secret: 'given' })).status).toBe(200);
  });

  it('uses a changed lifetime', async () => {
    simulator.tokenLifetime = 7;
    expect((await requestToken(simulator)).json.expires_in).toBe(7);
    simulator.tokenLifetime = 120;
  });

  it('records the form as it arrived', async () => {
    simulator.clearRequests();
    await requestToken(simulator);
    const { clientId, clientSecret } = simulator;
    expect(simulator.tokenRequests).toMatchObject([
      {
        method: 'POST',
        path: '/oauth2/token',
        form: {
          client_id: clientId,
          client_secret: clientSecret,
          grant_type: 'client_credentials',
          scope: 'api',
        },
        status: 200,
      },
    ]);
  });

  it('issues nothing where OAuth is not enabled, and bearers are refused', async () => {
    const closed = await start({ oauth: { enabled: false } });
    const refused = await requestToken(closed);
    expect([refused.status, refused.json.error]).toEqual([400, 'unauthorized_client']);
    const headers = { authorization: `Bearer ${await closed.issueToken()}` };
    expect((await call(closed, `${closed.urls.baseUrl}/banks/v1`, { headers })).status).toBe(401);
  });

  it('binds tokens to the client certificate where told to', async () => {
    const bound = await start({ certificateBoundTokens: true });
    const { json } = await requestToken(bound, {}, { certificate: bound.application });
    const headers = { authorization: `Bearer ${json.access_token}` };
    const status = async (certificate?: typeof bound.application) =>
      (await call(bound, `${bound.urls.baseUrl}/banks/v1`, { headers, certificate })).status;
    expect(await status(bound.application)).toBe(200);
    expect(await status(await bound.issueCertificate())).toBe(401);
    expect(await status()).toBe(401);
  });
});

describe("the simulator's stand-in of the LinkSDK", () => {
  let simulator: ServiceSimulator;
  const start = simulatorsOfBlock();
  beforeAll(async () => {
    simulator = await start();
  });

  const open = (parameters: unknown, target = simulator) =>
    call(target, `${target.urls.baseUrl}/link-sdk/sessions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(parameters),
    });
  const session = { customer_id: 'c-1', permissions: ['identity'] };
  const tokenFor = (request: Parameters<ServiceSimulator['issueToken']>[0] = {}) =>
    simulator.issueToken({ scope: 'customer.c-1', ...request });

  it('serves a script that any page may load, without credentials', async () => {
    const { status, headers, body } = await call(simulator, `${simulator.urls.sandboxUrl}/link-sdk.js`);
    expect([status, headers['content-type']]).toEqual([200, 'text/javascript; charset=utf-8']);
    expect(headers['access-control-allow-origin']).toBe('*');
    const page = { document: { currentScript: { src: 'https://service.example/link-sdk.js' } }, URL };
    runInNewContext(body, page);
    expect(page).toMatchObject({ Service: { connect: expect.any(Function) } });
  });

  it('takes a customer token for its own customer', async () => {
    const access_token = await tokenFor();
    const { status, json, headers } = await open({ ...session, access_token, bank_identifier: 'B-1' });
    expect([status, json]).toEqual([201, { ...session, bank_identifier: 'B-1' }]);
    expect(headers['access-control-allow-origin']).toBe('*');
  });

  it('answers the preflight request of another origin', async () => {
    const url = `${simulator.urls.baseUrl}/link-sdk/sessions`;
    const { status, headers } = await call(simulator, url, { method: 'OPTIONS' });
    expect([status, headers['access-control-allow-headers']]).toEqual([204, 'content-type']);
    const wrong = await call(simulator, url);
    expect([wrong.status, wrong.headers.allow]).toEqual([405, 'POST']);
  });

  it.each([
    ['no object', () => null, /must be an object/],
    ['no customer', () => ({ permissions: ['identity'] }), /customer_id is missing/],
    ['no permission', () => ({ ...session, permissions: [] }), /at least one permission/],
    ['a permission that is blank', () => ({ ...session, permissions: [' '] }), /at least one permission/],
    ['a bank that is no text', () => ({ ...session, bank_identifier: 5 }), /bank_identifier/],
    ['no token at all', () => session, /access_token is missing/],
    [
      'an app token alone, where OAuth is enabled',
      () => ({ ...session, app_token: simulator.appToken }),
      /OAuth is enabled.*not the app token alone/,
    ],
    [
      'a wrong app token beside a customer token',
      async () => ({ ...session, app_token: 'x', access_token: await tokenFor() }),
      /app token is not valid/,
    ],
    [
      'an expired token',
      async () => ({ ...session, access_token: await tokenFor({ lifetime: -1 }) }),
      /has expired/,
    ],
    [
      'an api token',
      async () => ({ ...session, access_token: await tokenFor({ scope: 'api' }) }),
      /is for the API/,
    ],
    [
      'the token of another customer',
      async () => ({ ...session, customer_id: 'c-2', access_token: await tokenFor() }),
      /another customer/,
    ],
    [
      'a foreign token',
      async () => ({ ...session, access_token: await tokenFor({ foreign: true }) }),
      /not valid/,
    ],
    [
      'an expired token that is also foreign',
      async () => ({ ...session, access_token: await tokenFor({ foreign: true, lifetime: -1 }) }),
      /not valid/,
    ],
    [
      'a token of the sandbox in production',
      async () => ({ ...session, access_token: await tokenFor({ environment: 'sandbox' }) }),
      /not valid/,
    ],
    ['no JWT', () => ({ ...session, access_token: 'x.y.z' }), /not valid/],
  ])('refuses %s', async (_, parameters, reason) => {
    const { status, json } = await open(await parameters());
    expect(status).toBe(403);
    expect(json).toMatchObject({ status: 'SESSION_REFUSED', message: expect.stringMatching(reason) });
  });

  it('refuses a revoked token', async () => {
    const access_token = await tokenFor();
    simulator.revokeTokens();
    expect((await open({ ...session, access_token })).json.message).toMatch(/not valid/);
  });

  it('takes the app token where OAuth is not enabled, and no bearer', async () => {
    const plain = await start({ oauth: { enabled: false } });
    expect((await open({ ...session, app_token: plain.appToken }, plain)).status).toBe(201);
    expect((await open(session, plain)).json.message).toMatch(/app_token is missing/);
    const access_token = await plain.issueToken({ scope: 'customer.c-1' });
    expect((await open({ ...session, access_token }, plain)).json.message).toMatch(/not enabled/);
  });
});
