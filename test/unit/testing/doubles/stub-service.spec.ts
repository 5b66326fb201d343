import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Injectable, Module, Scope, type INestApplication } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_FILTER, REQUEST } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import { type AddressInfo } from 'node:net';
import { type Server } from 'node:http';
import { lastValueFrom } from 'rxjs';
import {
  BanksService,
  CustomersService,
  getServiceToken,
  InjectService,
  LinkSdkService,
  ServiceAuthService,
  ServiceExceptionFilter,
  ServiceHttpService,
  ServiceModule,
  ServiceRequestError,
} from 'nestjs-service';
import {
  serviceErrors,
  ServiceStub,
  type RoutedRequest,
  stubService,
  type ServiceStubOptions,
} from 'nestjs-service/testing';

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
  }

  describe('without answers', () => {
    beforeEach(() => start());

    it('answers in the form that docs/service.md shows, by the real classes', async () => {
      const banks = module.get(BanksService);
      expect(banks).toBeInstanceOf(BanksService);
      expect(await banks.list()).toEqual([
        { bank_identifier: 'ALPHA_BANK', name: 'Alpha Bank' },
        { bank_identifier: 'BIRCH_BANK', name: 'Birch Bank' },
      ]);
      const customers = module.get(CustomersService);
      expect(await customers.create({ app_user_id: 'u-1' })).toEqual({
        customer_id: 'customer-1',
        app_user_id: 'u-1',
      });
      expect(await customers.create({ app_user_id: 'u-2' })).toMatchObject({ customer_id: 'customer-2' });
      const session = { customer_id: 'c-1', permissions: ['identity', 'identity'] };
      expect(await module.get(LinkSdkService).connectParameters(session)).toEqual({
        app_token: 'stub-app-token',
        access_token: 'stub-token.customer.c-1',
        customer_id: 'c-1',
        permissions: ['identity'],
      });
      expect(await module.get(ServiceHttpService).get('/payments/v1')).toEqual({});
    });

    it('has tokens, headers and a health', async () => {
      const auth = module.get(ServiceAuthService);
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
      ['customers.create', () => module.get(CustomersService).create({ app_user_id: '' })],
      ['banks.list', () => module.get(BanksService).list({ timeout: -1 })],
      ['banks.list', () => module.get(BanksService).list({ headers: { 'x-a': '\u4e2d' } })],
      ['banks.list', () => module.get(BanksService).list({ signal: {} as AbortSignal })],
      [
        'sdk.connectParameters',
        () => module.get(LinkSdkService).connectParameters({ customer_id: 'a b', permissions: ['p'] }),
      ],
      ['auth.getToken', () => module.get(ServiceAuthService).getToken('admin')],
      ['auth.getCustomerToken', () => module.get(ServiceAuthService).getCustomerToken('../x')],
      ['http.get', () => module.get(ServiceHttpService).get('https://elsewhere.example/')],
    ])('refuses in %s what the real one refuses, and has it recorded', async (method, call) => {
      await expect(call()).rejects.toBeInstanceOf(ServiceRequestError);
      expect(service.calls.map((each) => each.method)).toEqual([method]);
    });

    it('records each call once, with its arguments', async () => {
      const options = { params: { country: 'XX' } };
      const auth = module.get(ServiceAuthService);
      await module.get(BanksService).list(options);
      await module.get<BanksService>(getServiceToken(BanksService, 'ksa'), { strict: false }).list();
      await module.get(ServiceHttpService).post('/payments/v1', { amount: 1 });
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

    it('records calls on axiosRef too, behind the interceptors of the host', async () => {
      const { axiosRef } = module.get(ServiceHttpService);
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

  it('answers what the host gives, by name for named modules', async () => {
    await start({
      banks: { list: (options) => [{ name: 'Own', asked: options?.params }] },
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
    const http = module.get(ServiceHttpService);
    expect(await module.get(BanksService).list({ params: { a: 1 } })).toEqual([
      { name: 'Own', asked: { a: 1 } },
    ]);
    expect(await module.get(CustomersService).create({ app_user_id: 'u' })).toEqual({ customer_id: 'of-u' });
    const session = { customer_id: 'c', permissions: ['p'] };
    expect(await module.get(LinkSdkService).connectParameters(session)).toMatchObject({ access_token: 't' });
    expect(await module.get(ServiceAuthService).getApiToken()).toMatchObject({ accessToken: 't' });
    expect(await http.get('/a')).toEqual({ path: '/a' });
    expect(await http.post('/b', { c: 1 })).toEqual({ path: '/b', method: 'POST', data: { c: 1 } });
    expect(await http.request({ url: '/d', method: 'DELETE' })).toEqual({ path: '/d', method: 'DELETE' });
    const ksa = module.get<BanksService>(getServiceToken(BanksService, 'ksa'), { strict: false });
    expect(await ksa.list()).toEqual(['Ksa']);
  });

  describe('by route', () => {
    const asked: unknown[] = [];
    const routes = {
      'GET /data/v2/accounts/{account_id}/balances': (request: RoutedRequest) => {
        asked.push(request);
        return { of: request.pathParams.account_id };
      },
      'GET /data/v2/accounts/all': () => 'all',
      'GET /data/v2/accounts/{account_id}': () => 'one',
      'POST /payments/v1': ({ data }: RoutedRequest) => ({ paid: data }),
      'GET /banks/v1': () => 'by http',
      get: () => 'by its verb',
    };

    it('answers calls of their path, however it is called, but not those of the resources', async () => {
      await start({ http: routes });
      const http = module.get(ServiceHttpService);
      const headers = { 'x-own': 'yes' };
      const params = { entity_id: 'e 1', page: [1, 2] };
      expect(await http.get('/data/v2/accounts/a%2F1/balances/', { params, headers })).toEqual({ of: 'a/1' });
      expect(asked).toEqual([
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
      expect(await module.get(BanksService).list()).toHaveLength(2);
      expect(await http.get('/other/v1')).toBe('by its verb');
    });

    it('throws the errors of its call, and fails for a call without a double', async () => {
      await start({
        http: {
          'GET /accounts/{id}': () => {
            throw serviceErrors.api(403, { status: 'CONSENT_EXPIRED' });
          },
        },
      });
      const http = module.get(ServiceHttpService);
      await expect(http.get('/accounts/1')).rejects.toMatchObject({
        status: 403,
        path: '/accounts/1',
        body: { status: 'CONSENT_EXPIRED' },
      });
      for (const call of [() => http.delete('/accounts/1'), () => http.axiosRef.delete('/accounts/1')]) {
        await expect(call()).rejects.toThrow(
          'There is no double for DELETE /accounts/1. There are: GET /accounts/{id}.',
        );
      }
      service.use({ http: { 'DELETE /accounts/{id}': () => undefined } });
      expect(await http.delete('/accounts/1')).toBeUndefined();
    });

    it.each([
      [{ 'GET accounts': () => 1 }, "The double http['GET accounts']: a path is as '/accounts/v1/{id}'"],
      [{ 'GET /a/:id': () => 1 }, 'a path is as'],
      [{ 'FETCH /a': () => 1 }, "there is no method 'FETCH'"],
      [{ 'GET /a': [] }, 'The double http.GET /a must be a function'],
    ])('refuses %j', (http, message) => {
      expect(() => stubService(Test.createTestingModule({}), { http } as object)).toThrow(message);
    });
  });

  it('answers http.response() with status and headers, or as http.request', async () => {
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
    const http = module.get(ServiceHttpService);
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

  it('gives answers as they arrive over a wire, and nothing for undefined', async () => {
    const given = [{ at: new Date(0), left: undefined }];
    await start({ banks: { list: () => given }, customers: { create: () => undefined } });
    const answer = await module.get(BanksService).list();
    expect(answer).toStrictEqual([{ at: '1970-01-01T00:00:00.000Z' }]);
    expect(await module.get(CustomersService).create({ app_user_id: 'u' })).toBeUndefined();
  });

  it('has an answer that never comes end by the time limit and the signal of the call', async () => {
    await start({ banks: { list: () => new Promise(() => undefined) } });
    const banks = module.get(BanksService);
    await expect(banks.list({ timeout: 5 })).rejects.toMatchObject({ kind: 'timeout', path: '/banks/v1' });
    const reason = new Error('not wanted any more');
    const controller = new AbortController();
    const call = banks.list({ signal: controller.signal });
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
  });

  it('lets an answer call doubles, each with an answer and a record of its own', async () => {
    await start({
      banks: { list: async () => module.get(ServiceHttpService).get('/inner/v1') },
      http: { get: (path) => ({ path }) },
    });
    expect(await module.get(BanksService).list()).toEqual({ path: '/inner/v1' });
    expect(service.calls.map(({ method }) => method)).toEqual(['banks.list', 'http.get']);
  });

  it('takes other answers during a test, and goes back to those of the start', async () => {
    await start({ banks: { list: () => ['first'] } });
    const banks = module.get(BanksService);
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
  });

  it('has the process wait for a call under way, and for nothing else', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const during: number[] = [];
    await start({ banks: { list: () => during.push(timers()) } });
    const before = timers();
    await module.get(BanksService).list();
    expect(during).toEqual([before + 1]);
    expect(timers()).toBe(before);
  });

  it('needs no timer of the test', async () => {
    await start();
    jest.useFakeTimers();
    try {
      expect(await module.get(BanksService).list()).toHaveLength(2);
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('gives a text that is the answer as that text', async () => {
    await start({ banks: { list: () => 'closed' } });
    expect(await module.get(BanksService).list()).toBe('closed');
  });

  it('gives text and bytes as they are where the caller asked for them', async () => {
    const answers = ['a;b', Buffer.from('bytes'), { a: 1 }];
    await start({ http: { request: () => answers.shift() } });
    const { axiosRef } = module.get(ServiceHttpService);
    const text = await axiosRef.get<unknown>('/a', { responseType: 'text' });
    expect([text.data, text.status, text.statusText]).toEqual(['a;b', 200, 'OK']);
    expect(text.headers['content-type']).toBe('application/json');
    const bytes = await axiosRef.get<unknown>('/a', { responseType: 'arraybuffer' });
    expect(bytes.data).toEqual(Buffer.from('bytes'));
    expect((await axiosRef.get<unknown>('/a', { responseType: 'text' })).data).toBe('{"a":1}');
    expect(await axiosRef.get('/a')).toMatchObject({ status: 204, statusText: 'No Content' });
  });

  it('has the certificate and the state of the identity that it is given', async () => {
    const dates = { validFrom: new Date(0), validTo: new Date(Date.now() + 1.5 * 86_400_000) };
    const certificate = { subject: 'CN=app', issuer: 'CN=i', fingerprint256: 'AA', ...dates };
    await start({ auth: { certificate } });
    const auth = module.get(ServiceAuthService);
    expect(auth.certificate).toEqual(certificate);
    expect(auth.identityStatus).toEqual({ healthy: true, certificate, daysLeft: 1 });
    const identityStatus = { healthy: false };
    service.use({ auth: { certificate, identityStatus } });
    expect(auth.identityStatus).toEqual(identityStatus);
  });

  it('gives no token to a caller that has ended its call', async () => {
    await start();
    const reason = new Error('mine');
    const signal = AbortSignal.abort(reason);
    await expect(module.get(ServiceAuthService).getApiToken({ signal })).rejects.toBe(reason);
  });

  it('says of an answer that is no JSON what it is', async () => {
    await start({ banks: { list: () => () => [] } });
    await expect(module.get(BanksService).list()).rejects.toThrow(/answered with a function/);
  });

  it('begins with the first customer again at reset(), whatever the tests before created', async () => {
    await start();
    const create = () => module.get(CustomersService).create({ app_user_id: 'u-1' });
    await create();
    service.reset();
    expect(await create()).toMatchObject({ customer_id: 'customer-1' });
  });

  it('names a service, a method and a module that there is not', async () => {
    const doubles = (given: object) => () => stubService(Test.createTestingModule({}), given);
    expect(doubles({ bank: {} })).toThrow(
      "There is no service called 'bank' that can be doubled. There are: auth, banks, ",
    );
    expect(doubles({ banks: { lst: () => [] } })).toThrow("There is no member of banks called 'lst'");
    expect(doubles({ named: { ksa: { bank: {} } } })).toThrow("There is no service called 'bank'");
    expect(doubles({ banks: { list: [] } })).toThrow('The double banks.list must be a function');
    const compiled = await Test.createTestingModule({}).compile();
    expect(() => stubService(compiled as never)).toThrow(/takes the builder .* before compile\(\)/);
    await expect(start({ named: { kas: { banks: { list: () => [] } } } })).rejects.toThrow(
      "There is no ServiceModule called 'kas' that can be doubled. There are: ksa.",
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

  it('is what replaces a ServiceModule: for overrideModule() of Nest there is none', async () => {
    class Nothing {}
    const builder = Test.createTestingModule({ imports: [AppModule] });
    await expect(builder.overrideModule(ServiceModule).useModule(Nothing).compile()).rejects.toThrow();
    stubService(builder);
    open.push(await builder.compile());
    expect(open[0].get(BanksService, { strict: false })).toBeInstanceOf(BanksService);
  });

  it('keeps the exception filter of the host at work', async () => {
    await start({
      banks: {
        list: () => {
          throw serviceErrors.api(409, { message: 'No such bank' });
        },
      },
    });
    const app: INestApplication = module.createNestApplication();
    await app.listen(0, '127.0.0.1');
    try {
      const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
      const answer = await fetch(`http://127.0.0.1:${port}/banks`);
      expect(answer.status).toBe(409);
      expect(await answer.json()).toMatchObject({ message: 'No such bank' });
      expect((await fetch(`http://127.0.0.1:${port}/ksa`)).status).toBe(200);
    } finally {
      await app.close();
    }
  });
});
