import { Controller, Get, Module, UseFilters, type INestApplicationContext } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import {
  ClientProxyFactory,
  EventPattern,
  GrpcMethod,
  MessagePattern,
  Transport,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { BanksService, CustomersService, ServiceExceptionFilter, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { lastValueFrom, type Observable } from 'rxjs';
import { io } from 'socket.io-client';
import { run } from '../run.js';

@Controller()
class HostController {
  constructor(
    private readonly banks: BanksService,
    private readonly customers: CustomersService,
  ) {}

  @Get('banks')
  @MessagePattern('banks')
  list(): Promise<unknown> {
    return this.banks.list();
  }

  @MessagePattern('customers')
  create(): Promise<unknown> {
    return this.customers.create({ app_user_id: 'u-1' });
  }

  @EventPattern('noticed')
  async notice(_: unknown): Promise<void> {
    await this.banks.list();
  }
}

/** Nest's global filters leave gateways out. */
@UseFilters(ServiceExceptionFilter)
@WebSocketGateway()
class HostGateway {
  constructor(
    private readonly banks: BanksService,
    private readonly customers: CustomersService,
  ) {}

  @SubscribeMessage('banks')
  list(): Promise<unknown> {
    return this.banks.list();
  }

  @SubscribeMessage('customers')
  create(): Promise<unknown> {
    return this.customers.create({ app_user_id: 'u-1' });
  }
}

@Controller()
class GrpcController {
  constructor(
    private readonly banks: BanksService,
    private readonly customers: CustomersService,
  ) {}

  @GrpcMethod('Host', 'Banks')
  list(): Promise<unknown> {
    return this.banks.list();
  }

  @GrpcMethod('Host', 'Customers')
  create(): Promise<unknown> {
    return this.customers.create({ app_user_id: 'u-1' });
  }
}

const FILTER = { provide: APP_FILTER, useClass: ServiceExceptionFilter };

@Module({ imports: [ServiceModule.forRoot()], controllers: [HostController], providers: [FILTER] })
class MicroserviceModule {}

@Module({ imports: [ServiceModule.forRoot()], controllers: [GrpcController], providers: [FILTER] })
class GrpcModule {}

@Module({
  imports: [ServiceModule.forRoot()],
  controllers: [HostController],
  providers: [FILTER, HostGateway],
})
class GatewayModule {}

/** What callers see of the service's refusal of our credentials, and of its 409. */
const REFUSED = {
  status: 'error',
  message: 'The service failed to answer this call.',
  code: 'api_error',
  statusCode: 502,
};
const TAKEN = { status: 'error', message: 'taken', code: 'api_error', statusCode: 409 };

/** One way to call the host: resolves with the error that its caller got. */
type Call = (pattern: 'banks' | 'customers') => Promise<unknown>;

async function check(
  simulator: ServiceSimulator,
  call: Call,
  cause?: (pattern: string) => object,
): Promise<void> {
  simulator.fail({
    path: '/banks/v1',
    fault: { status: 403, json: { status: 403, message: 'secret reason' } },
  });
  assert.deepEqual(await call('banks'), { ...REFUSED, ...cause?.('banks') });
  simulator.fail({ path: '/customers/v1', fault: { status: 409, json: { status: 409, message: 'taken' } } });
  assert.deepEqual(await call('customers'), { ...TAKEN, ...cause?.('customers') });
}

function overTcp(port: number): { call: Call; event(): Promise<unknown>; close(): void } {
  const client = ClientProxyFactory.create({
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port },
  });
  const call: Call = (pattern) =>
    lastValueFrom(client.send<unknown>(pattern, {})).then(
      () => assert.fail('a call that fails was answered'),
      (error: unknown) => error,
    );
  return {
    call,
    event: () => lastValueFrom(client.emit('noticed', {}), { defaultValue: undefined }),
    close: () => void client.close(),
  };
}

const nest = { logger: false } as const;

async function microservice(simulator: ServiceSimulator): Promise<void> {
  const port = await freePort();
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(MicroserviceModule, {
    ...nest,
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port },
  });
  await app.listen();
  await checkTcp(simulator, app, port);
}

async function hybrid(simulator: ServiceSimulator): Promise<void> {
  const port = await freePort();
  const app = await NestFactory.create(MicroserviceModule, nest);
  app.connectMicroservice<MicroserviceOptions>(
    { transport: Transport.TCP, options: { host: '127.0.0.1', port } },
    { inheritAppConfig: true },
  );
  await app.startAllMicroservices();
  await app.listen(0, '127.0.0.1');
  simulator.fail({ path: '/banks/v1', fault: { status: 403 } });
  const { status, body } = await fetch(`${await app.getUrl()}/banks`).then(async (response) => ({
    status: response.status,
    body: await response.json(),
  }));
  assert.equal(status, 502);
  assert.deepEqual(body, { statusCode: 502, message: REFUSED.message, code: 'api_error' });
  await checkTcp(simulator, app, port);
}

