import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Body, Controller, Get, type HttpException, Logger, Post, type Type } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ExpressAdapter } from '@nestjs/platform-express';
import { ApiNotFoundResponse, ApiProperty, DocumentBuilder, PickType, SwaggerModule } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { EventEmitter, once } from 'node:events';
import { cp } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo } from 'node:net';
import { Subject, switchMap } from 'rxjs';
import {
  BanksService,
  ConnectDto,
  CreateCustomerDto,
  LinkSessionDto,
  type ServiceAuthService,
  type ServiceCallEvent,
  type ServiceClient,
  ServiceExceptionFilter,
  type ServiceHttpService,
  ServiceModule,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { knownApiRoutes, serviceErrors, ServiceSimulator, stubService } from 'nestjs-service/testing';
import { startSimulator } from '../helpers/simulators.js';
import { startModule, type StartedModule } from '../helpers/start-module.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { until } from '../helpers/until.js';
import { readDocument, writeSnippets } from '../helpers/readme.js';

// The snippets that this file runs. test/consumers runs those that need other packages.
const OWN = new Set([
  'caller-gone.ts',
  'service-fetch.ts',
  'api-service-errors.ts',
  'countries.module.ts',
  'customer-of.ts',
  'when-ready.ts',
  'payment.processor.ts',
  'slow-reads.module.ts',
  'tenant-clients.ts',
  'reporting.module.ts',
  'read-data.ts',
  'sync.ts',
  'addresses.ts',
  'optional.module.ts',
  'server.ts',
]);

async function entriesOf<T>(source: AsyncIterable<T>): Promise<T[]> {
  const entries: T[] = [];
  for await (const entry of source) entries.push(entry);
  return entries;
}

describe('docs/recipes.md', () => {
  const written = readDocument('docs/recipes.md').then(({ fences }) =>
    writeSnippets(
      fences
        .filter(({ file = '' }) => OWN.has(file))
        // A backend of the recipes leaves the pause between two reads to its default, for which a test cannot wait.
        .map((fence) => ({ ...fence, text: fence.text.replace('pauseMs = 1_000', 'pauseMs = 1') })),
      { name: 'recipes', stubs: true },
    ),
  );
  /** Imports the code block of this document that has the file name, and returns its exports. */
  const load = async <T>(file: string): Promise<T> => (await import((await written).path(file))) as T;
  afterAll(async () => (await written).remove());

  describe('recipes for calls of most backends', () => {
    let simulator: ServiceSimulator;
    let api: StartedModule;
    beforeAll(async () => {
      simulator = await startSimulator();
      simulator.answer(knownApiRoutes({ pendingReads: 2 }));
      api = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    });
    afterAll(async () => {
      await api.module.close();
      await simulator.stop();
    });

    it('customerOf finds or creates a customer, also after the response to a create was lost', async () => {
      const { customerOf } = (await import((await written).path('customer-of.ts'))) as {
        customerOf: (...given: unknown[]) => Promise<{ customer_id: string }>;
      };
      const find = (id: string) => customerOf(api.customers, api.http, id);
      const created = await find('a/b@example.com');
      expect(await find('a/b@example.com')).toEqual(created);
      simulator.fail({ path: '/customers/v1', fault: { status: 201, body: '' } });
      expect(await find('a/b@example.com')).toEqual(created);
      // This is the state after a create whose response was lost.
      await api.customers.create({ app_user_id: 'lost' });
      for (const fault of ['reset', { status: 503 }] as const) {
        simulator.fail({ path: '/customers/v1', fault });
        expect(await find('lost')).toMatchObject({ app_user_id: 'lost' });
      }
      simulator.fail({ path: '/customers/v1', fault: { status: 403 } });
      await expect(find('other')).rejects.toMatchObject({ status: 403 });
      // If the outcome is unknown and the customer does not exist, the first error is thrown.
      simulator.fail({ path: '/customers/v1', fault: { status: 503 } });
      await expect(find('other')).rejects.toMatchObject({ status: 503, outcomeUnknown: true });
    });

    it('accountFeed() of docs/calls.md requests no more pages than its caller consumes', async () => {
      const { fences } = await readDocument('docs/calls.md');
      const snippet = await writeSnippets(
        fences.filter(({ file }) => file === 'account-feed.ts'),
        { name: 'lists', stubs: true },
      );
      const { accountFeed } = (await import(snippet.path('account-feed.ts'))) as {
        accountFeed: (...given: unknown[]) => AsyncGenerator<{ account_id: string }>;
      };
      const { customer_id } = await api.customers.create<{ customer_id: string }>({ app_user_id: 'feed' });
      const entity = `entity-${customer_id}`;
      simulator.clearRequests();
      for await (const { account_id } of accountFeed(api.http, entity, 1)) {
        expect(account_id).toBe(`current-${entity}`);
        break;
      }
      const all = await entriesOf(accountFeed(api.http, entity, 1));
      expect(all.map(({ account_id }) => account_id)).toEqual([`current-${entity}`, `savings-${entity}`]);
      const requestedPages = simulator.apiRequests.map(({ path }) => /page=\d/.exec(path)?.[0]);
      expect(requestedPages).toEqual(['page=0', 'page=0', 'page=1']);
      await snippet.remove();
    });

    it('whenReady() fetches the results of a PENDING read until they are ready or its time is up', async () => {
      const { whenReady } = (await import((await written).path('when-ready.ts'))) as {
        whenReady: (...given: unknown[]) => Promise<unknown>;
      };
      const { customer_id } = await api.customers.create<{ customer_id: string }>({ app_user_id: 'ready' });
      const entity_id = `entity-${customer_id}`;
      const pathParams = { account_id: `current-${entity_id}` };
      const path = '/data/v2/accounts/{account_id}/transactions';
      const pending = await api.http.get<object>(path, { pathParams, params: { entity_id } });
      expect(pending).toMatchObject({ status: 'PENDING' });
      const fetchResults = (results_id: string) =>
        api.http.get('/data/v2/results/{results_id}', { pathParams: { results_id } });
      const pauses: number[] = [];
      const pause = async (ms: number) => void pauses.push(ms);
      expect(await whenReady(pending, fetchResults, { pause, timeoutMs: 0 })).toBeUndefined();
      simulator.clearRequests();
      expect(await whenReady(pending, fetchResults, { pause })).toMatchObject({ status: 'OK', page: {} });
      expect(simulator.apiRequests).toHaveLength(2);
      await expect(whenReady(pending, () => api.http.get('/none/v1'), { pause })).rejects.toMatchObject({
        status: 404,
      });
      for (const first of [{ status: 'FAILED', results_id: 'r-1' }, { status: 'PENDING' }])
        expect(await whenReady(first, () => Promise.reject(new Error('asked')), { pause })).toBe(first);
      // The pauses double up to 15 s, and all of them fit into 120 s.
      pauses.length = 0;
      expect(await whenReady(pending, async () => pending, { pause })).toBeUndefined();
      expect(pauses).toEqual([
        ...Array.from({ length: 14 }, (_, index) => 2 ** index),
        ...Array(6).fill(15_000),
      ]);
      // The pause by default ends with the signal.
      const aborted = { signal: AbortSignal.abort() };
      await expect(whenReady(pending, fetchResults, aborted)).rejects.toThrow(/aborted/);
    });
  });

  it.each(['FAILED', 'RECONNECT_REQUIRED'])(
    'readData() treats the status %s in a 200 response as a failure and keeps its fields',
    async (status) => {
      const { readData } = await load<{ readData(...given: unknown[]): Promise<object> }>('read-data.ts');
      await using simulator = await startSimulator();
      const { http, module } = await startModule(simulator.moduleOptions());
      const limits: unknown[] = [];
      http.axiosRef.interceptors.request.use((config) => (limits.push(config.timeout), config));
      const path = '/data/v2/accounts/{account_id}/transactions';
      const read = () => readData(http, path, { pathParams: { account_id: 'a-1' } });
      const pending = { status: 'PENDING', results_id: 'r-1' };
      const failed = { status, message: 'Ask again', status_detail: 'By the bank', results_id: 'r-1' };
      simulator.answer('GET', path, { json: pending });
      simulator.answer('GET', '/data/v2/results/r-1', { json: failed });
      const error = await read().catch((thrown: HttpException) => thrown);
      expect((error as HttpException).getResponse()).toEqual({
        statusCode: 409,
        code: 'api_error',
        message: 'Ask again',
        serviceStatus: status,
        fields: { status_detail: 'By the bank' },
      });
      simulator.answer('GET', '/data/v2/results/r-1', { json: { status: 'OK', data: [1] } });
      expect(await read()).toEqual({ status: 'OK', data: [1] });
      expect(new Set(limits)).toEqual(new Set([60_000]));
      await module.close();
    },
  );

  it('sync() retries, logs which call failed and returns the customers that the next run has to sync', async () => {
    type Sync = (...given: unknown[]) => Promise<string[]>;
    const { sync } = await load<{ sync: Sync }>('sync.ts');
    await using simulator = await startSimulator();
    simulator.answer(knownApiRoutes());
    const { http, module, customers } = await startModule(simulator.moduleOptions());
    const ids = [];
    for (const app_user_id of ['a', 'b', 'c'])
      ids.push((await customers.create({ app_user_id }))!.customer_id);
    const of = (id: string) => `/customers/v1/${id}/entities`;
    simulator.fail({ path: of(ids[0]), times: 3, fault: { status: 503 } });
    const expired = { status: 'CONSENT_EXPIRED', message: 'The consent has expired' };
    simulator.fail({ path: of(ids[1]), times: 99, fault: { status: 403, json: expired } });
    simulator.fail({
      path: of(ids[2]),
      times: 99,
      fault: { status: 429, headers: { 'retry-after': '3600' } },
    });
    const [saved, logged]: [string[], string[]] = [[], []];
    const save = async (id: string) => void saved.push(id);
    expect(await sync(http, ids, save, (line: string) => void logged.push(line))).toEqual([ids[2]]);
    expect(saved).toEqual([ids[0]]);
    expect(logged).toEqual([
      'GET /customers/v1/{customer_id}/entities: HTTP 403 CONSENT_EXPIRED: The consent has expired',
      expect.stringMatching(/^GET \/customers\/v1\/\{customer_id\}\/entities: HTTP 429/),
    ]);
    await module.close();
  });

  it('SERVICE_ENVIRONMENT switches the hosts of the API and of the token endpoint', async () => {
    const { addresses } = await load<{ addresses: ServiceModuleOptions }>('addresses.ts');
    await using production = await startSimulator();
    await using sandbox = await startSimulator();
    const { baseUrl, authUrl } =
      production.moduleOptions({ environment: 'production', oauth: true }).urls ?? {};
    const { sandboxUrl, sandboxAuthUrl } =
      sandbox.moduleOptions({ environment: 'sandbox', oauth: true }).urls ?? {};
    const urls = { baseUrl, authUrl, sandboxUrl, sandboxAuthUrl };
    expect(Object.keys(addresses.urls ?? {})).toEqual(Object.keys(urls));
    const before = { ...process.env };
    for (const [environment, called, other] of [
      ['production', production, sandbox],
      ['sandbox', sandbox, production],
      ['', sandbox, production],
    ] as const) {
      const mode = { environment: environment || 'sandbox', authentication: 'oauth' } as const;
      const { SERVICE_TLS_CERTIFICATE: _, SERVICE_TLS_PRIVATE_KEY: __, ...variables } = called.env(mode);
      Object.assign(process.env, variables, { SERVICE_ENVIRONMENT: environment });
      const { banks, module } = await startModule({ ...addresses, urls });
      process.env = { ...before };
      expect(await banks.list()).toHaveLength(10);
      await module.close();
      expect([called.apiRequests.length, called.tokenRequests.length, other.requests.length]).toEqual([
        1, 1, 0,
      ]);
      called.clearRequests();
    }
  });

  it('OptionalModule is off unless it is configured, and needs only stubService in a test', async () => {
    type Optional = { OptionalModule: Type; BankList: Type<{ all(): Promise<unknown> }> };
    const { path } = await written;
    const start = async (variables: object, name: string) => {
      const before = { ...process.env };
      Object.assign(process.env, variables);
      // The condition is evaluated when the file is loaded, so each case imports a copy of its own.
      const copy = path(`optional-${name}.module.ts`);
      await cp(path('optional.module.ts'), copy);
      const { OptionalModule, BankList } = (await import(copy)) as Optional;
      const builder = Test.createTestingModule({ imports: [OptionalModule] });
      if (name === 'stubbed') stubService(builder, { banks: { list: () => ['Alpha'] } });
      const module = await builder.compile();
      process.env = before;
      return { banks: module.get(BankList), close: () => module.close() };
    };
    const off = await start({}, 'off');
    await expect(off.banks.all()).rejects.toThrow('Banks are not configured');
    await using simulator = await startSimulator();
    const on = await start(simulator.env({ environment: 'sandbox' }), 'on');
    expect(await on.banks.all()).toHaveLength(10);
    const stubbed = await start({ SERVICE_ENVIRONMENT: 'sandbox' }, 'stubbed');
    expect(await stubbed.banks.all()).toEqual(['Alpha']);
    for (const { close } of [off, on, stubbed]) await close();
  });

  it('an Express application without Nest answers errors as the exception filter does', async () => {
    await using simulator = await startSimulator();
    const before = { ...process.env };
    Object.assign(process.env, simulator.env({ environment: 'sandbox' }));
    const { app, service } = await load<{ app: RequestListener; service: ServiceClient }>('server.ts');
    process.env = before;
    const server = createServer(app).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/customers`;
    const logged = jest.spyOn(console, 'error').mockImplementation(() => undefined);
    const post = async (user_id: string) => {
      const headers = { 'content-type': 'application/json', connection: 'close' };
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ user_id }) });
      return [response.status, await response.json(), response.headers.get('retry-after')];
    };
    expect(await post('u-1')).toMatchObject([201, { app_user_id: 'u-1' }, null]);
    const exists = { code: 'api_error', serviceStatus: 'CUSTOMER_ALREADY_EXISTS' };
    expect(await post('u-1')).toMatchObject([409, { statusCode: 409, ...exists }, null]);
    expect(logged).not.toHaveBeenCalled();
    simulator.fail({
      path: '/customers/v1',
      times: 9,
      fault: { status: 429, headers: { 'retry-after': '90' } },
    });
    expect(await post('u-2')).toMatchObject([503, { statusCode: 503, code: 'api_error' }, '90']);
    expect(logged).toHaveBeenCalledTimes(1);
    logged.mockRestore();
    server.close();
    await service.close();
  });

  it('the payment processor lets a queue run a job again only if its call may be sent again', async () => {
    const { payments } = (await import((await written).path('payment.processor.ts'))) as {
      payments: (http: ServiceHttpService) => (job: { data: object }) => Promise<unknown>;
    };
    const simulator = await startSimulator();
    const options = simulator.moduleOptions();
    const { http, module } = await startModule({ ...options, http: { ...options.http, retries: 0 } });
    const paths = { path: '/payments/v1', method: 'POST' };
    simulator.fail({ ...paths, fault: { status: 503 } });
    simulator.fail({
      ...paths,
      fault: { status: 422, json: { status: 'NO_SUCH_PAYEE', message: 'no payee' } },
    });
    simulator.answer('POST', '/payments/v1', { json: { id: 'p-1' } });
    /** Runs a job as BullMQ does with four attempts. */
    const run = async (id: string, attempts = 4): Promise<unknown> => {
      try {
        return await payments(http)({ data: { orderId: `order-${id}`, payment: { amount: 1 } } });
      } catch (error) {
        if (attempts === 1 || (error as Error).constructor.name === 'UnrecoverableError') throw error;
        return run(id, attempts - 1);
      }
    };
    await expect(run('1')).rejects.toThrow('no payee');
    expect(await run('2')).toEqual({ id: 'p-1' });
    expect(simulator.apiRequests.map(({ headers }) => headers['idempotency-key'])).toEqual([
      'order-1',
      'order-1',
      'order-2',
    ]);
    await module.close();
    await simulator.stop();
  });

  it.each([
    ['Express', () => new ExpressAdapter()],
    ['Fastify', () => new FastifyAdapter()],
  ])('CallerGone aborts a call whose caller has disconnected, on %s', async (_, adapter) => {
    const { CallerGone } = (await import((await written).path('caller-gone.ts'))) as {
      CallerGone: () => ParameterDecorator;
    };
    @Controller('search')
    class SearchController {
      constructor(private readonly banks: BanksService) {}
      @Get()
      list(@CallerGone() signal: AbortSignal) {
        return this.banks.list({ signal });
      }
    }
    const events = new EventEmitter();
    const onCall = (event: ServiceCallEvent) => void events.emit('call', event);
    const simulator = await startSimulator();
    const options = { ...simulator.moduleOptions(), http: { onCall } };
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(options)],
      controllers: [SearchController],
    }).compile();
    const logger = new CollectingLogger();
    const app = module.createNestApplication(adapter(), { logger });
    await app.listen(0, '127.0.0.1');
    const url = `${await app.getUrl()}/search`;
    expect(await (await fetch(url)).json()).toHaveLength(10);

    simulator.fail({ when: () => events.emit('arrival'), fault: 'hang' });
    const caller = new AbortController();
    const [arrival, ended] = [once(events, 'arrival'), once(events, 'call')];
    const inbound = fetch(url, { signal: caller.signal });
    await arrival;
    caller.abort();
    await expect(inbound).rejects.toThrow();
    expect(await ended).toMatchObject([{ route: '/banks/v1', error: 'aborted' }]);
    // fetch has opened a spare connection. Node does not count it as idle before its first request, so close it here.
    app.getHttpServer().closeAllConnections();
    await app.close();
    expect(logger.lines.filter((line) => /error|gone/i.test(JSON.stringify(line)))).toEqual([]);
    await simulator.stop();
  });

  it('ServiceFetch uses the current certificate for new connections, keeps open ones and always verifies the server', async () => {
    const { ServiceFetch } = (await import((await written).path('service-fetch.ts'))) as {
      ServiceFetch: new (auth: ServiceAuthService) => {
        fetch(url: string, init?: object): Promise<Response>;
        onModuleDestroy(): Promise<void>;
      };
    };
    const simulator = await ServiceSimulator.start();
    let current = simulator.application;
    const pems = () => ({
      certificate: current.certificate,
      privateKey: current.privateKey,
      chain: simulator.chain,
    });
    const { auth, module } = await startModule({
      ...simulator.moduleOptions({ authentication: 'mtls' }),
      tls: async () => pems(),
    });
    const client = new ServiceFetch(auth);
    const url = `${simulator.urls.baseUrl}/banks/v1`;
    const list = async () => expect(await (await client.fetch(url)).json()).toHaveLength(10);
    await list();
    current = await simulator.issueCertificate({ commonName: 'next' });
    await auth.reloadCertificate();
    await list();
    simulator.dropConnections();
    await list();
    const subjects = simulator.apiRequests.map(({ certificateSubject }) => certificateSubject);
    const { subject } = simulator.application;
    expect(subjects).toEqual([subject, subject, current.subject]);
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      simulator.dropConnections();
      await simulator.useServerCertificate({ foreign: true });
      await expect(client.fetch(url)).rejects.toThrow();
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
    expect(simulator.apiRequests).toHaveLength(3);
    await client.onModuleDestroy();
    await module.close();
    await simulator.stop();
  });

  it('switchMap and unsubscribe() end the running call of an Observable', async () => {
    const events = new EventEmitter();
    const onCall = (event: ServiceCallEvent) => void events.emit('call', event.error);
    await using simulator = await startSimulator();
    const { module, http } = await startModule({ ...simulator.moduleOptions(), http: { onCall } });
    const countries = new Subject<string>();
    const responses: unknown[] = [];
    const search = countries
      .pipe(switchMap((country) => http.httpService.get('/banks/v1', { params: { country } })))
      .subscribe(({ data }) => {
        responses.push(data);
        events.emit('answer');
      });
    const requestCountry = async (country: string, fault?: 'hang') => {
      if (fault) simulator.fail({ when: ({ path }) => path.endsWith(country), fault });
      countries.next(country);
      await simulator.waitForRequest(({ path }) => path.endsWith(country), 10_000);
    };
    await requestCountry('slow-1', 'hang');
    const [ended, response] = [once(events, 'call'), once(events, 'answer')];
    await requestCountry('AE');
    expect(await ended).toEqual(['connection_closed']);
    await response;
    await requestCountry('slow-2', 'hang');
    const unsubscribed = once(events, 'call');
    search.unsubscribe();
    expect(await unsubscribed).toEqual(['connection_closed']);
    expect(responses).toHaveLength(1);
    await module.close();
  });

  it('payments go through while slow reads occupy all connections of their own module', async () => {
    const { Accounts, AccountsModule } = (await import((await written).path('slow-reads.module.ts'))) as {
      Accounts: Type<Record<'transactions' | 'pay', (...given: unknown[]) => Promise<unknown>>>;
      AccountsModule: Type;
    };
    await using simulator = await startSimulator();
    simulator.answer('GET', '/data/v2/accounts/{account_id}/transactions', { json: {} });
    simulator.answer('POST', '/payments/v1/intents', { json: { status: 'CREATED' } });
    const before = { ...process.env };
    Object.assign(process.env, simulator.env());
    try {
      const module = await Test.createTestingModule({ imports: [AccountsModule] }).compile();
      const accounts = module.get(Accounts);
      simulator.fail({ path: '/data/v2/accounts/{id}/transactions', times: Infinity, fault: 'hang' });
      const reads = Array.from({ length: 60 }, (_, index) => accounts.transactions(`a-${index}`));
      const ended = Promise.allSettled(reads);
      await simulator.waitForRequest(() => simulator.requests.length === 50, 30_000);
      expect(await accounts.pay('order-1', { amount: 1 })).toEqual({ status: 'CREATED' });
      expect(simulator.requests).toHaveLength(51);
      await module.close();
      for (const { status } of await ended) expect(status).toBe('rejected');
    } finally {
      process.env = before;
    }
  });

  it('ReportingModule reports unexpected errors to Sentry and still answers callers as ServiceExceptionFilter does', async () => {
    const folder = await written;
    const { ReportingModule } = (await import(folder.path('reporting.module.ts'))) as {
      ReportingModule: Type;
    };
    const { reported } = (await import(`${folder.stub('@sentry/nestjs')}/index.js`)) as {
      reported: unknown[];
    };
    @Controller()
    class HostController {
      constructor(private readonly banks: BanksService) {}
      @Get('banks')
      list() {
        return this.banks.list();
      }
      @Get('broken')
      broken() {
        throw new TypeError('of the host');
      }
    }
    const builder = Test.createTestingModule({
      imports: [ReportingModule, ServiceModule.forRoot()],
      controllers: [HostController],
    });
    const service = stubService(builder);
    const app = (await builder.compile()).createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    const statusOf = async (path: string, error?: Error) => {
      if (error) service.use({ banks: { list: () => Promise.reject(error) } });
      return (await fetch(`${await app.getUrl()}/${path}`, { headers: { connection: 'close' } })).status;
    };
    expect(await statusOf('banks', serviceErrors.api(503))).toBe(502);
    expect(await statusOf('banks', serviceErrors.api(409))).toBe(409);
    expect(await statusOf('broken')).toBe(500);
    expect(reported).toMatchObject([{ status: 503 }, { message: 'of the host' }]);
    await app.close();
  });

  it('TenantClients keeps the clients that were used last, and lets the calls of the others end', async () => {
    const { TenantClients } = await load<{ TenantClients: Type<Tenants> }>('tenant-clients.ts');
    interface Tenants {
      of(tenant: string): Promise<ServiceClient>;
      close(tenant: string): Promise<void>;
      closeAll(): Promise<void>;
    }
    await using simulator = await startSimulator();
    const logger = new CollectingLogger();
    Logger.overrideLogger(logger);
    const events: unknown[] = [];
    const onCall = ({ module, route }: ServiceCallEvent) => void events.push(`${module} ${route}`);
    let isVaultDown = false;
    const optionsOf = async (): Promise<ServiceModuleOptions> => {
      if (isVaultDown) throw new Error('The vault is down');
      return { ...simulator.moduleOptions(), http: { onCall } };
    };
    const tenants = new TenantClients(optionsOf, 2);

    const [a, again] = await Promise.all([tenants.of('a'), tenants.of('a')]);
    expect(again).toBe(a);
    const b = await tenants.of('b');
    expect(await tenants.of('a')).toBe(a);
    const slow = simulator.fail({ path: '/banks/v1', fault: { delayMs: 100 } });
    const inFlight = b.banks.list();
    await until(() => slow.hits === 1);
    await tenants.of('c');
    expect(await tenants.of('a')).toBe(a);
    await expect(b.customers.create({ app_user_id: 'u-1' })).rejects.toMatchObject({ kind: 'closed' });
    expect(await inFlight).toHaveLength(10);
    expect(logger.linesOf('ServiceClient:c')).toHaveLength(1);

    expect(await (await tenants.of('b')).banks.list()).toHaveLength(10);
    expect(events.slice(-2)).toEqual(['b /banks/v1', 'b /banks/v1']);
    isVaultDown = true;
    await expect(tenants.of('d')).rejects.toThrow('The vault is down');
    isVaultDown = false;
    expect(await (await tenants.of('d')).banks.list()).toHaveLength(10);
    await tenants.closeAll();
    await expect(a.banks.list()).rejects.toMatchObject({ kind: 'closed' });
    Logger.overrideLogger(false);
  });

  it('CountriesModule calls two countries, each with its own variables and hosts', async () => {
    const { Countries, CountriesModule } = (await import((await written).path('countries.module.ts'))) as {
      Countries: Type<{ banks(country: 'uae' | 'ksa'): Promise<unknown> }>;
      CountriesModule: Type;
    };
    await using uae = await ServiceSimulator.start();
    await using ksa = await ServiceSimulator.start();
    const values = {
      ...uae.env({ authentication: 'oauth', oauthBaseUrl: true, name: 'uae' }),
      ...ksa.env({ authentication: 'mtls', name: 'ksa' }),
    };
    const { fences } = await readDocument('docs/recipes.md');
    const block = fences.find(({ language }) => language === 'dotenv')?.text ?? '';
    const names = [...block.matchAll(/^(SERVICE_\w+?)(_FILE)?=/gm)].map(([, name]) => name);
    const before = { ...process.env };
    for (const name of names) process.env[name] = values[name];
    try {
      const module = await Test.createTestingModule({ imports: [CountriesModule] }).compile();
      const countries = module.get<{ banks(country: string): Promise<unknown> }>(Countries);
      expect(await countries.banks('uae')).toHaveLength(10);
      expect(await countries.banks('ksa')).toHaveLength(10);
      expect([uae, ksa].map(({ apiRequests }) => apiRequests.map(({ face }) => face))).toEqual([
        ['oauth-base'],
        ['base'],
      ]);
      await module.close();
    } finally {
      process.env = before;
    }
  });

  it('parse reads large integers exactly, list parameters have two forms, and a generated client works with axiosRef', async () => {
    await using simulator = await ServiceSimulator.start();
    const { module, http } = await startModule(simulator.moduleOptions());
    simulator.answer('GET', '/accounts/v1', { body: '{"balance":9007199254740993}' });
    const parse = (text: unknown) => BigInt(/\d+/.exec(String(text))?.[0] ?? 0);
    expect(await http.get('/accounts/v1', { responseType: 'text', parse })).toBe(9007199254740993n);
    const params = { id: ['a', 'b'] };
    await http.get('/accounts/v1', { params });
    await http.axiosRef.get('/accounts/v1', { params, paramsSerializer: { indexes: null } });
    // A client generated with the template typescript-axios makes its request like this.
    const basePath = '';
    await http.axiosRef.request({ url: `${basePath}/accounts/v1`, method: 'GET' });
    expect(simulator.apiRequests.slice(1).map(({ path }) => decodeURIComponent(path))).toEqual([
      '/accounts/v1?id[]=a&id[]=b',
      '/accounts/v1?id=a&id=b',
      '/accounts/v1',
    ]);
    await module.close();
  });

  it("a Swagger document contains the exception filter's answers and the DTOs with their types and limits", async () => {
    const { ApiServiceErrors } = (await import((await written).path('api-service-errors.ts'))) as {
      ApiServiceErrors: () => ClassDecorator;
    };
    class OwnWords extends ConnectDto {
      @ApiProperty({ description: 'In the words of the host' })
      declare customer_id: string;
    }
    class OneField extends PickType(ConnectDto, ['permissions']) {}
    const failures = [
      ...[400, 403, 409, 422, 429, 500].map((status) => serviceErrors.api(status)),
      serviceErrors.api(404, { path: '/customers/v1/c-1' }),
      serviceErrors.connection('timeout'),
      serviceErrors.connection('reset'),
      serviceErrors.token(),
    ];
    @ApiServiceErrors()
    @Controller()
    class HostController {
      @Post('customers')
      create(@Body() _: CreateCustomerDto) {}
      @Post('connect')
      connect(@Body() _: ConnectDto) {}
      @Post('session')
      session(@Body() _: LinkSessionDto) {}
      @Post('own')
      own(@Body() _: OwnWords) {}
      @Post('one')
      one(@Body() _: OneField) {}
      @Get('failure')
      @ApiNotFoundResponse({ description: 'No such bank' })
      fail() {
        throw failures.shift()!;
      }
    }
    const module = await Test.createTestingModule({ controllers: [HostController] }).compile();
    const app = module.createNestApplication({ logger: false });
    app.useGlobalFilters(new ServiceExceptionFilter());
    await app.listen(0, '127.0.0.1');
    const { components, paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    const schemas = components?.schemas as Record<string, { required: string[]; properties: object }>;

    const form = { 'application/json': { schema: { $ref: '#/components/schemas/ServiceErrorAnswer' } } };
    const { 200: _, ...described } = paths['/failure']?.get?.responses ?? {};
    const statuses = new Set<string>();
    while (failures.length > 0) {
      const response = await fetch(`${await app.getUrl()}/failure`);
      statuses.add(String(response.status));
      expect(Object.keys((await response.json()) as object)).toEqual(
        expect.arrayContaining(schemas.ServiceErrorAnswer.required),
      );
    }
    expect(Object.keys(described)).toEqual([...statuses].sort());
    expect(described['404']).toEqual({ description: 'No such bank' });
    expect(described['503']).toEqual({ description: 'Service Unavailable', content: form });
    expect(schemas.ServiceErrorAnswer?.required).toEqual(['statusCode', 'message', 'code']);

    const optional = { bank_identifier: { type: 'string', maxLength: 256 } };
    const permissions = { type: 'array', items: { type: 'string' }, minItems: 1 };
    expect(schemas).toMatchObject({
      CreateCustomerDto: { required: ['app_user_id'], properties: { app_user_id: { type: 'string' } } },
      ConnectDto: {
        required: ['customer_id', 'permissions'],
        properties: { customer_id: { type: 'string', maxLength: 128 }, permissions, ...optional },
      },
      LinkSessionDto: { required: ['permissions'], properties: { permissions, ...optional } },
      OneField: { required: ['permissions'], properties: { permissions } },
      OwnWords: { properties: { customer_id: { description: 'In the words of the host' }, permissions } },
    });
    expect(Object.keys(schemas.OneField.properties)).toEqual(['permissions']);
    expect(Object.keys(schemas.LinkSessionDto.properties).sort()).toEqual(['bank_identifier', 'permissions']);
    await app.close();
  });
});
