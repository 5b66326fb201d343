import { describe, expect, it, jest } from '@jest/globals';
import globalAxios, { type AxiosInstance, type InternalAxiosRequestConfig } from 'axios';
import fc from 'fast-check';
import { Agent, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { lastValueFrom } from 'rxjs';
import { type HttpSettings } from '../../../lib/config/resolve-options.js';
import { describeError, type ServiceApiError, ServiceRequestError } from '../../../lib/errors/index.js';
import { AllowedUrls, type CallUrl, routeOf } from '../../../lib/http/call-url.js';
import { answerOf } from '../../../lib/answers/answer.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { knownApiRoutes } from '../../../lib/testing/known-api-routes.js';
import { anyText } from '../../helpers/any-text.js';
import { draws } from '../../helpers/in-soak.js';
import { httpServer } from '../../helpers/loopback.js';
import { makeClient } from '../../helpers/make-client.js';
import { afterwards, APP_TOKEN, BEARER, errorOf, failing, plantedIn, setUp } from './setup.js';

const httpOf = (axios: AxiosInstance) => new ServiceHttpService(axios);
const OURS = { authorization: `Bearer ${BEARER}`, 'service-app-token': APP_TOKEN };

describe('Calls', () => {
  it('attach the authenticating headers, send JSON and read JSON', async () => {
    const { axios, arrived } = await setUp();
    const { data, status } = await axios.post<unknown>('/customers/v1', { app_user_id: 'ü' });
    expect({ data, status }).toEqual({ data: { ok: true }, status: 200 });
    expect(arrived).toEqual([
      {
        method: 'POST',
        url: '/customers/v1',
        body: '{"app_user_id":"ü"}',
        headers: expect.objectContaining({
          ...OURS,
          'content-type': 'application/json',
          accept: 'application/json',
          'content-length': '20',
        }),
      },
    ]);
  });

  it('use the HTTP method of the method called, with its path, options and body', async () => {
    const { axios, arrived } = await setUp();
    const http = httpOf(axios);
    const options = { params: { q: 1 } };
    expect(await http.get('/a', options)).toEqual({ ok: true });
    expect(await http.delete('/a', { ...options, data: ['d'] })).toEqual({ ok: true });
    for (const method of ['post', 'put', 'patch'] as const) {
      expect(await http[method]('/a', [method], options)).toEqual({ ok: true });
    }
    await http.request('/b');
    await http.request('/b', { method: 'put' });
    await http.request({ url: '/b', method: 'PATCH' });
    expect(arrived.map(({ method, url, body }) => `${method} ${url} ${body}`)).toEqual([
      'GET /a?q=1 ',
      'DELETE /a?q=1 ["d"]',
      'POST /a?q=1 ["post"]',
      'PUT /a?q=1 ["put"]',
      'PATCH /a?q=1 ["patch"]',
      'GET /b ',
      'PUT /b ',
      'PATCH /b ',
    ]);
    expect(arrived[0]?.headers['content-type']).toBeUndefined();
  });

  it('write params as axios does, or as paramsSerializer says', async () => {
    const { axios, arrived } = await setUp();
    const http = httpOf(axios);
    await http.get('/a', { params: { q: 'a b', list: [1, 2] } });
    await http.get('/a?b=1', { params: { id: ['x', 'y'] }, paramsSerializer: { indexes: null } });
    await http.get('/a', { params: { id: 'x' }, paramsSerializer: () => 'own=1' });
    expect(arrived.map(({ url }) => url)).toEqual([
      '/a?q=a+b&list%5B%5D=1&list%5B%5D=2',
      '/a?b=1&id=x&id=y',
      '/a?own=1',
    ]);
  });

  it.each(['GET', 'DELETE', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'PROPFIND'])(
    'send the body of a %s with its length, so that it cannot be read as another request',
    async (method) => {
      const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
      const { axios, arrived } = await setUp();
      for (const data of [smuggled, Buffer.from(smuggled)]) {
        await axios.request({ url: '/framed', method, data });
        await axios.get('/next');
      }
      expect(arrived.map(({ url, body }) => [url, body])).toEqual([
        ['/framed', smuggled],
        ['/next', ''],
        ['/framed', smuggled],
        ['/next', ''],
      ]);
    },
  );

  it.each<[string, object, boolean?]>([
    ['path', { url: undefined }, true],
    ['path', { url: 7 }, true],
    ['path', { url: 'https://evil.example/x' }, true],
    ['path', { baseURL: 'https://evil.example' }, true],
    ['method', { method: 'GET / HTTP/1.1\r\nX: y' }, true],
    ['method', { method: 'CONNECT' }, true],
    ['a header', { headers: { 'x y': 'z' } }, true],
    ['header x-a', { headers: { 'x-a': 'a\u20acb' } }, true],
    ['timeout', { timeout: -1 }],
    ['attemptTimeout', { attemptTimeout: -1 }],
    ['signal', { signal: 'x' }],
    ['signal', { signal: {} }],
    ['responseType', { responseType: 'stream' }],
    ['maxResponseBytes', { maxResponseBytes: 0 }],
    ...[-1, 11, 1.5, '2', NaN].map((retries): [string, object] => ['retries', { retries }]),
    ...['', 'a b', 'k'.repeat(256), 7].map((idempotencyKey): [string, object] => [
      'idempotencyKey',
      { method: 'POST', idempotencyKey },
    ]),
    ['idempotencyKey', { method: 'PUT', idempotencyKey: 'k-1' }],
    ['idempotencyKey', { method: 'GET', idempotencyKey: true }],
    ['idempotencyKey', { method: 'POST', idempotencyKey: 'k-1', readOnly: true }],
    [
      'header idempotency-key',
      { method: 'POST', idempotencyKey: 'k-1', headers: { 'Idempotency-Key': 'k-2' } },
    ],
  ])('send nothing if their %s is invalid: %j', async (property, options, isOfCaller = false) => {
    const { axios, arrived } = await setUp();
    const error = await errorOf(axios.request({ url: '/a', ...options } as never));
    expect(error).toMatchObject({ code: 'invalid_request', faults: [{ property }] });
    // The host application's caller can correct its own input, but not a bug in the host's code.
    expect(answerOf(error)).toMatchObject({ status: isOfCaller ? 400 : 500 });
    expect(arrived).toHaveLength(0);
  });

  it.each(['timeout', 'attemptTimeout', 'retries', 'maxResponseBytes'])(
    'say that %s is a string, if it is the text of a variable',
    async (option) => {
      const { axios } = await setUp();
      const error = await errorOf(axios.request({ url: '/a', [option]: '5' } as never));
      expect(error).toMatchObject({ message: expect.stringMatching(/; it is a string: use Number\(\)/) });
    },
  );

  it('send nothing if the path is not a string, or if an interceptor removes the method', async () => {
    const { axios, arrived } = await setUp();
    for (const target of [null, undefined, 7]) {
      const error = await errorOf(httpOf(axios).request(target as never));
      expect(error).toMatchObject({ faults: [{ property: 'path' }] });
    }
    // Axios reads the method before the host application's interceptors run.
    axios.interceptors.request.use((config) => ({ ...config, method: 7 as never }));
    expect(await errorOf(axios.get('/a'))).toMatchObject({ faults: [{ property: 'method' }] });
    expect(arrived).toHaveLength(0);
  });

  it("include the wait for a token: it counts as in flight, ends at the deadline and by the caller's abort", async () => {
    const reason = new Error('mine');
    const waits: { timeoutMs?: number }[] = [];
    const shutdown: { begin?: () => Promise<void> } = {};
    let drained = false;
    const { axios, arrived, ...rest } = await setUp({
      cold: async (wait) => {
        waits.push(wait);
        if (waits.length === 1) return wait.signal?.throwIfAborted();
        void shutdown.begin?.().then(() => (drained = true));
        await new Promise((resolve) => setImmediate(resolve));
        expect(drained).toBe(false);
      },
    });
    const aborted = axios.get('/a', { timeout: 1_500, signal: AbortSignal.abort(reason) });
    expect(await errorOf(aborted)).toBe(reason);
    shutdown.begin = () => rest.inFlight.drain();
    // The shutdown begins while this call waits for its token.
    expect(await axios.get('/a', { timeout: 1_400 })).toMatchObject({
      status: 200,
      config: { timeout: 1_400 },
    });
    await rest.inFlight.drain();
    for (const [index, limit] of [1_500, 1_400].entries()) {
      expect(waits[index]?.timeoutMs).toBeGreaterThan(0);
      expect(waits[index]?.timeoutMs).toBeLessThanOrEqual(limit);
    }
    expect(arrived.map(({ headers }) => headers.authorization)).toEqual([OURS.authorization]);
    expect(rest.inFlight.close()).toBe(0);
  });
});

describe('Request headers', () => {
  it('leave out headers of the connection', async () => {
    const { axios, arrived } = await setUp();
    await axios.get('/a', {
      headers: { Host: 'evil.example', 'Transfer-Encoding': 'chunked', 'X-Mine': 'kept' },
    });
    const { host, 'transfer-encoding': coding, ...headers } = arrived[0]?.headers ?? {};
    expect(headers).toMatchObject({ ...OURS, 'x-mine': 'kept' });
    expect([host, coding]).toEqual([expect.stringMatching(/^127\.0\.0\.1/), undefined]);
  });

  it.each(['authorization', 'AUTHORIZATION', 'Service-App-Token'])(
    "must not be the module's own %s, whatever code of the host application sets it",
    async (name) => {
      const headers = { [name]: 'theirs' };
      const ways: [string, (axios: AxiosInstance) => object][] = [
        ['a call', () => ({ headers })],
        ['the defaults', (axios) => (Object.assign(axios.defaults.headers.common, headers), {})],
        [
          'an interceptor',
          (axios) => (axios.interceptors.request.use((c) => (c.headers.set(headers), c)), {}),
        ],
        [
          'transformRequest',
          () => ({ transformRequest: (data: unknown, sent: object) => (Object.assign(sent, headers), data) }),
        ],
      ];
      for (const [, optionsOf] of ways) {
        // Also if the module itself sends no such header.
        for (const credentials of [undefined, {}]) {
          const { axios, arrived } = await setUp({ credentials });
          const error = await errorOf(axios.get('/a', optionsOf(axios)));
          expect(error).toMatchObject({
            faults: [{ property: `header ${name.toLowerCase()}`, message: 'is set by the module itself' }],
            hint: expect.stringMatching(/headers of its own callers/),
          });
          expect(answerOf(error)).toMatchObject({ status: 500 });
          expect(arrived).toHaveLength(0);
        }
      }
    },
  );

  it('may name the authenticating ones without a value', async () => {
    const { axios, arrived } = await setUp();
    for (const value of [undefined, null, false])
      await axios.get('/a', { headers: { Authorization: value } as never });
    expect(arrived.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill(OURS.authorization));
  });

  it('leave out headers without a value, and join several values of one', async () => {
    const { axios, arrived } = await setUp();
    const headers = { 'x-null': null, 'x-false': false, 'x-undefined': undefined, 'x-list': ['a', 'b'] };
    await axios.get('/a', { headers: headers as never });
    const sent = Object.entries(arrived[0]?.headers ?? {}).filter(([name]) => name.startsWith('x-'));
    expect(sent).toEqual([['x-list', 'a, b']]);
  });

  it('can be defaults of the host application, for all methods or for one', async () => {
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
  });

  /** Headers of an inbound request that a host application passes on. */
  const PASSED_ON = { 'Accept-Encoding': 'zstd', Range: 'bytes=0-4' };
  /** A file server, which responds with parts of a file and compresses them if the request allows it. */
  const files: RequestListener = ({ headers }, response) => {
    const whole = Buffer.from('{"iban":"x"}');
    const part = /^bytes=0-(\d+)$/.exec(headers.range ?? '');
    const body = part ? whole.subarray(0, Number(part[1]) + 1) : whole;
    const accepted = headers['accept-encoding'] ?? '';
    const coding = accepted.includes('gzip') ? 'gzip' : accepted.includes('zstd') ? 'zstd' : undefined;
    response.writeHead(part ? 206 : 200, coding ? { 'content-encoding': coding } : {});
    response.end(coding === 'gzip' ? gzipSync(body) : body);
  };

  it.each(['get', 'post'] as const)('let JSON come whole, encoded as we can read it: %s', async (method) => {
    const { axios, arrived } = await setUp({ listener: files });
    const { data } = await axios.request<unknown>({ url: '/a', method, headers: PASSED_ON });
    expect(data).toEqual({ iban: 'x' });
    const { range, 'accept-encoding': accepted } = arrived[0]?.headers ?? {};
    expect([range, accepted]).toEqual([undefined, 'gzip, deflate, br']);
  });

  it('can ask for a type and a range of bytes, which is then not compressed', async () => {
    const { axios, arrived } = await setUp({ listener: files });
    const headers = { ...PASSED_ON, ACCEPT: 'text/csv' };
    const { status, data } = await axios.get<Buffer>('/a', { headers, responseType: 'arraybuffer' });
    expect([status, data.toString(), arrived[0]?.headers.accept]).toEqual([206, '{"iba', 'text/csv']);
  });
});

describe('Conditions of a request', () => {
  const CONDITIONS = { 'If-None-Match': '"v1"', 'if-modified-since': 'Sat, 28 Nov 2026 18:00:00 GMT' };
  /** Answers 304 if the request has a condition, or always. */
  const cached =
    (always = false): RequestListener =>
    ({ headers }, response) => {
      const isAsked = headers['if-none-match'] ?? headers['if-modified-since'];
      if (always || isAsked) response.writeHead(304, { etag: '"v1"' }).end();
      else response.end('{"whole":true}');
    };

  it.each(['GET', 'HEAD'])('make http.response() resolve with 304 and without a body: %s', async (method) => {
    const { axios } = await setUp({ listener: cached() });
    const parse = jest.fn((body: unknown) => body);
    for (const [name, value] of Object.entries(CONDITIONS)) {
      const given = { method, headers: { [name]: value }, parse } as const;
      const response = await httpOf(axios).response('/a', given);
      expect(response).toMatchObject({ status: 304, data: undefined, headers: { etag: '"v1"' } });
    }
    expect(parse).not.toHaveBeenCalled();
  });

  it('may come from an interceptor, which may also bring the body', async () => {
    const { axios } = await setUp({ listener: cached() });
    axios.interceptors.request.use((config) => (config.headers.set(CONDITIONS), config));
    axios.interceptors.response.use((response) => ({ ...response, data: { kept: 1 } }));
    const response = await httpOf(axios).response('/a', { parse: (body) => ({ parsed: body }) });
    expect(response).toMatchObject({ status: 304, data: { parsed: { kept: 1 } } });
  });

  it('are left out of a GET or HEAD whose caller cannot see a 304', async () => {
    const { axios, arrived } = await setUp({ listener: cached() });
    const http = httpOf(axios);
    const headers = { ...CONDITIONS, 'if-match': '"v0"', 'if-unmodified-since': 'x' };
    expect(await http.get('/a', { headers })).toEqual({ whole: true });
    await http.request('/a', { method: 'HEAD', headers });
    await axios.get('/a', { headers });
    await lastValueFrom(http.httpService.get('/a', { headers }));
    for (const request of arrived) {
      expect(request.headers).not.toHaveProperty('if-none-match');
      expect(request.headers).not.toHaveProperty('if-modified-since');
      expect(request.headers).toMatchObject({ 'if-match': '"v0"', 'if-unmodified-since': 'x' });
    }
    expect(arrived).toHaveLength(4);
  });

  it.each([[(status: number) => status < 400], [null]])(
    'are sent by axiosRef if validateStatus accepts 304: %s',
    async (validateStatus) => {
      const { axios } = await setUp({ listener: cached() });
      expect((await axios.get('/a', { headers: CONDITIONS, validateStatus })).status).toBe(304);
    },
  );

  it.each(['PUT', 'PATCH', 'POST', 'DELETE'])('are always sent with a change: %s', async (method) => {
    const { axios, arrived } = await setUp();
    await httpOf(axios).request('/a', { method, headers: CONDITIONS });
    expect(arrived[0]?.headers).toMatchObject({ 'if-none-match': '"v1"' });
  });

  it('make no result of a 304 that nobody asked for', async () => {
    const { axios } = await setUp({ listener: cached(true), retries: 0 });
    const http = httpOf(axios);
    for (const call of [http.response('/a'), http.get('/a', { headers: CONDITIONS })])
      expect(await errorOf(call)).toMatchObject({ code: 'api_error', status: 304 });
    const change = http.response('/a', { method: 'PUT', headers: CONDITIONS });
    expect(await errorOf(change)).toMatchObject({ status: 304, outcomeUnknown: true });
  });
});

describe('Code of the host application', () => {
  it.each<[string, (axios: AxiosInstance, adapter: 'http') => object]>([
    ['the defaults', (axios, adapter) => (Object.assign(axios.defaults, { adapter }), {})],
    ['a call', (_, adapter) => ({ adapter })],
    [
      'an interceptor',
      (axios, adapter) => (axios.interceptors.request.use((config) => ({ ...config, adapter })), {}),
    ],
  ])(
    'cannot replace the adapter by %s, because that adapter would call the service without our checks',
    async (_, optionsOf) => {
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
    },
  );

  it('can remove a default parameter', async () => {
    const { axios, arrived } = await setUp();
    axios.defaults.params = { kept: '1', removed: '2' };
    axios.interceptors.request.use((config) => {
      delete (config.params as Record<string, string>).removed;
      return config;
    });
    await axios.get('/a');
    expect(arrived[0]?.url).toBe('/a?kept=1');
  });

  it('does not affect our calls by the global defaults of axios', async () => {
    const { defaults } = globalAxios;
    const before = { ...defaults };
    const given = {
      baseURL: 'https://other.example',
      params: { key: 'theirs' },
      auth: { username: 'u', password: 'p' },
      transformRequest: [(): string => 'theirs'],
    };
    Object.assign(defaults, given);
    const headers = defaults.headers as unknown as Record<string, unknown>;
    defaults.headers.common['X-Api-Key'] = 'theirs';
    defaults.headers.get['X-Get-Key'] = 'theirs';
    headers['X-Top-Key'] = 'theirs';
    try {
      const { axios, arrived } = await setUp();
      await axios.get('/a');
      await axios.post('/a', { ours: 1 });
      expect(arrived.map(({ url, body }) => [url, body])).toEqual([
        ['/a', ''],
        ['/a', '{"ours":1}'],
      ]);
      expect(JSON.stringify(arrived)).not.toMatch(/theirs/);
      expect(defaults).toMatchObject(given);
      expect(defaults.headers.common['X-Api-Key']).toBe('theirs');
    } finally {
      for (const key of Object.keys(given)) if (!(key in before)) delete defaults[key as 'baseURL'];
      Object.assign(defaults, before);
      delete defaults.headers.common['X-Api-Key'];
      delete defaults.headers.get['X-Get-Key'];
      delete headers['X-Top-Key'];
    }
  });

  it('can change the address and the response in an interceptor; the address is checked afterwards, and the interceptor gets our errors', async () => {
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
    await errorOf(axios.get('/evil'));
    expect(seen).toEqual([expect.any(ServiceRequestError)]);
    expect(arrived.map(({ url }) => url)).toEqual(['/b']);
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
    'never sees a credential in an interceptor: $name, with a token that is waited for: $cold',
    async ({ cold, ofAll = {}, ofCall, ...host }) => {
      const evil = await setUp();
      const { axios, arrived, inFlight } = await setUp({ cold: cold ? async () => undefined : undefined });
      const seen: unknown[] = [];
      let late: object = {};
      axios.interceptors.request.use((config) => {
        // The host may keep the object and print it later.
        seen.push(config, config.headers, plantedIn(config));
        config.headers.set({ 'x-late': '1' });
        return Object.assign(config, late);
      });
      axios.interceptors.response.use((answer) => (seen.push(answer, plantedIn(answer)), answer));
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
          { adapter: (given: unknown) => Promise.reject(new Error(plantedIn(given).join())) },
        ]) {
          seen.push(await axios.get('/a', config).catch((error: unknown) => error));
        }
      } finally {
        Object.assign(shared, before);
      }
      expect(plantedIn([seen, evil.arrived])).toEqual([]);
      for (const { headers } of arrived) expect(headers).toMatchObject({ ...OURS, 'x-late': '1' });
      expect(arrived.length).toBeGreaterThan(0);
      expect(inFlight.close()).toBe(0);
    },
  );

  it('can transform the body, but cannot change the address by that, and gets nothing to keep that it did not have', async () => {
    const evil = await setUp();
    const { axios, arrived } = await setUp();
    const kept: unknown[] = [];
    const transformRequest = function (this: InternalAxiosRequestConfig, data: unknown, headers: object) {
      // Until the adapter runs, the Call is a property of this config.
      kept.push(inspect(this, { depth: 20, showHidden: true, getters: true }));
      kept.push(plantedIn(this), plantedIn({ ...this }), this, headers);
      Object.assign(headers, { 'x-own': '1' });
      return `wrapped ${JSON.stringify(data)}`;
    };
    axios.interceptors.request.use((config) => (kept.push(config, config.headers), config));
    await axios.post('/a', { b: 1 }, { transformRequest });
    expect(arrived[0]).toMatchObject({ body: 'wrapped {"b":1}', headers: { ...OURS, 'x-own': '1' } });
    const leading = (more: object) =>
      function (this: InternalAxiosRequestConfig) {
        Object.assign(this, { url: evil.server.url, ...more });
      };
    await axios.post('/b', {}, { transformRequest: [leading({})] });
    expect([arrived.map(({ url }) => url), evil.arrived]).toEqual([['/a', '/b'], []]);
    await axios.post('/c', {}, { transformRequest: [leading({ adapter: 'http' })] });
    expect(arrived).toHaveLength(2);
    expect(plantedIn([kept, evil.arrived])).toEqual([]);
  });

  it('gets a config with a response or an error that contains no call and no credentials', async () => {
    const evil = await setUp();
    const { axios, arrived } = await setUp();
    const { config } = await axios.get('/a');
    const controller = new AbortController();
    const seen: unknown[] = [config];
    // Even if the caller aborts late, axios has no config that it could put into its own error.
    axios.interceptors.request.use((given) => (queueMicrotask(() => controller.abort()), given));
    axios.interceptors.response.clear();
    seen.push(await errorOf(axios.get('/a', { signal: controller.signal })));
    const again = await errorOf(globalAxios.request(config));
    expect(again).toMatchObject({
      faults: [{ property: 'call', message: expect.stringMatching(/use axiosRef itself/) }],
    });
    seen.push(again);
    seen.push(await errorOf(globalAxios.request({ ...config, url: evil.server.url })));
    expect(plantedIn(seen)).toEqual([]);
    // A request through the instance is a call like any other.
    expect((await axios.request(config)).status).toBe(200);
    expect(arrived.every(({ headers }) => headers.authorization === OURS.authorization)).toBe(true);
    expect(evil.arrived).toHaveLength(0);
  });

  it('sends nothing if it has removed our interceptor, or uses axiosRef.create()', async () => {
    const { axios, arrived } = await setUp();
    const refused = {
      faults: [{ property: 'call', message: expect.stringMatching(/axiosRef\.create\(\)/) }],
    };
    const create = (axios as unknown as { create(config?: object): AxiosInstance }).create;
    expect(await errorOf(create({}).get('/a'))).toMatchObject(refused);
    const other = await setUp();
    other.axios.interceptors.request.eject(0);
    expect(await errorOf(other.axios.get('/a'))).toMatchObject(refused);
    // No call counts as in flight, so a shutdown waits for nothing.
    await other.inFlight.drain();
    expect(other.inFlight.close()).toBe(0);
    axios.interceptors.request.clear();
    const theirs = { headers: { authorization: 'Basic theirs' } };
    expect(await errorOf(axios.get('/a', theirs))).toMatchObject(refused);
    expect([...arrived, ...other.arrived]).toHaveLength(0);
  });

  it.each<[string, (hear: (...heard: unknown[]) => void) => object]>([
    ['baseURL', () => ({ baseURL: '/under' })],
    ['allowAbsoluteUrls', () => ({ allowAbsoluteUrls: false })],
    ['validateStatus', (hear) => ({ validateStatus: (...heard: unknown[]) => (hear(...heard), true) })],
    ['paramsSerializer', (hear) => ({ params: { a: 1 }, paramsSerializer: (p: unknown) => (hear(p), 'a') })],
    ['cancelToken', (hear) => ({ cancelToken: { throwIfRequested: hear, subscribe: hear } })],
  ])(
    'gets no authenticating header by the option %s, and the call is still authenticated',
    async (_, option) => {
      for (const byDefault of [false, true]) {
        const { axios, arrived } = await setUp();
        const heard: unknown[] = [];
        const options = option((...given) => void heard.push(...given));
        if (byDefault) Object.assign(axios.defaults, options);
        const { config } = await axios.post('/a', { b: 1 }, byDefault ? {} : (options as never));
        expect(plantedIn([heard, config])).toEqual([]);
        expect(arrived[0]?.headers).toMatchObject(OURS);
      }
    },
  );

  it('gets its own error back unchanged if an interceptor, or another call in it, throws it', async () => {
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
    expect(plantedIn(other)).toEqual([]);
    expect(arrived).toHaveLength(0);
  });
});

