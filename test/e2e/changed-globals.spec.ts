import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  type DynamicModule,
  type INestApplicationContext,
  Inject,
  Injectable,
  Module,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import http from 'node:http';
import https from 'node:https';
import { BanksService, LinkSdkService, ServiceModule, type ServiceModuleOptions } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { httpServer } from '../helpers/loopback.js';
import { rejection, type StartedModule, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

describe('An application that changes globals', () => {
  let simulator: ServiceSimulator;
  let started: StartedModule;

  beforeAll(async () => {
    simulator = await startSimulator();
    started = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
  });
  afterEach(() => void jest.useRealTimers());
  afterAll(async () => {
    await started.module.close();
    await simulator.stop();
  });

  /** All that jest fakes by default: Date, performance, timers, nextTick and queueMicrotask. */
  it('gets its responses and tokens although it fakes all timers', async () => {
    jest.useFakeTimers();
    const { auth, banks, customers, module } = started;
    const id = 'user+1=a@example';
    // What one turn of the event loop starts goes out together, in the next one.
    expect(await Promise.all([banks.list(), banks.list()])).toEqual([expect.any(Array), expect.any(Array)]);
    expect(await customers.create({ app_user_id: 'u-1' })).toMatchObject({ app_user_id: 'u-1' });
    expect((await auth.getCustomerToken(id)).scope).toBe(`customer.${id}`);
    const request = { customer_id: id, permissions: ['identity'] };
    expect(await module.get(LinkSdkService).connectParameters(request)).toHaveProperty('access_token');
  });
});

/** Replaces the agent of every request, whatever agent the request names, as bootstrap() of global-agent does. */
function replaceAgents(): () => void {
  const before = [https.request, http.request];
  const secure = new https.Agent({ keepAlive: true, rejectUnauthorized: false });
  const plain = new http.Agent({ keepAlive: true });
  https.request = ((options: object) => before[0]({ ...options, agent: secure } as never)) as never;
  http.request = ((options: object) => before[1]({ ...options, agent: plain } as never)) as never;
  return () => {
    [https.request, http.request] = before as [typeof https.request, typeof http.request];
    for (const agent of [secure, plain]) agent.destroy();
  };
}

describe('An application that replaces the agent of all requests in the process', () => {
  const refused = {
    kind: 'tls',
    outcomeUnknown: false,
    message: expect.stringMatching(/nothing was sent.*global-agent \(ERR_FOREIGN_CONNECTION\)\./),
  };
  const ending: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ending.splice(0).reverse()) await end();
  });

  it.each([
    ['certificate', { authentication: 'mtls' }],
    ['bearer', { authentication: 'oauth' }],
  ] as const)('sends no %s over connections that are not of this module', async (_, mode) => {
    const simulator = await startSimulator();
    const { banks, customers, module } = await startModule(simulator.moduleOptions(mode));
    ending.push(
      () => simulator.stop(),
      () => module.close(),
      replaceAgents(),
    );
    // Also over one that is open already.
    for (let call = 0; call < 2; call += 1) expect(await rejection(banks.list())).toMatchObject(refused);
    expect(await rejection(customers.create({ app_user_id: 'u-1' }))).toMatchObject(refused);
    expect(simulator.requests).toEqual([]);
  });

  it('sends nothing to a sidecar either', async () => {
    let requests = 0;
    const sidecar = await httpServer((_, response) => response.end(String((requests += 1))));
    const { banks, module } = await startModule({
      environment: 'production',
      authentication: 'mtls',
      urls: { baseUrl: sidecar.url },
      appToken: 'app-token-1',
    });
    ending.push(sidecar.close, () => module.close(), replaceAgents());
    expect(await rejection(banks.list())).toMatchObject(refused);
    expect(requests).toBe(0);
  });
});

/** Adds a trace header to the options of each request, unless the options have one already, as AWS X-Ray does. */
function traceRequests(): () => void {
  const before = https.request;
  let spans = 0;
  https.request = (({ headers, ...options }: https.RequestOptions & { headers: Record<string, string> }) => {
    headers['x-amzn-trace-id'] ??= `span-${(spans += 1)}`;
    return before({ ...options, headers });
  }) as never;
  return () => void (https.request = before);
}

