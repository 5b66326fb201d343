import { beforeAll, describe, expect, it } from '@jest/globals';
import { type AxiosHeaders } from 'axios';
import { EventEmitter, once } from 'node:events';
import { type OutgoingHttpHeaders, type RequestListener } from 'node:http';
import { Agent } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { format, inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import {
  type ApiErrorBody,
  type ApiErrorResponse,
  type CertificateSummary,
  copyError,
  describeError,
  ServiceApiError,
  ServiceConnectionError,
  ServiceRequestError,
  ServiceTokenError,
} from '../../../lib/errors/index.js';
import { parseRetryAfter } from '../../../lib/exchange/response.js';
import { CallResponse, keepErrorResponse } from '../../../lib/http/call-response.js';
import { toResponseError } from '../../../lib/http/call-error.js';
import { type ResponseParser, describePlaces } from '../../../lib/http/parse-option.js';
import { Call } from '../../../lib/http/call.js';
import { answerOf } from '../../../lib/answers/answer.js';
import { ServiceHttpService } from '../../../lib/http/service-http.service.js';
import { type Authority, createAuthority } from '../../helpers/certificates.js';
import { rawServer } from '../../helpers/loopback.js';
import { rotating } from '../../helpers/rotating-certificate.js';
import { startProcess } from '../../helpers/sample-process.js';
import { everyForm } from '../../helpers/secret-scan.js';
import { REGISTER } from '../../helpers/source-process.js';
import {
  afterwards,
  APP_TOKEN,
  BEARER,
  clientOf,
  errorOf,
  everything,
  failing,
  firstAnswered,
  setUp,
} from './setup.js';

const NOT_SHOWN = /^\[not shown: /;
const HTML = { 'content-type': 'text/html' };
const PLAIN = '<html><h1>Access denied</h1></html>';
const NGINX =
  '<html>\r\n<head><title>400 No required SSL certificate was sent</title></head>\r\n<body></body></html>';
/** The page of a firewall that replaces the service's response after the service has executed the call. */
const WITHHELD = '<html>The answer was withheld. <a href="/ca">Install our root certificate</a></html>';

const answering =
  (status: number, body: string | Buffer = '', headers: OutgoingHttpHeaders = {}): RequestListener =>
  (_, response) =>
    void response.writeHead(status, headers).end(body);

describe('Redirects', () => {
  it.each([300, 301, 302, 303, 305, 306, 307, 308])(
    'with status %d are never followed, and leave the outcome of a change unknown',
    async (status) => {
      const evil = await setUp();
      const location = `${evil.server.url}/steal?x=1`;
      const { axios } = await setUp({ listener: answering(status, '', { location }) });
      const redirected = { kind: 'redirect', code: 'connection_redirect', location: evil.server.url };
      expect(await errorOf(axios.get('/a'))).toMatchObject({ ...redirected, outcomeUnknown: false });
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        const error = await errorOf(axios.request({ url: '/a', method }));
        expect(error).toMatchObject({ ...redirected, outcomeUnknown: true });
      }
      expect(evil.arrived).toHaveLength(0);
    },
  );

  it('do not show a secret that the host name repeats', async () => {
    const location = `https://${APP_TOKEN}.example/`;
    const { axios } = await setUp({ listener: answering(302, '', { location }) });
    const error = await errorOf(axios.get('/a'));
    expect(error).toMatchObject({ kind: 'redirect', location: expect.stringMatching(NOT_SHOWN) });
    expect(everything(error)).not.toMatch(/planted/);
  });

  const redirected = (path: string, location?: string) => {
    const url = new URL(`https://api.example${path}`);
    const response = { status: 301, headers: { location }, body: Buffer.alloc(0) };
    return toResponseError(new CallResponse(response as never, new Call('GET', url, 1_000), clientOf()));
  };

  it.each([
    ['https://api.example/api/banks/v1/', 'https://api.example', 'http.trailingSlash'],
    ['v1/', 'https://api.example', 'http.trailingSlash'],
    ['https://other.invalid/api/banks/v1/', 'https://other.invalid', 'urls.baseUrl'],
    ['https://api.example/api/login', 'https://api.example', 'urls.baseUrl'],
    ['http://[', undefined, 'urls.baseUrl'],
    [undefined, undefined, 'urls.baseUrl'],
  ])('to %s name the target and the option to correct', (given, location, option) => {
    const error = redirected('/api/banks/v1', given);
    const to = location ? ` to ${location}` : '';
    expect(error.message).toMatch(
      new RegExp(`: HTTP 301, a redirect${to}\\. Redirects are never followed\\.$`),
    );
    expect(error).toMatchObject({ location, hint: expect.stringContaining(option), options: [option] });
  });

  it('are compared in a time that does not grow with the square of the path', () => {
    const path = `/a${'/'.repeat(1 << 18)}x`;
    // An earlier version took half a minute to compare these paths.
    expect(redirected(path, path)).toMatchObject({ kind: 'redirect', location: 'https://api.example' });
  });
});

describe('Error responses', () => {
  it('have the hint about an unknown outcome even if the message of the service speaks of it', async () => {
    const text = JSON.stringify({ status: 'FAILED', message: 'the call was executed' });
    const { axios } = await setUp({ listener: answering(500, text) });
    expect(await errorOf(axios.post('/a', {}))).toMatchObject({
      message: expect.stringContaining('the call was executed'),
      hint: expect.stringMatching(/^The request may have been executed: find out/),
    });
  });

  it('of nock say that the test has no interceptor, and do not quote the request with its credentials', async () => {
    const text = {
      code: 'ERR_NOCK_NO_MATCH',
      message: `Nock: No match for request { "service-app-token": "${APP_TOKEN}" }`,
    };
    const { axios } = await setUp({ listener: answering(501, JSON.stringify(text)) });
    const error = (await errorOf(axios.get('/banks/v1'))) as ServiceApiError;
    expect(error.message).toBe('GET /banks/v1: HTTP 501: nock has no interceptor for this request.');
    expect([error.body, error.response?.data]).toEqual([undefined, text]);
  });

  it("contain the service's error code and message, but the HTTP status decides", async () => {
    const body = '{"status":"INVALID","message":"no such user","internal":"x"}';
    const headers = { 'x-correlation-id': 'c-1', 'retry-after': '7' };
    const { axios } = await setUp({ listener: answering(422, body, headers) });
    const error = await errorOf(axios.post('/customers/v1?token=1', {}));
    expect(error).toBeInstanceOf(ServiceApiError);
    expect((error as ServiceApiError).toJSON()).toMatchObject({
      name: 'ServiceApiError',
      code: 'api_error',
      status: 422,
      message: 'POST /customers/v1: HTTP 422 INVALID: no such user',
      body: { status: 'INVALID', message: 'no such user' },
      method: 'POST',
      route: '/customers/v1',
      correlationId: 'c-1',
      retryAfter: 7,
    });
  });

  it.each<[unknown, ApiErrorBody, string?]>([
    [{ message: 'no such user' }, { message: 'no such user' }, ': no such user'],
    [{ status: 'INVALID', message: 'no' }, { status: 'INVALID', message: 'no' }, ' INVALID: no'],
    [{ status: 'INVALID' }, { status: 'INVALID' }, ' INVALID.'],
    [{ status: 'not a name' }, { status: 'not a name' }],
    [{ status: 'not a name', message: 'no' }, { status: 'not a name', message: 'no' }, ': no'],
    [{ status: 7 }, { status: 7 }],
    [
      { message: ['name is long', 7, 'sum is missing'] },
      { message: 'name is long; sum is missing' },
      ': name is long; sum is missing',
    ],
    [
      { title: 'Out of credit', status: 422, detail: 'The balance is 30' },
      { status: 422, message: 'The balance is 30' },
      ': The balance is 30',
    ],
    [{ title: 'Out of credit', detail: '', message: [] }, { message: 'Out of credit' }, ': Out of credit'],
    [{ title: 'x', detail: 'y', message: 'no such user' }, { message: 'no such user' }, ': no such user'],
  ])(
    'name the call, and have the status and the message, detail or title of %j',
    async (answered, body, said = '.') => {
      const { axios } = await setUp({ listener: answering(422, JSON.stringify(answered)) });
      const error = (await errorOf(axios.get('/a'))) as ServiceApiError;
      expect(error.body).toEqual(body);
      expect(error.message).toBe(`GET /a: HTTP 422${said}`);
    },
  );

  it.each(['<html>secret page</html>', '{"error":"x"}', '{"message":{"deep":1}}', '[]', 'null', ''])(
    'are named by the HTTP status if the body says nothing: %j',
    async (body) => {
      const { axios } = await setUp({ listener: answering(404, body) });
      const error = (await errorOf(axios.get('/a'))) as ServiceApiError;
      expect([error.status, error.body]).toEqual([404, undefined]);
      expect(error.message).toMatch(/^GET \/a: HTTP 404(, with a page \(HTML\), not JSON: [\w ,']+)?\.$/);
    },
  );

  it('have a message of limited length, without secrets that the service echoes', async () => {
    const { axios } = await setUp({
      listener: ({ url }, response) => {
        const message = url === '/long' ? 'said '.repeat(2_000) : `token ${BEARER} and ${APP_TOKEN}`;
        response.writeHead(400).end(JSON.stringify({ status: 400, message }));
      },
    });
    const long = (await errorOf(axios.get('/long'))) as ServiceApiError;
    expect(long.body?.message).toHaveLength(501);
    expect(long.message).toBe(`GET /long: HTTP 400: ${long.body?.message}`);
    const error = (await errorOf(axios.get('/a'))) as ServiceApiError;
    expect(error.body?.message).toMatch(NOT_SHOWN);
    expect(error.message).toBe(`GET /a: HTTP 400: ${error.body?.message}`);
    expect(everything(error)).not.toMatch(/planted/);
    expect(error.response).toMatchObject({ status: 400, data: undefined });
  });

  it.each([
    ['the app token', APP_TOKEN, { detail: 'BANK_DOWN', echo: expect.stringMatching(NOT_SHOWN) }],
    ['the bearer', BEARER, undefined],
  ])('contain no credential in the fields that front ends get: %s', async (_, secret, expected) => {
    const body = JSON.stringify({ detail: 'BANK_DOWN', echo: `for ${secret}` });
    const { axios } = await setUp({ listener: answering(409, body) });
    const error = (await errorOf(axios.get('/a'))) as ServiceApiError;
    expect(answerOf(error, { fields: ['detail', 'echo'] }).fields).toEqual(expected);
    expect(everything(error)).not.toMatch(/planted/);
  });

  it('show none of the tokens that the call has sent, not even the one before a replay', async () => {
    const { axios, arrived } = await setUp({
      listener: (_, response) => {
        // The response never contains both secrets, because either of them alone hides the whole text.
        const message = `session: ${arrived[0]?.headers.authorization}`;
        response.writeHead(401, { 'x-request-id': message }).end(JSON.stringify({ status: 401, message }));
      },
      renewed: { Authorization: 'Bearer second-planted' },
    });
    const error = await errorOf(axios.get('/a'));
    expect(arrived).toHaveLength(2);
    expect(error).toMatchObject({ body: { message: expect.stringMatching(NOT_SHOWN) } });
    expect(everything(error)).not.toMatch(/planted/);
  });

  it.each([
    ["the answer's", { 'x-request-id': 'r-1', 'x-correlation-id': 'c-1' }, /^c-1$/],
    ["the answer's in another header", { 'x-request-id': 'r-1' }, /^r-1$/],
    ['the one that was sent', {}, /^own-1$/],
    ['none with a secret in it', { 'x-request-id': `r-1 ${BEARER}` }, NOT_SHOWN],
  ])('have this correlation id: %s', async (_, headers, expected) => {
    const { axios } = await setUp({ listener: answering(422, '{}', headers) });
    const error = await errorOf(axios.get('/a', { headers: { 'X-Correlation-Id': 'own-1' } }));
    expect(error).toMatchObject({ correlationId: expect.stringMatching(expected) });
  });

  it('do not show a secret that the caller sent as the correlation id', async () => {
    const { axios } = await setUp({ listener: failing(404) });
    const headers = { 'X-Correlation-Id': `own ${BEARER} ${APP_TOKEN} ${'x'.repeat(200)}` };
    expect(await errorOf(axios.get('/a', { headers }))).toMatchObject({
      correlationId: expect.stringMatching(NOT_SHOWN),
    });
  });

  it.each<[number, string, string | undefined, unknown]>([
    [404, '{"status":"NOT_FOUND"}', undefined, { status: 'NOT_FOUND' }],
    [404, '{"status":"NOT_FOUND"}', 'text', '{"status":"NOT_FOUND"}'],
    [302, '<html>', undefined, '<html>'],
  ])('are returned with validateStatus: null, as in axios: %d %s', async (status, body, type, data) => {
    const { axios } = await setUp({ listener: answering(status, body) });
    const responseType = type as undefined;
    const response = await axios.get<unknown>('/a', { validateStatus: null, responseType });
    expect([response.status, response.data]).toEqual([status, data]);
    const pending = axios.get<unknown>('/a', { validateStatus: (given) => given === status, responseType });
    expect((await pending).data).toEqual(data);
  });
});

describe('credentialFault', () => {
  it.each([
    [401, 'UNAUTHORIZED', true],
    [401, 'CONSENT_EXPIRED', true],
    [403, 'FORBIDDEN', true],
    [403, 'CONSENT_EXPIRED', false],
    [404, 'CUSTOMER_NOT_FOUND', false],
  ])('of %d %s is %s', async (status, name, credentialFault) => {
    const { axios } = await setUp({
      listener: answering(status, JSON.stringify({ status: name, message: 'no' })),
    });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status, credentialFault });
  });
});

describe('The body of a successful response', () => {
  const NO_API =
    /a page \(HTML\): the response does not come from the service's API, .*a login page or a proxy\./;
  it.each([
    ['GET', 200, PLAIN, NO_API],
    ['GET', 200, '', /an empty body\.$/],
    ['GET', 201, ' \r\n\t', /an empty body\.$/],
    ['OPTIONS', 200, '', /an empty body\.$/],
    ['POST', 201, '{"a"', /not JSON\. By its status the call was executed\.$/],
    ['DELETE', 200, PLAIN, /or a proxy\. By its status the call was executed\.$/],
  ])('makes the call fail as invalid_response: %s, %d, %j', async (method, status, body, message) => {
    const { axios } = await setUp({ listener: answering(status, body) });
    expect(await errorOf(axios.request({ url: '/a', method }))).toMatchObject({
      code: 'invalid_response',
      status,
      message: expect.stringMatching(message),
    });
  });

  it.each([
    ['snappy', '"snappy"'],
    ['utf-8, Snappy', '"utf-8, snappy"'],
    [`x-${BEARER}`, '"[not shown: it contains a secret or a part of one]"'],
  ])('that is not JSON names the unknown content coding: %s', async (encoding, name) => {
    const { axios } = await setUp({
      listener: (_, response) => response.setHeader('content-encoding', encoding).end('sNaPpY'),
    });
    expect(await errorOf(axios.post('/a', {}))).toMatchObject({
      code: 'invalid_response',
      outcomeUnknown: true,
      message: `POST /a: HTTP 200, with a body that is not JSON, and with the unknown Content-Encoding ${name}. By its status the call was executed.`,
    });
  });

  it.each([
    ['POST', 200, ''],
    ['PUT', 201, ' \r\n'],
    ['PATCH', 202, '\ufeff'],
    ['DELETE', 200, ''],
    ['GET', 204, ''],
    ['HEAD', 200, ''],
  ])('may be empty: %s, %d, %j', async (method, status, body) => {
    const { axios } = await setUp({ listener: answering(status, body) });
    const response = await axios.request<unknown>({ url: '/a', method });
    expect([response.status, response.data]).toEqual([status, undefined]);
  });

  it('may begin with a byte order mark, and is returned with headers like those of axios', async () => {
    const { axios } = await setUp({ listener: answering(200, '\ufeff{"a":1}') });
    const { data, headers } = await axios.get<unknown>('/a');
    expect(data).toEqual({ a: 1 });
    expect(Object.keys((headers as AxiosHeaders).normalize(true))).toContain('Date');
  });

  it('needs no more memory in chunks of one byte than in larger ones', async () => {
    const bytes = 1_000_000;
    const server = await rawServer((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
        socket.end(`${'1\r\nx\r\n'.repeat(bytes)}0\r\n\r\n`);
      });
    });
    const root = join(import.meta.dirname, '../../..');
    const program = `
      import { Agent } from 'node:http';
      const { exchange } = await import(${JSON.stringify(pathToFileURL(join(root, 'lib/exchange/exchange.ts')).href)});
      const limits = { timeoutMs: 600_000, maxResponseBytes: ${bytes} };
      const url = new URL('${server.url}');
      const { body } = await exchange({ url, method: 'GET', headers: {}, agent: new Agent(), ...limits });
      console.log(body.length, body.every((byte) => byte === body[0]));`;
    // Keeping one Buffer for each byte would take 200 MB.
    const node = [process.execPath, '--no-warnings', '--max-old-space-size=64', '--import', REGISTER];
    const child = startProcess([...node, '--input-type=module', '--eval', program], { cwd: root });
    afterwards(() => server.close());
    afterwards(() => child.kill());
    const { code } = await child.exited;
    expect([code, child.output().trim()]).toEqual([0, `${bytes} true`]);
  });
});

