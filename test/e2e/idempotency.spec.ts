import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { answerOf, ServiceHttpService, ServiceModule, type ServiceHttpOptions } from 'nestjs-service';
import { serviceErrors, type ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startHost } from '../helpers/start-host.js';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Over real TLS; the server counts the requests. */
describe('a call that may be sent again', () => {
  let simulator: ServiceSimulator;
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(() => simulator.stop());

  const optionsWith = (http: ServiceHttpOptions, authentication: 'mtls' | 'oauth' = 'mtls') => ({
    ...simulator.moduleOptions({ authentication }),
    http,
  });
  async function start(http: ServiceHttpOptions = {}, authentication?: 'oauth'): Promise<StartedModule> {
    const started = await startModule(optionsWith(http, authentication));
    closing.push(() => started.module.close());
    return started;
  }
  const fail = (fault: SimulatorFault, times = 1) => simulator.fail({ path: '/customers/v1', times, fault });
  const create = ({ customers }: StartedModule, idempotencyKey: true | string = true) =>
    customers.create({ app_user_id: randomUUID() }, { idempotencyKey });
  const keys = () => simulator.apiRequests.map(({ headers }) => headers['idempotency-key']);

  it.each<[string, SimulatorFault, ServiceHttpOptions]>([
    ['a server that hangs', 'hang', { attemptTimeout: 400 }],
    ['a body that does not end', { trickleMs: 20 }, { attemptTimeout: 400 }],
    ['a reset after the request', 'reset', {}],
    ['503', { status: 503 }, {}],
  ])('a POST is tried again after %s, with one key for all attempts', async (_, fault, http) => {
    const api = await start({ timeout: 20_000, ...http });
    fail(fault, 2);
    expect(await create(api)).toMatchObject({ app_user_id: expect.any(String) });
    const [key] = keys();
    expect(key).toMatch(UUID);
    expect(keys()).toEqual([key, key, key]);
    await create(api);
    expect(keys()[3]).toMatch(UUID);
    expect(keys()[3]).not.toBe(key);
  });

  it('goes with PATCH too, and with the calls alone that ask for it', async () => {
    const { http, customers } = await start();
    await rejection(http.patch('/customers/v1', {}, { idempotencyKey: true }));
    await customers.create({ app_user_id: randomUUID() });
    await http.get('/banks/v1');
    expect(keys()).toEqual([expect.stringMatching(UUID), undefined, undefined]);
  });

  it("is the caller's own if the call names it, in http.idempotencyHeader", async () => {
    const api = await start({ idempotencyHeader: 'X-Key' });
    fail({ status: 503 });
    await create(api, 'of-the-caller');
    expect(simulator.apiRequests.map(({ headers }) => headers['x-key'])).toEqual([
      'of-the-caller',
      'of-the-caller',
    ]);
  });

  it('a header of that name is sent, and changes nothing; beside the option it has to be the same', async () => {
    const { customers } = await start();
    const customer = { app_user_id: randomUUID() };
    fail({ status: 503 });
    const headers = { 'Idempotency-Key': 'mine' };
    const error = await rejection(customers.create(customer, { headers }));
    expect(error).toMatchObject({ status: 503, outcomeUnknown: true, idempotencyKey: undefined });
    await customers.create(customer, { headers, idempotencyKey: 'mine' });
    expect(keys()).toEqual(['mine', 'mine']);
    for (const idempotencyKey of [true, 'other'] as const) {
      const refused = await rejection(customers.create(customer, { headers, idempotencyKey }));
      expect(refused).toMatchObject({ faults: [{ property: 'header idempotency-key' }] });
      expect(answerOf(refused)).toMatchObject({ status: 500 });
    }
    expect(keys()).toHaveLength(2);
  });

  it.each<[string, string, object]>([
    ['another method', 'PUT', { idempotencyKey: 'k-1' }],
    ['a GET', 'GET', { idempotencyKey: true }],
    ['a call that only reads', 'POST', { idempotencyKey: 'k-1', readOnly: true }],
    ['an empty key', 'POST', { idempotencyKey: '' }],
    ['a space', 'POST', { idempotencyKey: 'a b' }],
    ['256 characters', 'POST', { idempotencyKey: 'k'.repeat(256) }],
    ['a number', 'POST', { idempotencyKey: 7 }],
  ])('is refused for %s, as a fault of the code', async (_, method, options) => {
    const { http } = await start();
    const error = await rejection(http.request('/customers/v1', { method, ...options }));
    expect(error).toMatchObject({ faults: [{ property: 'idempotencyKey' }] });
    expect(answerOf(error)).toMatchObject({ status: 500 });
    expect(simulator.apiRequests).toEqual([]);
  });

  it.each<[string, SimulatorFault]>([
    ['a reset after the request', 'reset'],
    ['503', { status: 503 }],
  ])('readOnly: a POST is tried again after %s, and is never in doubt', async (_, fault) => {
    const { http } = await start();
    simulator.fail({ path: '/search/v1', times: 9, fault });
    const error = await rejection(http.post('/search/v1', {}, { readOnly: true }));
    expect(error).toMatchObject({ outcomeUnknown: false });
    expect(simulator.apiRequests).toHaveLength(3);
    expect(keys()).toEqual([undefined, undefined, undefined]);
  });

  it('429 DUPLICATED_REQUEST: a change without a key is not tried again, and was not done', async () => {
    const api = await start();
    const json = { status: 'DUPLICATED_REQUEST', message: 'wait' };
    const headers = { 'retry-after': '0' };
    fail({ status: 429, json, headers });
    const error = await rejection(api.customers.create({ app_user_id: randomUUID() }));
    expect(error).toMatchObject({ status: 429, outcomeUnknown: false });
    expect(keys()).toHaveLength(1);
    fail({ status: 429, json, headers });
    await create(api);
    fail({ status: 429, json: { ...json, status: 'TOO_MANY_REQUESTS' }, headers });
    await api.customers.create({ app_user_id: randomUUID() });
    expect(keys()).toHaveLength(5);
  });

  it('survives a replay with another token', async () => {
    const api = await start({}, 'oauth');
    await create(api);
    simulator.revokeTokens();
    await create(api);
    const [, refused, replayed] = keys();
    expect(simulator.apiRequests.map(({ status }) => status)).toEqual([201, 401, 201]);
    expect(replayed).toBe(refused);
  });

  it.each<[string, SimulatorFault, object]>([
    ['reset', 'reset', { kind: 'reset', outcomeUnknown: true }],
    ['503', { status: 503 }, { status: 503 }],
    ['a page', 'html', { code: 'invalid_response' }],
    [
      'a redirect',
      { status: 302, headers: { location: '/elsewhere' } },
      { kind: 'redirect', outcomeUnknown: true },
    ],
  ])('is in the error of a call that may have been done: %s', async (_, fault, expected) => {
    const api = await start();
    fail(fault, 9);
    const error = await rejection(create(api));
    expect(error).toMatchObject({ ...expected, idempotencyKey: keys()[0] });
    simulator.clearFaults();
    // The same call again, later.
    const { idempotencyKey } = error as { idempotencyKey: string };
    await create(api, idempotencyKey);
    expect(keys().at(-1)).toBe(idempotencyKey);
  });

  it('is in no error of a call that was surely not done', async () => {
    const api = await start();
    fail({ status: 400 });
    const refused = await rejection(create(api));
    expect(refused).toMatchObject({ status: 400 });
    expect(JSON.stringify(refused)).not.toContain('idempotencyKey');
  });

  it.each(['express', 'fastify'] as const)(
    'is not shown to the callers of a host on %s',
    async (platform) => {
      const logger = new CollectingLogger();
      const host = await startHost(ServiceModule.forRoot(optionsWith({})), platform, logger);
      const { axiosRef } = host.app.get(ServiceHttpService);
      axiosRef.interceptors.request.use((config) => Object.assign(config, { idempotencyKey: true }));
      for (const fault of ['reset', { status: 503 }] as SimulatorFault[]) {
        simulator.clearRequests();
        fail(fault, 9);
        const { body } = await host.request('POST', '/customers', { app_user_id: randomUUID() });
        expect(keys()[0]).toMatch(UUID);
        expect(JSON.stringify([body, logger.lines])).not.toContain(keys()[0]);
        simulator.clearFaults();
      }
      await host.close();
    },
  );

  it('can be in the errors of doubles', () => {
    const call = { method: 'POST', path: '/customers/v1', idempotencyKey: 'k-1' };
    const key = { idempotencyKey: 'k-1' };
    expect(serviceErrors.connection('timeout', call)).toMatchObject({ ...key, outcomeUnknown: true });
    expect(serviceErrors.connection('redirect', call)).toMatchObject(key);
    expect(serviceErrors.api(503, call)).toMatchObject({ ...key, retryable: true });
    expect(serviceErrors.invalidResponse(call)).toMatchObject(key);
    expect(serviceErrors.connection('refused', call).idempotencyKey).toBeUndefined();
    expect(serviceErrors.api(409, call).idempotencyKey).toBeUndefined();
  });

  it.each([
    ['authorization', /a header's name/],
    ['content-length', /a header's name/],
    ['two words', /a header's name/],
  ])('cannot be %s', async (idempotencyHeader, message) => {
    expect(await rejection(startModule(optionsWith({ idempotencyHeader })))).toMatchObject({
      faults: [
        {
          option: 'http.idempotencyHeader',
          variable: 'SERVICE_HTTP_IDEMPOTENCY_HEADER',
          message: expect.stringMatching(message),
        },
      ],
    });
  });
});
