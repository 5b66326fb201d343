import {
  Body,
  Controller,
  Get,
  Inject,
  Post,
  Res,
  ValidationPipe,
  type DynamicModule,
  type INestApplication,
  type LoggerService,
} from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { type ServerResponse } from 'node:http';
import { Test } from '@nestjs/testing';
import {
  BanksService,
  ConnectDto,
  CreateCustomerDto,
  CustomersService,
  LinkSdkService,
  ServiceConnectionError,
  ServiceExceptionFilter,
} from 'nestjs-service';

export type Platform = 'express' | 'fastify';

/** A host's own controller: what a developer writes on the first day. */
@Controller()
class HostController {
  constructor(
    @Inject(CustomersService) private readonly customers: CustomersService,
    @Inject(BanksService) private readonly banks: BanksService,
    @Inject(LinkSdkService) private readonly sdk: LinkSdkService,
  ) {}

  @Get('banks')
  list(): Promise<unknown> {
    return this.banks.list();
  }

  /** Fails after its answer has begun. */
  @Get('begun')
  begun(@Res() reply: { raw?: ServerResponse } & ServerResponse): void {
    (reply.raw ?? reply).write('begun');
    throw new ServiceConnectionError({ kind: 'reset', message: 'reset' });
  }

  @Post('customers')
  create(@Body() customer: CreateCustomerDto): Promise<unknown> {
    return this.customers.create(customer);
  }

  @Post('link-session')
  connect(@Body() request: ConnectDto): Promise<unknown> {
    return this.sdk.connectParameters(request);
  }
}

export interface Host {
  app: INestApplication;
  request(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; headers: Headers; body: unknown }>;
  close(): Promise<void>;
}

/** A whole Nest application around the module, listening on loopback. */
export async function startHost(
  module: DynamicModule | Promise<DynamicModule>,
  platform: Platform = 'express',
  logger: LoggerService | false = false,
  filter = new ServiceExceptionFilter(),
): Promise<Host> {
  const testing = await Test.createTestingModule({ imports: [await module], controllers: [HostController] })
    .setLogger(logger as LoggerService)
    .compile();
  const app =
    platform === 'express'
      ? testing.createNestApplication()
      : testing.createNestApplication(new FastifyAdapter());
  app.useLogger(logger);
  app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
  app.useGlobalFilters(filter);
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  return {
    app,
    request: async (method, path, body) => {
      const response = await fetch(url + path, {
        method,
        headers: body === undefined ? {} : { 'content-type': 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      };
    },
    close: () => app.close(),
  };
}