describe('A response that ends with its connection', () => {
  let authority: Authority;
  beforeAll(async () => {
    authority = await createAuthority();
  });

  /** A TLS server that ends each response by closing the TCP connection, without the TLS alert close_notify. */
  async function ending(answer: Buffer) {
    const { serverChain: cert, server, chain: ca } = authority;
    let raw: Socket;
    let requests = 0;
    const tls = createServer({ cert, key: server.key }, (socket) => {
      const below = raw;
      socket.on('error', () => undefined);
      socket.once('data', () => {
        requests += 1;
        // After TLS has written the rest of the response.
        socket.write(answer, () => setImmediate(() => below.end()));
      });
    });
    const tcp = createTcpServer((socket) => {
      raw = socket.on('error', () => undefined);
      tls.emit('connection', socket);
    });
    tcp.listen(0, '127.0.0.1');
    await once(tcp, 'listening');
    const agent = new Agent({ ca });
    afterwards(() => void tcp.close());
    const baseUrl = `https://127.0.0.1:${(tcp.address() as AddressInfo).port}`;
    const { axios } = await setUp({ baseUrl, agent, timeoutMs: 10_000 });
    return { axios, requests: () => requests };
  }

  const NO_JSON = { code: 'invalid_response', outcomeUnknown: false };
  const NO_GZIP = { kind: 'protocol', reason: 'Z_BUF_ERROR', outcomeUnknown: false };
  const HALF = gzipSync('{"a":1}').subarray(0, 15);
  const [GZIP, IDENTITY] = ['content-encoding: gzip', 'transfer-encoding: identity'];

  it.each<[string, string[], string | Buffer, object]>([
    ['the beginning of an array', [], '[{"id":1},{"id":2}', NO_JSON],
    ['a number, which may go on', [], '12', NO_JSON],
    ['nothing', [], '', NO_JSON],
    ['the beginning of gzip', [GZIP], HALF, NO_GZIP],
    ['the beginning of gzip, not chunked', [GZIP, IDENTITY], HALF, NO_GZIP],
    ...['identity', 'gzip', 'chunked, gzip', 'xchunked', 'chunked;q=1'].map(
      (coding): [string, string[], string, object] => [
        `a number in Transfer-Encoding: ${coding}`,
        [`transfer-encoding: ${coding}`],
        '12',
        NO_JSON,
      ],
    ),
    ['no JSON of a known length', ['content-length: 1'], '[', NO_JSON],
    ['JSON that ends by itself', [IDENTITY], '{"a":1}', { a: 1 }],
    ['a number of a known length', ['content-length: 2'], '12', Object(12) as object],
    [
      'a number in chunks',
      ['transfer-encoding: identity, Chunked'],
      '2\r\n12\r\n0\r\n\r\n',
      Object(12) as object,
    ],
  ])('is complete or refused after %s', async (what, headers, body, expected) => {
    const head = ['HTTP/1.1 200 OK', ...headers, '', ''].join('\r\n');
    const { axios, requests } = await ending(Buffer.concat([Buffer.from(head), Buffer.from(body)]));
    const outcomeOf = (method: string) =>
      axios.request<unknown>({ url: '/a', method }).then(
        ({ data }) => (typeof data === 'number' ? Object(data) : data) as unknown,
        (error: unknown) => error,
      );
    expect(await outcomeOf('GET')).toMatchObject(expected);
    expect(requests()).toBe(1);
    const post = await outcomeOf('POST');
    const doubt = 'outcomeUnknown' in expected && { outcomeUnknown: true };
    if (what === 'nothing') expect(post).toBeUndefined();
    else expect(post).toMatchObject({ ...expected, ...doubt });
    expect(requests()).toBe(2);
  });

  it('is complete if the caller asked for text or bytes', async () => {
    const { axios } = await ending(Buffer.from('HTTP/1.1 200 OK\r\n\r\nname;sum'));
    expect((await axios.get<unknown>('/a', { responseType: 'text' })).data).toBe('name;sum');
    expect((await axios.get<unknown>('/a', { responseType: 'arraybuffer' })).data).toEqual(
      Buffer.from('name;sum'),
    );
  });

  it.each(['204 No Content', '205 Reset Content'])(
    'is complete for %s, which has no body',
    async (status) => {
      const { axios, requests } = await ending(Buffer.from(`HTTP/1.1 ${status}\r\n\r\n`));
      expect((await axios.get<unknown>('/a')).data).toBeUndefined();
      expect(requests()).toBe(1);
    },
  );
});

