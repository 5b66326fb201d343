import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Injectable, Logger, Module, Scope } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_FILTER, REQUEST } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import { inspect } from 'node:util';
import { lastValueFrom } from 'rxjs';
import {
  answerOf,
  BanksService,
  createServiceClient,
  CustomersService,
  getServiceToken,
  InjectService,
  LinkSdkService,
  type ServiceApiError,
  ServiceAuthService,
  ServiceCertificateError,
  type ServiceClient,
  ServiceError,
  ServiceExceptionFilter,
  ServiceHttpService,
  ServiceModule,
  ServiceRequestError,
} from 'nestjs-service';
import {
  type RoutedRequest,
  serviceErrors,
  type ServiceSimulator,
  type ServiceStub,
  type ServiceStubOptions,
  type SimulatorFault,
  stubService,
  stubServiceClient,
} from 'nestjs-service/testing';
import { deadPort } from '../../helpers/loopback.js';
import { startSimulator } from '../../helpers/simulators.js';
import { rejection, startModule, type StartedModule, startStubbed } from '../../helpers/start-module.js';

@Injectable()
class VaultService {
  read(): never {
    throw new Error('The vault was asked');
  }
}

@Controller()
class BanksController {
  constructor(
    private readonly banks: BanksService,
    @InjectService(BanksService, 'ksa') private readonly ksaBanks: BanksService,
  ) {}

  @Get('banks')
  list() {
    return this.banks.list();
  }

  @Get('ksa')
  ksa() {
    return this.ksaBanks.list();
  }
}

@Module({
  imports: [
    ConfigModule.forRoot({ ignoreEnvFile: true }),
    ServiceModule.forRoot({ startupCheck: 'fail' } as object),
    ServiceModule.forRootAsync({
      name: 'ksa',
      isGlobal: true,
      extraProviders: [VaultService],
      inject: [VaultService],
      useFactory: (vault: VaultService) => vault.read(),
    }),
  ],
  controllers: [BanksController],
  providers: [{ provide: APP_FILTER, useClass: ServiceExceptionFilter }],
})
class AppModule {}