describe('Options of axios that have no effect here', () => {
  const agent = new Agent();
  const PARSE = /set responseType 'text', and parse the text in parse$/;
  const OPTIONS: [string, unknown, RegExp][] = [
    ['transformResponse', [(data: unknown) => data], PARSE],
    ['transformResponse', [], PARSE],
    ['transformResponse', null, PARSE],
    ['parseReviver', (_: string, value: unknown) => value, PARSE],
    ['responseEncoding', 'latin1', /responseType 'bytes'/],
    ['auth', { username: 'u', password: 'p' }, /authenticates its calls by itself/],
    ['proxy', { host: '127.0.0.1', port: 1 }, /http\.proxy$/],
    ['httpAgent', agent, /auth\.httpsAgent$/],
    ['httpsAgent', new HttpsAgent(), /auth\.httpsAgent$/],
    ['socketPath', '/nowhere', /its options urls, tls and http/],
    ['transport', { request: () => undefined }, /its options urls, tls and http/],
    ['lookup', () => undefined, /its options urls, tls and http/],
    ['family', 6, /its options urls, tls and http/],
    ['env', { fetch: () => undefined }, /its options urls, tls and http/],
    ['httpVersion', 2, /its options urls, tls and http/],
    ['insecureHTTPParser', true, /its options urls, tls and http/],
    ['maxRedirects', 5, /redirects are never followed/],
    ['beforeRedirect', () => undefined, /redirects are never followed/],
    ['decompress', false, /always decompressed/],
    ['maxContentLength', 1_000, /maxResponseBytes$/],
    ['maxBodyLength', 1_000, /any size/],
    ['maxRate', 1_000, /leave it out$/],
    ['timeoutErrorMessage', 'late', /ServiceConnectionError/],
    ['onUploadProgress', () => undefined, /read as a whole/],
    ['onDownloadProgress', () => undefined, /read as a whole/],
    ['formSerializer', {}, /URLSearchParams or FormData$/],
    ['withCredentials', true, /for browsers/],
    ['withXSRFToken', true, /for browsers/],
    ['xsrfCookieName', 'XSRF-TOKEN', /for browsers/],
    ['xsrfHeaderName', 'X-XSRF-TOKEN', /for browsers/],
  ];

  it.each(OPTIONS)(
    'are refused with the replacement in the message: %s set to %j',
    async (property, value, message) => {
      const option = { [property]: value };
      const ways: [string, (axios: AxiosInstance) => object][] = [
        ['of a call', () => option],
        ['of the defaults', (axios) => (Object.assign(axios.defaults, option), {})],
        [
          'of an interceptor',
          (axios) => (axios.interceptors.request.use((c) => Object.assign(c, option)), {}),
        ],
      ];
      for (const [, optionsOf] of ways) {
        const { axios, arrived } = await setUp();
        const error = await errorOf(axios.post('/a', { b: 1 }, optionsOf(axios)));
        const faults = [{ property, message: expect.stringMatching(message) }];
        expect(error).toMatchObject({ code: 'invalid_request', faults });
        // The host application's caller cannot correct this.
        expect(answerOf(error)).toMatchObject({ status: 500 });
        expect(arrived).toHaveLength(0);
      }
    },
  );

  it('are refused inside transitional too, if they would leave the response as text', async () => {
    const { axios, arrived } = await setUp();
    const error = await errorOf(axios.get('/a', { transitional: { forcedJSONParsing: false } }));
    const faults = [{ property: 'transitional.forcedJSONParsing', message: expect.stringMatching(PARSE) }];
    expect(error).toMatchObject({ faults });
    expect(arrived).toHaveLength(0);
  });

  it('are accepted with the value that the module uses anyway', async () => {
    const { axios, arrived } = await setUp({ identity: { httpsAgent: agent as never } });
    const unset = Object.fromEntries(OPTIONS.map(([name]) => [name, undefined]));
    const usual = {
      proxy: false,
      maxRedirects: 0,
      decompress: true,
      httpsAgent: agent,
      maxBodyLength: Infinity,
      responseEncoding: 'utf8',
      withCredentials: false,
      xsrfCookieName: '',
      auth: null,
    } as const;
    for (const options of [unset, usual as object]) await axios.post('/a', { b: 1 }, options);
    expect(arrived.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill(OURS.authorization));
  });
});

