import { type AxiosHeaders } from 'axios';
import { describe, expect, it } from '@jest/globals';
import { type RequestListener } from 'node:http';
import { inspect } from 'node:util';
import { ServiceApiError } from '../../../lib/errors/index.js';
import { answerError } from '../../../lib/http/answer.js';
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
    const error = answerError(response as never, new Call('GET', url, 1_000), clientOf());
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
      path: '/customers/v1',
      correlationId: 'c-1',
      retryAfter: 7,
    });
  });

  it.each([
    [{ message: 'no such user' }, 'no such user'],
    [{ status: 'INVALID' }, 'GET /a: HTTP 422.'],
    [{ status: 7 }, 'GET /a: HTTP 422.'],
  ])('passes on what there is of the two: %j', async (body, message) => {
    const { axios } = await setUp({
      listener: (_, response) => response.writeHead(422).end(JSON.stringify(body)),
    });
    const error = await errorOf(axios.get('/a'));
    const { message: said, body: found } = error as ServiceApiError;
    expect([said, found]).toEqual([message, body]);
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
    const error = answerError(response as never, new Call('GET', url, 1_000), clientOf());
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
