import { afterEach, describe, expect, it } from '@jest/globals';
import globalAxios, { CanceledError, type AxiosInstance } from 'axios';
import { EventEmitter, once } from 'node:events';
import { Agent, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import { Secret } from '../../../lib/config/secret.js';
import { exchange } from '../../../lib/exchange/exchange.js';
import { ExchangeFault, type Exchange } from '../../../lib/exchange/exchange.types.js';
import {
  ServiceApiError,
  ServiceConnectionError,
  ServiceError,
  ServiceRequestError,
} from '../../../lib/errors/index.js';
import { axiosExchange } from '../../../lib/http/axios-exchange.js';
import { CallObserver } from '../../../lib/http/call-observer.js';
import { CallRunner } from '../../../lib/http/call-runner.js';
import { CallsInFlight } from '../../../lib/http/calls-in-flight.js';
import { RetryBudget } from '../../../lib/http/retry-budget.js';
import { createServiceAxios } from '../../../lib/http/service-axios.js';
import { Targets } from '../../../lib/http/targets.js';
import { Telemetry } from '../../../lib/telemetry/telemetry.js';
import { deadPort, httpServer } from '../../helpers/loopback.js';

const APP_TOKEN = 'app-token-planted';
const BEARER = 'bearer-planted';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Arrived {
  method?: string;
  url?: string;
  headers: IncomingMessage['headers'];
  body: string;
}

interface Setup {
  listener?: RequestListener;
  baseUrl?: string;
  renewed?: Record<string, string>;
  retries?: number;
  timeoutMs?: number;
  through?: Exchange;
  budget?: RetryBudget;
  /** No token yet: it has to be waited for. */
  cold?: boolean;
}

async function setUpThrough(setup: Setup) {
  const arrived: Arrived[] = [];
  const server = await httpServer((request, response) => {
    void request.toArray().then((chunks: Buffer[]) => {
      const { method, url, headers } = request;
      arrived.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
      (setup.listener ?? ((_, answer: ServerResponse) => answer.end('{"ok":true}')))(request, response);
    });
  });
  const agent = new Agent({ keepAlive: true });
  closing.push(server.close, () => agent.destroy());
  const baseUrl = setup.baseUrl ?? server.url;
  const inFlight = new CallsInFlight();
  const silent = { debug: () => undefined, warn: () => undefined };
  const observer = new CallObserver(new Telemetry(), silent);
  const renewals: Readonly<Record<string, string>>[] = [];
  const timeoutMs = setup.timeoutMs ?? 2_000;
  const runner = new CallRunner({
    exchange: setup.through ?? exchange,
    agentFor: () => agent,
    credentials: {
      renewedHeaders: async (refused) => {
        renewals.push({ ...refused });
        return setup.renewed;
      },
    },
    identity: { reloadAfterRefusal: async () => false },
    budget: setup.budget ?? new RetryBudget(),
    http: { retries: setup.retries ?? 2, maxResponseBytes: 10_000 } as never,
    random: () => 0,
    closed: inFlight.closed,
  });
  const targets = new Targets({ baseUrl, origins: new Set([new URL(baseUrl).origin]) });
  const headers = { Authorization: `Bearer ${BEARER}`, 'service-app-token': APP_TOKEN };
  const axios = createServiceAxios(
    { targets, inFlight, appTokenHeader: 'service-app-token', timeoutMs },
    {
      runner,
      inFlight,
      targets,
      source: { peekHeaders: () => (setup.cold ? undefined : headers), headers: async () => headers },
      observer,
      timeoutMs,
      correlationIdHeader: 'x-correlation-id',
      credentials: { authentication: 'mtls', certificate: () => undefined },
      appToken: new Secret(APP_TOKEN),
    },
  );
  return { axios, arrived, inFlight, renewals, server, agent };
}

const failing = (...statuses: number[]): RequestListener => {
  const left = [...statuses];
  return (_, response) => {
    const status = left.shift();
    if (status === undefined) response.end('{"ok":true}');
    else
      response
        .writeHead(status)
        .end(JSON.stringify({ status: `S${status}`, message: `failed with ${status}` }));
  };
};

const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => Promise.reject(new Error(`it did not fail: ${inspect(value)}`)),
    (error: unknown) => error,
  );

