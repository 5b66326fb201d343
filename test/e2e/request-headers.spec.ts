import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { ServiceConfigurationError, ServiceModule, type ServiceModuleOptions } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startHost } from '../helpers/start-host.js';
import { modulesOfBlock, rejection, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

const manifest = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
const OWN = `nestjs-service/${(JSON.parse(manifest) as { version: string }).version}`;

describe('User-Agent', () => {
  let simulator: ServiceSimulator;
  let options: ServiceModuleOptions;
  const { start, setVariables } = modulesOfBlock();

  beforeAll(async () => {
    simulator = await startSimulator();
    options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
  });
  afterEach(() => {
    simulator.clearRequests();
    simulator.clearFaults();
  });
  afterAll(() => simulator.stop());

  const sent = () =>
    simulator.requests.map(({ method, path, headers }) => [method, path, headers['user-agent']]);

  it('goes to the token endpoint and with each attempt of a call', async () => {
    const { module, banks } = await startModule(options);
    simulator.fail({ path: '/banks/v1', fault: { status: 503, headers: { 'retry-after': '0' } } });
    simulator.fail({ path: '/banks/v1', fault: { status: 401 } });
    await banks.list();
    expect(sent()).toEqual([
      ['POST', '/oauth2/token', OWN],
      ['GET', '/banks/v1', OWN],
      ['GET', '/banks/v1', OWN],
      ['POST', '/oauth2/token', OWN],
      ['GET', '/banks/v1', OWN],
    ]);
    await module.close();
  });

  it("follows the application's own, from code or from its variable, in the start-up check too", async () => {
    const inCode = { ...options, startupCheck: 'fail' as const };
    for (const own of ['acme-banking/2.1 (team@acme.example; (eu) \\(1\\))', 'acme']) {
      setVariables({ SERVICE_HTTP_USER_AGENT: ` ${own} ` });
      await start({ imports: [ServiceModule.forRoot(inCode)] });
      await start({ imports: [ServiceModule.forRoot({ ...inCode, http: { userAgent: own } })] });
      expect(sent()).toHaveLength(4);
      expect(new Set(sent().map(([, , agent]) => agent))).toEqual(new Set([`${own} ${OWN}`]));
      simulator.clearRequests();
    }
  });

  it("is the call's own where that has one", async () => {
    const { module, banks, http } = await startModule({ ...options, http: { userAgent: 'acme/1' } });
    await banks.list({ headers: { 'User-Agent': 'job/7' } });
    await http.axiosRef.get('/banks/v1', { headers: { 'user-agent': 'job/8' } });
    http.axiosRef.defaults.headers.common['User-Agent'] = 'job/9';
    await http.get('/banks/v1');
    expect(sent().map(([, , agent]) => agent)).toEqual([`acme/1 ${OWN}`, 'job/7', 'job/8', 'job/9']);
    await module.close();
  });

  describe('beside the 403 page of a firewall', () => {
    const page = { status: 403, body: '<html>Denied</html>', headers: { 'content-type': 'text/html' } };

    it.each(['oauth', 'mtls'] as const)('%s: its hint names one', async (authentication) => {
      const api = await startModule(simulator.moduleOptions({ environment: 'production', authentication }));
      simulator.fail({ path: '/banks/v1', fault: page });
      expect(await rejection(api.banks.list())).toMatchObject({
        message: expect.stringMatching(/a proxy or firewall before it/),
        hint: expect.stringMatching(/firewall.*ask who runs it.*tls\.certificate/),
      });
      await api.module.close();
    });

    it.each(['oauth', 'mtls'] as const)('%s: the start-up check names one, and sends it', async (mode) => {
      simulator.fail({ path: '/banks/v1', times: 9, fault: page });
      const given = simulator.moduleOptions({ environment: 'production', authentication: mode });
      const error = await rejection(startModule({ ...given, startupCheck: 'fail' }));
      expect(error).toMatchObject({
        faults: [
          {
            option: expect.stringMatching(/^urls\./),
            message: expect.stringMatching(/a proxy or firewall before/),
          },
        ],
      });
      expect(sent().length).toBeGreaterThan(0);
      expect(new Set(sent().map(([, , agent]) => agent))).toEqual(new Set([OWN]));
    });

    it('of the token endpoint: its error names one', async () => {
      const api = await startModule(options);
      simulator.fail({ face: 'token', times: 9, fault: page });
      expect(await rejection(api.banks.list())).toMatchObject({
        code: 'token_unavailable',
        hint: expect.stringMatching(/firewall.*ask who runs it.*oauth\.mtls/),
      });
      await api.module.close();
    });
  });

  it.each([
    'acme/2.1\r\nX-Injected: 1',
    'acme/2.1\n',
    'acme, Inc.',
    '(only a comment)',
    'acme/2/1',
    'bänk/1',
    '',
    ' ',
    7,
    'a'.repeat(257),
  ])('what is none is refused at start: row %#', async (userAgent) => {
    const given = { ...options, http: { userAgent: userAgent as string } };
    const error = await rejection(startModule(given));
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect((error as ServiceConfigurationError).faults).toEqual([
      {
        option: 'http.userAgent',
        variable: 'SERVICE_HTTP_USER_AGENT',
        message: expect.stringMatching(/^must be product tokens .* RFC 9110, 10\.1\.5/),
      },
    ]);
  });
});

describe('http.requestId', () => {
  let simulator: ServiceSimulator;
  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterEach(() => {
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(() => simulator.stop());

  const idsAt = (header = 'x-correlation-id') => simulator.apiRequests.map(({ headers }) => headers[header]);
  const start = (requestId: () => string | undefined, http = {}, logger = new CollectingLogger()) =>
    startModule(
      { ...simulator.moduleOptions({ authentication: 'oauth' }), http: { requestId, ...http } },
      logger,
    );

  it('is the same for all attempts, and another for the next call', async () => {
    let count = 0;
    const api = await start(() => `r-${(count += 1)}`);
    simulator.fail({ path: /banks/, fault: { status: 503 } });
    simulator.fail({ path: /banks/, fault: { status: 401 } });
    await api.banks.list();
    await api.customers.create({ app_user_id: randomUUID() });
    expect(idsAt()).toEqual(['r-1', 'r-1', 'r-1', 'r-2']);
    expect(simulator.tokenRequests.every(({ headers }) => !('x-correlation-id' in headers))).toBe(true);
    await api.module.close();
  });

  it("is of the caller's context, also where many wait for one token", async () => {
    const context = new AsyncLocalStorage<string>();
    const api = await start(() => context.getStore());
    await Promise.all(
      ['a', 'b', 'c'].map((id) => context.run(id, () => api.http.get(`/${id}/v1`).catch(() => 0))),
    );
    const sent = simulator.apiRequests.map(
      ({ path, headers }) => `${path} ${String(headers['x-correlation-id'])}`,
    );
    expect(sent.sort()).toEqual(['/a/v1 a', '/b/v1 b', '/c/v1 c']);
    await api.module.close();
  });

  it("goes in http.correlationIdHeader; a header of the call's own is sent instead", async () => {
    const api = await start(() => 'made', { correlationIdHeader: 'X-Request-ID' });
    await api.banks.list();
    await api.banks.list({ headers: { 'X-REQUEST-ID': 'own' } });
    expect(idsAt('x-request-id')).toEqual(['made', 'own']);
    await api.module.close();
  });

  it('is the correlationId of errors where the answer has none, or there is no answer', async () => {
    const api = await start(() => 'made-1');
    const failure = (headers = {}) => ({ path: /banks/, fault: { status: 404, headers } });
    simulator.fail(failure());
    expect(await rejection(api.banks.list())).toMatchObject({ correlationId: 'made-1' });
    simulator.fail(failure({ 'x-correlation-id': 'of-the-service' }));
    expect(await rejection(api.banks.list())).toMatchObject({ correlationId: 'of-the-service' });
    simulator.fail({ path: /banks/, fault: { status: 302, headers: { location: '/x' } } });
    expect(await rejection(api.banks.list())).toMatchObject({ kind: 'redirect', correlationId: 'made-1' });
    simulator.fail({ path: /customers/, times: 2, fault: 'reset' });
    const create = (headers = {}) => rejection(api.customers.create({ app_user_id: 'u' }, { headers }));
    expect(await create()).toMatchObject({ kind: 'reset', outcomeUnknown: true, correlationId: 'made-1' });
    const { accessToken } = await api.auth.getApiToken();
    const error = await create({ 'x-correlation-id': `own ${accessToken}` });
    expect(error).toMatchObject({ correlationId: expect.stringMatching(/^\[not shown: /) });
    await api.module.close();
  });

  it('is in the line that the filter logs', async () => {
    const logger = new CollectingLogger();
    const options = simulator.moduleOptions({ authentication: 'oauth' });
    const http = { requestId: () => 'made-2' };
    const host = await startHost(ServiceModule.forRoot({ ...options, http }), 'express', logger);
    simulator.fail({ path: /customers/, fault: 'reset' });
    await host.request('POST', '/customers', { app_user_id: randomUUID() });
    const line = /^502: connection_reset: .*; it may have been carried out; correlation id made-2$/;
    expect(logger.lines).toContainEqual(expect.stringMatching(line));
    await host.close();
  });

  it('is in the log line of an attempt that another follows, or the id of its answer', async () => {
    const logger = new CollectingLogger();
    const api = await start(() => 'made-3', {}, logger);
    const { accessToken } = await api.auth.getApiToken();
    const answered = { 'x-correlation-id': `of-the-service ${accessToken}` };
    simulator.fail({ path: /banks/, fault: { status: 503, headers: { 'x-request-id': 'svc-1' } } });
    simulator.fail({ path: /banks/, fault: 'reset-after-headers' });
    await api.banks.list();
    simulator.fail({ path: /banks/, fault: { status: 503, headers: answered } });
    await api.banks.list();
    expect(logger.lines.filter((line) => /another/.test(String(line)))).toEqual([
      'GET /banks/v1: 503, correlation id svc-1; another attempt follows',
      'GET /banks/v1: reset, correlation id made-3; another attempt follows',
      expect.stringMatching(/^GET \/banks\/v1: 503, correlation id \[not shown: [^\]]+\]; another/),
    ]);
    await api.module.close();
  });

  it.each<[string, () => unknown]>([
    [
      'an error that it throws',
      () => {
        throw new Error('private');
      },
    ],
    ['a line break', () => 'a\r\nx-evil: 1'],
    ['an empty text', () => ''],
    ['too much', () => 'x'.repeat(129)],
    ['a number', () => 7],
    ['nothing, outside of a request', () => undefined],
    ['a promise that rejects', () => Promise.reject(new Error('private'))],
  ])('with %s, the call is sent without an id', async (_, requestId) => {
    const api = await start(requestId as () => string);
    await Promise.all([api.banks.list(), api.customers.create({ app_user_id: randomUUID() })]);
    expect(idsAt()).toEqual([undefined, undefined]);
    await api.module.close();
  });

  it('has to be a function', async () => {
    const options = { ...simulator.moduleOptions(), http: { requestId: 'r-1' as never } };
    const error = await rejection(startModule(options));
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect(error).toMatchObject({ faults: [{ option: 'http.requestId', message: 'must be a function' }] });
  });
});