describe('Path parameters', () => {
  it('are encoded as one segment each; messages, logs and printed errors show the template', async () => {
    const { axios, arrived } = await setUp({ listener: failing(404) });
    const http = httpOf(axios);
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
    await http.get('/a/{account-id}', { pathParams: { 'account-id': 7 } });
    expect(arrived[2]?.url).toBe('/a/7');
  });

  const BAD = [undefined, null, '', { toString: () => 'x' }, true, NaN, 'a\nb', 'a\ud800'];
  it.each<unknown>([...BAD, '.', '..', '%2e%2E', '%252e%252e', 'a/../b', '..;', 'a\\..'])(
    'refuse the value %j as a fault of the caller',
    async (id) => {
      const { axios, arrived } = await setUp();
      const error = await errorOf(httpOf(axios).get('/a/{id}/b', { pathParams: { id } as never }));
      expect(error).toBeInstanceOf(ServiceRequestError);
      expect(answerOf(error)).toMatchObject({ status: 400 });
      expect(arrived).toHaveLength(0);
    },
  );

  // eslint-disable-next-line no-loss-of-precision
  it.each([9007199254740993, Number.MAX_SAFE_INTEGER + 1, -(2 ** 53), 1e21, 1.5e300, 1e-7])(
    'refuse the number %d as a fault of the code, because it may have lost digits',
    async (id) => {
      const { axios, arrived } = await setUp();
      const error = await errorOf(httpOf(axios).get('/a/{id}', { pathParams: { id } }));
      expect(error).toMatchObject({
        hint: expect.stringMatching(/^Pass ids as text/),
        faults: [{ property: 'id' }],
      });
      expect(answerOf(error)).toMatchObject({ status: 500 });
      expect(arrived).toHaveLength(0);
    },
  );

  it('are sent as JavaScript writes them if they are safe integers, fractions or BigInts', async () => {
    const { axios, arrived } = await setUp();
    const ids = [Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 0, 12.5, 0.000001, 2n ** 64n];
    for (const id of ids) await httpOf(axios).get('/a/{id}', { pathParams: { id } });
    expect(arrived.map(({ url }) => url)).toEqual(ids.map((id) => `/a/${id}`));
  });

  it('that the path does not have are refused as a fault of the code', async () => {
    const { axios, arrived } = await setUp();
    const http = httpOf(axios);
    for (const path of ['/a', '/a/{other}', '/a?id={id}']) {
      const error = await errorOf(http.get(path, { pathParams: { id: 'x' } }));
      expect(error).toMatchObject({ faults: [{ property: 'pathParams.id' }] });
      expect(answerOf(error)).toMatchObject({ status: 500 });
    }
    for (const name of ['{id}', '{account-id}', '{0}']) {
      const error = await errorOf(http.get(`/a/${name}`));
      expect(error).toMatchObject({
        message: expect.stringContaining(`pathParams must have a value for ${name}`),
      });
      expect(answerOf(error)).toMatchObject({ status: 500 });
    }
    expect(answerOf(await errorOf(http.get('/a/{id}', { pathParams: {} })))).toMatchObject({ status: 400 });
    const forged = `x\n[Nest] LOG ${'y'.repeat(99)}`;
    for (const outsiders of [http.get('/a', { pathParams: { [forged]: 1 } }), http.get(`/a/{${forged}}`)])
      expect(((await errorOf(outsiders)) as Error).message).not.toMatch(/\n|y{65}/);
    expect(arrived).toHaveLength(0);
  });
});