/** An HTML page may come from a firewall that inspects responses, after the service has executed the call. */
describe('A refusal of our credentials or certificate', () => {
  type Row = [
    method: string,
    status: number,
    headers: Record<string, string>,
    page: string,
    attempts: number,
  ];
  it.each<Row>([
    ['GET', 403, HTML, PLAIN, 2],
    ['POST', 403, HTML, PLAIN, 1],
    ['DELETE', 403, HTML, PLAIN, 1],
    ['GET', 401, HTML, PLAIN, 2],
    ['POST', 401, HTML, PLAIN, 1],
    ['POST', 401, { ...HTML, 'www-authenticate': 'Basic realm=x' }, PLAIN, 1],
    ['POST', 401, { ...HTML, 'www-authenticate': 'Bearer error="invalid_token"' }, PLAIN, 2],
    ['POST', 401, {}, '{"status":"UNAUTHORIZED","message":"no"}', 2],
    ['GET', 400, HTML, NGINX, 2],
    ['POST', 400, HTML, NGINX, 1],
    ['POST', 403, HTML, NGINX, 1],
    ...['POST', 'PUT', 'PATCH', 'DELETE'].map((method): Row => [method, 400, HTML, WITHHELD, 1]),
    ['POST', 401, HTML, WITHHELD, 1],
    ['GET', 403, HTML, WITHHELD, 2],
    ['POST', 495, {}, '', 1],
    ['GET', 496, {}, '', 2],
    ['POST', 400, HTML, PLAIN, 1],
    ['POST', 408, {}, '', 1],
  ])('of a %s with %d, %j and %s is followed by %d attempts in all if they are renewed', async (...row) => {
    const [method, status, headers, page, attempts] = row;
    const { axios, arrived } = await setUp({
      listener: firstAnswered(status, headers, page),
      renewed: { Authorization: 'Bearer new' },
      identity: { findOther: async () => true },
      retries: 0,
    });
    const outcome = axios.request<unknown>({ url: '/a', method, data: method === 'GET' ? undefined : {} });
    if (attempts === 2) expect((await outcome).data).toEqual({ ok: true });
    else expect(await errorOf(outcome)).toMatchObject({ status });
    expect(arrived).toHaveLength(attempts);
    // The next call uses the renewed credentials.
    expect((await axios.get<unknown>('/a')).data).toEqual({ ok: true });
  });

  it('ends the call if it comes again with another certificate', async () => {
    let read = 0;
    const { axios, arrived } = await setUp({
      listener: answering(495),
      identity: { findOther: async () => (read += 1) < 5 },
      retries: 0,
    });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 495, credentialFault: true });
    expect([arrived.length, read]).toEqual([2, 1]);
  });

  const limited = new ServiceTokenError({ code: 'token_rate_limited', message: 'm' });
  it.each([
    ['POST', HTML, PLAIN, { status: 401 }],
    ['GET', HTML, PLAIN, { code: 'token_rate_limited' }],
    ['POST', {}, '{"status":401}', { code: 'token_rate_limited' }],
  ])(
    'of a %s with 401, %j and %s, without another token, ends with %j',
    async (method, headers, page, expected) => {
      const { axios, arrived } = await setUp({ listener: answering(401, page, headers), renewed: limited });
      expect(await errorOf(axios.request({ url: '/a', method }))).toMatchObject(expected);
      expect(arrived).toHaveLength(1);
    },
  );

  /** An identity whose `findOther()` never settles. */
  const hanging = (begun: () => void = () => undefined) => ({
    findOther: () => {
      begun();
      return new Promise<boolean>(() => undefined);
    },
  });

  it.each([
    ['GET', { status: 400, outcomeUnknown: false }],
    ['POST', { status: 400, outcomeUnknown: true }],
  ])(
    'ends a %s at its deadline with the response, if reading the certificate never ends',
    async (method, expected) => {
      const { axios } = await setUp({ listener: answering(400, NGINX, HTML), identity: hanging() });
      expect(await errorOf(axios.request({ url: '/a', method, timeout: 300 }))).toMatchObject(expected);
    },
  );

  describe('of a certificate that has worked before', () => {
    /** A server that accepts the first call, and then refuses the certificate by an HTML page until the test calls `end()`. */
    const setUpRotation = async () => {
      let finish!: (hasOther: boolean) => void;
      const read = async () => ((await finished) ? 'new' : 'old');
      const finished = new Promise<boolean>((resolve) => (finish = resolve));
      const identity = {
        certificate: { fingerprint256: 'old' } as CertificateSummary,
        ...rotating('old', read),
      };
      let isRefused = false;
      const listener: RequestListener = (_, response) => {
        if (isRefused) response.writeHead(400, HTML).end(NGINX);
        else response.end('{}');
      };
      const { axios, arrived } = await setUp({ listener, identity, retries: 0 });
      await axios.get('/a');
      isRefused = true;
      const end = (hasOther: boolean) => {
        isRefused = !hasOther;
        finish(hasOther);
      };
      return { axios, arrived, end };
    };

    it('lets a GET wait for the new certificate, and other calls after it; a POST in doubt does not wait', async () => {
      const { axios, arrived, end } = await setUpRotation();
      const inDoubt = errorOf(axios.post('/doubt', {}));
      expect(await inDoubt).toMatchObject({ status: 400, outcomeUnknown: true });
      const waiting = [axios.get('/b'), axios.post('/c', {})];
      const short = errorOf(axios.get('/short', { timeout: 200 }));
      expect(await short).toMatchObject({ status: 400 });
      expect(arrived.map(({ url }) => url)).toEqual(['/a', '/doubt', '/short']);
      end(true);
      await Promise.all(waiting);
      expect(arrived.slice(3).map(({ url }) => url)).toEqual(['/b', '/c']);
    });

    it('lets later calls fail at once if no new certificate came', async () => {
      const { axios, arrived, end } = await setUpRotation();
      const waiting = errorOf(axios.get('/b'));
      end(false);
      expect(await waiting).toMatchObject({ status: 400 });
      const begun = performance.now();
      expect(await errorOf(axios.get('/c'))).toMatchObject({ status: 400 });
      expect(performance.now() - begun).toBeLessThan(1_000);
      expect(arrived.map(({ url }) => url)).toEqual(['/a', '/b', '/c']);
    });
  });

  it.each(['GET', 'POST'])(
    "ends a waiting %s with the caller's own reason if the caller aborts",
    async (method) => {
      const controller = new AbortController();
      const reason = new Error('mine');
      const identity = hanging(() => controller.abort(reason));
      const { axios } = await setUp({ listener: answering(400, NGINX, HTML), identity });
      expect(await errorOf(axios.request({ url: '/a', method, signal: controller.signal }))).toBe(reason);
    },
  );

  it('ends a waiting call as closed if the client shuts down', async () => {
    const events = new EventEmitter();
    const begun = once(events, 'begun');
    const identity = hanging(() => events.emit('begun'));
    const { axios, inFlight } = await setUp({ listener: answering(400, NGINX, HTML), identity });
    const cutOff = errorOf(axios.get('/a'));
    await begun;
    inFlight.close();
    expect(await cutOff).toMatchObject({ kind: 'closed', outcomeUnknown: false });
  });
});