/** A service of gRPC, as `protoPath` would name its file. */
const PACKAGE = {
  nested: {
    host: {
      nested: {
        Empty: { fields: {} },
        Host: {
          methods: {
            Banks: { requestType: 'Empty', responseType: 'Empty' },
            Customers: { requestType: 'Empty', responseType: 'Empty' },
          },
        },
      },
    },
  },
};

async function grpc(simulator: ServiceSimulator): Promise<void> {
  const name: string = '@grpc/proto-loader';
  const { fromJSON } = (await import(name)) as { fromJSON: (json: object) => object };
  const url = `127.0.0.1:${await freePort()}`;
  const transport = {
    transport: Transport.GRPC as const,
    options: { url, package: 'host', packageDefinition: fromJSON(PACKAGE) },
  };
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(GrpcModule, {
    ...nest,
    ...transport,
  });
  await app.listen();
  const client = ClientProxyFactory.create(transport);
  type Method = (request: object) => Observable<unknown>;
  const host = client.getService<{ banks: Method; customers: Method }>('Host');
  const errorOf = (pattern: 'banks' | 'customers') =>
    lastValueFrom(host[pattern]({})).then(
      () => assert.fail('a call that fails was answered'),
      ({ code, details }: { code: number; details: string }) => ({ code, details }),
    );
  try {
    const rows = [
      ['banks', 403, { code: 2, details: REFUSED.message }],
      ['banks', 429, { code: 14, details: 'The service is busy at the moment.' }],
      ['customers', 409, { code: 6, details: 'taken' }],
      // A client of gRPC repeats UNAVAILABLE (14) by itself, so a change in doubt never gets this code.
      [
        'customers',
        503,
        { code: 2, details: `${REFUSED.message} The request may have been executed all the same.` },
      ],
    ] as const;
    for (const [pattern, status, expected] of rows) {
      const json = { status: 'NAME', message: 'taken' };
      simulator.fail({ path: `/${pattern}/v1`, times: 3, fault: { status, json } });
      assert.deepEqual(await errorOf(pattern), expected);
      simulator.clearFaults();
    }
  } finally {
    client.close();
    await app.close();
  }
}

async function checkTcp(
  simulator: ServiceSimulator,
  app: INestApplicationContext,
  port: number,
): Promise<void> {
  const { call, event, close } = overTcp(port);
  try {
    // Nothing waits for the result of an event; the process continues.
    simulator.fail({ path: '/banks/v1', fault: { status: 403 } });
    simulator.clearRequests();
    await event();
    await simulator.waitForRequest(({ path }) => path === '/banks/v1');
    await check(simulator, call);
  } finally {
    close();
    await app.close();
  }
}

async function socketIoGateway(simulator: ServiceSimulator): Promise<void> {
  const app = await NestFactory.create(GatewayModule, nest);
  app.useWebSocketAdapter(new IoAdapter(app));
  await app.listen(0, '127.0.0.1');
  const socket = io(await app.getUrl(), { transports: ['websocket'] });
  try {
    const call: Call = async (pattern) => {
      const answered = new Promise((resolve) => socket.once('exception', resolve));
      socket.emit(pattern, { private: 'input' });
      return answered;
    };
    await check(simulator, call, (pattern) => ({ cause: { pattern } }));
  } finally {
    socket.close();
    await app.close();
  }
}

/** What is needed of a `ws` client: it comes without types. */
interface WebSocketClient {
  once(event: string, listener: (data: unknown) => void): unknown;
  send(text: string): void;
  close(): void;
}

async function wsGateway(simulator: ServiceSimulator): Promise<void> {
  const app = await NestFactory.create(GatewayModule, nest);
  app.useWebSocketAdapter(new WsAdapter(app));
  await app.listen(0, '127.0.0.1');
  const name: string = 'ws';
  const { WebSocket } = (await import(name)) as { WebSocket: new (url: string) => WebSocketClient };
  const socket = new WebSocket((await app.getUrl()).replace('http', 'ws'));
  try {
    await new Promise((resolve) => socket.once('open', resolve));
    const call: Call = async (pattern) => {
      const answered = new Promise((resolve) => socket.once('message', resolve));
      socket.send(JSON.stringify({ event: pattern, data: {} }));
      const { event, data } = JSON.parse(String(await answered)) as { event: string; data: unknown };
      assert.equal(event, 'exception');
      return data;
    };
    await check(simulator, call, (pattern) => ({ cause: { pattern } }));
  } finally {
    socket.close();
    await app.close();
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** ServiceExceptionFilter as the global filter of every kind of application that it answers in. */
async function main(): Promise<void> {
  const simulator = await ServiceSimulator.start();
  Object.assign(process.env, simulator.env({ environment: 'production', authentication: 'mtls' }));
  try {
    for (const kind of [microservice, hybrid, grpc, socketIoGateway, wsGateway]) await kind(simulator);
  } finally {
    await simulator.stop();
  }
}

run(main);
