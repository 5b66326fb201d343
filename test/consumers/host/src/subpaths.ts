import { Body, Controller, Module, Post } from '@nestjs/common';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import {
  CustomersService,
  CreateCustomerDto,
  InjectService,
  ServiceModule,
  type ServiceModuleOptions,
  type TokenStore,
} from 'nestjs-service';
import { type NodeRedisClient, RedisTokenStore, type RedisTokenStoreOptions } from 'nestjs-service/redis';
import { ServiceHealthIndicator, type ServiceHealthOptions } from 'nestjs-service/terminus';
import { serviceErrors, ServiceSimulator, stubService, type FaultRule } from 'nestjs-service/testing';

// Compiled only, by every compiler and resolution that hosts use: what each subpath gives has its types.

type IsAny<T> = 0 extends 1 & T ? true : false;
/** Where the types of a subpath are not found, its exports are `any`. */
export const found: Record<string, false> = {
  module: false satisfies IsAny<typeof ServiceModule>,
  redis: false satisfies IsAny<typeof RedisTokenStore>,
  terminus: false satisfies IsAny<ServiceHealthIndicator>,
  simulator: false satisfies IsAny<ServiceSimulator>,
  stub: false satisfies IsAny<typeof stubService>,
};

declare const client: NodeRedisClient;
const redis: RedisTokenStoreOptions = { client, timeout: 100 };
const tokenStore: TokenStore = new RedisTokenStore(redis);
const options: ServiceModuleOptions = { environment: 'sandbox', tokenStore };
const ping: ServiceHealthOptions = { ping: true };

@Controller()
export class SubpathsController {
  constructor(
    @InjectService(CustomersService, 'ksa') private readonly customers: CustomersService,
    private readonly health: HealthCheckService,
    private readonly service: ServiceHealthIndicator,
  ) {}

  @Post()
  async create(@Body() customer: CreateCustomerDto): Promise<string> {
    const created = await this.customers.create<{ app_user_id: string }>(customer);
    await this.health.check([() => this.service.isHealthy('service', ping)]);
    return created?.app_user_id ?? '';
  }
}

@Module({
  imports: [
    TerminusModule,
    ServiceModule.forRoot(options),
    ServiceModule.forRoot({ ...options, name: 'ksa' }),
  ],
  controllers: [SubpathsController],
  providers: [ServiceHealthIndicator],
})
export class SubpathsModule {}

export async function simulated(rule: FaultRule): Promise<ServiceModuleOptions> {
  const simulator = await ServiceSimulator.start();
  simulator.fail({ ...rule, times: 1 });
  const hits: number = simulator.fail(rule).hits;
  return { ...simulator.moduleOptions({ environment: 'production' }), http: { retries: hits } };
}

export const refused: Error = serviceErrors.api(404);