describe('parse', () => {
  const PRIVATE = 'private-value';

  async function start(body: string, status = 200) {
    const listener = answering(status, body, { 'x-correlation-id': `c-1 ${BEARER}` });
    const { axios, arrived } = await setUp({ listener });
    return { http: new ServiceHttpService(axios), axios, arrived };
  }

  const n = z.object({ n: z.coerce.number() });
  it.each<[string, ResponseParser, unknown]>([
    ['a function', (body) => [body], [{ n: '1' }]],
    ['a function that promises', async (body) => [body], [{ n: '1' }]],
    ['a schema', n, { n: 1 }],
    ['an asynchronous schema', n.transform(async (body) => body.n + 1), 2],
    [
      'a schema that is a function too (arktype)',
      Object.assign(() => 'not called', {
        '~standard': { version: 1 as const, validate: (value: unknown) => ({ value: [value] }) },
      }),
      [{ n: '1' }],
    ],
  ])('makes the call resolve with the result of %s', async (_, parse, expected) => {
    const { http } = await start('{"n":"1"}');
    expect(await http.get('/a', { parse })).toEqual(expected);
    expect(await http.post('/a', {}, { parse })).toEqual(expected);
  });

  it.each([
    ['a schema of superstruct or TypeBox, without ~standard', { type: 'array' }],
    ['a text', 'text'],
    ['false', false],
    ['0', 0],
  ])('is refused before anything is sent if it is %s', async (_, parse) => {
    const { http, arrived } = await start('{}');
    for (const call of [
      http.post('/a', {}, { parse: parse as never }),
      http.response('/a', { parse: parse as never }),
    ]) {
      const error = await errorOf(call);
      expect(error).toBeInstanceOf(ServiceRequestError);
      expect(error).toMatchObject({
        faults: [
          { property: 'parse', message: expect.stringMatching(/^must be a function, or a Standard Schema/) },
        ],
      });
    }
    expect(arrived).toEqual([]);
    expect(await http.get('/a', { parse: null as never })).toEqual({});
  });

  const refusing = async (body: string, parse: ResponseParser): Promise<ServiceApiError> => {
    const { http, arrived } = await start(body);
    const error = (await errorOf(http.get('/a?q=private-value', { parse }))) as ServiceApiError;
    expect(error).toBeInstanceOf(ServiceApiError);
    expect(everyForm(error)).not.toMatch(/private|planted/);
    // If `parse` refuses the response, the call is not sent again.
    expect(arrived).toHaveLength(1);
    return error;
  };

  it('gives an error with the places, the call and its correlation id, but no value', async () => {
    const banks = z.array(z.object({ bank_identifier: z.literal(PRIVATE + 2), name: z.string().email() }));
    const error = await refusing(
      JSON.stringify([
        { bank_identifier: PRIVATE + 2, name: 'a@b.co' },
        { bank_identifier: PRIVATE, name: PRIVATE },
      ]),
      banks,
    );
    expect(error.toJSON()).toMatchObject({
      code: 'invalid_response',
      message: 'GET /a: HTTP 200, but parse refused the body: [1].bank_identifier, [1].name.',
      status: 200,
      method: 'GET',
      route: '/a',
      correlationId: expect.stringMatching(NOT_SHOWN),
    });
    expect(error).not.toHaveProperty('cause');
  });

  const throwing = (thrown: unknown) => (): never => {
    throw thrown;
  };
  const ownName = Object.assign(new Error(), { name: PRIVATE });
  const unreadable = new Proxy({}, { get: throwing(new Error(PRIVATE)) });
  it.each<[string, (body: unknown) => unknown, string]>([
    ['a schema of another kind', (body) => z.array(z.string()).parse(body), ''],
    ['a schema, for a place', (body) => z.object({ name: z.number() }).parse(body), ': name'],
    ['an error with a message', throwing(new Error(PRIVATE, { cause: PRIVATE })), ''],
    ['a fault of its code', throwing(new TypeError(PRIVATE)), ' (it threw a TypeError)'],
    ['an error with a name of its own', throwing(ownName), ''],
    ['text', throwing(PRIVATE), ''],
    ['nothing', throwing(undefined), ''],
    ['what throws where it is read', throwing(unreadable), ''],
    ['one of our own errors', throwing(ServiceRequestError.of('p', PRIVATE)), ''],
  ])('shows nothing of what the parser throws: %s', async (_, parse, said) => {
    const parsers = [
      parse,
      async (body: unknown) => parse(body),
      { '~standard': { version: 1, validate: parse } },
      { '~standard': { version: 1, validate: async (body: unknown) => parse(body) } },
    ] as ResponseParser[];
    for (const each of parsers) {
      const error = await refusing(`{"name":"${PRIVATE}"}`, each);
      expect(error.message).toBe(`GET /a: HTTP 200, but parse refused the body${said}.`);
    }
  });

  it.each([[null], [undefined], [{ issues: [] }], [{ issues: 'private' }]])(
    'treats %j as a refusal if a schema breaks the rules of Standard Schema',
    async (result) => {
      await refusing('1', { '~standard': { version: 1, validate: () => result } } as never);
    },
  );

  it('says to callers and in the log that the POST was executed', async () => {
    const { http } = await start('{}', 201);
    const parse = z.object({ customer_id: z.string() });
    const error = (await errorOf(http.post('/a', {}, { parse }))) as ServiceApiError;
    expect(answerOf(error)).toEqual({
      code: 'invalid_response',
      status: 502,
      message: 'The service failed to answer this call. The request may have been executed all the same.',
    });
    expect(describeError(error)).toBe(
      'invalid_response: POST /a: HTTP 201, but parse refused the body: customer_id. By its status the call was executed; correlation id [not shown: it contains a secret or a part of one]',
    );
  });

  it.each([204, 201])('gets undefined for a %d without a body', async (status) => {
    const customer = z.object({ customer_id: z.string() });
    const { http } = await start('', status);
    expect(await http.post('/a', {}, { parse: customer.optional() })).toBeUndefined();
    expect(await errorOf(http.post('/a', {}, { parse: customer }))).toMatchObject({
      code: 'invalid_response',
      message: `POST /a: HTTP ${status}, but parse refused the missing body. By its status the call was executed.`,
    });
  });

  it('checks an error response only if validateStatus accepts it, and does not say that it was executed', async () => {
    const { http, axios } = await start('{"status":"X","message":"said"}', 404);
    const parse = throwing(new Error());
    expect(await errorOf(http.post('/a', {}, { parse }))).toMatchObject({
      code: 'api_error',
      message: 'POST /a: HTTP 404: said',
    });
    axios.defaults.validateStatus = () => true;
    expect(await errorOf(http.post('/a', {}, { parse }))).toMatchObject({
      message: 'POST /a: HTTP 404, but parse refused the body.',
    });
  });

  it("checks what the host application's interceptors made of the response", async () => {
    const { http, axios } = await start('{"data":[1]}');
    axios.interceptors.response.use((response) => {
      response.data = (response.data as { data: unknown }).data;
      return response;
    });
    expect(await http.get('/a', { parse: z.array(z.number()) })).toEqual([1]);
  });
});

