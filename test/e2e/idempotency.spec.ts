import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { ServiceModule, type ServiceHttpOptions } from 'nestjs-service';
import { serviceErrors, ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startHost } from '../helpers/start-host.js';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';

const HEADER = 'Idempotency-Key';
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Over real TLS; the server counts the requests. */
describe('http.idempotencyHeader', () => {
  let simulator: ServiceSimulator;
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(() => simulator.stop());

  const optionsWith = (http: ServiceHttpOptions, authentication: 'mtls' | 'oauth' = 'mtls') => ({
    ...simulator.moduleOptions({ authentication }),
    http: { idempotencyHeader: HEADER, ...http },
  });
  async function start(http: ServiceHttpOptions = {}, authentication?: 'oauth'): Promise<StartedModule> {
    const started = await startModule(optionsWith(http, authentication));
    closing.push(() => started.module.close());
    return started;
  }
  const fail = (fault: SimulatorFault, times = 1) => simulator.fail({ path: '/customers/v1', times, fault });
  const create = ({ customers }: StartedModule, headers = {}) =>
    customers.create({ app_user_id: randomUUID() }, { headers });
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

  it('goes with PATCH too, and with no other method', async () => {
    const { http } = await start();
    fail({ status: 503 }, 9);
    for (const method of ['patch', 'PUT', 'DELETE']) {
      await rejection(http.request('/customers/v1', { method, data: {} }));
    }
    simulator.clearFaults();
    await http.get('/banks/v1');
    const sent = simulator.apiRequests.map(({ method, headers }) => [method, 'idempotency-key' in headers]);
    expect(sent).toEqual([
      ...Array.from({ length: 3 }, () => ['PATCH', true]),
      ['PUT', false],
      ['DELETE', false],
      ['GET', false],
    ]);
  });

  it("is the caller's own where the call brings one; one that is empty is none", async () => {
    const api = await start();
    fail({ status: 503 });
    await create(api, { 'IDEMPOTENCY-KEY': 'of-the-caller' });
    await create(api, { 'idempotency-key': ' ' });
    expect(keys()).toEqual(['of-the-caller', 'of-the-caller', expect.stringMatching(UUID)]);
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
    await create(api, { 'idempotency-key': idempotencyKey });
    expect(keys().at(-1)).toBe(idempotencyKey);
  });

  it('is in no error of a call that was surely not done', async () => {
    const api = await start();
    fail({ status: 400 });
    const refused = await rejection(create(api));
    expect(refused).toMatchObject({ status: 400 });
    expect(JSON.stringify(refused)).not.toContain('idempotencyKey');
  });

  it('off: no header, and no other attempt', async () => {
    const api = await start({ idempotencyHeader: undefined });
    for (const [index, fault] of (['reset', { status: 503 }] as SimulatorFault[]).entries()) {
      fail(fault);
      expect(JSON.stringify(await rejection(create(api, { 'idempotency-key': 'mine' })))).not.toContain(
        'mine',
      );
      expect(keys()).toEqual(Array.from({ length: index + 1 }, () => 'mine'));
    }
    await create(api);
    expect(keys()[2]).toBeUndefined();
  });

  it.each(['express', 'fastify'] as const)(
    'is not shown to the callers of a host on %s',
    async (platform) => {
      const logger = new CollectingLogger();
      const host = await startHost(ServiceModule.forRoot(optionsWith({})), platform, logger);
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
    expect(serviceErrors.api(503, call)).toMatchObject(key);
    expect(serviceErrors.invalidResponse(call)).toMatchObject(key);
    expect(serviceErrors.connection('refused', call).idempotencyKey).toBeUndefined();
    expect(serviceErrors.api(409, call).idempotencyKey).toBeUndefined();
  });

  it.each([
    ['authorization', /a header's name/],
    ['content-length', /a header's name/],
    ['two words', /a header's name/],
    ['Service-App-Token', /appTokenHeader/],
    ['x-correlation-id', /http\.correlationIdHeader/],
    ['traceparent', /of its own/],
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
