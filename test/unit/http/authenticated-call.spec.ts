import { describe, expect, it } from '@jest/globals';
import {
  ServiceApiError,
  ServiceConnectionError,
  ServiceError,
  ServiceRequestError,
} from '../../../lib/errors/index.js';
import { type ExchangeResponse } from '../../../lib/exchange/exchange.types.js';
import { Call } from '../../../lib/http/call.js';
import { CallObserver } from '../../../lib/http/call-observer.js';
import { SILENT } from '../../../lib/exchange/io.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { APP_TOKEN, BEARER, clientOf, errorOf, setUp } from './setup.js';

describe('the authenticated call', () => {
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

  it('by ServiceHttpService has the method that is called, its path, options and body', async () => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService({ axiosRef: axios } as never);
    const options = { params: { q: 1 } };
    expect(await http.get('/a', options)).toEqual({ ok: true });
    expect(await http.delete('/a', { ...options, data: ['d'] })).toEqual({ ok: true });
    for (const method of ['post', 'put', 'patch'] as const) {
      expect(await http[method]('/a', [method], options)).toEqual({ ok: true });
    }
    expect(arrived.map(({ method, url, body }) => `${method} ${url} ${body}`)).toEqual([
      'GET /a?q=1 ',
      'DELETE /a?q=1 ["d"]',
      'POST /a?q=1 ["post"]',
      'PUT /a?q=1 ["put"]',
      'PATCH /a?q=1 ["patch"]',
    ]);
  });

  it('by ServiceHttpService takes a path, or options with it; GET by default', async () => {
    const { axios, arrived } = await setUp();
    const http = new ServiceHttpService({ axiosRef: axios } as never);
    await http.request('/a');
    await http.request('/a', { method: 'put' });
    await http.request({ url: '/a', method: 'PATCH' });
    for (const target of [null, undefined, 7]) {
      expect(await errorOf(http.request(target as never))).toMatchObject({ faults: [{ property: 'path' }] });
    }
    expect(arrived.map(({ method, url }) => `${method} ${url}`)).toEqual(['GET /a', 'PUT /a', 'PATCH /a']);
    // Axios reads the method before the interceptors of the host.
    axios.interceptors.request.use((config) => ({ ...config, method: 7 as never }));
    expect(await errorOf(axios.get('/a'))).toMatchObject({ faults: [{ property: 'method' }] });
  });

  it('has the default headers that a host sets, and no others', async () => {
    const { axios, arrived } = await setUp();
    axios.defaults.headers.get['x-mine'] = 'get';
    axios.defaults.headers.post = { 'x-mine': 'post' };
    await axios.get('/a');
    await axios.post('/a', {});
    expect(arrived.map(({ headers }) => headers['x-mine'])).toEqual(['get', 'post']);
  });

  it('leaves out headers without a value, and joins those with several', async () => {
    const { axios, arrived } = await setUp();
    const headers = { 'x-null': null, 'x-false': false, 'x-undefined': undefined, 'x-list': ['a', 'b'] };
    await axios.get('/a', { headers: headers as never });
    const sent = Object.entries(arrived[0]?.headers ?? {}).filter(([name]) => name.startsWith('x-'));
    expect(sent).toEqual([['x-list', 'a, b']]);
  });

  it("sends a caller's own Accept in place of the default", async () => {
    const { axios, arrived } = await setUp();
    await axios.get('/a', { headers: { ACCEPT: 'text/csv' }, responseType: 'text' });
    expect(arrived[0]?.headers.accept).toBe('text/csv');
  });

  it('sends no body and no content type with a GET, and query parameters as axios does', async () => {
    const { axios, arrived } = await setUp();
    await axios.get('/a', { params: { q: 'a b', list: [1, 2] } });
    expect(arrived[0]?.url).toBe('/a?q=a+b&list%5B%5D=1&list%5B%5D=2');
    expect(arrived[0]?.headers['content-type']).toBeUndefined();
  });

  it.each(['GET', 'DELETE', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'PROPFIND'])(
    'frames the body of %s, so that it is not read as the next request',
    async (method) => {
      const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
      const { axios, arrived } = await setUp();
      for (const data of [smuggled, Buffer.from(smuggled)]) {
        await axios.request({ url: '/framed', method, data });
        await axios.get('/next');
      }
      expect(arrived.map(({ url }) => url)).toEqual(['/framed', '/next', '/framed', '/next']);
      expect(arrived.filter(({ url }) => url === '/framed').map(({ body }) => body)).toEqual([
        smuggled,
        smuggled,
      ]);
    },
  );

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
    const { axios, arrived } = await setUp({ cold: async () => undefined });
    const { config } = await axios.get('/a', { timeout: 1_000 });
    expect(arrived[0]?.headers.authorization).toBe(`Bearer ${BEARER}`);
    expect(config.timeout).toBe(1_000);
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

  it('refuses header values that no header can hold', async () => {
    const { axios, arrived } = await setUp();
    const error = await errorOf(axios.get('/a', { headers: { 'x-a': 'a\u20acb' } }));
    expect(error).toBeInstanceOf(ServiceError);
    expect(arrived).toHaveLength(0);
  });
});

describe('the line of the log about a call', () => {
  const lines: string[] = [];
  const log = {
    debug: (line: string) => void lines.push(line.replace(/\d+ ms/, 'n ms')),
    warn: (line: string) => void lines.push(line),
  };
  const observer = new CallObserver(clientOf({}, { io: { log: { ...SILENT, ...log } } }));
  const call = (signal?: AbortSignal) => {
    lines.length = 0;
    const made = new Call('GET', new URL('https://api.example/a?q=secret'), 1_000, { signal });
    made.follow();
    return made;
  };

  it('warns of each retry, and says nothing of a success', () => {
    const made = call();
    observer.again(made, { response: { status: 503, headers: {} } as ExchangeResponse });
    observer.succeeded(made, 200);
    expect(lines).toEqual(['GET /a: 503; another attempt follows']);
  });

  it.each<[string, Error]>([
    ['404', new ServiceApiError({ message: 'ours', status: 404, method: 'GET', path: '/a' })],
    ['connection_dns', new ServiceConnectionError({ kind: 'dns', message: 'm' })],
    ['aborted', new Error('of the caller')],
    ['host_error', new Error('of the host')],
  ])('says of a failure: %s', (type, error) => {
    observer.failed(call(type === 'aborted' ? AbortSignal.abort() : undefined), error);
    expect(lines).toEqual([`GET /a: ${type} after n ms`]);
  });
});
