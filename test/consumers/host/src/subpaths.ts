import { Body, Controller, Module, Post } from '@nestjs/common';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import type { AxiosInstance } from 'axios';
import {
  CustomersService,
  CreateCustomerDto,
  InjectService,
  ServiceHttpService,
  ServiceModule,
  type ExceptionAnswerOptions,
  type HttpRequestOptions,
  type ServiceModuleExtras,
  type ServiceModuleOptions,
  type TokenStore,
} from 'nestjs-service';
import { type NodeRedisClient, RedisTokenStore, type RedisTokenStoreOptions } from 'nestjs-service/redis';
import { ServiceHealthIndicator, type ServiceHealthOptions } from 'nestjs-service/terminus';
import {
  type knownApiRoutes,
  serviceErrors,
  ServiceSimulator,
  stubService,
  type FaultRule,
  type ServiceStubOptions,
} from 'nestjs-service/testing';

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

/** axios has types of its own for each module system, and their generic types do not fit each other. */
export const axiosOfHost: true = true satisfies ServiceHttpService['axiosRef'] extends AxiosInstance
  ? true
  : false;

type Optional<T> = { [Key in keyof T as object extends Pick<T, Key> ? Key : never]: undefined };
/** Whether `undefined` may be given for every optional key, also with `exactOptionalPropertyTypes`. */
type TakesUndefined<T> = Optional<T> extends Partial<T> ? true : false;
type Section<Key extends keyof ServiceModuleOptions> = Exclude<
  NonNullable<ServiceModuleOptions[Key]>,
  (...given: never[]) => unknown
>;
type First<Method extends (given: never) => unknown> = NonNullable<Parameters<Method>[0]>;
type SimulatorOptions = First<typeof ServiceSimulator.start>;

/** Variables that may be missing are given as options. */
export const takeUndefined: Record<string, true> = {
  options: true satisfies TakesUndefined<ServiceModuleOptions>,
  extras: true satisfies TakesUndefined<ServiceModuleExtras>,
  urls: true satisfies TakesUndefined<Section<'urls'>>,
  oauth: true satisfies TakesUndefined<Section<'oauth'>>,
  tls: true satisfies TakesUndefined<Section<'tls'>>,
  linkSdk: true satisfies TakesUndefined<Section<'linkSdk'>>,
  tokenCache: true satisfies TakesUndefined<Section<'tokenCache'>>,
  http: true satisfies TakesUndefined<Section<'http'>>,
  call: true satisfies TakesUndefined<HttpRequestOptions>,
  filter: true satisfies TakesUndefined<ExceptionAnswerOptions>,
  health: true satisfies TakesUndefined<ServiceHealthOptions>,
  redis: true satisfies TakesUndefined<RedisTokenStoreOptions>,
  simulator: true satisfies TakesUndefined<SimulatorOptions>,
  ports: true satisfies TakesUndefined<NonNullable<SimulatorOptions['ports']>>,
  routes: true satisfies TakesUndefined<First<typeof knownApiRoutes>>,
  fault: true satisfies TakesUndefined<FaultRule>,
  mode: true satisfies TakesUndefined<First<ServiceSimulator['env']>>,
  certificate: true satisfies TakesUndefined<First<ServiceSimulator['issueCertificate']>>,
  server: true satisfies TakesUndefined<First<ServiceSimulator['useServerCertificate']>>,
  token: true satisfies TakesUndefined<First<ServiceSimulator['issueToken']>>,
  doubles: true satisfies TakesUndefined<ServiceStubOptions>,
  banks: true satisfies TakesUndefined<NonNullable<ServiceStubOptions['banks']>>,
  auth: true satisfies TakesUndefined<NonNullable<ServiceStubOptions['auth']>>,
  apiError: true satisfies TakesUndefined<NonNullable<Parameters<typeof serviceErrors.api>[1]>>,
  connection: true satisfies TakesUndefined<NonNullable<Parameters<typeof serviceErrors.connection>[1]>>,
  tokenError: true satisfies TakesUndefined<NonNullable<Parameters<typeof serviceErrors.token>[1]>>,
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
