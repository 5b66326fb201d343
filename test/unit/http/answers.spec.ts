import { describe, expect, it } from '@jest/globals';
import { type AxiosHeaders } from 'axios';
import { type RequestListener } from 'node:http';
import { inspect } from 'node:util';
import { type ApiErrorBody, ServiceApiError } from '../../../lib/errors/index.js';
import { Answer } from '../../../lib/http/answer.js';
import { describePlaces } from '../../../lib/http/answer-places.js';
import { answerError } from '../../../lib/http/answer-error.js';
import { Call } from '../../../lib/http/call.js';
import { APP_TOKEN, BEARER, clientOf, errorOf, everything, failing, setUp } from './setup.js';

describe('answers of the service', () => {
  it.each([300, 301, 302, 303, 305, 306, 307, 308])('never follows a redirect: %d', async (status) => {
    const evil = await setUp();
    const { axios } = await setUp({
      listener: (_, response) =>
        response.writeHead(status, { location: `${evil.server.url}/steal?x=1` }).end(),
    });
    const redirected = { kind: 'redirect', code: 'connection_redirect', location: evil.server.url };
    expect(await errorOf(axios.get('/a'))).toMatchObject({ ...redirected, outcomeUnknown: false });
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const error = await errorOf(axios.request({ url: '/a', method }));
      expect(error).toMatchObject({ ...redirected, outcomeUnknown: true });
    }
    expect(evil.arrived).toHaveLength(0);
  });

  it('shows no secret that the host of a redirect repeats', async () => {
    const { axios } = await setUp({
      listener: (_, response) => response.writeHead(302, { location: `https://${APP_TOKEN}.example/` }).end(),
    });
    const error = await errorOf(axios.get('/a'));
    expect(error).toMatchObject({ kind: 'redirect', location: expect.stringMatching(/^\[not shown: /) });
    expect(everything(error)).not.toMatch(/planted/);
  });

  it('hints at http.trailingSlash where a redirect only adds the slash', async () => {
    const { axios } = await setUp({
      listener: (_, response) => response.writeHead(301, { location: '/banks/v1/' }).end(),
    });
    expect(await errorOf(axios.get('/banks/v1'))).toMatchObject({
      hint: expect.stringMatching(/http\.trailingSlash/),
      options: ['http.trailingSlash'],
    });
  });

  it.each([
    ['none', {}],
    ['one that is no URL', { location: 'http://[' }],
  ])('takes a redirect for one whose target is %s', async (_, headers) => {
    const { axios } = await setUp({ listener: (__, response) => response.writeHead(302, headers).end() });
    const error = await errorOf(axios.get('/a'));
    expect(error).toMatchObject({
      kind: 'redirect',
      location: undefined,
      message: 'GET /a: HTTP 302, a redirect. Redirects are never followed.',
      hint: 'Put the address where the API is into urls.baseUrl.',
      options: ['urls.baseUrl'],
    });
  });

  const REDIRECTS_TO_SLASH = 'a redirect to https://api.example. Redirects are never followed.';

  it.each([
    ['https://api.example/api/banks/v1/', REDIRECTS_TO_SLASH, 'http.trailingSlash'],
    ['v1/', REDIRECTS_TO_SLASH, 'http.trailingSlash'],
    ['https://other.invalid/api/banks/v1/', 'a redirect to https://other.invalid.', 'urls.baseUrl'],
    ['https://api.example/api/login', 'a redirect to https://api.example.', 'urls.baseUrl'],
    [undefined, 'a redirect.', 'urls.baseUrl'],
  ])('a redirect to %s: says where it leads, and names the option to correct', (location, said, option) => {
    const url = new URL('https://api.example/api/banks/v1');
    const response = { status: 301, headers: { location }, body: Buffer.alloc(0) };
    const error = answerError(new Answer(response as never, new Call('GET', url, 1_000), clientOf()));
    expect(error.message).toContain(said);
    expect(error).toMatchObject({ hint: expect.stringContaining(option), options: [option] });
  });

  it("keeps the headers' names as axios does", async () => {
    const { axios } = await setUp();
    const headers = (await axios.get('/a')).headers as AxiosHeaders;
    expect(headers.normalize(false)).toBe(headers);
    expect(Object.keys(headers.normalize(true))).toContain('Date');
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
      route: '/customers/v1',
      correlationId: 'c-1',
      retryAfter: 7,
    });
  });

  it.each([
    [{ message: 'no such user' }, { message: 'no such user' }],
    [{ status: 'INVALID' }, { status: 'INVALID' }],
    [{ status: 7 }, { status: 7 }],
    [{ message: ['name is long', 7, 'sum is missing'] }, { message: 'name is long; sum is missing' }],
    [
      { title: 'Out of credit', status: 422, detail: 'The balance is 30' },
      { status: 422, message: 'The balance is 30' },
    ],
    [{ title: 'Out of credit', detail: '', message: [] }, { message: 'Out of credit' }],
    [{ title: 'x', detail: 'y', message: 'no such user' }, { message: 'no such user' }],
  ])('passes on status, and message, detail or title: %j', async (answered, body: ApiErrorBody) => {
    const { axios } = await setUp({
      listener: (_, response) => response.writeHead(422).end(JSON.stringify(answered)),
    });
    const error = (await errorOf(axios.get('/a'))) as ServiceApiError;
    expect(error.body).toEqual(body);
    expect(error.message).toBe(body.message ?? 'GET /a: HTTP 422.');
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
      message: expect.stringMatching(/^GET \/a: HTTP 404(, with a page \(HTML\), not JSON: [\w ,']+)?\.$/),
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
    expect(error).toMatchObject({
      status: 400,
      hint: expect.stringMatching(/what the sidecar at urls.baseUrl shows/),
    });
    expect((error as Error).message).not.toContain('<');
  });

  it("bounds a failure's message and takes out what it echoes of our secrets", async () => {
    const message = `token ${BEARER} and ${APP_TOKEN}\r\n${'x'.repeat(10_000)}`.slice(0, 8_000);
    const { axios } = await setUp({
      listener: (_, response) => response.writeHead(400).end(JSON.stringify({ status: 400, message })),
    });
    const error = (await errorOf(axios.get('/a'))) as ServiceApiError;
    expect(error.message).toMatch(/^\[not shown: /);
    expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/planted/);
  });

  it('takes out each token that the call sent, also the one before a replay', async () => {
    const { axios, arrived } = await setUp({
      listener: (_, response) => {
        const message = `sessions: ${arrived.map(({ headers }) => headers.authorization).join()}`;
        response.writeHead(401, { 'x-request-id': message }).end(JSON.stringify({ status: 401, message }));
      },
      renewed: { Authorization: 'Bearer second-planted' },
    });
    const error = await errorOf(axios.get('/a'));
    expect(arrived).toHaveLength(2);
    expect(error).toMatchObject({ message: expect.stringMatching(/^\[not shown: /) });
    expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/planted/);
  });

  it('compares the paths of a redirect in a time that does not grow with their square', async () => {
    const pathname = `/a${'/'.repeat(1 << 18)}x`;
    const { protocol, host, hostname, port, search } = new URL('https://api.example');
    const origin = 'https://api.example';
    const url = { protocol, host, hostname, port, search, href: `${origin}/`, origin, pathname };
    const response = { status: 307, headers: { location: pathname }, body: Buffer.alloc(0) };
    const error = answerError(new Answer(response as never, new Call('GET', url, 1_000), clientOf()));
    expect(error).toMatchObject({ kind: 'redirect', location: 'https://api.example' });
    // Lets the test's own time limit speak: half a minute had passed.
    await new Promise((resolve) => setImmediate(resolve));
  });

  it.each([
    [
      'GET',
      200,
      '<html></html>',
      /a page \(HTML\): it is not the service's API that answers, .*a login page or a proxy\.$/,
    ],
    ['GET', 200, '', /an empty body\.$/],
    ['GET', 201, ' \r\n\t', /an empty body\.$/],
    ['OPTIONS', 200, '', /an empty body\.$/],
    ['POST', 201, '{"a"', /not JSON\. By its status the call was carried out\.$/],
    ['DELETE', 200, '<html></html>', /or a proxy\. By its status the call was carried out\.$/],
  ])('takes %s answered %d with %j for no answer', async (method, status, body, message) => {
    const { axios } = await setUp({ listener: (_, response) => response.writeHead(status).end(body) });
    expect(await errorOf(axios.request({ url: '/a', method }))).toMatchObject({
      code: 'invalid_response',
      status,
      message: expect.stringMatching(message),
    });
  });

  it.each(
    ['POST', 'PUT', 'PATCH', 'DELETE'].flatMap((method) =>
      [200, 201, 202].flatMap((status) =>
        ['', ' \r\n', '\ufeff'].map((body): [string, number, string] => [method, status, body]),
      ),
    ),
  )('takes %s answered %d with %j for a success without a body', async (method, status, body) => {
    const { axios } = await setUp({ listener: (_, response) => response.writeHead(status).end(body) });
    const answer = await axios.request<unknown>({ url: '/a', method });
    expect([answer.status, answer.data]).toEqual([status, undefined]);
  });

  it('takes 204 for undefined', async () => {
    const { axios } = await setUp({ listener: (_, response) => response.writeHead(204).end() });
    expect((await axios.get<unknown>('/a')).data).toBeUndefined();
  });

  it('accepts every status by validateStatus: null, as axios does, and parses the JSON of a failure', async () => {
    const answering = (status: number, body: string): RequestListener => {
      return (_, response) => void response.writeHead(status).end(body);
    };
    const { axios } = await setUp({ listener: answering(404, '{"status":"NOT_FOUND"}') });
    const answer = await axios.get<unknown>('/a', { validateStatus: null });
    expect([answer.status, answer.data]).toEqual([404, { status: 'NOT_FOUND' }]);
    const text = await axios.get<unknown>('/a', { validateStatus: null, responseType: 'text' });
    expect(text.data).toBe('{"status":"NOT_FOUND"}');
    const page = await setUp({ listener: answering(302, '<html>') });
    const moved = await page.axios.get<unknown>('/a', { validateStatus: null });
    expect([moved.status, moved.data]).toEqual([302, '<html>']);
  });

  it("honours a call's own validateStatus and responseType", async () => {
    const { axios } = await setUp({ listener: failing(404) });
    expect(await axios.get('/a', { validateStatus: () => true })).toMatchObject({ status: 404 });
    const { data } = await axios.get<Buffer>('/a', { responseType: 'arraybuffer' });
    expect(Buffer.isBuffer(data) && data.toString()).toBe('{"ok":true}');
  });

  it("the correlation id is the caller's own where the answer has none, without our secrets", async () => {
    const { axios } = await setUp({ listener: failing(404) });
    const headers = { 'X-Correlation-Id': `own ${BEARER} ${APP_TOKEN} ${'x'.repeat(200)}` };
    const { correlationId } = (await errorOf(axios.get('/a', { headers }))) as ServiceApiError;
    expect(correlationId).toMatch(/^\[not shown: /);
  });

  it('the correlation id may come as x-request-id too; the configured header counts first', async () => {
    const answering = (headers: Record<string, string>) => ({
      listener: ((_, response) => void response.writeHead(422, headers).end('{}')) as RequestListener,
    });
    const only = await setUp({ ...answering({ 'x-request-id': 'r-1' }) });
    expect(await errorOf(only.axios.get('/a'))).toMatchObject({ correlationId: 'r-1' });
    const both = { 'x-request-id': 'r-1', 'x-correlation-id': 'c-1' };
    const { axios } = await setUp({ ...answering(both) });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ correlationId: 'c-1' });
  });
});