describe('Route of a path without path parameters', () => {
  it.each([
    ['/payments/v1/intents', '/payments/v1/intents'],
    ['/payments/v1/account-on-file/', '/payments/v1/account-on-file'],
    ['/data/v2/accounts/a-private/balances?entity_id=private', '/data/v2/accounts/{}/balances'],
    ['/customers/v1/app-user-id/omar%40private.example', '/customers/v1/app-user-id/{}'],
    ['/customers/v1/v1234567890/Accounts', '/customers/v1/{}/{}'],
    ['/orders/v10/private/constructor', '/orders/v10/{}/{}'],
    ['/omar@private.example/accounts', '/{}/accounts'],
    ['/?q=private', '/'],
  ])(
    'shows the first segment, versions and words of the known API, and {} for any other segment: %s becomes %s',
    async (path, route) => {
      const { axios } = await setUp({ listener: failing(404) });
      const error = (await errorOf(axios.get(path))) as ServiceApiError;
      expect(error).toMatchObject({ route, path: path.replace(/\?.*/, '') });
      expect(error.message).toMatch(`GET ${route}: HTTP 404`);
      expect([inspect(error), JSON.stringify(error), describeError(error)].join()).not.toMatch(
        /private|v12345/,
      );
    },
  );

  it("shows every word of the simulator's known API, and no id", () => {
    const paths = Object.keys(knownApiRoutes()).map((name) => name.replace(/^\w+ /, ''));
    expect(paths.length).toBeGreaterThan(8);
    for (const template of paths) {
      const path = template.replace(/\{\w+\}/g, 'id-1');
      expect(routeOf(path, '')).toBe(template.replace(/\{\w+\}/g, '{}'));
    }
  });

  it('shows all words if pathParams is empty', async () => {
    const { axios } = await setUp({ listener: failing(404) });
    const error = await errorOf(httpOf(axios).get('/reports/v1/monthly', { pathParams: {} }));
    expect(error).toMatchObject({ route: '/reports/v1/monthly' });
  });
});

