import { describe, expect, it } from '@jest/globals';
import { type AxiosInstance } from 'axios';
import { Agent } from 'node:http';
import { inspect } from 'node:util';
import { ServiceRequestError } from '../../../lib/errors/index.js';
import { APP_TOKEN, BEARER, errorOf, setUp } from './setup.js';

describe('the interceptor that attaches the headers', () => {
  it("replaces a caller's own authenticating headers, and drops those of the connection", async () => {
    const { axios, arrived } = await setUp();
    await axios.get('/a', {
      headers: {
        AUTHORIZATION: 'Basic mine',
        'Service-App-Token': 'mine',
        Host: 'evil.example',
        'Transfer-Encoding': 'chunked',
        'X-Mine': 'kept',
      },
      auth: { username: 'u', password: 'p' },
    });
    expect(arrived[0]?.headers).toMatchObject({
      authorization: `Bearer ${BEARER}`,
      'service-app-token': APP_TOKEN,
      'x-mine': 'kept',
    });
    expect(arrived[0]?.headers.host).toMatch(/^127\.0\.0\.1/);
    expect(arrived[0]?.headers['transfer-encoding']).toBeUndefined();
  });

  it('lets no config of a call lead it elsewhere', async () => {
    const evil = await setUp();
    const { axios, arrived } = await setUp();
    const elsewhere = evil.server.url;
    for (const config of [
      { url: `${elsewhere}/x` },
      { url: '/x', baseURL: elsewhere },
      { url: `//127.0.0.1:${evil.server.port}/x` },
    ]) {
      expect(await errorOf(axios.request(config))).toBeInstanceOf(ServiceRequestError);
    }
    const { port } = evil.server;
    await axios.get('/x', {
      proxy: { host: '127.0.0.1', port },
      socketPath: '/nowhere',
      httpAgent: new Agent(),
    } as never);
    expect(evil.arrived).toHaveLength(0);
    expect(arrived).toHaveLength(1);
  });

  it("lets no other adapter take the module's place", async () => {
    const evil = await setUp();
    const { axios, arrived } = await setUp({
      listener: (_, response) => response.writeHead(302, { location: `${evil.server.url}/steal` }).end(),
    });
    axios.defaults.adapter = 'http';
    for (const adapter of ['http', 'fetch', undefined] as const) {
      const error = await errorOf(
        axios.get('/a', { adapter, proxy: { host: '127.0.0.1', port: evil.server.port } }),
      );
      expect(error).toMatchObject({ kind: 'redirect' });
    }
    expect(arrived).toHaveLength(3);
    expect(evil.arrived).toHaveLength(0);
  });

  it('shows no credentials to a host, whatever it does with its config', async () => {
    const evil = await setUp();
    const { axios, arrived } = await setUp();
    const seen: unknown[] = [];
    let mischief = true;
    axios.interceptors.request.use((config) => {
      seen.push(inspect(config.headers));
      // With `transitional`, axios runs this one after the module's own.
      if (mischief) Object.assign(config, { adapter: 'http', url: evil.server.url });
      return config;
    });
    const transitional = { silentJSONParsing: false };
    await errorOf(axios.get('/a', { transitional }).then(() => Promise.reject(new Error('answered'))));
    await errorOf(axios.get('/a'));
    mischief = false;
    const transformRequest = function (this: object, data: unknown): unknown {
      Object.assign(this, { adapter: 'http', url: evil.server.url });
      return data;
    };
    await axios.post('/a', {}, { transformRequest: [transformRequest] }).catch(() => undefined);
    expect(JSON.stringify(evil.arrived)).not.toMatch(/planted/);
    expect(seen.join()).not.toMatch(/planted/);
    expect(arrived).toHaveLength(0);
  });

  it("hands a host's interceptors an answer whose config holds no credentials", async () => {
    const { axios } = await setUp();
    const answers: unknown[] = [];
    axios.interceptors.response.use((response) => (answers.push(response), response));
    await axios.get('/a');
    expect(inspect(answers, { depth: 20, showHidden: true })).not.toMatch(/planted/);
  });

  it("judges the address after a host's own interceptor, which sees clean errors too", async () => {
    const { axios, arrived } = await setUp();
    const seen: unknown[] = [];
    axios.interceptors.request.use((config) => ({
      ...config,
      url: config.url === '/evil' ? 'https://evil.example/' : '/b',
    }));
    axios.interceptors.response.use(
      (response) => ({ ...response, data: { wrapped: response.data as unknown } }),
      (error: unknown) => {
        seen.push(error);
        throw error;
      },
    );
    expect((await axios.get<unknown>('/a')).data).toEqual({ wrapped: { ok: true } });
    expect(arrived[0]?.url).toBe('/b');
    await errorOf(axios.get('/evil'));
    expect(seen).toEqual([expect.any(ServiceRequestError)]);
    expect(arrived).toHaveLength(1);
  });

  it('holds nothing of axios in an error of its own making', async () => {
    const { axios } = await setUp();
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    const instance: AxiosInstance = axios;
    for (const error of [
      await errorOf(instance.get('/a', { transitional: { silentJSONParsing: 'x' } } as never)),
      await errorOf(instance.postForm('/a', { circular })),
    ]) {
      expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/planted/);
    }
  });
});
