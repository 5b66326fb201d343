import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type TestingModule } from '@nestjs/testing';
import {
  answerOf,
  BanksService,
  CustomersService,
  type ServiceApiError,
  ServiceAuthService,
  ServiceCertificateError,
  ServiceError,
  ServiceHttpService,
  ServiceRequestError,
} from 'nestjs-service';
import { inspect } from 'node:util';
import {
  serviceErrors,
  type ServiceSimulator,
  type ServiceStub,
  type SimulatorFault,
} from 'nestjs-service/testing';
import { deadPort } from '../../../helpers/loopback.js';
import { rejection, startModule, type StartedModule, startStubbed } from '../../../helpers/start-module.js';
import { startSimulator } from '../../../helpers/simulators.js';

/** An error as it is read by a host; the address of the service and the time limit are others in a test. */
function read(error: unknown): object {
  expect(error).toBeInstanceOf(ServiceError);
  const text = JSON.stringify(error)
    .replaceAll(/(auth\.)?service\.invalid|127\.0\.0\.1:\d+/g, 'HOST')
    .replace(/within \d+ ms/, 'within MS');
  return JSON.parse(text) as object;
}

describe('serviceErrors', () => {
  let simulator: ServiceSimulator;
  let real: StartedModule;
  let module: TestingModule;
  let stub: ServiceStub;

  beforeAll(async () => {
    simulator = await startSimulator();
    const options = simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' });
    real = await startModule({ ...options, http: { retries: 0, timeout: 2_000 } });
    ({ module, service: stub } = await startStubbed());
  });
  afterEach(() => {
    stub.reset();
    simulator.clearFaults();
  });
  afterAll(async () => {
    await module.close();
    await real.module.close();
    await simulator.stop();
  });

  const body = (status: string, message: string) => ({ json: { status, message } });

  it.each<[string, SimulatorFault, () => Error]>([
    ['404', { status: 404, ...body('NOT_FOUND', 'Not Found') }, () => serviceErrors.api(404)],
    [
      '422 of one body',
      { status: 422, ...body('TAKEN', 'It exists') },
      () => serviceErrors.api(422, { status: 'TAKEN', message: 'It exists' }),
    ],
    [
      '429',
      { status: 429, ...body('TOO_MANY_REQUESTS', 'Too Many Requests'), headers: { 'retry-after': '7' } },
      () => serviceErrors.api(429, { retryAfter: 7 }),
    ],
    [
      '503',
      {
        status: 503,
        ...body('SERVICE_UNAVAILABLE', 'Service Unavailable'),
        headers: { 'x-correlation-id': 'c-1' },
      },
      () => serviceErrors.api(503, { correlationId: 'c-1' }),
    ],
    ['403', { status: 403, ...body('FORBIDDEN', 'Forbidden') }, () => serviceErrors.api(403)],
    ['a page', 'html', () => serviceErrors.invalidResponse()],
    ['a reset', 'reset', () => serviceErrors.connection('reset')],
    ['a time-out', 'hang', () => serviceErrors.connection('timeout')],
    [
      'a redirect',
      { status: 302, headers: { location: 'https://elsewhere.invalid/' } },
      () => serviceErrors.connection('redirect'),
    ],
  ])('are what the real services reject with: %s', async (_, fault, make) => {
    const calls = [
      [real.banks, module.get(BanksService), '/banks/v1'],
      [real.customers, module.get(CustomersService), '/customers/v1'],
    ] as const;
    const fail = () => {
      throw make();
    };
    stub.use({ banks: { list: fail }, customers: { create: fail } });
    for (const [one, double, path] of calls) {
      const run = (service: BanksService | CustomersService) =>
        'list' in service ? service.list() : service.create({ app_user_id: 'u-1' });
      // A kept-alive connection that is reset is tried again.
      simulator.fail({ path, fault, times: 9 });
      const expected = (await rejection(run(one))) as Error;
      const actual = (await rejection(run(double))) as Error;
      expect(read(actual)).toEqual(read(expected));
      simulator.clearFaults();
      expect(actual).toBeInstanceOf(expected.constructor);
      expect(actual.stack).toContain(actual.message);
    }
  });

  it('are what it rejects with where nobody listens: nothing was done', async () => {
    const port = await deadPort();
    const nobody = await startModule({
      ...simulator.moduleOptions({ environment: 'sandbox' }),
      urls: { sandboxUrl: `https://127.0.0.1:${port}` },
      http: { retries: 0 },
    });
    const call = { app_user_id: 'u-1' };
    const expected = read(await rejection(nobody.customers.create(call)));
    await nobody.module.close();
    stub.use({ customers: { create: () => Promise.reject(serviceErrors.connection('refused')) } });
    expect(read(await rejection(module.get(CustomersService).create(call)))).toEqual(expected);
    expect(expected).toMatchObject({ outcomeUnknown: false });
  });

  it.each<[string, SimulatorFault, () => Error]>([
    ['refused', { status: 401, json: { error: 'invalid_client' } }, () => serviceErrors.token()],
    ['unavailable', { status: 503 }, () => serviceErrors.token('token_unavailable')],
  ])('are what no token rejects with: %s', async (_, fault, make) => {
    const started = await startModule(
      simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' }),
    );
    simulator.fail({ face: 'token', fault, times: 9 });
    const expected = await rejection(started.auth.getApiToken({ timeout: 10_000 }));
    await started.module.close();
    stub.use({ auth: { getApiToken: () => Promise.reject(make()) } });
    const actual = await rejection(module.get(ServiceAuthService).getApiToken());
    expect(read(actual)).toEqual(read(expected));
  });

  it('name the call that they are given, and keep it', async () => {
    const error = serviceErrors.connection('timeout', { method: 'post', path: '/payments/v1' });
    expect(error).toMatchObject({ method: 'POST', path: '/payments/v1', outcomeUnknown: true });
    stub.use({ http: { get: () => Promise.reject(error) } });
    const thrown = await rejection(module.get(ServiceHttpService).get('/other/v1'));
    expect(thrown).toBe(error);
    expect(thrown).toMatchObject({ path: '/payments/v1' });
    const nothingSent = serviceErrors.connection('timeout', { method: 'POST', sent: false });
    expect(nothingSent.outcomeUnknown).toBe(false);
  });

  it('name the call of each double that throws them, and stay as they are', async () => {
    const error = serviceErrors.connection('timeout');
    const before = inspect(error);
    const fail = () => Promise.reject(error);
    stub.use({ banks: { list: fail }, customers: { create: fail }, http: { request: fail } });
    const thrown = [
      await rejection(module.get(CustomersService).create({ app_user_id: 'u-1' })),
      await rejection(module.get(BanksService).list()),
      await rejection(module.get(ServiceHttpService).axiosRef.put('/payments/v1', {})),
    ];
    expect(thrown).toMatchObject([
      { method: 'POST', path: '/customers/v1', outcomeUnknown: true },
      { method: 'GET', path: '/banks/v1', outcomeUnknown: false },
      { method: 'PUT', path: '/payments/v1', outcomeUnknown: true },
    ]);
    expect(inspect(error)).toBe(before);
  });

  it('have a body of their own, which a double answers too', async () => {
    const data = { status: 'INVALID', message: 'Not valid', errors: [{ field: 'app_user_id' }] };
    const made = serviceErrors.api(422, { data });
    expect([made.body, made.response?.data]).toEqual([{ status: 'INVALID', message: 'Not valid' }, data]);
    stub.use({ banks: { list: () => Promise.reject(made) } });
    const thrown = await rejection(module.get(BanksService).list());
    expect((thrown as ServiceApiError).response).toMatchObject({ status: 422, data });
  });

  it('are about GET /banks/v1 until a double throws them, a 404 about what may not exist', async () => {
    expect(serviceErrors.api(409)).toMatchObject({ method: 'GET', path: '/banks/v1' });
    const missing = serviceErrors.api(404);
    expect(answerOf(missing)).toMatchObject({ status: 404, message: 'Not Found' });
    stub.use({ banks: { list: () => Promise.reject(missing) } });
    const thrown = await rejection(module.get(BanksService).list());
    expect(answerOf(thrown)).toMatchObject({ status: 502 });
  });

  it.each([
    ['reset', 'ECONNRESET'],
    ['refused', 'ECONNREFUSED'],
    ['dns', 'ENOTFOUND'],
    ['tls', 'CERT_HAS_EXPIRED'],
    ['proxy', 'ERR_PROXY_ECONNREFUSED'],
  ] as const)('have the usual reason of the kind %s', (kind, reason) => {
    expect(serviceErrors.connection(kind)).toMatchObject({ code: `connection_${kind}`, reason });
  });

  it('has the others too', () => {
    expect(serviceErrors.certificate()).toBeInstanceOf(ServiceCertificateError);
    expect(serviceErrors.certificate()).toMatchObject({ code: 'certificate_refused' });
    expect(serviceErrors.request('name', 'is missing')).toBeInstanceOf(ServiceRequestError);
    expect(serviceErrors.token('oauth_not_configured')).toMatchObject({
      code: 'oauth_not_configured',
      scope: 'api',
    });
    expect(serviceErrors.token('token_rate_limited', { retryAfter: 30 })).toMatchObject({
      status: 429,
      retryAfter: 30,
    });
    for (const status of [200, 399, 600]) expect(() => serviceErrors.api(status)).toThrow(RangeError);
    expect([serviceErrors.api(400).status, serviceErrors.api(599).status]).toEqual([400, 599]);
  });
});