describe('Allowed URLs', () => {
  const rules = {
    baseUrl: 'https://api.example/base',
    origins: new Set(['https://api.example', 'https://oauth.example']),
  };
  const urls = new AllowedUrls(rules);

  it.each([
    ['/banks/v1', '/banks/v1'],
    ['banks/v1', '/banks/v1'],
    ['/banks/v1/', '/banks/v1/'],
    ['?a=b', '?a=b'],
    ['', ''],
    ['/a?redirect=https://evil.example/../x', '/a?redirect=https://evil.example/../x'],
    ['/a?b=%2e%2e%2fc', '/a?b=%2e%2e%2fc'],
    ['/a#fragment', '/a'],
    ['/a%2Fb', '/a%2Fb'],
    ['/~a.b/..c/d..', '/~a.b/..c/d..'],
    ...['a/b', 'x..y', '...', '.hidden', '50%', 'a;b', '%', 'a\\b', '..a/b..'].map((id) => {
      const path = `/a/${encodeURIComponent(id)}/b`;
      return [path, path];
    }),
  ])('accept a path below the base address: %s', (path, below) => {
    expect(urls.resolve(path).href).toBe(rules.baseUrl + below);
  });

  it.each([
    ['https://oauth.example/x/v1', 'https://oauth.example/x/v1'],
    ['HTTPS://API.EXAMPLE:443/x', 'https://api.example/x'],
  ])("accept a URL of one of the service's own origins: %s", (path, href) =>
    expect(urls.resolve(path).href).toBe(href),
  );

  it.each([
    'https://evil.example/banks/v1',
    'http://api.example/banks/v1',
    'https://api.example:8443/',
    'https://api.example.evil.example/',
    'https://user:pass@api.example/',
    'https://evil@api.example/',
    'https://api.example@evil.example/',
    '//evil.example/x',
    '/\\evil.example',
    '\\\\evil.example',
    'https:\\\\evil.example',
    'https:/\tevil.example',
    '/a/../../b',
    '/a/%2e%2E/b',
    '/a/.%2e',
    '/./a',
    ...['../../internal/v1/keys', '..', './a', 'a/..', '..\\a', 'a;..', '%2e%2e%2fa'].map(
      (id) => `/customers/v1/${encodeURIComponent(id)}`,
    ),
    '%2e%2e%2fadmin',
    'x%2f..%2f..%2fadmin',
    '/..%5c',
    '/..%5Cadmin?a=b',
    '/a/..;/b',
    '/a/..%3b/b',
    '/a/;../b',
    '/a/%252e%252E%252Fb',
    '/a/%25252e%25252e',
    'https://oauth.example/x%2f..',
    'https://api.example/..',
    '/a b',
    '/a\r\nX: y',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'blob:https://api.example/x',
    'blob:https://oauth.example/x',
    'data:text/plain,x',
    'https://[api.example',
  ])('refuse %j', (path) => {
    const fault = { property: 'path', message: expect.stringMatching(/^(must|leads|is) /) };
    const error = { code: 'invalid_request', faults: [fault] };
    expect(() => urls.resolve(path)).toThrow(expect.objectContaining(error));
  });

  it.each([
    'https://api.example/base',
    'HTTPS://API.example:443',
    'https://api.example:8443/a/../b',
    'http://[::1]:80',
  ])('give the same result below %s as parsing the URL', (baseUrl) => {
    const { origin } = new URL(baseUrl);
    const allowed = new AllowedUrls({ baseUrl, origins: new Set([origin]) });
    const segment = fc.string({ unit: fc.constantFrom('a', 'Z', '0', '-', '_', '~', '.', '..') });
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 4 }), fc.boolean(), (segments, slash) => {
        const path = segments.map((each) => `/${each}`).join('') + (slash ? '/' : '');
        if (path.startsWith('//') || segments.some((each) => each === '.' || each === '..')) {
          return expect(() => allowed.resolve(path)).toThrow(ServiceRequestError);
        }
        const { href, protocol, host, hostname, port, pathname, search } = new URL(baseUrl + path);
        const expected = { href, origin, protocol, host, hostname, port, pathname, search };
        const url = allowed.resolve(path);
        const parts = Object.keys(expected) as (keyof CallUrl)[];
        expect(Object.fromEntries(parts.map((part) => [part, url[part]]))).toEqual(expected);
      }),
      draws(2_000),
    );
  });

  it("never lead outside the service's own origins, whatever the path (random inputs)", () => {
    const signs = [
      '/',
      '\\',
      '.',
      '..',
      '@',
      ':',
      '?',
      '#',
      '%2e',
      '%2f',
      '//',
      'https:',
      'evil.example',
      'a',
      '\t',
    ];
    const odd = fc.string({ unit: fc.constantFrom(...signs) });
    fc.assert(
      fc.property(fc.oneof(odd, anyText, fc.webUrl()), (path) => {
        let url: CallUrl;
        try {
          url = urls.resolve(path);
        } catch (error) {
          return error instanceof ServiceRequestError;
        }
        const { username, password, hash } = new URL(url.href);
        const isInside = url.pathname === '/base' || url.pathname.startsWith('/base/');
        return (
          rules.origins.has(url.origin) &&
          username + password + hash === '' &&
          (isInside || /^https?:/i.test(path))
        );
      }),
      draws(10_000),
    );
  });

  it.each<[HttpSettings['trailingSlash'], string, string]>([
    [false, '/banks/v1', '/customers/v1'],
    [true, '/banks/v1/', '/customers/v1/'],
    [['banks', 'customers'], '/banks/v1/', '/customers/v1/'],
    [['customers'], '/banks/v1', '/customers/v1/'],
  ])('of resources with http.trailingSlash %j are %s and %s', (trailingSlash, banks, customers) => {
    const http = new ServiceHttpService(undefined as never, trailingSlash);
    expect([http.collectionPath('banks'), http.collectionPath('customers')]).toEqual([banks, customers]);
  });
});