describe('An application whose APM adds a trace header to the options of each request', () => {
  it('sends the trace header of its own attempt with each attempt of a call', async () => {
    const simulator = await startSimulator();
    const { banks, module } = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    const restore = traceRequests();
    try {
      simulator.fail({ path: '/banks/v1', fault: 'reset' });
      simulator.fail({ face: 'token', fault: { status: 503 } });
      await banks.list();
      const traces = simulator.requests.map(({ headers }) => headers['x-amzn-trace-id']);
      expect(traces).toEqual(['span-1', 'span-2', 'span-3', 'span-4']);
    } finally {
      restore();
      await module.close();
      await simulator.stop();
    }
  });
});

/** What a feature of a host looks like: its own ServiceModule, its own service. */
function feature(serviceModule: DynamicModule): { module: Type; service: Type<{ banks: BanksService }> } {
  @Injectable()
  class FeatureService {
    constructor(@Inject(BanksService) readonly banks: BanksService) {}
  }
  @Module({ imports: [serviceModule], providers: [FeatureService], exports: [FeatureService] })
  class FeatureModule {}
  return { module: FeatureModule, service: FeatureService };
}

describe('Two calls of forRoot or forRootAsync', () => {
  let simulators: ServiceSimulator[];
  const open: INestApplicationContext[] = [];

  beforeAll(async () => {
    simulators = await Promise.all([
      startSimulator({ appToken: 'token-of-a' }),
      startSimulator({ appToken: 'token-of-b' }),
    ]);
  });
  afterEach(async () => {
    for (const app of open.splice(0)) await app.close();
    for (const simulator of simulators) simulator.clearRequests();
  });
  afterAll(async () => {
    await Promise.all(simulators.map((simulator) => simulator.stop()));
  });

  async function start(
    imports: (Type | DynamicModule)[],
    options: Parameters<typeof NestFactory.createApplicationContext>[1] = {},
  ): Promise<INestApplicationContext> {
    @Module({ imports })
    class AppModule {}
    const app = await NestFactory.createApplicationContext(AppModule, {
      logger: false,
      abortOnError: false,
      ...options,
    });
    open.push(app);
    return app;
  }

  const DEEP_HASH = { moduleIdGeneratorAlgorithm: 'deep-hash' };
  it.each<[string, (options: ServiceModuleOptions) => DynamicModule, object]>([
    ['forRoot', (options) => ServiceModule.forRoot(options), DEEP_HASH],
    ['forRootAsync', (options) => ServiceModule.forRootAsync({ useFactory: () => options }), DEEP_HASH],
    ['forRoot, snapshot', (options) => ServiceModule.forRoot(options), { snapshot: true }],
  ])('make two modules: %s', async (_name, make, settings) => {
    const features = simulators.map((simulator) =>
      feature(make(simulator.moduleOptions({ environment: 'sandbox' }))),
    );
    const modules = features.map(({ module }) => module);
    const app = await start(modules, settings);
    for (const { service } of features) await app.get(service, { strict: false }).banks.list();
    expect(
      simulators.map(({ requests }) => requests.map(({ headers }) => headers['service-app-token'])),
    ).toEqual([['token-of-a'], ['token-of-b']]);
  });

  it('one call whose result is imported twice makes one module', async () => {
    for (const moduleIdGeneratorAlgorithm of ['deep-hash', 'reference'] as const) {
      const shared = ServiceModule.forRoot(simulators[0].moduleOptions({ environment: 'sandbox' }));
      const features = [feature(shared), feature(shared)];
      const modules = features.map(({ module }) => module);
      const app = await start(modules, { moduleIdGeneratorAlgorithm });
      const [a, b] = features.map(({ service }) => app.get(service, { strict: false }).banks);
      expect(a).toBe(b);
    }
  });

  it('show no option, store or value of extraProviders when modules are serialised', () => {
    const store: Record<string, unknown> = {
      toJSON: () => {
        throw new Error('serialised');
      },
    };
    const options = {
      ...simulators[0].moduleOptions({ environment: 'sandbox' }),
      tokenStore: store as never,
    };
    for (const definition of [
      ServiceModule.forRoot(options),
      ServiceModule.forRootAsync({
        extraProviders: [{ provide: 'STORE', useValue: store }],
        useFactory: () => options,
      }),
    ]) {
      expect(JSON.stringify(definition)).not.toContain('token-of-a');
    }
  });
});