describe('stubService', () => {
  let service: ServiceStub;
  let module: TestingModule;
  let banks: BanksService;
  let customers: CustomersService;
  let sdk: LinkSdkService;
  let auth: ServiceAuthService;
  let http: ServiceHttpService;
  const open: TestingModule[] = [];

  afterEach(async () => {
    for (const each of open.splice(0)) await each.close();
  });

  async function start(doubles?: ServiceStubOptions): Promise<void> {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    service = stubService(builder, doubles);
    module = await builder.compile();
    await module.init();
    open.push(module);
    banks = module.get(BanksService);
    customers = module.get(CustomersService);
    sdk = module.get(LinkSdkService);
    auth = module.get(ServiceAuthService);
    http = module.get(ServiceHttpService);
  }

  const ksaBanks = () => module.get<BanksService>(getServiceToken(BanksService, 'ksa'), { strict: false });

  describe('without doubles', () => {
    beforeEach(() => start());

    it('returns responses as docs/service.md shows them, through the real classes', async () => {
      expect(banks).toBeInstanceOf(BanksService);
      expect(await banks.list()).toEqual([
        { bank_identifier: 'ALPHA_BANK', name: 'Alpha Bank' },
        { bank_identifier: 'BIRCH_BANK', name: 'Birch Bank' },
      ]);
      expect(await customers.create({ app_user_id: 'u-1' })).toEqual({
        customer_id: 'customer-1',
        app_user_id: 'u-1',
      });
      expect(await customers.create({ app_user_id: 'u-2' })).toMatchObject({ customer_id: 'customer-2' });
      const session = { customer_id: 'c-1', permissions: ['identity', 'identity'] };
      expect(await sdk.connectParameters(session)).toEqual({
        app_token: 'stub-app-token',
        access_token: 'stub-token.customer.c-1',
        customer_id: 'c-1',
        permissions: ['identity'],
        sandbox: true,
      });
      expect(sdk.environment).toBe('sandbox');
      expect(await http.get('/payments/v1')).toEqual({});
    });

    it('returns tokens, headers and a healthy state', async () => {
      const { expiresAt } = await auth.getApiToken();
      expect(Math.round((expiresAt.getTime() - Date.now()) / 60_000)).toBe(60);
      expect(await auth.getApiToken()).toEqual({
        accessToken: 'stub-token.api',
        tokenType: 'bearer',
        scope: 'api',
        expiresAt: expect.any(Date),
      });
      expect(await auth.getCustomerToken('c-1')).toMatchObject({ scope: 'customer.c-1' });
      expect(await auth.authorizationHeaders()).toEqual({ Authorization: 'Bearer stub-token.api' });
      expect(await auth.reloadCertificate()).toBe(false);
      expect(auth.certificate).toBeUndefined();
      expect(auth.identityStatus).toEqual({ healthy: true });
      expect(auth.httpsAgent).toBeDefined();
    });

    it.each<[string, () => Promise<unknown>]>([
      ['customers.create', () => customers.create({ app_user_id: '' })],
      ['banks.list', () => banks.list({ timeout: -1 })],
      ['banks.list', () => banks.list({ headers: { 'x-a': '\u4e2d' } })],
      ['http.get', () => http.get('/a', { headers: { Authorization: 'Bearer mine' } })],
      ['sdk.connectParameters', () => sdk.connectParameters({ customer_id: 'a b', permissions: ['p'] })],
      ['auth.getToken', () => auth.getToken('admin')],
      ['auth.getCustomerToken', () => auth.getCustomerToken('../x')],
      ['http.get', () => http.get('https://elsewhere.example/')],
    ])('refuses in %s what the real service class refuses, and records the call', async (method, call) => {
      await expect(call()).rejects.toBeInstanceOf(ServiceRequestError);
      expect(service.calls.map((each) => each.method)).toEqual([method]);
    });

    it('records each call once, with its arguments', async () => {
      const options = { params: { country: 'XX' } };
      await banks.list(options);
      await ksaBanks().list();
      await http.post('/payments/v1', { amount: 1 });
      auth.invalidate('token');
      expect(service.calls).toEqual([
        { method: 'banks.list', args: [options] },
        { method: 'banks.list', args: [], module: 'ksa' },
        { method: 'http.post', args: ['/payments/v1', { amount: 1 }] },
        { method: 'auth.invalidate', args: ['token'] },
      ]);
      expect(service.callsOf('banks.list')).toEqual([[options]]);
      expect(service.callsOf('banks.list', 'ksa')).toEqual([[]]);
    });

    it('records calls on axiosRef too, after the interceptors of the application', async () => {
      const { axiosRef } = http;
      axiosRef.interceptors.request.use((config) => {
        config.headers.set('x-host', 'yes');
        return config;
      });
      await axiosRef.put('/payments/v1?a=1', { amount: 1 });
      const [call] = service.calls;
      expect(call).toMatchObject({
        method: 'http.request',
        args: ['/payments/v1?a=1', { method: 'PUT', data: { amount: 1 }, headers: { 'x-host': 'yes' } }],
      });
      expect(JSON.stringify(call)).not.toContain('Bearer');
    });
  });

  it("returns what the test's doubles return, by name for named modules", async () => {
    await start({
      banks: { list: (options) => [{ name: 'Own', params: options?.params }] },
      customers: { create: async ({ app_user_id }) => ({ customer_id: `of-${app_user_id}` }) },
      sdk: { connectParameters: ({ customer_id }) => ({ customer_id, permissions: [], access_token: 't' }) },
      auth: {
        getApiToken: () => ({ accessToken: 't', tokenType: 'bearer', scope: 'api', expiresAt: new Date(0) }),
      },
      http: {
        get: (path) => ({ path }),
        request: async (path, { method, data }) => ({ path, method, data }),
      },
      named: { ksa: { banks: { list: () => ['Ksa'] } } },
    });
    expect(await banks.list({ params: { a: 1 } })).toEqual([{ name: 'Own', params: { a: 1 } }]);
    expect(await customers.create({ app_user_id: 'u' })).toEqual({ customer_id: 'of-u' });
    const session = { customer_id: 'c', permissions: ['p'] };
    expect(await sdk.connectParameters(session)).toMatchObject({ access_token: 't' });
    const refused = sdk.connectParameters({ ...session, customer_id: 'a b' });
    await expect(refused).rejects.toBeInstanceOf(ServiceRequestError);
    expect(await auth.getApiToken()).toMatchObject({ accessToken: 't' });
    expect(await http.get('/a')).toEqual({ path: '/a' });
    expect(await http.post('/b', { c: 1 })).toEqual({ path: '/b', method: 'POST', data: { c: 1 } });
    expect(await http.request({ url: '/d', method: 'DELETE' })).toEqual({ path: '/d', method: 'DELETE' });
    expect(await ksaBanks().list()).toEqual(['Ksa']);
  });

  describe("in a test that mocks a package for the application's own calls", () => {
    /** Loads this package anew, after the mock, and starts the doubles. */
    const startMocked = async (name: string, mock: () => object): Promise<unknown> => {
      jest.resetModules();
      jest.unstable_mockModule(name, mock);
      const testing = await import('nestjs-service/testing');
      const lib = await import('nestjs-service');
      const nest = await import('@nestjs/testing');
      const builder = nest.Test.createTestingModule({ imports: [lib.ServiceModule.forRoot()] });
      testing.stubService(builder);
      const started = await builder.compile();
      open.push(started);
      return started.get(lib.BanksService).list();
    };

    afterEach(() => {
      for (const name of ['axios', '@nestjs/axios']) jest.unstable_unmockModule(name);
      jest.resetModules();
    });

    it.each([
      ['jest.mock(), whose classes set no fields', { Axios: jest.fn() }],
      ['a factory that leaves classes out', { Axios: undefined }],
    ])('says what to do in place of a mock of axios: %s', async (_, mocked) => {
      const real = await import('axios');
      const start = startMocked('axios', () => ({ ...real, default: jest.fn(), ...mocked }));
      await expect(start).rejects.toThrow(/jest\.mock\('axios'\).*use jest\.spyOn\(axios, 'get'\)/);
    });

    it('works with a mock of @nestjs/axios', async () => {
      const mock = () => ({ HttpModule: jest.fn(), HttpService: jest.fn() });
      expect(await startMocked('@nestjs/axios', mock)).toHaveLength(2);
    });
  });

  describe('with routes', () => {
    const requests: unknown[] = [];
    const routes = {
      'GET /data/v2/accounts/{account_id}/balances': (request: RoutedRequest) => {
        requests.push(request);
        return { of: request.pathParams.account_id };
      },
      'GET /data/v2/accounts/all': () => 'all',
      'GET /data/v2/accounts/{account_id}': () => 'one',
      'POST /payments/v1': ({ data }: RoutedRequest) => ({ paid: data }),
      'GET /banks/v1': () => 'by http',
      get: () => 'by its verb',
    };

    it('responds to calls of their path by any method of ServiceHttpService, but not to the resources', async () => {
      await start({ http: routes });
      const headers = { 'x-own': 'yes' };
      const params = { entity_id: 'e 1', page: [1, 2] };
      expect(await http.get('/data/v2/accounts/a%2F1/balances/', { params, headers })).toEqual({ of: 'a/1' });
      expect(requests).toEqual([
        {
          method: 'GET',
          path: '/data/v2/accounts/a%2F1/balances/?entity_id=e+1&page%5B%5D=1&page%5B%5D=2',
          pathParams: { account_id: 'a/1' },
          params: { entity_id: 'e 1', 'page[]': ['1', '2'] },
          headers: expect.objectContaining(headers),
          data: undefined,
        },
      ]);
      const pathParams = { account_id: 'b/2' };
      const template = '/data/v2/accounts/{account_id}/balances';
      expect(await http.get(template, { pathParams })).toEqual({ of: 'b/2' });
      expect(await http.get('/data/v2/accounts/all')).toBe('all');
      expect(await http.get('/data/v2/accounts/a-1')).toBe('one');
      expect(await http.post('/payments/v1', { amount: 1 })).toEqual({ paid: { amount: 1 } });
      expect((await http.axiosRef.post('/payments/v1', [1])).data).toEqual({ paid: [1] });
      expect(await lastValueFrom(http.httpService.post('/payments/v1', 'x'))).toMatchObject({
        data: { paid: 'x' },
      });
      expect(await http.response('/banks/v1')).toMatchObject({ status: 200, data: 'by http' });
      expect(await banks.list()).toHaveLength(2);
      expect(await http.get('/other/v1')).toBe('by its verb');
    });

    it('responds to each page of paginate(), and to find()', async () => {
      await start({
        http: {
          'GET /data/v2/accounts': ({ params }) => ({
            data: [`on ${String(params.page)}`],
            page: { total_pages: 2 },
          }),
          'GET /customers/v1/{customer_id}': ({ pathParams }) => {
            if (pathParams.customer_id === 'known') return { found: true };
            throw serviceErrors.api(404, { status: 'CUSTOMER_NOT_FOUND', message: 'None' });
          },
        },
      });
      const entries: unknown[] = [];
      for await (const entry of http.paginate('/data/v2/accounts')) entries.push(entry);
      expect(entries).toEqual(['on 0', 'on 1']);
      const find = (customer_id: string) =>
        http.find('/customers/v1/{customer_id}', { pathParams: { customer_id } });
      expect(await Promise.all(['known', 'other'].map(find))).toEqual([{ found: true }, undefined]);
    });

    it('adds status and message of an API error to the fields in data', () => {
      const data = { status_detail: 'expired' };
      const error = serviceErrors.api(403, { status: 'CONSENT_EXPIRED', message: 'Expired', data });
      expect(error.body).toEqual({ status: 'CONSENT_EXPIRED', message: 'Expired' });
      expect(error.response?.data).toMatchObject({ status: 'CONSENT_EXPIRED', ...data });
      expect(serviceErrors.api(422, { data }).response?.data).toEqual(data);
    });

    it('throws errors with the route of the call, and fails for a call without a double', async () => {
      await start({
        http: {
          'GET /accounts/{id}': () => {
            throw serviceErrors.api(403, { status: 'CONSENT_EXPIRED' });
          },
        },
      });
      await expect(http.get('/accounts/1')).rejects.toMatchObject({
        status: 403,
        path: '/accounts/1',
        body: { status: 'CONSENT_EXPIRED' },
      });
      for (const call of [() => http.delete('/accounts/1'), () => http.axiosRef.delete('/accounts/1')]) {
        await expect(call()).rejects.toThrow(
          'There is no double for DELETE /accounts/1. There are doubles for: GET /accounts/{id}.',
        );
      }
      service.use({ http: { 'DELETE /accounts/{id}': () => undefined } });
      expect(await http.delete('/accounts/1')).toBeUndefined();
    });

    it.each([
      [
        { 'GET accounts': () => 1 },
        "The double http['GET accounts']: a path must look like '/accounts/v1/{id}'",
      ],
      [{ 'GET /a': [] }, 'The double http.GET /a must be a function'],
    ])('refuses %j', (http, message) => {
      expect(() => stubService(Test.createTestingModule({}), { http } as object)).toThrow(message);
    });
  });

  it('responds to http.response() with status and headers, or like http.request', async () => {
    await start({
      http: {
        request: (path) => ({ path }),
        response: async (path, { method, data }) => ({
          data: { path, method, data },
          status: 201,
          headers: { 'X-Total-Count': '7', 'x-correlation-id': 'c-1' },
        }),
      },
    });
    const options = { method: 'POST', data: { a: 1 }, parse: (body: unknown) => [body] };
    expect(await http.response('/a?b=1', options)).toEqual({
      data: [{ path: '/a?b=1', method: 'POST', data: { a: 1 } }],
      status: 201,
      headers: { 'content-type': 'application/json', 'x-total-count': '7', 'x-correlation-id': 'c-1' },
      correlationId: 'c-1',
    });
    expect(service.calls).toEqual([{ method: 'http.response', args: ['/a?b=1', options] }]);
    expect(await http.get('/a')).toEqual({ path: '/a' });
    service.use({ http: { response: () => ({ status: 404 }) } });
    await expect(http.response({ url: '/a' })).rejects.toMatchObject({ status: 404 });
    service.use({ http: { response: () => ({}) } });
    expect(await http.response('/a')).toMatchObject({ data: undefined, status: 204 });
    service.use({ http: { response: undefined } });
    const json = { 'content-type': 'application/json' };
    expect(await http.response('/a')).toEqual({ data: { path: '/a' }, status: 200, headers: json });
    service.use({ http: { request: (_, { data }) => ({ data }) } });
    for (const data of [false, 0, 'text'])
      expect(await http.put('/a', data, { headers: json })).toEqual({ data });
    service.use({ http: { request: undefined } });
    expect((await http.response<unknown[]>('/banks/v1')).data).toHaveLength(2);
  });

  it('returns responses as they would arrive over the network: text too, nothing for undefined, and no function', async () => {
    const given: unknown[] = [[{ at: new Date(0), left: undefined }], 'closed', undefined, () => []];
    await start({ banks: { list: () => given.shift() } });
    expect(await banks.list()).toStrictEqual([{ at: '1970-01-01T00:00:00.000Z' }]);
    expect(await banks.list()).toBe('closed');
    expect(await banks.list()).toBeUndefined();
    await expect(banks.list()).rejects.toThrow(/returned a function/);
  });

  it('takes other doubles during a test, and restores the first ones and the first customers', async () => {
    await start({ banks: { list: () => ['first'] } });
    const create = () => customers.create({ app_user_id: 'u-1' });
    await create();
    service.use({
      banks: {
        list: () => {
          throw serviceErrors.api(404);
        },
      },
    });
    await expect(banks.list()).rejects.toMatchObject({ status: 404 });
    service.reset();
    expect(service.calls).toEqual([]);
    expect(await banks.list()).toEqual(['first']);
    expect(await create()).toMatchObject({ customer_id: 'customer-1' });
  });

  it('ends a call whose double never resolves by its timeout or signal', async () => {
    await start({ banks: { list: () => new Promise(() => undefined) } });
    await expect(banks.list({ timeout: 5 })).rejects.toMatchObject({ kind: 'timeout', path: '/banks/v1' });
    const reason = new Error('not wanted any more');
    const controller = new AbortController();
    const call = banks.list({ signal: controller.signal });
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    const { signal } = controller;
    await expect(auth.getApiToken({ signal })).rejects.toBe(reason);
  });

  it('lets a double call other doubles, each with its own response and record', async () => {
    await start({
      banks: { list: async () => http.get('/inner/v1') },
      http: { get: (path) => ({ path }) },
    });
    expect(await banks.list()).toEqual({ path: '/inner/v1' });
    expect(service.calls.map(({ method }) => method)).toEqual(['banks.list', 'http.get']);
  });

  it('works with fake timers', async () => {
    await start();
    jest.useFakeTimers();
    try {
      expect(await banks.list()).toHaveLength(2);
      expect(jest.getTimerCount()).toBe(0);
      service.use({ banks: { list: () => new Promise(() => undefined) } });
      const outcome = rejection(banks.list());
      await jest.advanceTimersByTimeAsync(30_000);
      expect(await outcome).toMatchObject({ kind: 'timeout' });
    } finally {
      jest.useRealTimers();
    }
  });

  it('sends a call again without waiting, also after a Retry-After, as often as the call says and within its time limit', async () => {
    const failing = (count: number, retryAfter?: number) => {
      let left = count;
      const get = () => (left-- > 0 ? Promise.reject(serviceErrors.api(503, { retryAfter })) : { left });
      service.use({ http: { get } });
    };
    await start();
    jest.useFakeTimers();
    try {
      failing(10);
      expect(await http.get('/a', { retries: 10 })).toEqual({ left: -1 });
      failing(1, 20);
      expect(await http.get('/a', { retries: 1 })).toEqual({ left: -1 });
      failing(1, 20);
      await expect(http.get('/a', { retries: 1, timeout: 10_000 })).rejects.toMatchObject({ retryAfter: 20 });
      failing(1);
      await expect(http.get('/a')).rejects.toMatchObject({ status: 503 });
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('returns text and bytes unchanged if the caller asked for them', async () => {
    const bodies = ['a;b', Buffer.from('bytes'), { a: 1 }];
    await start({ http: { request: () => bodies.shift() } });
    const { axiosRef } = http;
    const text = await axiosRef.get<unknown>('/a', { responseType: 'text' });
    expect([text.data, text.status, text.statusText]).toEqual(['a;b', 200, 'OK']);
    expect(text.headers['content-type']).toBe('application/json');
    const bytes = await axiosRef.get<unknown>('/a', { responseType: 'arraybuffer' });
    expect(bytes.data).toEqual(Buffer.from('bytes'));
    expect((await axiosRef.get<unknown>('/a', { responseType: 'text' })).data).toBe('{"a":1}');
    expect(await axiosRef.get('/a')).toMatchObject({ status: 204, statusText: 'No Content' });
  });

  it('returns the certificate and identityStatus of the test', async () => {
    const dates = { validFrom: new Date(0), validTo: new Date(Date.now() + 1.5 * 86_400_000) };
    const certificate = { subject: 'CN=app', issuer: 'CN=i', fingerprint256: 'AA', ...dates };
    await start({ auth: { certificate } });
    expect(auth.certificate).toEqual(certificate);
    expect(auth.identityStatus).toEqual({ healthy: true, certificate, daysLeft: 1 });
    const identityStatus = { healthy: false };
    service.use({ auth: { certificate, identityStatus } });
    expect(auth.identityStatus).toEqual(identityStatus);
  });

  it('refuses a service, a method and a module that do not exist, by name', async () => {
    const doubles = (given: object) => () => stubService(Test.createTestingModule({}), given);
    expect(doubles({ bank: {} })).toThrow(
      "'bank' is not a service that can be doubled. Known: auth, banks, ",
    );
    expect(doubles({ banks: { lst: () => [] } })).toThrow(
      "'lst' is not a member of banks that can be doubled",
    );
    expect(doubles({ http: { '/banks/v1': () => [] } })).toThrow(
      /'\/banks\/v1' is not a member of http that can be doubled\. .*A route starts with its method: 'GET \/banks\/v1'\.$/,
    );
    expect(doubles({ named: { ksa: { bank: {} } } })).toThrow("'bank' is not a service that can be doubled");
    expect(doubles({ banks: { list: [] } })).toThrow('The double banks.list must be a function');
    const compiled = await Test.createTestingModule({}).compile();
    expect(() => stubService(compiled as never)).toThrow(/needs the builder .* before compile\(\)/);
    await expect(start({ named: { kas: { banks: { list: () => [] } } } })).rejects.toThrow(
      "'kas' is not a ServiceModule that can be doubled. Known: ksa.",
    );
  });

  it('starts a module whose options depend on a request', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {}
    const builder = Test.createTestingModule({
      imports: [
        ServiceModule.forRootAsync({
          extraProviders: [PerRequest],
          inject: [PerRequest, REQUEST],
          useFactory: () => ({}),
        }),
      ],
    });
    stubService(builder);
    module = await builder.compile();
    open.push(await module.init());
    expect(await module.get(BanksService).list()).toHaveLength(2);
  });

  it("keeps the application's exception filter working", async () => {
    await start({
      banks: {
        list: () => {
          throw serviceErrors.api(409, { message: 'No such bank' });
        },
      },
    });
    const app = module.createNestApplication();
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    const response = await fetch(`${url}/banks`);
    expect(response.status).toBe(409);
    expect(await response.json()).toMatchObject({ message: 'No such bank' });
    expect((await fetch(`${url}/ksa`)).status).toBe(200);
    await app.close();
  });
});

describe('stubServiceClient', () => {
  beforeAll(() => Logger.overrideLogger(false));

  it('resolves with a client without Nest, which has the parts of createServiceClient() and shows its calls', async () => {
    const simulator = await startSimulator();
    const real = await createServiceClient(simulator.moduleOptions());
    const client = await stubServiceClient({ banks: { list: () => ['Alpha'] } });
    const own = ['calls', 'callsOf', 'use', 'reset'];
    expect(Object.keys(client).filter((name) => !own.includes(name))).toEqual(Object.keys(real));
    await Promise.all([real.close(), simulator.stop()]);
    const asClient: ServiceClient = client;

    expect(await asClient.banks.list()).toEqual(['Alpha']);
    expect(await client.customers.create({ app_user_id: 'u-1' })).toMatchObject({
      customer_id: 'customer-1',
    });
    expect(await client.sdk.sessionParameters({ customer_id: 'c-1' })).toMatchObject({ sandbox: true });
    expect(await client.health({ ping: true })).toMatchObject({ status: 'up', ping: { ok: true } });
    expect(client.callsOf('customers.create')).toEqual([[{ app_user_id: 'u-1' }]]);
    client.use({ http: { 'GET /a/{id}': ({ pathParams }) => pathParams } });
    expect(await client.http.get('/a/1')).toEqual({ id: '1' });
    expect(client.calls.at(-1)).toEqual({ method: 'http.get', args: ['/a/1'] });
    client.reset();
    expect(client.calls).toEqual([]);
    expect(await client.http.get('/a/1')).toEqual({});

    await client.close();
    await expect(client.banks.list()).rejects.toMatchObject({ kind: 'closed' });
    expect(await client.health()).toMatchObject({ status: 'down' });
  });

  it('refuses a double with an unknown name', async () => {
    const given = { bank: { list: () => [] } } as object;
    await expect(stubServiceClient(given)).rejects.toThrow("'bank' is not a service that can be doubled");
  });
});

/** The parts of an error that a host application reads, without the address and the time limit, which differ in a test. */
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
    real = await startModule({ ...options, http: { retries: 0 } });
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
  ])('are equal to the errors of the real services: %s', async (_, fault, make) => {
    const calls = [
      [real.banks, module.get(BanksService), '/banks/v1'],
      [real.customers, module.get(CustomersService), '/customers/v1'],
    ] as const;
    const timeout = fault === 'hang' ? 300 : undefined;
    const fail = () => {
      throw make();
    };
    stub.use({ banks: { list: fail }, customers: { create: fail } });
    for (const [one, double, path] of calls) {
      const run = (service: BanksService | CustomersService) =>
        'list' in service ? service.list({ timeout }) : service.create({ app_user_id: 'u-1' }, { timeout });
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

  it('are equal to the error if nothing listens, when nothing was done', async () => {
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
  ])('are equal to the errors if there is no token: %s', async (_, fault, make) => {
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

  it('name the call of their options, and keep it', async () => {
    const error = serviceErrors.connection('timeout', { method: 'post', path: '/payments/v1' });
    expect(error).toMatchObject({ method: 'POST', path: '/payments/v1', outcomeUnknown: true });
    stub.use({ http: { get: () => Promise.reject(error) } });
    const thrown = await rejection(module.get(ServiceHttpService).get('/other/v1'));
    expect(thrown).toBe(error);
    expect(thrown).toMatchObject({ path: '/payments/v1' });
    const nothingSent = serviceErrors.connection('timeout', { method: 'POST', sent: false });
    expect(nothingSent.outcomeUnknown).toBe(false);
  });

  it('name the call of each double that throws them, and do not change themselves', async () => {
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

  it('have the body of their options, which a double returns too', async () => {
    const data = { status: 'INVALID', message: 'Not valid', errors: [{ field: 'app_user_id' }] };
    const made = serviceErrors.api(422, { data });
    expect([made.body, made.response?.data]).toEqual([{ status: 'INVALID', message: 'Not valid' }, data]);
    stub.use({ banks: { list: () => Promise.reject(made) } });
    const thrown = await rejection(module.get(BanksService).list());
    expect((thrown as ServiceApiError).response).toMatchObject({ status: 422, data });
  });

  it('are about GET /banks/v1 until a double throws them, and a 404 about something that may not exist', async () => {
    expect(serviceErrors.api(409)).toMatchObject({ method: 'GET', path: '/banks/v1' });
    const missing = serviceErrors.api(404);
    expect(answerOf(missing)).toMatchObject({ status: 404, message: 'Not Found' });
    stub.use({ banks: { list: () => Promise.reject(missing) } });
    const thrown = await rejection(module.get(BanksService).list());
    expect(answerOf(thrown)).toMatchObject({ status: 502 });
  });

  it('include the other error classes too', () => {
    for (const [kind, reason] of [
      ['reset', 'ECONNRESET'],
      ['refused', 'ECONNREFUSED'],
      ['dns', 'ENOTFOUND'],
      ['tls', 'CERT_HAS_EXPIRED'],
      ['proxy', 'ERR_PROXY_ECONNREFUSED'],
    ] as const)
      expect(serviceErrors.connection(kind)).toMatchObject({ code: `connection_${kind}`, reason });
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
