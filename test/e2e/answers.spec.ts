import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, type INestApplication, Module, Post, Req } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { randomUUID } from 'node:crypto';
import {
  Agent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
  type RequestListener,
} from 'node:http';
import { gzipSync } from 'node:zlib';
import * as v from 'valibot';
import { z } from 'zod';
import {
  type ResponseParser,
  type ResponseSchema,
  type ResponseType,
  type BanksBody,
  BanksService,
  type Customer,
  CustomersService,
  type HttpCallOptions,
  type HttpResponse,
  ServiceApiError,
  ServiceCertificateError,
  ServiceConnectionError,
  ServiceExceptionFilter,
  ServiceHttpService,
  ServiceModule,
  ServiceRequestError,
} from 'nestjs-service';
import { type FaultRule, type ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { hangingRelay } from '../helpers/hanging-relay.js';
import { onlyInSoak } from '../helpers/in-soak.js';
import { httpServer } from '../helpers/loopback.js';
import { warningsDuring } from '../helpers/node-process.js';
import { CollectingLogger, everyForm } from '../helpers/secret-scan.js';
import { type Host, type Platform, startHost } from '../helpers/start-host.js';
import { rejection, startModule, type StartedModule, startStubbed } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

/** Over real TLS: the simulator counts what arrives. */
let simulator: ServiceSimulator;
let oauth: StartedModule;
let mtls: StartedModule;
let http: ServiceHttpService;
const logger = new CollectingLogger();

beforeAll(async () => {
  simulator = await startSimulator();
  const settings = { timeout: 3_000, requestId: () => 'mine', idempotencyHeader: 'x-key' };
  const mode = { environment: 'production', authentication: 'oauth', clientCertificate: true } as const;
  oauth = await startModule({ ...simulator.moduleOptions(mode), http: settings }, logger);
  mtls = await startModule({ ...simulator.moduleOptions({ authentication: 'mtls' }), http: settings });
  ({ http } = oauth);
  await oauth.auth.getApiToken();
  simulator.clearRequests();
});
afterEach(() => {
  simulator.clearFaults();
  simulator.clearRequests();
});
afterAll(async () => {
  await oauth.module.close();
  await mtls.module.close();
  await simulator.stop();
});

const create = ({ customers }: StartedModule) => customers.create({ app_user_id: randomUUID() });
const arrived = () => simulator.apiRequests.length;
const fail = (fault: SimulatorFault, times = 1) => simulator.fail({ path: /v1$/, times, fault });
const errorOf = async (fault: SimulatorFault, call: () => Promise<unknown>): Promise<ServiceApiError> => {
  fail(fault);
  return (await rejection(call())) as ServiceApiError;
};

describe('HTTP statuses', () => {
  it.each([400, 403, 404, 409, 422])(
    'with %d a call fails at once, without another token request',
    async (status) => {
      const said = { status: 'REFUSED', message: 'not this one' };
      fail({ status, json: said }, 2);
      for (const call of [() => oauth.banks.list(), () => create(oauth)]) {
        const error = await rejection(call());
        expect(error).toBeInstanceOf(ServiceApiError);
        const expected = { code: 'api_error', status, body: said };
        expect(error).toMatchObject({ ...expected, outcomeUnknown: false });
        const { method, route } = error as ServiceApiError;
        expect(error).toHaveProperty('message', `${method} ${route}: HTTP ${status} REFUSED: not this one`);
      }
      expect([arrived(), simulator.tokenRequests.length]).toEqual([2, 0]);
    },
  );

  it('after a 502 a GET is retried twice, and a POST is not', async () => {
    fail({ status: 502, json: { message: 'broken' } }, 9);
    expect(await rejection(oauth.banks.list())).toMatchObject({ status: 502, outcomeUnknown: false });
    expect(arrived()).toBe(3);
    expect(await rejection(create(oauth))).toMatchObject({ status: 502, outcomeUnknown: true });
    expect(arrived()).toBe(4);
  });

  it('a 303 to a POST is not followed, and leaves the outcome unknown', async () => {
    fail({ status: 303, headers: { location: 'http://127.0.0.1:9/steal' } });
    expect(await rejection(create(oauth))).toMatchObject({
      kind: 'redirect',
      location: 'http://127.0.0.1:9',
      outcomeUnknown: true,
    });
    expect(simulator.requests).toHaveLength(1);
  });

  it.each<[string, SimulatorFault, object]>([
    [
      'another one in the body: both are kept',
      { status: 409, json: { status: 200, message: 'ok' } },
      { status: 409, body: { status: 200, message: 'ok' } },
    ],
    [
      'a body that is not compressed, though its headers say so',
      { status: 409, json: { message: 'taken' }, headers: { 'content-encoding': 'gzip' } },
      { status: 409, body: { message: 'taken' } },
    ],
  ])('the HTTP status decides, with %s', async (_, fault, expected) => {
    const error = await errorOf(fault, () => oauth.banks.list());
    expect(error).toMatchObject({ code: 'api_error', ...expected });
  });

  it.each<SimulatorFault>(['html', 'empty'])('a 200 with %j is an invalid response', async (fault) => {
    expect(await errorOf(fault, () => mtls.banks.list())).toMatchObject({
      code: 'invalid_response',
      status: 200,
    });
  });

  it('after one 401 all calls share one token request, and each is sent once more', async () => {
    simulator.revokeTokens();
    const { banks } = oauth;
    await Promise.all([banks.list(), banks.list(), banks.list(), create(oauth)]);
    expect(simulator.tokenRequests).toHaveLength(1);
    expect(simulator.apiRequests.filter(({ status }) => status === 401)).toHaveLength(4);
  });

  it('with 401 to every call each fails after one replay, token requests are limited, and the token stays cached', async () => {
    const api = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    fail({ status: 401, json: { status: 'UNAUTHORIZED', message: 'no' } }, Infinity);
    for (let call = 0; call < 10; call++) {
      expect(await rejection(api.banks.list())).toMatchObject({ status: 401, body: { message: 'no' } });
    }
    // The first token, then a burst of three forced refreshes.
    expect(simulator.tokenRequests).toHaveLength(4);
    simulator.clearFaults();
    await api.banks.list();
    expect(simulator.tokenRequests).toHaveLength(4);
    await api.module.close();
  });

  it.each([429, 503])(
    'after %d with Retry-After a call waits if the deadline allows it, and otherwise has retryAfter in its error',
    async (status) => {
      fail({ status, headers: { 'retry-after': '1' } });
      const startedAt = performance.now();
      await mtls.banks.list();
      expect(performance.now() - startedAt).toBeGreaterThan(900);
      simulator.clearRequests();
      const inAnHour = new Date(Date.now() + 3_600_000).toUTCString();
      const { status: told, retryAfter } = await errorOf(
        { status, headers: { 'retry-after': inAnHour } },
        () => mtls.banks.list(),
      );
      expect(told).toBe(status);
      expect(retryAfter).toBeGreaterThan(3_000);
      expect(arrived()).toBe(1);
    },
  );

  it.each([
    [
      400,
      '<html><title>400 No required SSL certificate was sent</title></html>',
      /was not sent, or did not arrive/,
    ],
    [
      400,
      '<html><title>400 The SSL certificate error</title></html>',
      /an nginx, rejects the client certificate/,
    ],
    [403, '<html>Client certificate required</html>', /got no client certificate, or rejects it/],
    [403, '<html><h1>403 Forbidden</h1></html>', /a page \(HTML\), which the service itself never sends/],
  ])(
    'a %d with the page of a proxy, %s, names our certificate and shows no HTML',
    async (status, body, said) => {
      fail({ status, body, headers: { 'content-type': 'text/html' } }, 2);
      const error = (await rejection(mtls.banks.list())) as ServiceApiError;
      expect(error).toMatchObject({ status, hint: expect.stringMatching(/tls\.certificate/) });
      expect(error.message).toMatch(said);
      expect(JSON.stringify(error)).not.toContain('<');
      expect(arrived()).toBe(1);
    },
  );
});

describe('A missing response', () => {
  it.each<SimulatorFault>(['lost', 'reset', 'reset-after-headers', 'truncate', { status: 408 }])(
    'after %j a GET is retried, and a POST fails with outcomeUnknown',
    async (fault) => {
      fail(fault, 2);
      expect(Array.isArray(await mtls.banks.list())).toBe(true);
      expect(arrived()).toBe(3);
      fail(fault);
      const error = await rejection(create(mtls));
      expect(error).toMatchObject({ outcomeUnknown: true, method: 'POST', path: '/customers/v1' });
      if (typeof fault === 'string') {
        expect(error).toBeInstanceOf(ServiceConnectionError);
        expect(error).toMatchObject({ kind: 'reset' });
      }
      expect(arrived()).toBe(4);
    },
  );

  it('on a reused connection that the server had closed is repeated without a retry and without a log line', async () => {
    const collected = new CollectingLogger();
    const options = simulator.moduleOptions({ authentication: 'mtls' });
    const api = await startModule({ ...options, http: { retries: 0 } }, collected);
    const three = () => Promise.all([api.banks.list(), api.banks.list(), api.banks.list()]);
    await three();
    simulator.clearRequests();
    // Closed by the server, and used before the client has noticed.
    simulator.dropConnections();
    await three();
    expect(arrived()).toBe(3);
    expect(collected.lines.filter((line) => /another attempt/.test(String(line)))).toEqual([]);
    await api.module.close();
  });

  it('before the handshake ended is retried, for any method', async () => {
    const api = await startModule(simulator.moduleOptions({ authentication: 'mtls' }));
    const broken = simulator.fail({ face: 'base', fault: 'reset-handshake' });
    await create(api);
    expect([arrived(), broken.hits]).toEqual([1, 1]);
    await api.module.close();
  });

  it('at the deadline ends the call', async () => {
    for (const fault of [{ trickleMs: 5 }, 'hang'] as SimulatorFault[]) {
      fail(fault, Infinity);
      expect(await rejection(mtls.banks.list({ timeout: 200 }))).toMatchObject({ kind: 'timeout' });
      simulator.clearFaults();
    }
  });

  it("is cut short by the caller's abort with the caller's reason, and ends no other call", async () => {
    const controller = new AbortController();
    const reason = new Error('changed my mind');
    fail({ delayMs: 100 }, 2);
    const mine = rejection(mtls.banks.list({ signal: controller.signal }));
    const other = mtls.banks.list();
    await simulator.waitForRequest(({ path }) => path === '/banks/v1');
    controller.abort(reason);
    expect(await mine).toBe(reason);
    expect(await other).toBeDefined();
  });

  it('is cut short for all calls that share one signal, without a warning of a listener leak', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error('enough');
    const { auth, module } = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    simulator.fail({ fault: 'hang', times: Infinity });
    const warnings = await warningsDuring(async () => {
      const calls = Array.from({ length: 20 }, () => rejection(mtls.banks.list({ signal })));
      const tokens = Array.from({ length: 20 }, () => rejection(auth.getApiToken({ signal })));
      await simulator.waitForRequest(() => simulator.apiRequests.length === 20);
      controller.abort(reason);
      expect(new Set(await Promise.all([...calls, ...tokens]))).toEqual(new Set([reason]));
    });
    expect(warnings).toEqual([]);
    await module.close();
  });

  it('from a TLS 1.2 server that asks for a certificate says that none is set', async () => {
    await using demanding = await startSimulator({
      maxTlsVersion: 'TLSv1.2',
      requireClientCertificate: true,
    });
    const options = demanding.moduleOptions({ environment: 'production', authentication: 'oauth' });
    const urls = { ...options.urls, oauthBaseUrl: demanding.urls.baseUrl };
    const api = await startModule({ ...options, urls, tls: { chain: demanding.chain } });
    expect(await rejection(create(api))).toMatchObject({
      kind: 'tls',
      outcomeUnknown: false,
      message: expect.stringMatching(/may require a client certificate, and none is configured/),
    });
    await api.module.close();
  });

  onlyInSoak(it)(
    'for 50 s still arrives at the first attempt with a timeout of 60 s',
    async () => {
      fail({ delayMs: 50_000 });
      await mtls.banks.list({ timeout: 60_000 });
      expect(arrived()).toBe(1);
    },
    90_000,
  );
});