describe('http.headers', () => {
  it('are sent with every call, unless the call has a header of that name, and never with a token request', async () => {
    const arrived: [string | undefined, IncomingHttpHeaders][] = [];
    const server = await httpServer((request, response) => {
      arrived.push([request.url, request.headers]);
      const token = { access_token: 'a', token_type: 'bearer', expires_in: 3600 };
      response.end(JSON.stringify(request.url === '/oauth2/token' ? token : []));
    });
    const { service, lines } = await makeClient({
      authentication: 'oauth',
      urls: { sandboxUrl: server.url, sandboxAuthUrl: server.url },
      oauth: { clientId: '7d9f3c1e-0000-4000-8000-000000000001', clientSecret: 'secret' },
      http: {
        headers: { 'X-Partner': 'partner-planted', Accept: 'application/vnd.api+json' },
        logCalls: true,
      },
    });
    afterwards(async () => (await service.close(), server.close()));
    await service.banks.list();
    await service.http.get('/orders/v1', { headers: { 'x-partner': 'other', accept: 'text/plain' } });
    expect(arrived.map(([url, headers]) => [url, headers['x-partner'], headers.accept])).toEqual([
      ['/oauth2/token', undefined, 'application/json'],
      ['/banks/v1', 'partner-planted', 'application/vnd.api+json'],
      ['/orders/v1', 'other', 'text/plain'],
    ]);
    expect(lines.filter((line) => line.includes('planted'))).toEqual([]);
    expect(lines.some((line) => line.includes('GET /banks/v1'))).toBe(true);
  });
});