const at = (...path: unknown[]): string => describePlaces([{ path }]);

describe('the places of issues', () => {
  it.each<[string, unknown[], string]>([
    ['an index and a field', [3, 'bank_identifier'], ': [3].bank_identifier'],
    ['fields', ['data', 'items', 0, 'iso4217'], ': data.items[0].iso4217'],
    ['a path item (valibot)', [{ key: 'data' }, { key: 3, value: 'private' }], ': data[3]'],
    ['names that need quotes', ['content-type', '@type', '$ref'], ': ["content-type"]["@type"]["$ref"]'],
    ['an e-mail address as key', ['by_email', 'jane.doe@example.com', 'name'], ': by_email[…].name'],
    ['a name as key', ['Jane Doe', 'age'], ': […].age'],
    ['an account number', ['AE070331234567890123456'], ': […]'],
    ['a UUID', ['by_id', '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52'], ': by_id[…]'],
    ['a telephone number', ['+971501234567'], ': […]'],
    ['a day', ['2030-01-31'], ': […]'],
    ['a number that is no index', [{ key: 4_539_578_763_621_486 }, -1, 1.5, NaN], ': […][…][…][…]'],
    ['an empty key', ['a', ''], ': a[…]'],
    ['a line break and a terminal escape', ['a\r\nfake: log line', '\u001b[31m'], ': […][…]'],
    ['other letters', ['naïve', 'имя'], ': […][…]'],
    ['a symbol, null, nothing', [Symbol('private'), null, undefined, {}], ': […][…][…][…]'],
    ['a long key', ['k'.repeat(65)], ': […]'],
    ['the longest key', ['k'.repeat(64)], `: ${'k'.repeat(64)}`],
  ])('%s', (_, path, text) => {
    expect(at(...path)).toBe(text);
  });

  it('the body as a whole is no place of its own', () => {
    expect([at(), describePlaces([]), describePlaces([{}, { path: 'x' }, null, 7])]).toEqual(['', '', '']);
    expect(describePlaces([{ path: [] }, { path: ['a'] }])).toBe(': a');
  });

  it('are bounded in number, depth and time, and each is there once', () => {
    const issues = Array.from({ length: 12 }, (_, index) => ({ path: [index, 'name'] }));
    expect(describePlaces(issues)).toBe(': [0].name, [1].name, [2].name, [3].name, [4].name');
    expect(describePlaces([issues[0], issues[0]])).toBe(': [0].name');
    expect(at(...Array<string>(20).fill('a'))).toBe(`: ${Array(16).fill('a').join('.')}`);
    expect(at(`1a2b3${'x'.repeat(10_000_000)}`)).toBe(': […]');
  });

  it('no method of a foreign array is called', () => {
    class Foreign extends Array<unknown> {
      override map = (): never[] => ['private'] as never[];
      override slice = (): this => this;
      override [Symbol.iterator] = (): never => ['private'].values() as never;
    }
    const issues = Foreign.from([{ path: Foreign.from(['a', 3]) }]);
    expect(describePlaces(issues)).toBe(': a[3]');
    expect(describePlaces([{ path: Foreign.from(Array(17).fill('b')) }])).toMatch(/^: b(\.b){15}$/);
  });
});