describe('Places of issues in the body', () => {
  const at = (...path: unknown[]): string => describePlaces([{ path }]);

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
    ['places of a list as texts (yup)', ['items', '1', 'id'], ': items[1].id'],
    ['an empty key', ['a', ''], ': a[…]'],
    ['a line break and a terminal escape', ['a\r\nfake: log line', '\u001b[31m'], ': […][…]'],
    ['other letters', ['naïve', 'имя'], ': […][…]'],
    ['a symbol, null, nothing', [Symbol('private'), null, undefined, {}], ': […][…][…][…]'],
    ['a long key', ['k'.repeat(65)], ': […]'],
    ['the longest key', ['k'.repeat(64)], `: ${'k'.repeat(64)}`],
    ['a key of megabytes', [`1a2b3${'x'.repeat(10_000_000)}`], ': […]'],
    ['a deep one', Array<string>(20).fill('a'), `: ${Array(16).fill('a').join('.')}`],
  ])('are shown without personal data: %s', (_, path, text) => {
    expect(at(...path)).toBe(text);
  });

  it('are at most five, each once, without the body as a whole', () => {
    const issues = Array.from({ length: 12 }, (_, index) => ({ path: [index, 'name'] }));
    expect(describePlaces(issues)).toBe(': [0].name, [1].name, [2].name, [3].name, [4].name');
    expect(describePlaces([issues[0], issues[0]])).toBe(': [0].name');
    expect([at(), describePlaces([]), describePlaces([{}, { path: 'x' }, null, 7])]).toEqual(['', '', '']);
    expect(describePlaces([{ path: [] }, { path: ['a'] }])).toBe(': a');
  });
});

