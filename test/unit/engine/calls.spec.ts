import { describe, expect, it } from '@jest/globals';
import { type RequestListener } from 'node:http';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { makeClient } from '../../helpers/make-client.js';
import { afterwards, APP_TOKEN, errorOf, failing, setUp } from '../http/setup.js';

describe('the client of a module', () => {
  async function clientWith(listener: RequestListener | undefined, given: ServiceModuleOptions) {
    const { server, arrived } = await setUp({ listener });
    const urls = { sandboxUrl: server.url };
    const { service, lines } = await makeClient({ urls, appToken: APP_TOKEN, ...given }, { name: 'ksa' });
    afterwards(() => service.close());
    return { service, axios: service.http.axiosRef, arrived, lines };
  }

  it('sends the header and the request id of its options, and counts its calls', async () => {
    const http = { requestId: () => 'r-1', correlationIdHeader: 'X-Own-Id' };
    let closing: Promise<void> | undefined;
    const listener: RequestListener = (_, response) => {
      closing = made.service.close();
      response.end('{}');
    };
    const made = await clientWith(listener, { appTokenHeader: 'X-Own-Token', http });
    await made.axios.get('/a', { headers: { 'x-own-token': 'of the caller' } });
    expect(made.arrived[0]?.headers).toMatchObject({ 'x-own-token': APP_TOKEN, 'x-own-id': 'r-1' });
    await closing;
    expect(await errorOf(made.axios.get('/a'))).toMatchObject({ kind: 'closed' });
  });

  it('has its number of retries and its time limit', async () => {
    const once = await clientWith(failing(503), { http: { retries: 0 } });
    expect(await errorOf(once.axios.get('/a'))).toMatchObject({ status: 503 });
    const twice = await clientWith(failing(503), { http: { retries: 1 } });
    expect((await twice.axios.get('/a')).status).toBe(200);
    expect(twice.lines).toEqual(['warn: GET /a: 503; another attempt follows']);
    const slow = await clientWith(() => undefined, { http: { timeout: 30 } });
    expect(await errorOf(slow.axios.post('/a', {}))).toMatchObject({ kind: 'timeout' });
  });

  it('hints at its own variables, and shows nothing of its app token', async () => {
    const { axios } = await clientWith(
      (_, response) => response.writeHead(401).end(JSON.stringify({ message: `bad ${APP_TOKEN}` })),
      {},
    );
    const error = await errorOf(axios.get('/a'));
    expect(error).toMatchObject({
      message: expect.stringMatching(/^\[not shown: /),
      hint: expect.stringMatching(/SERVICE_KSA_APP_TOKEN/),
    });
  });
});
