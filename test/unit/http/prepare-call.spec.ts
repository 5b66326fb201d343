import { describe, expect, it, jest } from '@jest/globals';
import { HttpService } from '@nestjs/axios';
import globalAxios, { type AxiosInstance, type InternalAxiosRequestConfig } from 'axios';
import { Agent } from 'node:http';
import { inspect } from 'node:util';
import {
  describeError,
  type ServiceApiError,
  type ServiceError,
  ServiceRequestError,
} from '../../../lib/errors/index.js';
import { answerOf } from '../../../lib/http/exception-answer.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { APP_TOKEN, BEARER, errorOf, everything, failing, setUp } from './setup.js';

describe('axios in front of the calls', () => {
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

  it.each<[string, (axios: AxiosInstance, adapter: 'http') => object]>([
    ['the defaults', (axios, adapter) => (Object.assign(axios.defaults, { adapter }), {})],
    ['a call', (_, adapter) => ({ adapter })],
    [
      'an interceptor',
      (axios, adapter) => (axios.interceptors.request.use((config) => ({ ...config, adapter })), {}),
    ],
  ])('refuses an adapter of %s, in place of calling the service behind its back', async (_, optionsOf) => {
    const { axios, arrived } = await setUp();
    const mock = jest.fn(async () => ({ data: 'theirs' }));
    for (const adapter of ['http', mock as never] as const) {
      const error = await errorOf(axios.get('/a', optionsOf(axios, adapter)));
      expect(error).toMatchObject({
        faults: [{ property: 'adapter', message: expect.stringMatching(/stubService, or nock/) }],
      });
      expect(answerOf(error)).toMatchObject({ status: 500 });
    }
    expect(mock).not.toHaveBeenCalled();
    expect(arrived).toHaveLength(0);
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

  it("sends a host's default headers, of all methods and of one", async () => {
    const { axios, arrived } = await setUp();
    axios.defaults.headers.common['X-All'] = '1';
    axios.defaults.headers.post['X-Post'] = '2';
    axios.defaults.headers.put = { 'X-Put': '3' };
    for (const method of ['get', 'post', 'put']) await axios.request({ url: '/a', method });
    const seen = arrived.map(({ headers }) => [headers['x-all'], headers['x-post'], headers['x-put']]);
    expect(seen).toEqual([
      ['1', undefined, undefined],
      ['1', '2', undefined],
      ['1', undefined, '3'],
    ]);
    expect(arrived.map(({ headers }) => headers.accept)).toEqual(Array(3).fill('application/json'));
  });

  it("lets a host's interceptor take a default parameter out", async () => {
    const { axios, arrived } = await setUp();
    axios.defaults.params = { kept: '1', removed: '2' };
    axios.interceptors.request.use((config) => {
      delete (config.params as Record<string, string>).removed;
      return config;
    });
    await axios.get('/a');
    expect(arrived[0]?.url).toBe('/a?kept=1');
  });

  it("takes nothing from a host's global defaults of axios: they are for its other calls", async () => {
    const { defaults } = globalAxios;
    const before = { ...defaults };
    const given = {
      baseURL: 'https://other.example',
      params: { key: 'theirs' },
      auth: { username: 'u', password: 'p' },
      transformRequest: [(): string => 'theirs'],
    };
    Object.assign(defaults, given);
    defaults.headers.common['X-Api-Key'] = 'theirs';
    defaults.headers.get['X-Get-Key'] = 'theirs';
    const top = defaults.headers as unknown as Record<string, unknown>;
    top['X-Top-Key'] = 'theirs';
    try {
      const { axios, arrived } = await setUp();
      await axios.get('/a');
      expect(arrived[0]?.url).toBe('/a');
      await axios.post('/a', { ours: 1 });
      expect(JSON.stringify(arrived)).not.toMatch(/theirs/);
      expect(defaults).toMatchObject(given);
      expect(defaults.headers.common['X-Api-Key']).toBe('theirs');
    } finally {
      for (const key of Object.keys(given)) if (!(key in before)) delete defaults[key as 'baseURL'];
      Object.assign(defaults, before);
      delete defaults.headers.common['X-Api-Key'];
      delete defaults.headers.get['X-Get-Key'];
      delete top['X-Top-Key'];
    }
  });

  it("checks the address after a host's own interceptor, which sees clean errors too", async () => {
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

  it('refuses a stream as answer, in words', async () => {
    const { axios, arrived } = await setUp();
    expect(await errorOf(axios.get('/a', { responseType: 'stream' }))).toMatchObject({
      faults: [{ property: 'responseType' }],
    });
    expect(arrived).toHaveLength(0);
  });

  const OTHER = { legacyInterceptorReqResOrdering: false };
  const HOSTS: [string, { ofAll?: object; ofInstance?: object; ofCall?: object }][] = [
    ['as it is', {}],
    ['a transitional of the call', { ofCall: { silentJSONParsing: false } }],
    ['the other order for a call', { ofCall: OTHER }],
    ['the other order for the instance', { ofInstance: OTHER }],
    ['the other order for all of axios', { ofAll: OTHER }],
    ['no transitional of the instance, the other order for all', { ofAll: OTHER, ofInstance: undefined }],
  ];

  it.each(HOSTS.flatMap(([name, host]) => [false, true].map((cold) => ({ name, cold, ...host }))))(
    "a host's interceptor never sees a credential: $name, a token that is waited for: $cold",
    async ({ cold, ofAll = {}, ofCall, ...host }) => {
      const evil = await setUp();
      const { axios, arrived, inFlight } = await setUp({ cold: cold ? async () => undefined : undefined });
      const seen: unknown[] = [];
      let late: object = {};
      axios.interceptors.request.use((config) => {
        // Also later, as the host may keep it.
        seen.push(config, config.headers, everything(config));
        config.headers.set({ AUTHORIZATION: 'Basic theirs', 'x-late': '1' });
        return Object.assign(config, late);
      });
      axios.interceptors.response.use((answer) => (seen.push(answer, everything(answer)), answer));
      if ('ofInstance' in host) axios.defaults.transitional = host.ofInstance;
      const config = { timeout: 1_000, ...(ofCall && { transitional: ofCall }) };
      const shared = globalAxios.defaults.transitional!;
      const before = { ...shared };
      Object.assign(shared, ofAll);
      try {
        await axios.get('/a', config);
        for (late of [
          { url: evil.server.url },
          { baseURL: evil.server.url, url: '/a' },
          { adapter: 'http', url: evil.server.url },
          { adapter: (given: unknown) => Promise.reject(new Error(everything(given))) },
        ]) {
          seen.push(await axios.get('/a', config).catch((error: unknown) => error));
        }
      } finally {
        Object.assign(shared, before);
      }
      expect(everything([seen, evil.arrived])).not.toMatch(/planted/);
      for (const { headers } of arrived) {
        expect(headers).toMatchObject({
          authorization: `Bearer ${BEARER}`,
          'service-app-token': APP_TOKEN,
          'x-late': '1',
        });
      }
      expect(arrived.length).toBeGreaterThan(0);
      expect(inFlight.close()).toBe(0);
    },
  );

  it('runs transforms of the host, which may lead the call nowhere else, and hands on what they never had', async () => {
    const evil = await setUp();
    const { axios, arrived } = await setUp();
    const kept: unknown[] = [];
    const transformRequest = function (this: InternalAxiosRequestConfig, data: unknown, headers: object) {
      kept.push(this, headers);
      Object.assign(headers, { authorization: 'Basic theirs', 'SERVICE-APP-TOKEN': 'theirs', 'x-own': '1' });
      return `wrapped ${JSON.stringify(data)}`;
    };
    axios.interceptors.request.use((config) => (kept.push(config, config.headers), config));
    await axios.post('/a', { b: 1 }, { transformRequest });
    expect(arrived[0]).toMatchObject({
      body: 'wrapped {"b":1}',
      headers: { authorization: `Bearer ${BEARER}`, 'service-app-token': APP_TOKEN, 'x-own': '1' },
    });
    const leading = function (this: InternalAxiosRequestConfig) {
      this.url = evil.server.url;
    };
    await axios.post('/b', {}, { transformRequest: [leading] });
    expect(everything(kept)).not.toMatch(/planted/);
    expect([arrived.map(({ url }) => url), evil.arrived]).toEqual([['/a', '/b'], []]);
  });

  it('leaves nothing in a config that a host gets with an answer or an error, and nothing to send by', async () => {
    const evil = await setUp();
    const { axios, arrived } = await setUp();
    const { config } = await axios.get('/a');
    const controller = new AbortController();
    const thrown = new Error('of the transform');
    const seen: unknown[] = [config];
    const transformResponse = function (this: unknown): never {
      seen.push(this);
      throw thrown;
    };
    expect(await errorOf(axios.get('/a', { transformResponse }))).toBe(thrown);
    // However late the caller aborts, axios has no config to put into its own error.
    axios.interceptors.request.use((given) => (queueMicrotask(() => controller.abort()), given));
    axios.interceptors.response.clear();
    seen.push(await errorOf(axios.get('/a', { signal: controller.signal })));
    const again = await errorOf(globalAxios.request(config));
    expect(again).toMatchObject({
      faults: [{ property: 'call', message: expect.stringMatching(/use axiosRef itself/) }],
    });
    seen.push(again);
    seen.push(await errorOf(globalAxios.request({ ...config, url: evil.server.url })));
    expect(everything(seen)).not.toMatch(/planted/);
    // Through the instance it is a call like any other.
    expect((await axios.request(config)).status).toBe(200);
    expect(arrived.every(({ headers }) => headers.authorization === `Bearer ${BEARER}`)).toBe(true);
    expect(evil.arrived).toHaveLength(0);
  });

  it('sends nothing where its interceptor was taken out, and by axiosRef.create()', async () => {
    const { axios, arrived } = await setUp();
    const refused = {
      faults: [{ property: 'call', message: expect.stringMatching(/axiosRef\.create\(\)/) }],
    };
    const create = (axios as unknown as { create(config?: object): AxiosInstance }).create;
    expect(await errorOf(create({}).get('/a'))).toMatchObject(refused);
    const other = await setUp();
    other.axios.interceptors.request.eject(0);
    expect(await errorOf(other.axios.get('/a'))).toMatchObject(refused);
    expect(other.arrived).toHaveLength(0);
    // Nothing was counted as under way that a shutdown would wait for.
    await other.inFlight.drain();
    expect(other.inFlight.close()).toBe(0);
    axios.interceptors.request.clear();
    expect(await errorOf(axios.get('/a', { headers: { authorization: 'Basic theirs' } }))).toMatchObject(
      refused,
    );
    expect(arrived).toHaveLength(0);
  });

  it.each<[string, Record<string, string>]>([
    ['service-app-token', { Authorization: `Bearer ${BEARER}` }],
    ['authorization', { 'service-app-token': APP_TOKEN }],
  ])('sends no %s of others where the module has none', async (name, credentials) => {
    const { axios, arrived } = await setUp({ credentials });
    await axios.get('/a', { headers: { [name]: 'theirs' } });
    await axios.get('/a', { headers: { [name.toUpperCase()]: 'theirs' } });
    expect(arrived.map(({ headers }) => headers[name])).toEqual([undefined, undefined]);
  });

  it.each<[string, (evil: { url: string; port: number }, hear: (...heard: unknown[]) => void) => object]>([
    ['transport', (_, hear) => ({ transport: { request: hear } })],
    ['beforeRedirect', (_, hear) => ({ beforeRedirect: hear, maxRedirects: 5 })],
    ['httpAgent', (_, hear) => ({ httpAgent: { addRequest: hear }, httpsAgent: { addRequest: hear } })],
    ['auth', () => ({ auth: { username: 'u', password: 'p' } })],
    ['baseURL', () => ({ baseURL: '/under' })],
    ['allowAbsoluteUrls', () => ({ allowAbsoluteUrls: false })],
    ['socketPath', () => ({ socketPath: '/nowhere', allowedSocketPaths: ['/nowhere'] })],
    ['lookup', (_, hear) => ({ lookup: hear, family: 6 })],
    ['proxy', ({ port }) => ({ proxy: { host: '127.0.0.1', port, protocol: 'http' } })],
    ['formSerializer', (_, hear) => ({ formSerializer: { visitor: hear } })],
    ['validateStatus', (_, hear) => ({ validateStatus: (...heard: unknown[]) => (hear(...heard), true) })],
    ['onUploadProgress', (_, hear) => ({ onUploadProgress: hear, onDownloadProgress: hear })],
    [
      'paramsSerializer',
      (_, hear) => ({ params: { a: 1 }, paramsSerializer: (p: unknown) => (hear(p), 'a') }),
    ],
    ['env', (_, hear) => ({ env: { fetch: hear, FormData: class {} } })],
    ['cancelToken', (_, hear) => ({ cancelToken: { throwIfRequested: hear, subscribe: hear } })],
  ])('a host that sets %s gets no header of ours, and the call is ours all the same', async (_, option) => {
    for (const byDefault of [false, true]) {
      const evil = await setUp();
      const { axios, arrived } = await setUp();
      const heard: unknown[] = [];
      const options = option(evil.server, (...given) => void heard.push(...given));
      if (byDefault) Object.assign(axios.defaults, options);
      const { config } = await axios.post('/a', { b: 1 }, byDefault ? {} : (options as never));
      expect(everything([heard, config])).not.toMatch(/planted/);
      expect(arrived[0]?.headers).toMatchObject({
        authorization: `Bearer ${BEARER}`,
        'service-app-token': APP_TOKEN,
      });
      expect(evil.arrived).toHaveLength(0);
    }
  });

  it("counts waiting for a token as part of the call: in flight, within its deadline, ended by the caller's abort", async () => {
    const reason = new Error('mine');
    const waits: { timeoutMs?: number }[] = [];
    const shutdown: { begin?: () => Promise<void> } = {};
    let drained = false;
    const { axios, arrived, ...rest } = await setUp({
      cold: async (wait) => {
        waits.push(wait);
        if (wait.timeoutMs === 1_500) return wait.signal?.throwIfAborted();
        void shutdown.begin?.().then(() => (drained = true));
        await new Promise((resolve) => setImmediate(resolve));
        expect(drained).toBe(false);
      },
    });
    expect(await errorOf(axios.get('/a', { timeout: 1_500, signal: AbortSignal.abort(reason) }))).toBe(
      reason,
    );
    shutdown.begin = () => rest.inFlight.drain();
    // The shutdown begins while this call waits for its token.
    expect((await axios.get('/a', { timeout: 1_400 })).status).toBe(200);
    await rest.inFlight.drain();
    expect(waits.map(({ timeoutMs }) => timeoutMs)).toEqual([1_500, 1_400]);
    expect(arrived).toHaveLength(1);
    expect(rest.inFlight.close()).toBe(0);
  });

  it("passes a host's own error on as it is: thrown by an interceptor, or by another call in it", async () => {
    const { axios, arrived } = await setUp();
    const theirs = new Error('of the host');
    const id = axios.interceptors.request.use(() => Promise.reject(theirs));
    expect(await errorOf(axios.get('/a'))).toBe(theirs);
    axios.interceptors.request.eject(id);
    const own = globalAxios.create();
    let other: unknown;
    axios.interceptors.request.use(async (config) => {
      await own.get('http://127.0.0.1:9/').catch((error: unknown) => {
        other = error;
        throw error;
      });
      return config;
    });
    expect(await errorOf(axios.get('/a'))).toBe(other);
    expect(everything(other)).not.toMatch(/planted/);
    expect(arrived).toHaveLength(0);
  });
});

it('writes params as the call says', async () => {
  const { axios, arrived } = await setUp();
  const http = new ServiceHttpService(new HttpService(axios));
  await http.get('/a?b=1', { params: { id: ['x', 'y'] }, paramsSerializer: { indexes: null } });
  await http.get('/a', { params: { id: 'x' }, paramsSerializer: () => 'own=1' });
  expect(arrived.map(({ url }) => url)).toEqual(['/a?b=1&id=x&id=y', '/a?own=1']);
});

describe('names in a path', () => {
  it('are filled in, encoded as one segment each; messages, logs and what is printed have the names', async () => {
    const { axios, arrived } = await setUp({ listener: failing(404) });
    const http = new ServiceHttpService(new HttpService(axios));
    const pathParams = { owner: 'omar@example.com', id: 'a/b %', nr: 7, big: 12345678901234567890n };
    const path = '/v2/{owner}/{id}/{nr}-{big}/{id}';
    const error = (await errorOf(http.get(`${path}?q={id}`, { pathParams }))) as ServiceApiError;
    expect(arrived[0]?.url).toBe(
      '/v2/omar%40example.com/a%2Fb%20%25/7-12345678901234567890/a%2Fb%20%25?q={id}',
    );
    expect(error).toMatchObject({ route: path, path: expect.stringContaining('omar%40example.com') });
    expect([inspect(error), JSON.stringify(error), describeError(error)].join()).not.toMatch(/omar/);
    expect(describeError(error)).toContain(`GET ${path}: HTTP 404`);
    await http.post('/a/{id}', {}, { pathParams: { id: "it's (1)!" } });
    expect(arrived[1]?.url).toBe("/a/it's%20(1)!");
  });

  it('without a template, messages have the resource and its version', async () => {
    const { axios } = await setUp({ listener: (request) => request.socket.destroy(), retries: 0 });
    for (const id of ['omar%40example.com', 'c-private']) {
      const error = (await errorOf(axios.get(`/customers/v1/app-user-id/${id}`))) as ServiceError;
      expect(error).toMatchObject({ route: '/customers/v1', path: `/customers/v1/app-user-id/${id}` });
      expect(describeError(error)).toMatch(/GET \/customers\/v1 at /);
      expect(inspect(error) + JSON.stringify(error)).not.toMatch(/omar|private/);
    }
  });

  it.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['empty', ''],
    ['of another type', { toString: () => 'x' }],
    ['true', true],
    ['no number', NaN],
    ['a control character', 'a\nb'],
    ['half of a character', 'a\ud800'],
    ['.', '.'],
    ['..', '..'],
    ['.. encoded', '%2e%2E'],
    ['.. encoded twice', '%252e%252e'],
    ['../ within', 'a/../b'],
    ['..; within', '..;'],
    ['a backslash before ..', 'a\\..'],
  ])("a value that is %s is refused, as the caller's fault", async (_, id) => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService(new HttpService(axios));
    const error = await errorOf(http.get('/a/{id}/b', { pathParams: { id } as never }));
    expect(error).toBeInstanceOf(ServiceRequestError);
    expect(answerOf(error)).toMatchObject({ status: 400 });
    expect(arrived).toHaveLength(0);
  });

  it('a name that the path lacks is the fault of the code', async () => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService(new HttpService(axios));
    for (const path of ['/a', '/a/{other}', '/a?id={id}']) {
      const error = await errorOf(http.get(path, { pathParams: { id: 'x' } }));
      expect(error).toMatchObject({ faults: [{ property: 'pathParams.id' }] });
      expect(answerOf(error)).toMatchObject({ status: 500 });
    }
    expect(answerOf(await errorOf(http.get('/a/{id}')))).toMatchObject({ status: 400 });
    expect(arrived).toHaveLength(0);
  });
});
