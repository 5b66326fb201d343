import { Controller, Get, Inject, Injectable, Module, Scope } from '@nestjs/common';
import {
  ContextIdFactory,
  NestFactory,
  REQUEST,
  type ContextId,
  type ContextIdStrategy,
  type HostComponentInfo,
} from '@nestjs/core';
import {
  BanksService,
  InjectService,
  LinkSdkService,
  ServiceAuthService,
  ServiceHttpService,
  ServiceModule,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { run } from '../run.js';

const REQUESTS = 500;
const AT_ONCE = 10;
const made = { controllers: 0, perRequest: 0, transient: 0, durable: 0 };
/** Each instance of this module's services that a consumer got. */
const seen = new Set<unknown>();

@Injectable({ scope: Scope.TRANSIENT })
class TransientClient {
  constructor(@InjectService(BanksService, 'ksa') banks: BanksService) {
    made.transient += 1;
    seen.add(banks);
  }
}

@Injectable({ scope: Scope.REQUEST })
class RequestClient {
  constructor(
    readonly sdk: LinkSdkService,
    http: ServiceHttpService,
    @Inject(REQUEST) readonly request: { headers: Record<string, string> },
    _: TransientClient,
  ) {
    made.perRequest += 1;
    seen.add(sdk).add(http);
  }
}

@Injectable({ scope: Scope.REQUEST, durable: true })
class TenantClient {
  constructor(auth: ServiceAuthService) {
    made.durable += 1;
    seen.add(auth);
  }
}

@Controller({ scope: Scope.REQUEST })
class HostController {
  constructor(
    private readonly banks: BanksService,
    private readonly client: RequestClient,
    _: TenantClient,
  ) {
    made.controllers += 1;
    seen.add(banks);
  }

  @Get()
  async answer(): Promise<unknown> {
    await this.banks.list();
    const customer_id = `c-${this.client.request.headers['x-tenant']}`;
    return this.client.sdk.connectParameters({ customer_id, permissions: ['identity'] });
  }
}

/** One sub-tree of durable providers for each tenant. */
class ByTenant implements ContextIdStrategy<{ headers: Record<string, string> }> {
  readonly #tenants = new Map<string, ContextId>();

  attach(contextId: ContextId, { headers }: { headers: Record<string, string> }) {
    const tenant = headers['x-tenant'] ?? '';
    const durable = this.#tenants.get(tenant) ?? ContextIdFactory.create();
    this.#tenants.set(tenant, durable);
    return {
      payload: { headers },
      resolve: (info: HostComponentInfo) => (info.isTreeDurable ? durable : contextId),
    };
  }
}

/** What would grow where each request left something behind. */
function standing(http: ServiceHttpService, auth: ServiceAuthService): object {
  const { request, response } = http.axiosRef.interceptors as unknown as Record<
    'request' | 'response',
    { handlers: unknown[] }
  >;
  const listeners = (emitter: NodeJS.EventEmitter): Record<string, number> =>
    Object.fromEntries(emitter.eventNames().map((name) => [name, emitter.listenerCount(name)]));
  return {
    interceptors: [request.handlers.length, response.handlers.length],
    ofProcess: listeners(process),
    ofAgent: listeners(auth.httpsAgent),
    timers: process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length,
  };
}

/** Consumers of one request, one use or one tenant: the module's services stay the ones of the application. */
async function main(): Promise<void> {
  const simulator = await ServiceSimulator.start();
  const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
  const imports = [ServiceModule.forRoot(options), ServiceModule.forRoot({ ...options, name: 'ksa' })];
  @Module({
    imports,
    controllers: [HostController],
    providers: [RequestClient, TransientClient, TenantClient],
  })
  class HostModule {}
  ContextIdFactory.apply(new ByTenant());
  const app = await NestFactory.create(HostModule, { logger: false });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const ask = async (index: number): Promise<void> => {
    const response = await fetch(url, { headers: { 'x-tenant': String(index % 2) } });
    assert.equal(response.status, 200);
    assert.equal(((await response.json()) as { customer_id: string }).customer_id, `c-${index % 2}`);
  };
  const services = [app.get(ServiceHttpService), app.get(ServiceAuthService)] as const;
  try {
    await Promise.all([ask(0), ask(1)]);
    const before = standing(...services);
    for (let index = 0; index < REQUESTS; index += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, offset) => ask(index + offset)));
    }
    assert.deepEqual(standing(...services), before);
  } finally {
    await app.close();
    await simulator.stop();
  }
  const all = REQUESTS + 2;
  assert.deepEqual(made, { controllers: all, perRequest: all, transient: all, durable: 2 });
  assert.equal(seen.size, 5);
  // The api scope, and that of each customer.
  assert.equal(simulator.requests.filter(({ face }) => face === 'token').length, 3);
}

run(main);
