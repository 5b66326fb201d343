import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Body, Controller, Get, Post, type Type } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ExpressAdapter } from '@nestjs/platform-express';
import { ApiNotFoundResponse, ApiProperty, DocumentBuilder, PickType, SwaggerModule } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { createHmac } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { Subject, switchMap } from 'rxjs';
import {
  BanksService,
  ConnectDto,
  CreateCustomerDto,
  LinkSessionDto,
  type ServiceAuthService,
  type ServiceCallEvent,
  ServiceExceptionFilter,
  type ServiceHttpService,
  ServiceModule,
} from 'nestjs-service';
import { knownApiRoutes, serviceErrors, ServiceSimulator } from 'nestjs-service/testing';
import { startSimulator } from '../helpers/simulators.js';
import { startModule, type StartedModule } from '../helpers/start-module.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { readDocument, writeSnippets } from '../helpers/readme.js';

// Those that need other packages are run by test/consumers.
const OWN = new Set([
  'caller-gone.ts',
  'service-fetch.ts',
  'api-service-errors.ts',
  'countries.module.ts',
  'webhook.controller.ts',
  'customer-of.ts',
  'pages.ts',
  'account-feed.ts',
  'when-ready.ts',
  'payment.processor.ts',
]);

async function entriesOf<T>(source: AsyncIterable<T>): Promise<T[]> {
  const entries: T[] = [];
  for await (const entry of source) entries.push(entry);
  return entries;
}