describe.each<[string, Exchange]>([
  ["the module's own exchange", exchange],
  ["axios's http adapter", axiosExchange],
])('the authenticated call through %s', (_adapter, through) => {
  const setUp = (setup: Setup = {}) => setUpThrough({ through, ...setup });

  it('attaches the headers, sends JSON and reads JSON', async () => {
    const { axios, arrived } = await setUp();
    const { data, status } = await axios.post<unknown>('/customers/v1', { app_user_id: 'ü' });
    expect({ data, status }).toEqual({ data: { ok: true }, status: 200 });
    expect(arrived).toHaveLength(1);
    expect(arrived[0]).toMatchObject({
      method: 'POST',
      url: '/customers/v1',
      body: '{"app_user_id":"ü"}',
      headers: {
        authorization: `Bearer ${BEARER}`,
        'service-app-token': APP_TOKEN,
        'content-type': 'application/json',
        accept: 'application/json',
        'content-length': '20',
      },
    });
  });

  it('sends no body and no content type with a GET, and query parameters as axios does', async () => {
    const { axios, arrived } = await setUp();
    await axios.get('/a', { params: { q: 'a b', list: [1, 2] } });
    expect(arrived[0]?.url).toBe('/a?q=a+b&list%5B%5D=1&list%5B%5D=2');
    expect(arrived[0]?.headers['content-type']).toBeUndefined();
  });

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

  it.each(['GET', 'DELETE', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'PROPFIND'])(
    'frames the body of %s, so that it is not read as the next request',
    async (method) => {
      const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
      const { axios, arrived } = await setUp();
      for (const data of [smuggled, Buffer.from(smuggled), Readable.from([smuggled])]) {
        await axios.request({ url: '/framed', method, data });
        await axios.get('/next');
      }
      expect(arrived.map(({ url }) => url)).toEqual(Array(3).fill(['/framed', '/next']).flat());
      expect(arrived.filter(({ url }) => url === '/framed').map(({ body }) => body)).toEqual(
        Array(3).fill(smuggled),
      );
    },
  );

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

  it('sends just the bytes of a view, a FormData and a Blob', async () => {
    const { axios, arrived } = await setUp();
    const memory = new Uint8Array(1_000).fill(65);
    memory.set([97, 98, 99]);
    await axios.post('/a', memory.subarray(0, 3));
    await axios.post('/a', memory.slice(0, 3).buffer);
    await axios.post('/a', new Blob(['abc'], { type: 'text/x' }));
    const form = new FormData();
    form.set('field', 'value');
    await axios.post('/a', form);
    expect(arrived.slice(0, 3).map(({ body }) => body)).toEqual(['abc', 'abc', 'abc']);
    expect(arrived[3]).toMatchObject({
      body: expect.stringMatching(/name="field"\r\n\r\nvalue/),
      headers: { 'content-type': expect.stringMatching(/^multipart\/form-data; boundary=/) },
    });
  });

  it('attaches headers that had to be waited for, and leaves the config as it was', async () => {
    const { axios, arrived } = await setUp({ cold: true });
    const { config } = await axios.get('/a', { timeout: 1_000 });
    expect(arrived[0]?.headers.authorization).toBe(`Bearer ${BEARER}`);
    expect(config.timeout).toBe(1_000);
  });

  it('gets another token after a 401 to a stream, though it cannot be sent again', async () => {
    const { axios, arrived, renewals } = await setUp({
      listener: failing(401),
      renewed: { Authorization: 'Bearer new' },
    });
    expect(await errorOf(axios.post('/a', Readable.from(['x'])))).toMatchObject({ status: 401 });
    expect([arrived.length, renewals.length]).toEqual([1, 1]);
  });

  it("hands a host's interceptors an answer whose config holds no credentials", async () => {
    const { axios } = await setUp();
    const answers: unknown[] = [];
    axios.interceptors.response.use((response) => (answers.push(response), response));
    await axios.get('/a');
    expect(inspect(answers, { depth: 20, showHidden: true })).not.toMatch(/planted/);
  });

  it.each([
    [{ timeout: Infinity }],
    [{ timeout: 2 ** 31 }],
    [{ timeout: '500' }],
    [{ timeout: -1 }],
    [{ timeout: NaN }],
    [{ signal: 'x' }],
    [{ signal: {} }],
    [{ method: 'GET / HTTP/1.1\r\nX: y' }],
    [{ method: 'CONNECT' }],
    [{ headers: { 'x y': 'z' } }],
    [{ url: undefined }],
    [{ url: 7 }],
  ])('sends nothing with %j', async (config) => {
    const { axios, arrived } = await setUp();
    expect(await errorOf(axios.request({ url: '/a', ...config } as never))).toBeInstanceOf(
      ServiceRequestError,
    );
    expect(arrived).toHaveLength(0);
  });

  it('ends a call whose stream fails, has failed or was closed, and leaves no stream open', async () => {
    const { axios } = await setUp({ retries: 0 });
    const missing = createReadStream('/nonexistent/file');
    const destroyed = createReadStream(import.meta.filename);
    destroyed.destroy();
    for (const data of [missing, destroyed]) {
      expect(await errorOf(axios.post('/a', data))).toMatchObject({
        kind: 'network',
        reason: 'ERR_REQUEST_BODY',
      });
    }
    const refused = await setUp({ baseUrl: `http://127.0.0.1:${await deadPort()}` });
    for (const send of [
      (data: Readable) => refused.axios.post('/a', data),
      (data: Readable) => axios.post('https://evil.example/', data),
      (data: Readable) => axios.post('/a', data),
    ]) {
      const stream = createReadStream(import.meta.filename);
      await send(stream).catch(() => undefined);
      expect(stream.destroyed).toBe(true);
    }
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

  it('refuses header values that no header can hold', async () => {
    const { axios, arrived } = await setUp();
    const error = await errorOf(axios.get('/a', { headers: { 'x-a': 'a\u20acb' } }));
    expect(error).toBeInstanceOf(ServiceError);
    expect(arrived).toHaveLength(0);
  });

  it.each([301, 302, 307, 308])('never follows a redirect: %d', async (status) => {
    const evil = await setUp();
    const { axios } = await setUp({
      listener: (_, response) =>
        response.writeHead(status, { location: `${evil.server.url}/steal?x=1` }).end(),
    });
    const error = await errorOf(axios.get('/a'));
    expect(error).toMatchObject({ kind: 'redirect', code: 'connection_redirect', location: evil.server.url });
    expect(evil.arrived).toHaveLength(0);
  });

  it('hints at http.trailingSlash where a redirect only adds the slash', async () => {
    const { axios } = await setUp({
      listener: (_, response) => response.writeHead(301, { location: '/banks/v1/' }).end(),
    });
    expect(await errorOf(axios.get('/banks/v1'))).toMatchObject({
      message: expect.stringMatching(/http\.trailingSlash/),
    });
  });

  it('passes status and message of a failure on; the HTTP status is the truth', async () => {
    const { axios } = await setUp({
      listener: (_, response) =>
        response
          .writeHead(422, { 'x-correlation-id': 'c-1', 'retry-after': '7' })
          .end('{"status":"INVALID","message":"no such user","internal":"x"}'),
    });
    const error = await errorOf(axios.post('/customers/v1?token=1', {}));
    expect(error).toBeInstanceOf(ServiceApiError);
    expect((error as ServiceApiError).toJSON()).toMatchObject({
      name: 'ServiceApiError',
      code: 'api_error',
      status: 422,
      message: 'no such user',
      body: { status: 'INVALID', message: 'no such user' },
      method: 'POST',
      path: '/customers/v1',
      correlationId: 'c-1',
      retryAfter: 7,
    });
  });

  it.each([
    ['HTML', '<html>secret page</html>'],
    ['no status and message', '{"error":"x"}'],
    ['an array', '[]'],
    ['nothing', ''],
  ])('names the status where the failing body is %s, and quotes nothing', async (_, body) => {
    const { axios } = await setUp({ listener: (__, response) => response.writeHead(404).end(body) });
    const error = await errorOf(axios.get('/a'));
    expect(error).toMatchObject({
      status: 404,
      message: 'The service answered 404 to GET /a.',
      body: undefined,
    });
  });

  it('hints at the certificate where a proxy answers 400 in HTML for want of one', async () => {
    const { axios } = await setUp({
      listener: (_, response) =>
        response
          .writeHead(400, { 'content-type': 'text/html' })
          .end('<html><title>400 No required SSL certificate was sent</title></html>'),
    });
    const error = await errorOf(axios.get('/a'));
    expect(error).toMatchObject({ status: 400, hint: expect.stringMatching(/tls\.certificate/) });
    expect((error as Error).message).not.toContain('<');
  });

  it("bounds a failure's message and takes out what it echoes of our secrets", async () => {
    const message = `token ${BEARER} and ${APP_TOKEN}\r\n${'x'.repeat(10_000)}`.slice(0, 8_000);
    const { axios } = await setUp({
      listener: (_, response) => response.writeHead(400).end(JSON.stringify({ status: 400, message })),
    });
    const error = (await errorOf(axios.get('/a'))) as ServiceApiError;
    expect(error.message).toMatch(/^token \[secret\] and \[secret\] x+…$/);
    expect(error.message.length).toBeLessThan(600);
    expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/planted/);
  });

  it.each([
    [200, '<html></html>'],
    [200, ''],
    [201, '{"a"'],
  ])('takes %d with %j for no answer', async (status, body) => {
    const { axios } = await setUp({ listener: (_, response) => response.writeHead(status).end(body) });
    expect(await errorOf(axios.post('/a'))).toMatchObject({ code: 'invalid_response', status });
  });

  it('takes 204 for undefined', async () => {
    const { axios } = await setUp({ listener: (_, response) => response.writeHead(204).end() });
    expect((await axios.get<unknown>('/a')).data).toBeUndefined();
  });

  it("honours a call's own validateStatus and responseType", async () => {
    const { axios } = await setUp({ listener: failing(404) });
    expect(await axios.get('/a', { validateStatus: () => true })).toMatchObject({ status: 404 });
    const { data } = await axios.get<Buffer>('/a', { responseType: 'arraybuffer' });
    expect(Buffer.isBuffer(data) && data.toString()).toBe('{"ok":true}');
  });

  it.each([400, 403, 404, 409, 422])('surfaces %d at once', async (status) => {
    const { axios, arrived, renewals } = await setUp({ listener: failing(status, status) });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status });
    expect(arrived).toHaveLength(1);
    expect(renewals).toHaveLength(0);
  });

  it.each([429, 500, 502, 503, 504])('retries a GET after %d, twice at most', async (status) => {
    const once = await setUp({ listener: failing(status) });
    expect((await once.axios.get<unknown>('/a')).data).toEqual({ ok: true });
    const always = await setUp({ listener: failing(status, status, status, status) });
    expect(await errorOf(always.axios.get('/a'))).toMatchObject({ status });
    expect(always.arrived).toHaveLength(3);
  });

  it.each([500, 502, 503, 504])('surfaces %d of a POST, which may have been done', async (status) => {
    const { axios, arrived } = await setUp({ listener: failing(status) });
    expect(await errorOf(axios.post('/a', {}))).toMatchObject({ status });
    expect(arrived).toHaveLength(1);
  });

  it('retries a POST after 429', async () => {
    const { axios, arrived } = await setUp({ listener: failing(429) });
    await axios.post('/a', {});
    expect(arrived.map(({ body }) => body)).toEqual(['{}', '{}']);
  });

  it('surfaces a Retry-After that does not fit into the deadline, at once', async () => {
    const { axios, arrived } = await setUp({
      listener: (_, response) => response.writeHead(503, { 'retry-after': '3' }).end('{}'),
    });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 503, retryAfter: 3 });
    expect(arrived).toHaveLength(1);
  });

  it('replays once with other headers after a 401, for any method', async () => {
    const { axios, arrived, renewals } = await setUp({
      listener: failing(401),
      renewed: { Authorization: 'Bearer new' },
    });
    await axios.post('/a', {});
    expect(arrived.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${BEARER}`, 'Bearer new']);
    expect(renewals[0]?.authorization).toBe(`Bearer ${BEARER}`);
  });

  it('surfaces a 401 after one replay, and at once where there are no other headers', async () => {
    const replayed = await setUp({
      listener: failing(401, 401, 401),
      renewed: { Authorization: 'Bearer new' },
    });
    expect(await errorOf(replayed.axios.get('/a'))).toMatchObject({ status: 401 });
    expect(replayed.arrived).toHaveLength(2);
    const bound = await setUp({ listener: failing(401, 401) });
    expect(await errorOf(bound.axios.get('/a'))).toMatchObject({ status: 401 });
    expect(bound.arrived).toHaveLength(1);
  });

  it('retries a reset of a GET; a POST ends with outcomeUnknown and is counted once', async () => {
    let calls = 0;
    const listener: RequestListener = (request, response) => {
      if (calls++ === 0) request.socket.destroy();
      else response.end('{"ok":true}');
    };
    const get = await setUp({ listener });
    expect((await get.axios.get<unknown>('/a')).data).toEqual({ ok: true });
    calls = 0;
    const post = await setUp({ listener });
    expect(await errorOf(post.axios.post('/a', {}))).toMatchObject({ kind: 'reset', outcomeUnknown: true });
    expect(post.arrived).toHaveLength(1);
  });

  it('retries a refused connection for any method, and says that nothing was done', async () => {
    const attempts: string[] = [];
    const { axios } = await setUp({
      baseUrl: `http://127.0.0.1:${await deadPort()}`,
      through: (request) => {
        attempts.push(request.method);
        return through(request);
      },
    });
    expect(await errorOf(axios.post('/a', {}))).toMatchObject({ kind: 'refused', outcomeUnknown: false });
    expect(attempts).toEqual(['POST', 'POST', 'POST']);
  });

  it('ends by the deadline of the call, all attempts together', async () => {
    const { axios, arrived } = await setUp({ listener: () => undefined });
    const startedAt = performance.now();
    expect(await errorOf(axios.get('/a', { timeout: 100 }))).toMatchObject({ kind: 'timeout' });
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(arrived).toHaveLength(1);
  });

  it('stops retrying when the budget of the module is spent', async () => {
    const budget = new RetryBudget();
    while (budget.take(false) !== undefined);
    const { axios, arrived } = await setUp({ listener: failing(503, 503), budget });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 503 });
    expect(arrived).toHaveLength(1);
  });

  it("rejects with the caller's own reason when it aborts", async () => {
    const reason = new Error('mine');
    const controller = new AbortController();
    const { axios } = await setUp({ listener: () => controller.abort(reason) });
    await expect(axios.get('/a', { signal: controller.signal })).rejects.toBe(reason);
    await expect(axios.get('/a', { signal: controller.signal })).rejects.toBe(reason);
  });

  it("takes axios's own cancel tokens, and shows nothing of axios then", async () => {
    const { axios } = await setUp({ listener: () => undefined });
    const source = globalAxios.CancelToken.source();
    setImmediate(() => source.cancel('enough'));
    const error = await errorOf(axios.get('/a', { cancelToken: source.token }));
    expect(error).not.toHaveProperty('config');
    expect(error).toMatchObject({ kind: 'closed' });
    expect(new CanceledError('x').message).toBe('x');
  });

  it('waits for calls in flight at shutdown, then ends them, and refuses new ones', async () => {
    const arrivals = new EventEmitter();
    const arrival = once(arrivals, 'arrival') as Promise<[() => void]>;
    const { axios, inFlight } = await setUp({
      listener: (_, response) => arrivals.emit('arrival', () => response.end('{}')),
    });
    const finishing = axios.get<unknown>('/a');
    const [answer] = await arrival;
    const drained = inFlight.drain();
    expect(await errorOf(axios.get('/a'))).toMatchObject({ kind: 'closed' });
    answer();
    await drained;
    expect((await finishing).data).toEqual({});
    expect(inFlight.close()).toBe(0);
  });

  it('ends calls that outlast the shutdown', async () => {
    const arrivals = new EventEmitter();
    const arrival = once(arrivals, 'arrival');
    const { axios, inFlight, agent } = await setUp({ listener: () => arrivals.emit('arrival') });
    const hangs = errorOf(axios.get('/a'));
    await arrival;
    expect(inFlight.close()).toBe(1);
    agent.destroy();
    expect(await hangs).toMatchObject({ kind: 'closed', code: 'connection_closed' });
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

  it('keeps ServiceConnectionError plain', () => {
    const error = new ServiceConnectionError({ kind: 'dns', message: 'm' });
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'ServiceConnectionError',
      message: 'm',
      code: 'connection_dns',
      kind: 'dns',
      outcomeUnknown: false,
    });
  });
});