describe('The property response of an error', () => {
  const SECRET = 'opaque/bearer+token=with%signs';

  function responseOf(body: string, headers: Record<string, string | string[]> = {}): ApiErrorResponse {
    const answer = { status: 422, statusText: '', body: Buffer.from(body), headers, untilClose: false };
    let json: unknown;
    try {
      json = JSON.parse(body);
    } catch {
      // The body is not JSON.
    }
    return keepErrorResponse(answer, json, [SECRET], 'Service-App-Token')();
  }

  const dataOf = (body: string): unknown => responseOf(body).data;

  it.each([
    {
      errors: [{ field: 'a', n: 1.5, ok: true, no: null }],
      detail: 'two\nlines ',
      deep: { list: [[1]] },
    },
    [[1, 'a']],
    'text',
    7,
    null,
  ])('has the parsed JSON: %j', (body) => {
    expect(responseOf(JSON.stringify(body))).toEqual({ status: 422, headers: {}, data: body });
  });

  it('has no data if the body is not JSON, is nested too deep to be searched, or has over 64 KiB', () => {
    for (const body of ['<html>', '', '{"cut":', '['.repeat(30_000) + ']'.repeat(30_000)])
      expect(dataOf(body)).toBeUndefined();
    const text = (length: number): string => JSON.stringify('x'.repeat(length - 2));
    expect(dataOf(text(65_536))).toHaveLength(65_534);
    expect(dataOf(text(65_537))).toBeUndefined();
  });

  it.each([
    ['as it is', SECRET],
    ['within a text', `The token ${SECRET} is wrong`],
    ['in other case', SECRET.toUpperCase()],
    ['percent-encoded', encodeURIComponent(SECRET)],
    ['as a form', new URLSearchParams({ bearer: SECRET }).toString()],
    ['as HTML', SECRET.replaceAll('/', '&#x2F;').replaceAll('+', '&#43;').replaceAll('=', '&#61;')],
    ['in JSON', JSON.stringify({ authorization: `Bearer ${SECRET}` })],
    ['in JSON in JSON', JSON.stringify(JSON.stringify({ [SECRET]: SECRET }))],
    ['over lines', SECRET.replace(/.{5}/g, '$&  ')],
    ['at the end of a long text', 'x '.repeat(5_000) + SECRET],
    ['a token of another', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'],
    ['a key', '-----BEGIN PRIVATE KEY-----'],
  ])('has no data if a text in it contains a credential: %s', (_, echo) => {
    for (const body of [{ said: echo }, { list: [{ [echo]: 1 }] }, echo])
      expect(dataOf(JSON.stringify(body))).toBeUndefined();
    const headers = { 'x-echo': echo, [`x-${echo}`]: 'named', 'x-kept': 'said' };
    expect(responseOf('{}', headers).headers).toEqual({ 'x-kept': 'said' });
  });

  it('is searched after the escapes of JSON are decoded', () => {
    const escaped = [...SECRET].map((sign) => `\\u00${sign.charCodeAt(0).toString(16)}`).join('');
    expect(dataOf(`{"${escaped}":1}`)).toBeUndefined();
    expect(dataOf(`{"a":"${escaped}"}`)).toBeUndefined();
  });

  it('may contain a short part of a credential, which the response may be about', () => {
    const data = { part: SECRET.slice(0, 13), next: '/?q=%D8%A7%D9%84%D9%81' };
    expect(dataOf(JSON.stringify(data))).toEqual(data);
  });

  it('may contain the app token, because the app token is public', async () => {
    const json = { application: APP_TOKEN };
    const { axios } = await setUp({ listener: answering(400, JSON.stringify(json)) });
    const error = (await errorOf(axios.get('/a'))) as ServiceApiError;
    expect(error.response?.data).toEqual(json);
  });

  it('has no cookies and no authenticating headers', () => {
    const headers = {
      'set-cookie': ['a=1'],
      authorization: 'x',
      'service-app-token': 'y',
      'retry-after': '7',
    };
    expect(responseOf('{}', headers).headers).toEqual({ 'retry-after': '7' });
  });

  it.each([
    ['backslashes', '\\'.repeat(32_000)],
    ['percent signs', '%'.repeat(65_000)],
    ['halves of escapes', '\\u00'.repeat(13_000)],
    ['ampersands', '&#'.repeat(32_000)],
    ['beginnings of a token', 'eyJ.'.repeat(16_000)],
    ['pieces of a secret', 'opaque/bearer+'.repeat(4_000)],
  ])('is made in a time that grows linearly with its length: %s', (_, text) => {
    expect([text, undefined]).toContain(dataOf(JSON.stringify(text)));
  });

  const SAID = 'personal data of the answer';
  const details = { message: 'a', status: 422, method: 'GET', path: '/a' };
  const response = { status: 422, headers: { 'x-said': SAID }, data: { said: SAID } };
  const made = (Class = ServiceApiError): ServiceApiError =>
    new Class({ ...details, path: `/${SAID}`, route: '/a', response: () => response });
  const lost = () =>
    new ServiceConnectionError({ kind: 'reset', message: 'a', method: 'GET', path: `/${SAID}`, route: '/a' });
  class OfHost extends ServiceApiError {}

  it('can be read, like the path, in copies and in subclasses of the host application too', () => {
    for (const error of [made(), copyError(copyError(made())) as ServiceApiError, made(OfHost)])
      expect([error.path, error.response]).toEqual([`/${SAID}`, response]);
    expect([lost().path, (copyError(lost()) as ServiceConnectionError).path]).toEqual([
      `/${SAID}`,
      `/${SAID}`,
    ]);
    expect(new ServiceApiError(details).response).toBeUndefined();
    expect(made()).toBeInstanceOf(ServiceApiError);
    expect(made().constructor).toBe(ServiceApiError);
  });

  it.each([
    ['itself', made],
    ['a copy', () => copyError(made())],
    ['of a class of a host', () => made(OfHost)],
    ['without an answer', lost],
    ['within', () => ({ list: [made()], cause: new Error('b', { cause: made() }) })],
  ])('is not shown when the error is printed, and neither is the path: %s', (_, make) => {
    const error = make() as ServiceApiError;
    const walked: unknown[] = [];
    for (const key in error) walked.push(error[key as keyof ServiceApiError]);
    for (const key of Reflect.ownKeys(error)) walked.push(error[key as keyof ServiceApiError]);
    const all = { showHidden: true, getters: true, depth: 20, maxStringLength: Infinity } as const;
    const shown = [
      format('%o %O %s %j', error, error, error, error),
      inspect(error, all),
      inspect(error, { ...all, customInspect: false }),
      inspect({ ...error }, all),
      inspect(walked, all),
      inspect(Object.getOwnPropertyDescriptors(error), all),
      inspect(structuredClone({ message: error.message, stack: error.stack }), all),
      JSON.stringify(error),
      JSON.stringify(walked),
      String(error),
      error instanceof ServiceApiError ? describeError(error) : '',
    ];
    expect(shown.filter((text) => text.includes(SAID))).toEqual([]);
  });
});

describe('Retry-After', () => {
  const NOW = Date.UTC(2030, 0, 1, 12, 0, 0);

  it.each([
    ['0', 0],
    ['120', 120],
    [' 7 ', 7],
    ['1.2', 2],
    ['Tue, 01 Jan 2030 12:00:30 GMT', 30],
    ['Tuesday, 01-Jan-30 12:00:30 GMT', 30],
    ['Mon, 31 Dec 2029 12:00:00 GMT', 0],
    ['86400', 86_400],
    ['86401', 86_400],
    ['60000', 60_000],
    ['999999999', 86_400],
    ['9'.repeat(310), 86_400],
    ['Fri, 31 Dec 9999 23:59:59 GMT', 86_400],
    // Seconds and milliseconds since 1970.
    [`${NOW / 1_000 + 30}`, 30],
    [`${NOW / 1_000 + 0.5}`, 1],
    [`${NOW + 30_000}`, 30],
    [`${NOW / 1_000 - 30}`, 0],
    [`${NOW - 30_000}`, 0],
    ['1000000000', 0],
    ['1000000000000', 0],
    [`${NOW / 1_000 + 90_000}`, 86_400],
    // ISO 8601.
    ['2030-01-01T12:00:30Z', 30],
    ['2030-01-01T12:00:30', 30],
    ['2030-01-01 12:00:30', 30],
    ['2030-01-01T12:01Z', 60],
    ['2030-01-01T12:00:29.001Z', 30],
    ['2030-01-01T14:00:30+02:00', 30],
    ['2030-01-01t10:00:30-0200', 30],
    ['2029-12-31T12:00:30Z', 0],
    ['2031-01-01T00:00:00Z', 86_400],
    ['2030-13-01T12:00:30Z', undefined],
    ['2030-01-01T25:00:30Z', undefined],
    ...[undefined, '', '-5', 'soon', '1e3', 'Tue, never', '2030-01-01'].map(
      (value): [string | undefined, undefined] => [value, undefined],
    ),
  ])('%j means %s seconds', (value, seconds) => {
    expect(parseRetryAfter({ 'retry-after': value }, NOW)).toBe(seconds);
  });

  // The clock of this machine shows 12:00:00, and Retry-After is the date 12:00:30.
  it.each([
    [
      'a clock that is 2 minutes behind',
      { date: 'Tue, 01 Jan 2030 12:02:00 GMT' },
      'Tue, 01 Jan 2030 12:02:30 GMT',
    ],
    [
      'a clock that is 2 minutes ahead',
      { date: 'Tue, 01 Jan 2030 11:58:00 GMT' },
      'Tue, 01 Jan 2030 11:58:30 GMT',
    ],
    [
      'an answer from a cache',
      { date: 'Tue, 01 Jan 2030 11:59:00 GMT', age: '60' },
      'Tue, 01 Jan 2030 12:00:30 GMT',
    ],
    ['dates as asctime writes them', { date: 'Tue Jan  1 12:02:00 2030' }, 'Tue Jan  1 12:02:30 2030'],
    ['an RFC 850 date', { date: 'Tuesday, 01-Jan-30 12:02:00 GMT' }, 'Tuesday, 01-Jan-30 12:02:30 GMT'],
    ['seconds since 1970', { date: 'Tue, 01 Jan 2030 12:02:00 GMT' }, `${NOW / 1_000 + 150}`],
    ['milliseconds since 1970', { date: 'Tue, 01 Jan 2030 11:58:00 GMT' }, `${NOW - 90_000}`],
    ['an ISO 8601 date', { date: 'Tue, 01 Jan 2030 12:02:00 GMT' }, '2030-01-01T12:02:30Z'],
    ['a Date that cannot be read', { date: 'today', age: 'x' }, 'Tue, 01 Jan 2030 12:00:30 GMT'],
    [
      'an Age that cannot be read',
      { date: 'Tue, 01 Jan 2030 12:02:00 GMT', age: 'x' },
      'Tue, 01 Jan 2030 12:02:30 GMT',
    ],
  ])('counts a date from the Date header of the response: 30 s with %s', (_, headers, date) => {
    expect(parseRetryAfter({ ...headers, 'retry-after': date }, NOW)).toBe(30);
  });

  it('reads an asctime date as GMT, whatever the time zone of the process', async () => {
    const file = pathToFileURL(join(import.meta.dirname, '../../../lib/exchange/response.ts'));
    const code = `import { parseRetryAfter } from ${JSON.stringify(file)};
      console.log(parseRetryAfter({ 'retry-after': 'Tue Jan  1 12:00:30 2030' }, ${NOW}));`;
    const node = [process.execPath, '--no-warnings', '--import', REGISTER, '--input-type=module'];
    const child = startProcess([...node, '--eval', code], {
      cwd: join(import.meta.dirname, '../../..'),
      env: { TZ: 'America/Los_Angeles' },
    });
    afterwards(() => child.kill());
    await child.exited;
    expect(child.output().trim()).toBe('30');
  });

  it('counts a date from the Date header in errors and retries too', async () => {
    const behind = { date: 'Tue, 01 Jan 2030 12:00:00 GMT', 'retry-after': 'Tue, 01 Jan 2030 12:00:05 GMT' };
    const { axios } = await setUp({ listener: firstAnswered(429, behind, '{}'), retries: 0 });
    expect(await errorOf(axios.get('/a'))).toMatchObject({ status: 429, retryAfter: 5 });
    const now = { date: behind.date, 'retry-after': behind.date };
    const again = await setUp({ listener: firstAnswered(503, now, '{}'), timeoutMs: 10_000 });
    await again.axios.get('/a');
    expect(again.arrived).toHaveLength(2);
  });
});