describe('docs/recipes.md', () => {
  const written = readDocument('docs/recipes.md').then(({ fences }) =>
    writeSnippets(
      fences.filter(({ file = '' }) => OWN.has(file)),
      { name: 'recipes', stubs: true },
    ),
  );
  afterAll(async () => (await written).remove());

  describe('the calls of many backends', () => {
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

    it('finds or creates a customer, also after an answer that was lost', async () => {
      const { customerOf } = (await import((await written).path('customer-of.ts'))) as {
        customerOf: (...given: unknown[]) => Promise<{ customer_id: string }>;
      };
      const find = (id: string) => customerOf(api.customers, api.http, id);
      const created = await find('a/b@example.com');
      expect(await find('a/b@example.com')).toEqual(created);
      // As after a create whose answer was lost.
      await api.customers.create({ app_user_id: 'lost' });
      for (const fault of ['reset', { status: 503 }] as const) {
        simulator.fail({ path: '/customers/v1', fault });
        expect(await find('lost')).toMatchObject({ app_user_id: 'lost' });
      }
      simulator.fail({ path: '/customers/v1', fault: { status: 403 } });
      await expect(find('other')).rejects.toMatchObject({ status: 403 });
      // In doubt, and not there: the first fault counts.
      simulator.fail({ path: '/customers/v1', fault: { status: 503 } });
      await expect(find('other')).rejects.toMatchObject({ status: 503, outcomeUnknown: true });
    });

    describe('page after page', () => {
      interface Body {
        data?: { entries?: number[] } | number[];
        content?: number[];
      }
      type Pages = (
        read: (page: number) => Promise<Body>,
        listOf: (body: Body) => number[] | undefined,
        first?: number,
      ) => AsyncGenerator<number>;
      const load = async () => (await import((await written).path('pages.ts'))) as { pages: Pages };
      const ALL = Array.from({ length: 250 }, (_, index) => index);
      const LISTS: Record<string, [(list: number[]) => Body, (body: Body) => number[] | undefined]> = {
        data: [(data) => ({ data }), ({ data }) => data as number[]],
        'data.<name>': [
          (entries) => ({ data: { entries } }),
          ({ data }) => (data as Body['data'] & { entries?: number[] }).entries,
        ],
        content: [(content) => ({ content }), ({ content }) => content],
      };
      const COUNTS: Record<string, (total_pages: number) => object> = {
        'page.total_pages': (total_pages) => ({ page: { number: 0, total_pages } }),
        'total_pages at the top': (total_pages) => ({ total_pages }),
        'no number of pages': () => ({ page: { number: 0 } }),
      };
      const FORMS = Object.keys(LISTS).flatMap((list) => Object.keys(COUNTS).map((count) => [list, count]));

      it.each(FORMS)('reads all entries in %s, with %s', async (list, count) => {
        const { pages } = await load();
        const [place, listOf] = LISTS[list];
        // A service that sends fewer entries in a page than it was asked for.
        const most = 40;
        const asked: number[] = [];
        simulator.answer('GET', '/data/v2/history', ({ params }) => {
          const page = Number(params.page);
          asked.push(page);
          const entries = ALL.slice(page * most, (page + 1) * most);
          return {
            json: { status: 'OK', ...place(entries), ...COUNTS[count](Math.ceil(ALL.length / most)) },
          };
        });
        const read = (page: number) =>
          api.http.get<Body>('/data/v2/history', { params: { page, size: 100 } });
        expect(await entriesOf(pages(read as never, listOf))).toEqual(ALL);
        expect(asked).toEqual(ALL.slice(0, count === 'no number of pages' ? 8 : 7));
      });

      it('begins where its caller says, and reads as many pages as there are', async () => {
        const { pages } = await load();
        const asked: number[] = [];
        const read = async (page: number) => (asked.push(page), { data: [page], page: { total_pages: 3 } });
        const listOf = ({ data }: Body) => data as number[];
        expect(await entriesOf(pages(read, listOf, 1))).toEqual([1, 2, 3]);
        expect(await entriesOf(pages(read, listOf))).toEqual([0, 1, 2]);
        expect(asked).toEqual([1, 2, 3, 0, 1, 2]);
      });

      it('reads no more pages than are used, also of the routes of the known API', async () => {
        const { accountFeed } = (await import((await written).path('account-feed.ts'))) as {
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
        const asked = simulator.apiRequests.map(({ path }) => /page=\d/.exec(path)?.[0]);
        expect(asked).toEqual(['page=0', 'page=0', 'page=1']);
      });

      it.each<[string, Body & { page?: object }, RegExp | number[]]>([
        [
          'is empty and not the last',
          { data: [], page: { total_pages: 3 } },
          /^Page 0 is empty, and there should be 3$/,
        ],
        ['has no list', { page: { total_pages: 3 } }, /^Page 0 has no list$/],
        ['has its list elsewhere', { data: { entries: [1] } }, /^Page 0 has no list$/],
        ['is the only one, and empty', { data: [], page: { total_pages: 1 } }, []],
        ['is empty, of none', { data: [], page: { total_pages: 0 } }, []],
      ])('does not lose entries in silence: a page that %s', async (_, body, outcome) => {
        const { pages } = await load();
        const read = entriesOf(
          pages(
            async () => body,
            ({ data }) => data as number[],
          ),
        );
        if (Array.isArray(outcome)) expect(await read).toEqual(outcome);
        else await expect(read).rejects.toThrow(outcome);
      });
    });

    it('fetches the results of a read that was PENDING, until time is up', async () => {
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
      const soon = { everyMs: 1 };
      expect(await whenReady(pending, fetchResults, { ...soon, timeoutMs: 0 })).toBeUndefined();
      simulator.clearRequests();
      expect(await whenReady(pending, fetchResults, soon)).toMatchObject({ status: 'OK', page: {} });
      expect(simulator.apiRequests).toHaveLength(2);
      await expect(whenReady(pending, () => api.http.get('/none/v1'), soon)).rejects.toMatchObject({
        status: 404,
      });
      for (const first of [{ status: 'FAILED', results_id: 'r-1' }, { status: 'PENDING' }])
        expect(await whenReady(first, () => Promise.reject(new Error('asked')), soon)).toBe(first);
    });
  });

  it('runs a job of a queue again only if its call may be sent again', async () => {
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
    /** As BullMQ runs a job of four attempts. */
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
  ])('ends a call whose caller has gone, on %s', async (_, adapter) => {
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
    const asked = fetch(url, { signal: caller.signal });
    await arrival;
    caller.abort();
    await expect(asked).rejects.toThrow();
    expect(await ended).toMatchObject([{ route: '/banks/v1', error: 'aborted' }]);
    // fetch has opened one in advance, which is not idle before its first request.
    app.getHttpServer().closeAllConnections();
    await app.close();
    expect(logger.lines.filter((line) => /error|gone/i.test(JSON.stringify(line)))).toEqual([]);
    await simulator.stop();
  });

  it('fetches with the certificate of the moment, for which open connections are not exchanged, and verifies', async () => {
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

  it('has Observables that pass to the next value and end their call', async () => {
    const events = new EventEmitter();
    const onCall = (event: ServiceCallEvent) => void events.emit('call', event.error);
    await using simulator = await startSimulator();
    const { module, http } = await startModule({ ...simulator.moduleOptions(), http: { onCall } });
    const countries = new Subject<string>();
    const answers: unknown[] = [];
    const search = countries
      .pipe(switchMap((country) => http.httpService.get('/banks/v1', { params: { country } })))
      .subscribe(({ data }) => {
        answers.push(data);
        events.emit('answer');
      });
    const asked = async (country: string, fault?: 'hang') => {
      if (fault) simulator.fail({ when: ({ path }) => path.endsWith(country), fault });
      countries.next(country);
      await simulator.waitForRequest(({ path }) => path.endsWith(country), 10_000);
    };
    await asked('slow-1', 'hang');
    const [ended, answer] = [once(events, 'call'), once(events, 'answer')];
    await asked('AE');
    expect(await ended).toEqual(['connection_closed']);
    await answer;
    await asked('slow-2', 'hang');
    const unsubscribed = once(events, 'call');
    search.unsubscribe();
    expect(await unsubscribed).toEqual(['connection_closed']);
    expect(answers).toHaveLength(1);
    await module.close();
  });

  it('has two countries, each with its variables and hosts', async () => {
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

  it.each([
    ['Express', () => new ExpressAdapter()],
    ['Fastify', () => new FastifyAdapter()],
  ])('takes a signed webhook as it came alone, on %s', async (_, adapter) => {
    const { WebhookController } = (await import((await written).path('webhook.controller.ts'))) as {
      WebhookController: Type;
    };
    const start = async (rawBody: boolean) => {
      const module = await Test.createTestingModule({
        controllers: [WebhookController],
        providers: [{ provide: ConfigService, useValue: new ConfigService({ WEBHOOK_SECRET: 's3cret' }) }],
      }).compile();
      const app = module.createNestApplication(adapter(), { logger: false, rawBody });
      await app.listen(0, '127.0.0.1');
      return app;
    };
    const [app, withoutBytes] = [await start(true), await start(false)];
    const body = '{ "event":  "consent.expired" }';
    const signature = `sha256=${createHmac('sha256', 's3cret').update(body).digest('hex')}`;
    const send = async (sent: string, headers: Record<string, string>, to = app) => {
      const content = { 'content-type': 'application/json', connection: 'close' };
      const url = `${await to.getUrl()}/webhook`;
      return (await fetch(url, { method: 'POST', body: sent, headers: { ...content, ...headers } })).status;
    };
    expect(await send(body, { 'x-signature': signature })).toBe(204);
    expect(await send(JSON.stringify(JSON.parse(body)), { 'x-signature': signature })).toBe(401);
    expect(await send(body, { 'x-signature': `${signature.slice(0, -1)}g` })).toBe(401);
    expect(await send(body, { 'x-signature': 'short' })).toBe(401);
    expect(await send(body, {})).toBe(401);
    // Not a 401 that looks like a wrong signature.
    expect(await send(body, { 'x-signature': signature }, withoutBytes)).toBe(500);
    await Promise.all([app.close(), withoutBytes.close()]);
  });

  it('reads large integers, sends lists, and is called by a generated client, as its rows say', async () => {
    await using simulator = await ServiceSimulator.start();
    const { module, http } = await startModule(simulator.moduleOptions());
    simulator.answer('GET', '/accounts/v1', { body: '{"balance":9007199254740993}' });
    const parse = (text: unknown) => BigInt(/\d+/.exec(String(text))?.[0] ?? 0);
    expect(await http.get('/accounts/v1', { responseType: 'text', parse })).toBe(9007199254740993n);
    const params = { id: ['a', 'b'] };
    await http.get('/accounts/v1', { params });
    await http.axiosRef.get('/accounts/v1', { params, paramsSerializer: { indexes: null } });
    // As the template typescript-axios makes it.
    const basePath = '';
    await http.axiosRef.request({ url: `${basePath}/accounts/v1`, method: 'GET' });
    expect(simulator.apiRequests.slice(1).map(({ path }) => decodeURIComponent(path))).toEqual([
      '/accounts/v1?id[]=a&id[]=b',
      '/accounts/v1?id=a&id=b',
      '/accounts/v1',
    ]);
    await module.close();
  });

  it('has the answers of the filter in a Swagger document, beside the DTOs with their types and limits', async () => {
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
    const answers = new Set<string>();
    while (failures.length > 0) {
      const answer = await fetch(`${await app.getUrl()}/failure`);
      answers.add(String(answer.status));
      expect(Object.keys((await answer.json()) as object)).toEqual(
        expect.arrayContaining(schemas.ServiceErrorAnswer.required),
      );
    }
    expect(Object.keys(described)).toEqual([...answers].sort());
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