it('a connection lost to the race with an idle time-out is taken up again, but not for ever', async () => {
  let sent = 0;
  const lost = async (): Promise<never> => {
    sent += 1;
    throw new ExchangeFault({ kind: 'reset', phase: 'sent', reusedSocket: true, certificateRefused: false });
  };
  const { axios } = await setUpThrough({ through: lost, retries: 2 });
  expect(await errorOf(axios.get('/banks/v1'))).toMatchObject({ kind: 'reset' });
  expect(sent).toBe(1 + 3 + 2);
});

it('the correlation id may come as x-request-id too; the configured header counts first', async () => {
  const answering = (headers: Record<string, string>) => ({
    listener: ((_, response) => void response.writeHead(422, headers).end('{}')) as RequestListener,
  });
  const only = await setUpThrough({ through: exchange, ...answering({ 'x-request-id': 'r-1' }) });
  expect(await errorOf(only.axios.get('/a'))).toMatchObject({ correlationId: 'r-1' });
  const both = { 'x-request-id': 'r-1', 'x-correlation-id': 'c-1' };
  const { axios } = await setUpThrough({ through: exchange, ...answering(both) });
  expect(await errorOf(axios.get('/a'))).toMatchObject({ correlationId: 'c-1' });
});

it("leaves no listener on a host's cancel token", async () => {
  const { axios } = await setUpThrough({});
  const { token } = globalAxios.CancelToken.source();
  await axios.get('/a', { cancelToken: token });
  expect((token as unknown as { _listeners?: unknown[] })._listeners ?? []).toHaveLength(0);
});

it('a stream that is not sent after all is closed', async () => {
  const { axios, arrived } = await setUpThrough({});
  const body = Readable.from(['never sent']);
  const error = await errorOf(axios.request({ method: 'TRACE', url: '/a', data: body }));
  expect(error).toBeInstanceOf(ServiceRequestError);
  expect(body.destroyed).toBe(true);
  expect(arrived).toHaveLength(0);
});
