import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceConfigurationError, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startHost } from '../helpers/start-host.js';
import { rejection, startModule } from '../helpers/start-module.js';

describe('http.requestId', () => {
  let simulator: ServiceSimulator;
  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
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
    await api.customers.create({ app_user_id: 'u-1' });
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
    await host.request('POST', '/customers', { app_user_id: 'u-1' });
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
    simulator.fail({ path: /banks/, fault: 'reset' });
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

  it('a function that fails stops no call, and is warned of once', async () => {
    const logger = new CollectingLogger();
    const failing = (): string => {
      throw new Error('private');
    };
    const api = await start(failing, {}, logger);
    await Promise.all([api.banks.list(), api.customers.create({ app_user_id: 'u-1' })]);
    expect(idsAt()).toEqual([undefined, undefined]);
    const warnings = logger.lines.filter((line) => String(line).includes('requestId'));
    expect(warnings).toEqual(['http.requestId threw an error: calls are sent without a request id.']);
    await api.module.close();
  });

  it('has to be a function', async () => {
    const options = { ...simulator.moduleOptions(), http: { requestId: 'r-1' as never } };
    const error = await rejection(startModule(options));
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect(error).toMatchObject({ faults: [{ option: 'http.requestId', message: 'must be a function' }] });
  });
});