describe('A refused certificate', () => {
  let own: ServiceSimulator;
  beforeAll(async () => {
    own = await startSimulator();
  });
  afterAll(() => own.stop());

  it.each<[string, Parameters<ServiceSimulator['useServerCertificate']>[0], string, RegExp]>([
    ['for a wrong host name', { names: ['other.example'] }, 'ERR_TLS_CERT_ALTNAME_INVALID', /another host/],
    ['of an unknown authority', { foreign: true }, 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', /tls\.chain/],
    [
      'that has expired',
      { notBefore: new Date(Date.now() - 2e8), notAfter: new Date(Date.now() - 1e8) },
      'CERT_HAS_EXPIRED',
      /expired/,
    ],
  ])(
    'of the server, %s, fails the call without a retry and names the cause',
    async (_, given, reason, message) => {
      await own.useServerCertificate(given);
      const options = own.moduleOptions({ authentication: 'mtls' });
      // A refused certificate ends the handshake, so a retry would reach the server only as another connection.
      const url = new URL(options.urls.baseUrl ?? '');
      const relay = await hangingRelay(Number(url.port));
      url.port = String(relay.port);
      const api = await startModule({ ...options, urls: { ...options.urls, baseUrl: url.href } });
      const error = await rejection(api.banks.list());
      expect(error).toMatchObject({ kind: 'tls', reason, outcomeUnknown: false });
      expect((error as Error).message).toMatch(message);
      expect(relay.connections).toBe(1);
      expect(own.apiRequests).toHaveLength(0);
      await api.module.close();
      await relay.close();
      await own.useServerCertificate();
    },
  );

  it('of ours, by a TLS alert, gives an error that names the fingerprint', async () => {
    const foreign = await own.issueCertificate({ foreign: true });
    const options = own.moduleOptions({ authentication: 'mtls', certificate: foreign });
    const api = await startModule(options);
    const error = await rejection(create(api));
    expect(error).toBeInstanceOf(ServiceCertificateError);
    const { fingerprint256 } = foreign;
    expect(error).toMatchObject({
      code: 'certificate_refused',
      certificate: { fingerprint256 },
      message: expect.stringContaining(fingerprint256),
    });
    expect(own.handshakes.base.refused).toBe(1);
    await api.module.close();
  });
});

/** Requests for customer tokens never delay the api token, however many there are. */
it('The api token is requested before waiting customer tokens, with few connections and a slow token endpoint', async () => {
  const CUSTOMERS = 40;
  await using slow = await startSimulator({ delayMs: { token: 100 } });
  const options = slow.moduleOptions({ authentication: 'oauth' });
  const { auth, banks, module } = await startModule({ ...options, http: { maxSockets: 2 } });
  const customers = Array.from({ length: CUSTOMERS }, (_, n) => auth.getCustomerToken(`c-${n}`));
  await slow.waitForRequest(({ face }) => face === 'token');
  await banks.list();
  const before = slow.tokenRequests.length;
  await Promise.all(customers);
  const scopes = slow.tokenRequests.map(({ body }) => new URLSearchParams(body).get('scope'));
  expect(scopes).toHaveLength(CUSTOMERS + 1);
  expect(before).toBeLessThan(CUSTOMERS);
  expect(scopes.indexOf('api')).toBeLessThan(before);
  // The requests arrive in the order of the calls, except for calls that run at the same time.
  const order = scopes.filter((scope) => scope !== 'api').map((scope) => Number(scope?.split('-')[1]));
  order.forEach((customer, place) => expect(Math.abs(customer - place)).toBeLessThanOrEqual(2));
  await module.close();
});

/** Code as a host application has it. `npm run typecheck` checks its types. */
describe('http.response()', () => {
  const answers = (status: number, json: unknown, headers = {}) => fail({ status, json, headers });
  const refuse = (): never => {
    throw new TypeError('no');
  };
  const pay = { method: 'POST', data: {}, idempotencyKey: 'k-1' };

  it('resolves with body, status, headers and ids, and nothing else', async () => {
    answers(202, { id: 1 }, { 'X-Total-Count': '7', 'X-Correlation-Id': 'of-the-service' });
    const response: HttpResponse<{ id: number }> = await http.response<{ id: number }>('/payments/v1', pay);
    expect(response).toEqual({
      data: { id: 1 },
      status: 202,
      headers: expect.objectContaining({ 'content-length': '8', 'x-total-count': '7' }),
      correlationId: 'of-the-service',
      requestId: 'mine',
    });
    const total: string | undefined = response.headers['x-total-count'];
    expect(total).toBe('7');
  });

  it('has the id that was sent if the service sends none', async () => {
    answers(200, {});
    const headers = { 'x-correlation-id': 'of-the-call' };
    const { correlationId, requestId } = await http.response('/payments/v1', { headers });
    expect([correlationId, requestId]).toEqual(['of-the-call', 'of-the-call']);
  });

  it('joins headers of one name, but leaves out set-cookie, which cannot be joined', async () => {
    answers(200, {}, { 'set-cookie': ['a=1', 'b=2'], link: ['</a>', '</b>'] });
    const { headers } = await http.response('/payments/v1');
    expect(headers).toMatchObject({ link: '</a>, </b>' });
    expect(headers).not.toHaveProperty('set-cookie');
  });

  it('can call the resources, takes the same arguments as request(), and runs parse', async () => {
    const parse = (body: unknown) => (body as unknown[]).length;
    const { data, status }: HttpResponse<number> = await http.response({
      url: '/banks/v1',
      params: { country: 'ae' },
      parse,
    });
    expect([data, status]).toEqual([10, 200]);
    expect(simulator.apiRequests.at(-1)?.path).toBe('/banks/v1?country=ae');
    fail({ status: 204 });
    expect(await http.response('/banks/v1')).toMatchObject({ data: undefined, status: 204 });
  });

  it('rejects as request() does', async () => {
    answers(404, { status: 'NOT_FOUND', message: 'none' });
    const missing = rejection(http.response('/payments/v1'));
    expect(await missing).toMatchObject({ status: 404, body: { message: 'none' } });
    expect(await rejection(http.response('https://elsewhere.example/'))).toMatchObject({
      code: 'invalid_request',
    });
  });

  it("has the response as the host application's interceptor changed it, and its ids even if that is a copy", async () => {
    const { interceptors } = http.axiosRef;
    const copying = interceptors.response.use((given) => ({ ...given, data: { copied: true } }));
    const headers = { 'x-correlation-id': 'of-the-service', 'retry-after': '7' };
    fail({ status: 201, json: {}, headers }, 2);
    const { headers: seen, ...rest } = await http.response('/payments/v1', pay);
    const ids = { correlationId: 'of-the-service', requestId: 'mine' };
    expect(rest).toEqual({ data: { copied: true }, status: 201, ...ids });
    expect(seen['content-type']).toMatch(/json/);
    expect(await rejection(http.response('/payments/v1', { ...pay, parse: refuse }))).toMatchObject({
      code: 'invalid_response',
      status: 201,
      method: 'POST',
      path: '/payments/v1',
      correlationId: 'of-the-service',
      retryAfter: 7,
      idempotencyKey: 'k-1',
    });
    interceptors.response.eject(copying);
  });

  it.each(['normalize', 'toJSON', '__proto__'])(
    'can be read if the service sends a header named %s',
    async (name) => {
      answers(201, { id: 1 }, Object.fromEntries([name, 'x-total-count'].map((each) => [each, '7'])));
      const { data, headers } = await http.response('/payments/v1', { method: 'POST', data: {} });
      expect([data, headers['x-total-count']]).toEqual([{ id: 1 }, '7']);
      expect(Object.getPrototypeOf(headers)).toBe(Object.prototype);
    },
  );
});

describe('error.response', () => {
  it("keeps the service's response, which the printed error does not show", async () => {
    const json = {
      error_code: 'VALIDATION_FAILED',
      message: 'It is taken',
      errors: [{ field: 'app_user_id', reason: 'taken', by: 'Jane Roe' }],
    };
    const headers = { 'X-Trace': 'Jane Roe', 'Set-Cookie': 'session=Jane Roe', 'ratelimit-reset': '60' };
    const error = await errorOf({ status: 422, json, headers }, () => create(oauth));
    const kept = { 'x-trace': 'Jane Roe', 'ratelimit-reset': '60' };
    expect(error.response).toEqual({ status: 422, headers: expect.objectContaining(kept), data: json });
    expect(error.response?.headers).not.toHaveProperty('set-cookie');
    expect(everyForm(error) + everyForm(logger.lines)).not.toMatch(/Jane|VALIDATION_FAILED/);
  });

  it('contains no bearer token that the service echoes, in any place; the app token is not a secret there', async () => {
    const { accessToken } = await oauth.auth.getApiToken();
    const application = { application: simulator.appToken };
    const headers = {
      authorization: `Bearer ${accessToken}`,
      'x-echo': accessToken,
      'service-app-token': simulator.appToken,
    };
    const list = () => oauth.banks.list();
    const bodies = [
      { ...application, headers: { authorization: `Bearer ${accessToken}` } },
      { ...application, url: `/?t=${encodeURIComponent(accessToken)}` },
      { ...application, [accessToken]: 1 },
    ];
    for (const json of bodies) {
      const { response } = await errorOf({ status: 400, json, headers }, list);
      expect(response?.data).toBeUndefined();
      expect(JSON.stringify(response)).not.toContain(accessToken);
      const names = Object.keys(response?.headers ?? {});
      expect(names.filter((name) => /^(authorization|service-app-token|x-echo)$/.test(name))).toEqual([]);
    }
    for (const call of [list, () => mtls.banks.list()]) {
      expect((await errorOf({ status: 400, json: application }, call)).response?.data).toEqual(application);
    }
  });

  it("is the same for the host application's interceptors", async () => {
    const api = await startModule(simulator.moduleOptions());
    const seen: unknown[] = [];
    const { interceptors } = api.http.axiosRef;
    interceptors.response.use(undefined, (error: ServiceApiError) => {
      seen.push(error.response?.data);
      throw error;
    });
    const json = { errors: [1] };
    const direct = () => api.http.axiosRef.get('/banks/v1', { responseType: 'arraybuffer' });
    for (const call of [() => api.banks.list(), direct]) {
      const { response } = await errorOf({ status: 409, json }, call);
      expect(Object.keys(response ?? {})).toEqual(['status', 'headers', 'data']);
      expect(response?.data).toEqual(json);
    }
    expect(seen).toEqual([json, json]);
    interceptors.response.clear();
    expect((await errorOf({ status: 409, json }, () => api.banks.list())).response?.data).toEqual(json);
    await api.module.close();
  });

  it('keeps the body that parse refused, which the printed error does not show', async () => {
    const json = { status: 'PENDING', results_id: 'Jane Roe' };
    const refused = (more: object, body: object = json) =>
      errorOf({ status: 200, json: body }, () =>
        http.get('/orders/v1', { parse: () => JSON.parse('{') as unknown, ...more }),
      );
    const error = await refused({});
    expect(error).toMatchObject({ code: 'invalid_response', status: 200 });
    expect(error.response).toMatchObject({ status: 200, headers: { date: expect.any(String) }, data: json });
    expect(everyForm(error) + everyForm(logger.lines)).not.toMatch(/Jane|PENDING/);
    expect((await refused({ responseType: 'text' })).response?.data).toBe(JSON.stringify(json));
    expect((await refused({ responseType: 'bytes' })).response?.data).toBeUndefined();
    const { accessToken } = await oauth.auth.getApiToken();
    const { response } = await refused({}, { ...json, accessToken });
    expect(response).toMatchObject({ status: 200 });
    expect(response?.data).toBeUndefined();
  });
});

describe('responseType and maxResponseBytes', () => {
  /** Not UTF-8, and not JSON. */
  const PDF = Uint8Array.from([0x25, 0x50, 0x44, 0x46, 0x00, 0xff, 0xfe, 0xc3, 0x28]);
  const CSV = 'date;sum\n2026-11-24;1,5\n';
  const FAILURE = { status: 'GONE', message: 'No such statement' };
  const BOMB = gzipSync(JSON.stringify('x'.repeat(5_000_000)));

  const answer: RequestListener = ({ url = '' }, response) => {
    if (url === '/csv') return response.end(CSV);
    if (url === '/csv-of-windows') return response.end(`\ufeff${CSV}`);
    if (url.startsWith('/letters')) {
      const charset = new URL(url, 'http://x').searchParams.get('charset');
      response.writeHead(200, { 'content-type': `text/csv; header=present; charset=${charset}` });
      return response.end(Uint8Array.from([0xe3, 0xcd]));
    }
    if (url === '/page') return response.end('<!doctype html>');
    if (url === '/json') return response.end('{"a":1}');
    if (url === '/none') return response.writeHead(204).end();
    if (url === '/bomb') return response.writeHead(200, { 'content-encoding': 'gzip' }).end(BOMB);
    if (url === '/gone') return response.writeHead(404).end(JSON.stringify(FAILURE));
    if (url === '/gone-gzip') {
      response.writeHead(404, { 'content-encoding': 'gzip' });
      return response.end(gzipSync(JSON.stringify(FAILURE)));
    }
    if (url === '/gone-long') return response.writeHead(404).end(' '.repeat(65_537));
    if (url === '/moved') return response.writeHead(302, { location: 'https://elsewhere.example/' }).end(CSV);
    return response.end(PDF);
  };

  let server: Awaited<ReturnType<typeof httpServer>>;
  let api: StartedModule;
  const asked: IncomingHttpHeaders[] = [];

  beforeAll(async () => {
    server = await httpServer((request, response) => {
      asked.push(request.headers);
      return answer(request, response);
    });
    api = await startModule({
      environment: 'sandbox',
      authentication: 'app-token',
      urls: { sandboxUrl: server.url },
      appToken: 'a-1',
      http: { maxResponseBytes: 23 },
    });
  });
  afterAll(async () => {
    await api.module.close();
    await server.close();
  });

  it('bytes gives a Uint8Array with memory of its own, as the service sent it', async () => {
    const bytes = await api.http.get<Uint8Array>('/pdf', { responseType: 'bytes' });
    expect(bytes).toStrictEqual(PDF);
    expect(bytes.buffer.byteLength).toBe(PDF.length);
    expect(asked.at(-1)?.accept).toBe('*/*');
    const { data, status } = await api.http.response('/pdf', { method: 'POST', responseType: 'bytes' });
    expect([data, status]).toStrictEqual([PDF, 200]);
    expect(await api.http.delete('/none', { responseType: 'bytes' })).toStrictEqual(new Uint8Array());
  });

  it('text gives a string, also for JSON and for parse', async () => {
    const options = { responseType: 'text', maxResponseBytes: 100 } as const;
    expect(await api.http.get('/csv', options)).toBe(CSV);
    expect(await api.http.post('/json', {}, options)).toBe('{"a":1}');
    const lines = await api.http.get('/csv', { ...options, parse: (body) => String(body).split('\n') });
    expect(lines[1]).toBe('2026-11-24;1,5');
    expect(await api.http.put('/none', {}, options)).toBe('');
    expect(await api.http.get('/csv-of-windows', options)).toBe(CSV);
  });

  it.each([
    ['ISO-8859-1', 'ãÍ'],
    ['"windows-1256"', 'مح'],
  ])('text is decoded in the charset of the content type: %s', async (charset, text) => {
    expect(await api.http.get('/letters', { params: { charset }, responseType: 'text' })).toBe(text);
  });

  it.each<[string, string, HttpCallOptions, RegExp]>([
    [
      'text or bytes',
      '/csv',
      { maxResponseBytes: 100 },
      /responseType 'text' or 'bytes'.*SERVICE_SANDBOX_URL/,
    ],
    [
      'the address, of a page',
      '/page',
      { maxResponseBytes: 100 },
      /^Check .*SERVICE_SANDBOX_URL.*has one\.$/,
    ],
    [
      'bytes, of an unknown charset',
      '/letters?charset=x-own',
      { responseType: 'text' },
      /responseType 'bytes'/,
    ],
  ])('a response that cannot be read names %s', async (_, path, options, hint) => {
    const error = await rejection(api.http.get(path, options));
    expect(error).toMatchObject({ code: 'invalid_response', hint: expect.stringMatching(hint) });
  });

  it.each<[string, string, object]>([
    ['as text', '/gone', { responseType: 'text', maxResponseBytes: 100 }],
    ['as bytes', '/gone', { responseType: 'bytes', maxResponseBytes: 100 }],
    ['larger than the limit', '/gone', { maxResponseBytes: 5 }],
    ['that is larger once unpacked', '/gone-gzip', { maxResponseBytes: 5 }],
  ])('the body of an error response is read as JSON all the same: %s', async (_, path, options) => {
    const error = await rejection(api.http.get(path, options));
    expect(error).toBeInstanceOf(ServiceApiError);
    expect(error).toMatchObject({ status: 404, body: FAILURE });
  });

  it.each<[string, string, HttpCallOptions, string]>([
    ['the limit of the module', '/csv', {}, '23 bytes (http.maxResponseBytes)'],
    ['the limit of the call', '/csv', { maxResponseBytes: 22 }, '22 bytes (maxResponseBytes of the call)'],
    [
      'the limit once it is unpacked',
      '/bomb',
      { maxResponseBytes: 10_000 },
      '10000 bytes (maxResponseBytes of the call) after decompression.',
    ],
    [
      '64 KiB, of a failure',
      '/gone-long',
      { maxResponseBytes: 5 },
      '5 bytes (maxResponseBytes of the call).',
    ],
  ])(
    'a response is refused that is larger than %s: the error names the limit',
    async (_, path, options, says) => {
      const error = await rejection(api.http.get(path, { ...options, responseType: 'text' }));
      expect(error).toBeInstanceOf(ServiceConnectionError);
      const message = expect.stringContaining(`: the response is larger than ${says}`);
      expect(error).toMatchObject({ kind: 'too_large', message });
      const isOwn = 'maxResponseBytes' in options;
      expect(error).toMatchObject({
        hint: expect.stringContaining(
          isOwn ? 'raise maxResponseBytes of the call' : 'raise http.maxResponseBytes',
        ),
        options: isOwn ? [] : ['http.maxResponseBytes'],
      });
    },
  );

  it('a response within the limit is returned, and a redirect with a larger page is still a redirect', async () => {
    expect(BOMB.length).toBeLessThan(10_000);
    expect(await api.http.get('/csv', { maxResponseBytes: 24, responseType: 'text' })).toBe(CSV);
    const error = await rejection(api.http.get('/moved', { maxResponseBytes: 5 }));
    expect(error).toMatchObject({ kind: 'redirect', location: 'https://elsewhere.example' });
  });

  it('a stream is refused with a reason before anything is sent', async () => {
    const before = asked.length;
    const error = await rejection(api.http.get('/pdf', { responseType: 'stream' as never }));
    expect(error).toBeInstanceOf(ServiceRequestError);
    expect((error as Error).message).toContain(
      "responseType must be 'json', 'text' or 'bytes'; to stream, use a client of your own",
    );
    expect(asked).toHaveLength(before);
  });

  it('doubles return bytes unchanged', async () => {
    const { module } = await startStubbed({ http: { get: () => PDF, request: () => CSV } });
    const stubbed = module.get(ServiceHttpService);
    expect(await stubbed.get('/pdf', { responseType: 'bytes' })).toStrictEqual(PDF);
    expect(await stubbed.post('/csv', {}, { responseType: 'text' })).toBe(CSV);
    await module.close();
  });
});

interface Bank {
  bank_identifier: string;
  name: string;
}

const zodBanks = z.array(z.object({ bank_identifier: z.string(), name: z.string() }));
const valibotBanks = v.array(v.object({ bank_identifier: v.string(), name: v.string() }));

/** Compiles only where the type of the value is the given one: not any, not wider, not narrower. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const isTyped = <Expected>() => ({ by: <Actual>(_: Promise<Actual>, same: Same<Actual, Expected>) => same });

/** Code as a host application has it, only for `npm run typecheck`. No test calls it. */
export function types(banks: BanksService, customers: CustomersService, http: ServiceHttpService): void {
  const own = null as unknown as ResponseSchema<Bank>;
  // As arktype's: a function that returns the value or its errors, and a schema.
  const callable = null as unknown as ResponseSchema<Bank> & ((data: unknown) => Bank | Error);
  const transforming = z.object({ at: z.string().transform((text) => new Date(text)) });
  isTyped<Bank[]>().by(banks.list({ parse: zodBanks }), true);
  isTyped<Bank[]>().by(banks.list({ parse: valibotBanks, params: { country: 'ae' } }), true);
  isTyped<Bank>().by(banks.list({ parse: own }), true);
  isTyped<Bank>().by(banks.list({ parse: callable }), true);
  isTyped<number>().by(banks.list({ parse: () => 1 }), true);
  isTyped<number>().by(banks.list({ parse: async () => 1 }), true);
  isTyped<Bank[]>().by(banks.list({ parse: (body) => zodBanks.parse(body) }), true);
  isTyped<{ at: Date }>().by(customers.create({ app_user_id: 'u-1' }, { parse: transforming }), true);
  isTyped<Bank | undefined>().by(http.get('/a', { parse: z.custom<Bank>().optional() }), true);
  for (const send of ['post', 'put', 'patch'] as const) {
    isTyped<Bank>().by(http[send]('/a', {}, { parse: own }), true);
    isTyped<unknown>().by(http[send]('/a', {}), true);
    isTyped<Bank>().by(http[send]<Bank>('/a', {}, { timeout: 1 }), true);
  }
  isTyped<Bank>().by(http.delete('/a', { parse: own, data: {} }), true);
  isTyped<Bank>().by(http.request('/a', { parse: own, method: 'PUT' }), true);
  isTyped<Bank>().by(http.request({ url: '/a', parse: own }), true);
  isTyped<unknown>().by(http.get('/a', { parse: own as ResponseParser }), true);
  isTyped<HttpResponse<Bank>>().by(http.response('/a', { parse: own, method: 'PUT' }), true);
  isTyped<HttpResponse<Bank>>().by(http.response({ url: '/a', parse: own }), true);
  isTyped<HttpResponse<Bank>>().by(http.response<Bank>('/a'), true);
  isTyped<HttpResponse>().by(http.response({ url: '/a' }), true);
  isTyped<string>().by(http.get<string>('/a', { responseType: 'text', timeout: 1 }), true);
  isTyped<number>().by(http.get('/a', { responseType: 'text', parse: (body) => Number(body) }), true);
  isTyped<HttpResponse<Uint8Array>>().by(http.response<Uint8Array>('/a', { responseType: 'bytes' }), true);
  // With responseType, a function may take what the body is.
  const ofText = (text: string): Bank => ({ bank_identifier: text, name: text });
  const parseLossless = (text: string, reviver?: () => unknown): unknown => JSON.parse(text, reviver);
  const ofBytes = async (body: Uint8Array): Promise<number> => body.length;
  isTyped<Bank>().by(http.get('/a', { responseType: 'text', parse: ofText }), true);
  isTyped<Bank>().by(http.request({ url: '/a', responseType: 'text', parse: ofText }), true);
  isTyped<Bank>().by(banks.list({ responseType: 'text', parse: ofText }), true);
  isTyped<HttpResponse<number>>().by(http.response('/a', { responseType: 'bytes', parse: ofBytes }), true);
  isTyped<unknown>().by(http.post('/a', {}, { responseType: 'text', parse: parseLossless }), true);
  const type = 'text' as ResponseType;
  isTyped<number>().by(http.get('/a', { responseType: type, parse: (body) => Number(body) }), true);
  // Without the option, nothing changes.
  isTyped<BanksBody>().by(banks.list(), true);
  isTyped<string[]>().by(banks.list<string[]>({ timeout: 1 }), true);
  isTyped<Customer | undefined>().by(customers.create({ app_user_id: 'u-1' }), true);
  isTyped<Bank>().by(http.request<Bank>({ url: '/a' }), true);
  isTyped<unknown>().by(banks.list(undefined as HttpCallOptions | undefined), true);
  // A host's own wrapper.
  const get = <T>(path: string, options?: HttpCallOptions) => http.get<T>(path, options);
  isTyped<Bank>().by(get<Bank>('/a', { timeout: 1 }), true);
  const generic = (parse: ResponseParser) => banks.list({ parse });
  isTyped<unknown>().by(generic(own), true);
  isTyped<Bank>().by(Promise.resolve({} as string), false);
  // @ts-expect-error not a parser
  void banks.list({ parse: 'x' });
  // @ts-expect-error an answer may be anything: nothing may be assumed of what a parser gets
  void banks.list({ parse: (body: Bank[]) => body });
  // @ts-expect-error the body is JSON
  void http.get('/a', { parse: ofText });
  // @ts-expect-error the body is text
  void http.get('/a', { responseType: 'text', parse: ofBytes });
  // @ts-expect-error the body may be bytes
  void http.get('/a', { responseType: type, parse: ofText });
  // @ts-expect-error not a type
  void http.get('/a', { responseType: 'stream' });
  // @ts-expect-error misspelt
  void http.get('/a', { responseType: 'text', timout: 1 });
  // @ts-expect-error misspelt
  void http.get('/a', { parse: own, timout: 1 });
  // @ts-expect-error the schema says otherwise
  const wrong: Promise<string> = banks.list({ parse: zodBanks });
  void wrong;
}

describe('parse', () => {
  it.each<[string, ResponseParser<Bank[]>]>([
    ['zod', zodBanks],
    ['valibot', valibotBanks],
    ['a function over zod', (body) => zodBanks.parse(body)],
    ['a function over valibot', async (body) => v.parse(valibotBanks, body)],
  ])('with %s returns the banks, and names the place in the body that does not fit', async (_, parse) => {
    const banks = await oauth.banks.list({ parse });
    expect(banks).toHaveLength(10);
    simulator.clearRequests();
    const json = [...banks.slice(0, 3), { bank_identifier: 4_242_424_242, name: 'private-name' }];
    const error = await errorOf({ status: 200, json }, () => oauth.banks.list({ parse }));
    expect(error).toBeInstanceOf(ServiceApiError);
    expect(error).toMatchObject({
      code: 'invalid_response',
      message: 'GET /banks/v1: HTTP 200, but parse refused the body: [3].bank_identifier.',
      path: '/banks/v1',
    });
    expect(everyForm(error)).not.toMatch(/4.?242|private|Alpha/);
    expect(arrived()).toBe(1);
  });

  const daily = { daily: z.number() };
  it.each<[string, ResponseParser]>([
    ['zod', z.object({ limits: z.record(z.string(), z.object(daily)) })],
    ['valibot', v.object({ limits: v.record(v.string(), v.object({ daily: v.number() })) })],
  ])('does not name the keys of a record of %s, which may be personal data', async (_, parse) => {
    const json = { limits: { 'jane.doe@example.com': { daily: 'private' }, AE070331234567890123456: {} } };
    const error = await errorOf({ status: 200, json }, () => http.get('/limits/v1', { parse }));
    expect(error.message).toBe('GET /limits/v1: HTTP 200, but parse refused the body: limits[…].daily.');
    expect(everyForm(error)).not.toMatch(/jane|AE07|private/);
  });

  it('of customers.create says that the customer was created if the body does not fit', async () => {
    const { customers } = oauth;
    const parse = z.object({ customer_id: z.string() });
    const { customer_id } = await customers.create({ app_user_id: 'u-1' }, { parse });
    expect(customer_id).toMatch(/./);
    fail({ status: 201, body: '' }, 2);
    const refused = rejection(customers.create({ app_user_id: 'u-2' }, { parse }));
    const message =
      'POST /customers/v1: HTTP 201, but parse refused the missing body. By its status the call was executed.';
    expect(await refused).toMatchObject({ code: 'invalid_response', message });
    const orNothing = parse.optional();
    expect(await customers.create({ app_user_id: 'u-3' }, { parse: orNothing })).toBeUndefined();
  });

  it('checks the response of a double like that of the service', async () => {
    const { module } = await startStubbed({
      banks: { list: () => [{ bank_identifier: 7, name: 'private' }] },
      customers: { create: () => undefined },
    });
    const banks = module.get(BanksService);
    expect(await banks.list({ parse: (body) => Array.isArray(body) })).toBe(true);
    const error = await rejection(banks.list({ parse: zodBanks }));
    expect(error).toMatchObject({
      code: 'invalid_response',
      message: 'GET /banks/v1: HTTP 200, but parse refused the body: [0].bank_identifier.',
      method: 'GET',
      path: '/banks/v1',
    });
    expect(everyForm(error)).not.toContain('private');
    const parse = z.object({ customer_id: z.string() });
    const created = rejection(module.get(CustomersService).create({ app_user_id: 'u-1' }, { parse }));
    expect(await created).toMatchObject({ code: 'invalid_response', status: 204, method: 'POST' });
    await module.close();
  });
});

const DOUBT = ' The request may have been executed all the same.';
const UNAVAILABLE = 'The service cannot be reached at the moment.';
const FAILED = 'The service failed to answer this call.';
const API = /^\/(banks|customers)\/v1$/;

/** One row for each kind; test/unit/http/errors.spec.ts has the whole table. */
describe.each<Platform>(['express', 'fastify'])('ServiceExceptionFilter on %s', (platform) => {
  let host: Host;
  const hostLogger = new CollectingLogger();
  const start = (settings: object, filter?: ServiceExceptionFilter) => {
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
    return startHost(ServiceModule.forRoot({ ...options, http: settings }), platform, hostLogger, filter);
  };

  beforeAll(async () => {
    host = await start({ retries: 0, timeout: 1_500 });
  });
  afterAll(() => host.close());

  const customer = { app_user_id: 'u-1' };
  const session = { customer_id: 'c-9', permissions: ['identity'] };
  const own = (status: number, headers = {}): FaultRule => ({
    path: API,
    fault: { status, json: { status: 'X_1', message: 'said by the service' }, headers },
  });
  const lost: FaultRule = { path: API, fault: 'reset' };
  const noToken: FaultRule = {
    face: 'token',
    times: 3,
    fault: { status: 400, json: { error: 'invalid_scope' } },
  };

  type Row = [string, FaultRule, string, object | undefined, number, string, string];
  it.each<Row>([
    ['a 409 of the service', own(409), '/customers', customer, 409, 'said by the service', 'api_error'],
    [
      'a POST that the service may have executed',
      own(500),
      '/customers',
      customer,
      502,
      FAILED + DOUBT,
      'api_error',
    ],
    ['a POST without a response', lost, '/customers', customer, 502, FAILED + DOUBT, 'connection_reset'],
    ['a refused token', noToken, '/link-session', session, 503, UNAVAILABLE, 'token_refused'],
    ['a 403 that no caller can correct', own(403), '/banks', undefined, 502, FAILED, 'api_error'],
  ])('answers its caller after %s', async (_, rule, path, input, statusCode, message, code) => {
    hostLogger.lines.length = 0;
    simulator.fail(rule);
    const { status, body } = await host.request(input ? 'POST' : 'GET', path, input);
    const serviceStatus = statusCode === 409 && { serviceStatus: 'X_1' };
    expect({ status, body }).toEqual({
      status: statusCode,
      body: { statusCode, message, code, ...serviceStatus },
    });
    const logged = hostLogger.lines.filter((line) => /^5\d\d: /.test(String(line)));
    expect(logged).toHaveLength(statusCode < 500 ? 0 : 1);
    if (path === '/banks') expect(logged[0]).toMatch(/^502: api_error: GET \/banks\/v1: HTTP 403.*check /i);
  });

  it('answers 503 after a 429, with Retry-After', async () => {
    simulator.fail(own(429, { 'retry-after': '17' }));
    const { status, headers, body } = await host.request('GET', '/banks');
    const message = 'The service is busy at the moment.';
    expect({ status, body }).toEqual({ status, body: { statusCode: 503, message, code: 'api_error' } });
    expect([status, headers.get('retry-after')]).toEqual([503, '17']);
  });

  it('passes on a 403 or 429 whose error code is in passOn', async () => {
    const { request, close } = await start({ retries: 0 }, new ServiceExceptionFilter({ passOn: ['X_1'] }));
    const body = { message: 'said by the service', code: 'api_error', serviceStatus: 'X_1' };
    for (const [status, retryAfter] of [
      [403, null],
      [429, '17'],
    ] as const) {
      simulator.fail(own(status, { 'retry-after': '17' }));
      const answer = await request('POST', '/customers', customer);
      expect([answer.status, answer.body]).toEqual([status, { statusCode: status, ...body }]);
      expect(answer.headers.get('retry-after')).toBe(retryAfter);
    }
    await close();
  });

  it("passes on the named fields of the service's body wherever its message is passed on, and no others", async () => {
    const filter = new ServiceExceptionFilter({
      passOn: ['X_1'],
      fields: ['status_detail', 'limit', 'none'],
    });
    const { request, close } = await start({ retries: 0 }, filter);
    const said = { status: 'X_1', message: 'said by the service', metadata: { limit: 1 } };
    const json = { ...said, status_detail: 'Consent\nexpired', limit: 2.5, app_user_id: 'u-1' };
    for (const [status, isPassedOn] of [
      [409, true],
      [403, true],
      [500, false],
      [418, false],
    ] as const) {
      simulator.fail({ path: API, fault: { status, json } });
      const { body } = await request('POST', '/customers', customer);
      expect(body).toMatchObject({ message: isPassedOn ? said.message : expect.stringContaining(FAILED) });
      const fields = isPassedOn ? { status_detail: 'Consent expired', limit: 2.5 } : undefined;
      expect((body as { fields?: unknown }).fields).toEqual(fields);
    }
    await close();
  });

  it('says that the outcome is unknown after a lost attempt, even if the next one gets 429', async () => {
    const { app, request, close } = await start({ retries: 1 });
    const { axiosRef } = app.get(ServiceHttpService);
    axiosRef.interceptors.request.use((config) => Object.assign(config, { idempotencyKey: true }));
    simulator.fail(lost);
    simulator.fail(own(429, { 'retry-after': '9' }));
    const answer = await request('POST', '/customers', customer);
    await close();
    expect(arrived()).toBe(2);
    const body = { statusCode: 502, message: FAILED + DOUBT, code: 'api_error' };
    expect(answer).toMatchObject({ status: 502, body });
    expect(answer.headers.get('retry-after')).toBeNull();
  });

  it('ends an answer that has already begun', async () => {
    const response = await fetch(`${await host.app.getUrl()}/begun`, { signal: AbortSignal.timeout(3_000) });
    expect(await response.text()).toBe('begun');
  });

  it("answers 400 for input that the module refuses, as the application's ValidationPipe does", async () => {
    const input = { customer_id: '../x', permissions: [] };
    const { status, body } = await host.request('POST', '/link-session', input);
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toMatch(/customer_id/);
  });
});

describe('An inbound request passed on as a body', () => {
  @Controller()
  class UploadController {
    constructor(private readonly http: ServiceHttpService) {}

    @Post('upload')
    upload(@Req() inbound: IncomingMessage): Promise<unknown> {
      return this.http.post('/documents/v1', inbound, { headers: { 'content-type': 'application/pdf' } });
    }

    @Post('upload-by-axios')
    async uploadByAxios(@Req() inbound: IncomingMessage): Promise<unknown> {
      return (await this.http.axiosRef.post<unknown>('/documents/v1', inbound)).data;
    }
  }

  let app: INestApplication;
  beforeAll(async () => {
    @Module({
      imports: [ServiceModule.forRoot(simulator.moduleOptions({ authentication: 'mtls' }))],
      controllers: [UploadController],
    })
    class Host {}
    const testing = await Test.createTestingModule({ imports: [Host] }).compile();
    app = testing.createNestApplication({ logger: false });
    app.useGlobalFilters(new ServiceExceptionFilter());
    await app.listen(0, '127.0.0.1');
  });
  afterAll(() => app.close());

  it.each(['upload', 'upload-by-axios'])(
    'is refused (%s): the client gets a 500, over a connection that stays open',
    async (path) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const url = `${await app.getUrl()}/${path}`;
      const upload = () =>
        new Promise<{ status?: number; body: string; reused: boolean; port?: number }>((resolve, reject) => {
          const headers = { 'content-type': 'application/pdf' };
          const outgoing = httpRequest(url, { method: 'POST', agent, headers }, (response) => {
            const port = response.socket.localPort;
            let body = '';
            response.setEncoding('utf8').on('data', (text: string) => (body += text));
            response.on('end', () =>
              resolve({ status: response.statusCode, body, reused: outgoing.reusedSocket, port }),
            );
            response.on('error', reject);
          });
          outgoing.on('error', reject).end(Buffer.alloc(200_000, 'x'));
        });
      const first = await upload();
      expect(first).toMatchObject({ status: 500, body: expect.stringContaining('invalid_request') });
      expect(await upload()).toMatchObject({ status: 500, reused: true, port: first.port });
      expect(arrived()).toBe(0);
      agent.destroy();
    },
  );
});
