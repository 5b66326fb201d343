import { afterEach, describe, expect, it } from '@jest/globals';
import { type RequestListener } from 'node:http';
import { type ServiceApiError, type ServiceTokenError } from '../../../lib/errors/index.js';
import { httpServer } from '../../helpers/loopback.js';
import { makeClient } from '../../helpers/make-client.js';
import { errorOf } from './setup.js';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function clientOf(api: RequestListener, token?: RequestListener) {
  const [apiServer, tokenServer] = await Promise.all([httpServer(api), httpServer(token ?? api)]);
  const { service } = await makeClient({
    authentication: token ? 'oauth' : 'app-token',
    urls: { sandboxUrl: apiServer.url, sandboxAuthUrl: tokenServer.url },
    appToken: 'app-token',
    oauth: token && { clientId: '7d9f3c1e-0000-4000-8000-000000000001', clientSecret: 'secret' },
    http: { retries: 0 },
  });
  closing.push(apiServer.close, tokenServer.close, () => service.close());
  return service;
}

const latin1 = (json: string) => Buffer.from(json, 'latin1');
const NAME = '{"name":"Müller"}';
/** `محمد` in windows-1256. */
const ARABIC = Buffer.concat([
  Buffer.from('{"name":"'),
  Buffer.from([0xe3, 0xcd, 0xe3, 0xcf]),
  Buffer.from('"}'),
]);

describe('The charset of JSON', () => {
  it.each<[string, Buffer, string]>([
    ['application/json; charset=iso-8859-1', latin1(NAME), 'Müller'],
    ['application/json; charset="windows-1252"', latin1(NAME), 'Müller'],
    ['application/json;charset=windows-1256', ARABIC, 'محمد'],
    ['application/json; charset=utf-16le', Buffer.from(NAME, 'utf16le'), 'Müller'],
    // Many servers name iso-8859-1 and send UTF-8.
    ['application/json; charset=iso-8859-1', Buffer.from(NAME), 'Müller'],
    ['application/json; charset=utf-8', Buffer.from(NAME), 'Müller'],
    ['application/json', Buffer.from(NAME), 'Müller'],
    // Nothing says how to read these bytes.
    ['application/json; charset=x-unknown', latin1(NAME), 'M�ller'],
    ['application/json', latin1(NAME), 'M�ller'],
  ])(
    'of %s: UTF-8 first, and if the bytes are not UTF-8, the one that is named',
    async (type, body, name) => {
      const { http } = await clientOf((_, response) => response.setHeader('content-type', type).end(body));
      expect(await http.get('/data/v2/identities')).toEqual({ name });
    },
  );

  it('is read in errors, and where the service says that the same work is in progress', async () => {
    const { http } = await clientOf((request, response) => {
      const status = request.url === '/twice' ? 429 : 409;
      response
        .writeHead(status, { 'content-type': 'application/json; charset=utf-16le' })
        .end(Buffer.from('{"status":"DUPLICATED_REQUEST","message":"Zahlung läuft"}', 'utf16le'));
    });
    const conflict = (await errorOf(http.post('/payment/v1', {}))) as ServiceApiError;
    expect(conflict.body).toEqual({ status: 'DUPLICATED_REQUEST', message: 'Zahlung läuft' });
    expect(conflict.response?.data).toEqual(conflict.body);
    expect(((await errorOf(http.post('/twice', {}))) as ServiceApiError).hint).toMatch(
      /Find out its outcome/,
    );
  });

  it('is read in tokens and in errors of the token endpoint', async () => {
    const bodies = [
      '{"error":"invalid_request","error_description":"Größe"}',
      '{"access_token":"a","token_type":"bearer","expires_in":3600,"scope":"api","note":"ü"}',
    ];
    const { auth } = await clientOf(
      (_, response) => response.end('{}'),
      (_, response) => {
        const status = bodies.length === 2 ? 400 : 200;
        response
          .writeHead(status, { 'content-type': 'application/json; charset=iso-8859-1' })
          .end(latin1(bodies.shift()!));
      },
    );
    const refused = (await errorOf(auth.getCustomerToken('c-1'))) as ServiceTokenError;
    expect(refused.error_description).toBe('Größe');
    expect((await auth.getApiToken()).accessToken).toBe('a');
  });
});
