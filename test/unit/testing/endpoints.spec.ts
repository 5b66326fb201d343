import { beforeAll, describe, expect, it } from '@jest/globals';
import { decodeJwt } from 'jose';
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
    const issued = () => [bare, opaque, ofCustomer].map((token) => other.issuedFor(token));
    expect(issued()).toMatchObject(subjects);
    expect(issued().every((each) => each && each.expiresAt.getTime() > Date.now())).toBe(true);
    other.revokeTokens();
    expect(issued()).toMatchObject(subjects);
    expect(issued().some((each) => each && each.expiresAt.getTime() > Date.now())).toBe(false);
    expect(other.issuedFor(`${bare}x`)).toBeUndefined();
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
