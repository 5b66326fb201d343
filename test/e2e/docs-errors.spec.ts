import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  Controller,
  Get,
  Logger,
  type ExceptionFilter,
  type INestApplication,
  type Provider,
  type Type,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import * as errors from '../../lib/errors/index.js';
import { toAnswer } from '../../lib/http/exception-answer.js';
import { BanksService, ServiceExceptionFilter, ServiceModule } from 'nestjs-service';
import { serviceErrors, ServiceSimulator, stubService } from 'nestjs-service/testing';
import { readDocument, type Snippets, writeSnippets } from '../helpers/readme.js';

describe('docs/errors-and-retries.md', () => {
  let simulator: ServiceSimulator;
  let document: Awaited<ReturnType<typeof readDocument>>;
  let snippets: Snippets;

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
    document = await readDocument('docs/errors-and-retries.md');
    snippets = await writeSnippets(document.fences, { name: 'errors' });
  });
  afterAll(async () => {
    await simulator.stop();
    await snippets.remove();
  });

  it('has filters of which ours answers its errors, and not in another order', async () => {
    const { EveryErrorFilter, useFilters } = (await import(snippets.path('filters.ts'))) as {
      EveryErrorFilter: Type<ExceptionFilter>;
      useFilters(app: INestApplication): void;
    };
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
    expect(await statusWith(useFilters)).toBe(409);
    expect(
      await statusWith((app) => app.useGlobalFilters(new ServiceExceptionFilter(), everyError(app))),
    ).toBe(500);
    const provided = [{ provide: APP_FILTER, useClass: ServiceExceptionFilter }];
    expect(await statusWith((app) => app.useGlobalFilters(everyError(app)), provided)).toBe(500);
  });

  it('has a job that sends the same call again', async () => {
    const { Registrations, RegistrationJobs } = (await import(snippets.path('registrations.ts'))) as {
      Registrations: Type<{ register(registration: Registration): Promise<string> }>;
      RegistrationJobs: Type;
    };
    interface Registration {
      userId: string;
      key?: string;
    }
    const [, variable, header] = /^(SERVICE_\w+)=(.+)$/m.exec(document.text) ?? [];
    expect(variable).toBe('SERVICE_HTTP_IDEMPOTENCY_HEADER');
    const jobs: Registration[] = [];
    const options = simulator.moduleOptions({ authentication: 'oauth' });
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ ...options, http: { idempotencyHeader: header } })],
      providers: [
        Registrations,
        { provide: RegistrationJobs, useValue: { add: async (job: Registration) => void jobs.push(job) } },
      ],
    }).compile();
    const registrations = module.get(Registrations);
    const path = '/customers/v1';
    simulator.clearRequests();
    simulator.fail({ path, times: 3, fault: { status: 503 } });
    expect(await registrations.register({ userId: 'u-7' })).toBe('later');
    const [job] = jobs.splice(0);
    simulator.fail({ path, times: 9, fault: 'reset' });
    expect(await registrations.register(job)).toBe('later');
    expect(jobs.splice(0)).toEqual([job]);
    simulator.clearFaults();
    expect(await registrations.register(job)).toBe('done');
    const keys = new Set(simulator.apiRequests.map(({ headers }) => headers[header]));
    expect([...keys]).toEqual([job.key]);
    simulator.fail({ path, fault: { status: 400 } });
    await expect(registrations.register({ userId: 'u-7' })).rejects.toMatchObject({ status: 400 });
    expect(jobs).toEqual([]);
    await module.close();
  });

  it('has a row for input that is refused, with the status that the filter answers', () => {
    const { status } = toAnswer(serviceErrors.request('app_user_id', 'is missing'));
    expect(document.text).toMatch(new RegExp(`^\\| .*\\(\`ServiceRequestError\`\\) +\\| ${status}\\b`, 'm'));
  });

  it('has a controller whose Swagger document shows the answers of the filter', async () => {
    const { CustomersController } = (await import(snippets.path('customers.controller.ts'))) as {
      CustomersController: Type;
    };
    const builder = Test.createTestingModule({
      imports: [ServiceModule.forRoot()],
      controllers: [CustomersController],
    });
    stubService(builder);
    const app = (await builder.compile()).createNestApplication();
    const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    const statuses = Object.keys(paths['/customers'].post?.responses ?? {});
    expect(statuses).toEqual(expect.arrayContaining(['201', '400', '404', '503']));
    await app.close();
  });

  it('has a generator for subscriptions that shows no message of another error', async () => {
    const { plainErrors } = (await import(snippets.path('plain-errors.ts'))) as {
      plainErrors<T>(events: AsyncIterable<T>): AsyncGenerator<T>;
    };
    const logged = jest.spyOn(Logger.prototype, 'error').mockReturnValue();
    const cause = new Error('internal');
    const events = plainErrors(
      (async function* () {
        yield 1;
        throw cause;
      })(),
    );
    expect(await events.next()).toEqual({ value: 1, done: false });
    await expect(events.next()).rejects.toThrow(/^The subscription has ended/);
    expect(logged.mock.calls).toEqual([[cause]]);
    logged.mockRestore();
  });

  it('names every error class', () => {
    const classes = Object.keys(errors).filter((name) => /^Service\w+Error$/.test(name));
    const rows = [...document.text.matchAll(/^\| `(Service\w+Error)`/gm)].map(([, name]) => name);
    expect(rows.sort()).toEqual(classes.filter((name) => name !== 'ServiceError').sort());
  });
});
