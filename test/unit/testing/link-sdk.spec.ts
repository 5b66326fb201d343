import { beforeAll, describe, expect, it } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import { type ServiceSimulator } from '../../../lib/testing/simulator.js';
import { simulatorsOfBlock } from '../../helpers/simulators.js';
import { call } from './plain-client.js';

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
    expect([status, json]).toEqual([
      403,
      { status: 'SESSION_REFUSED', message: expect.stringMatching(reason) },
    ]);
  });

  it('refuses a revoked token', async () => {
    const access_token = await tokenFor();
    simulator.revokeToken(access_token);
    expect((await open({ ...session, access_token })).json.message).toBe('The access token is not valid.');
  });

  it('takes the app token where OAuth is not enabled, and no bearer', async () => {
    const plain = await start({ oauth: { enabled: false } });
    expect((await open({ ...session, app_token: plain.appToken }, plain)).status).toBe(201);
    expect((await open(session, plain)).json.message).toMatch(/app_token is missing/);
    const access_token = await plain.issueToken({ scope: 'customer.c-1' });
    expect((await open({ ...session, access_token }, plain)).json.message).toMatch(/not enabled/);
  });
});
