import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  Catch,
  ConflictException,
  Controller,
  type ExceptionFilter,
  Get,
  type INestApplication,
  type Provider,
  type Type,
} from '@nestjs/common';
import { APP_FILTER, BaseExceptionFilter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import * as errors from '../../lib/errors/index.js';
import {
  answerOf,
  BanksService,
  type CustomersService,
  ServiceExceptionFilter,
  ServiceModule,
  type ServiceHttpService,
} from 'nestjs-service';
import { serviceErrors, type ServiceSimulator, stubService } from 'nestjs-service/testing';
import { readDocument, type Snippets, writeSnippets } from '../helpers/readme.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

describe('docs/calls.md', () => {
  let simulator: ServiceSimulator;
  let document: Awaited<ReturnType<typeof readDocument>>;
  let snippets: Snippets;

  beforeAll(async () => {
    simulator = await startSimulator();
    document = await readDocument('docs/calls.md');
    snippets = await writeSnippets(document.fences, { name: 'errors' });
  });
  afterAll(async () => {
    await simulator.stop();
    await snippets.remove();
  });

  it('names the order of filters in which ours answers its errors', async () => {
    expect(document.text).toContain(
      'app.useGlobalFilters(new EveryErrorFilter(adapter), new ServiceExceptionFilter())',
    );
    @Catch()
    class EveryErrorFilter extends BaseExceptionFilter {}
    @Controller()
    class BanksController {
      constructor(private readonly banks: BanksService) {}
      @Get()
      list() {
        return this.banks.list();
      }
    }
    const statusWith = async (register: (app: INestApplication) => void, providers: Provider[] = []) => {
      const builder = Test.createTestingModule({
        imports: [ServiceModule.forRoot()],
        controllers: [BanksController],
        providers,
      });
      stubService(builder, { banks: { list: () => Promise.reject(serviceErrors.api(409)) } });
      const app = (await builder.compile()).createNestApplication({ logger: false });
      register(app);
      await app.listen(0, '127.0.0.1');
      const { status } = await fetch(await app.getUrl());
      await app.close();
      return status;
    };
    const everyError = (app: INestApplication) => new EveryErrorFilter(app.getHttpAdapter());
    expect(
      await statusWith((app) => app.useGlobalFilters(everyError(app), new ServiceExceptionFilter())),
    ).toBe(409);
    expect(
      await statusWith((app) => app.useGlobalFilters(new ServiceExceptionFilter(), everyError(app))),
    ).toBe(500);
    const provided = [{ provide: APP_FILTER, useClass: ServiceExceptionFilter }];
    expect(await statusWith((app) => app.useGlobalFilters(everyError(app)), provided)).toBe(500);
  });

  it.each([
    ['Express', () => new ExpressAdapter()],
    ['Fastify', () => new FastifyAdapter()],
  ])('has a filter with answers of its own, for every error, on %s', async (_, adapter) => {
    const { ProblemFilter } = (await import(snippets.path('problem.filter.ts'))) as {
      ProblemFilter: Type<ExceptionFilter>;
    };
    @Controller()
    class BanksController {
      constructor(private readonly banks: BanksService) {}
      @Get()
      list() {
        return this.banks.list();
      }
      @Get('taken')
      taken() {
        throw new ConflictException('of the host');
      }
      @Get('broken')
      broken() {
        throw new TypeError('secret of the host');
      }
    }
    const options = { ...simulator.moduleOptions(), http: { retries: 0 } };
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(options)],
      controllers: [BanksController],
      providers: [{ provide: APP_FILTER, useClass: ProblemFilter }],
    }).compile();
    const logger = new CollectingLogger();
    const app = module.createNestApplication(adapter(), { logger });
    await app.listen(0, '127.0.0.1');
    const ask = async (path = '') => {
      const answer = await fetch(`${await app.getUrl()}/${path}`);
      expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      return [answer.status, await answer.json(), answer.headers.get('retry-after')];
    };
    const json = { status: 'NOT_THIS_ONE', message: 'said by the service' };
    simulator.fail({ path: '/banks/v1', fault: { status: 422, json } });
    const refused = { title: 'said by the service', status: 422, serviceStatus: 'NOT_THIS_ONE' };
    expect(await ask()).toEqual([422, refused, null]);
    expect(logger.lines.filter((line) => String(line).includes('api_error'))).toEqual([]);
    simulator.fail({ path: '/banks/v1', fault: { status: 429, headers: { 'retry-after': '7' } } });
    expect(await ask()).toEqual([503, { title: 'The service is busy at the moment.', status: 503 }, '7']);
    expect(logger.lines).toContainEqual(
      expect.stringMatching(/^ServiceApiError: .*\n.*Nothing here to correct/),
    );
    expect(await ask('taken')).toEqual([409, { title: 'of the host', status: 409 }, null]);
    expect(await ask('broken')).toEqual([500, { title: 'Internal server error', status: 500 }, null]);
    await app.close();
  });

  it('names the status for input that is refused, with a filter that Nest makes without one', async () => {
    const [, name = '', value] = /new ServiceExceptionFilter\(\{ (\w+): (\d+) \}\)/.exec(document.text) ?? [];
    const options = { [name]: Number(value) };
    const refused = serviceErrors.request('app_user_id', 'is missing');
    expect(answerOf(refused, options).status).toBe(422);
    const made = await Test.createTestingModule({ providers: [ServiceExceptionFilter] }).compile();
    expect(made.get(ServiceExceptionFilter)).toBeInstanceOf(ServiceExceptionFilter);
  });

  it('begins with a call whose errors are told apart', async () => {
    const { register } = (await import(snippets.path('register.ts'))) as {
      register(customers: CustomersService, userId: string): Promise<string>;
    };
    expect(document.text.indexOf('// register.ts')).toBeLessThan(20);
    const options = { ...simulator.moduleOptions(), http: { retries: 0 } };
    const { module, customers } = await startModule(options);
    const outcomes = [];
    for (const fault of [undefined, { status: 409 }, 'reset' as const]) {
      if (fault) simulator.fail({ path: '/customers/v1', fault });
      outcomes.push(await register(customers, 'u-1'));
    }
    expect(outcomes).toEqual(['registered', 'registered before', 'perhaps registered']);
    simulator.fail({ path: '/customers/v1', fault: { status: 400 } });
    await expect(register(customers, 'u-1')).rejects.toMatchObject({ status: 400 });
    await module.close();
  });

  it('has answers that are checked and typed, and what came with them', async () => {
    const { BankPage } = (await import(snippets.path('bank-page.ts'))) as {
      BankPage: Type<{ names(): Promise<string[]>; first(): Promise<object> }>;
    };
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(simulator.moduleOptions({ authentication: 'oauth' }))],
      providers: [BankPage],
    }).compile();
    const page = module.get(BankPage);
    expect(await page.names()).toContain('Alpha Bank');
    const json = [{ bank_identifier: 'b-1', name: 'One' }];
    const headers = { 'x-total-count': '7', 'x-correlation-id': 'c-1' };
    simulator.fail({ path: '/banks/v1', fault: { status: 200, json, headers } });
    expect(await page.first()).toEqual({ count: 1, total: 7, correlationId: 'c-1' });
    simulator.fail({ path: '/banks/v1', fault: { status: 200, json: [{ name: 'no id' }] } });
    await expect(page.names()).rejects.toMatchObject({
      code: 'invalid_response',
      message: expect.stringContaining('[0].bank_identifier'),
    });
    await module.close();
  });

  it('has a payment with a key, which is sent again with it', async () => {
    const { pay } = (await import(snippets.path('pay.ts'))) as {
      pay: (http: ServiceHttpService, orderId: string, payment: object) => Promise<string>;
    };
    const { module, http } = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    simulator.answer('POST', '/payments/v1', { json: { id: 'p-1' } });
    simulator.clearRequests();
    simulator.fail({ path: '/payments/v1', times: 4, fault: 'reset' });
    expect(await pay(http, 'order-7', {})).toBe('pending');
    expect(await pay(http, 'order-7', {})).toBe('p-1');
    const keys = simulator.apiRequests.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual(Array(5).fill('order-7'));
    simulator.fail({ path: '/payments/v1', fault: { status: 422 } });
    await expect(pay(http, 'order-8', {})).rejects.toMatchObject({ status: 422 });
    await module.close();
  });

  it('has a row for input that is refused, with the status that the filter answers', () => {
    const { status } = answerOf(serviceErrors.request('app_user_id', 'is missing'));
    expect(document.text).toMatch(new RegExp(`^\\| .*\\(\`ServiceRequestError\`\\) +\\| ${status}\\b`, 'm'));
  });

  it('names every error class', () => {
    const classes = Object.keys(errors).filter((name) => /^Service\w+Error$/.test(name));
    const rows = [...document.text.matchAll(/^\| `(Service\w+Error)`/gm)].map(([, name]) => name);
    expect(rows.sort()).toEqual(classes.filter((name) => name !== 'ServiceError').sort());
  });
});
