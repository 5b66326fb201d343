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
  type HttpCallOptions,
  type HttpRequestConfig,
  type HttpRequestOptions,
  type ParseOption,
  type ResponseSchema,
  type ResponseType,
  type ServiceClientOptions,
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
  type StubbedServiceClient,
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
  stubbedClient: false satisfies IsAny<StubbedServiceClient>,
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
  client: true satisfies TakesUndefined<ServiceClientOptions>,
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

declare const parseText: (text: string, reviver?: (key: string, value: unknown) => unknown) => unknown;
declare const parseBytes: (body: Uint8Array) => Promise<{ id: string }>;
declare const schema: ResponseSchema<{ id: string }>;
declare const responseType: ResponseType;

/** With `responseType`, the function in `parse` may take what the body is. */
export async function parsedByType(http: ServiceHttpService): Promise<void> {
  const unknown: unknown = await http.get('/a', { responseType: 'text', parse: parseText });
  const { id }: { id: string } = await http.post('/a', {}, { responseType: 'bytes', parse: parseBytes });
  const length: number =
    (await http.find('/a/{id}', {
      pathParams: { id },
      responseType: 'text',
      parse: (text: string) => text.length,
    })) ?? 0;
  await http.request({ url: '/a', responseType: 'text', parse: parseText });
  const either = (body: string | Uint8Array): number => body.length + length;
  await http.response('/a', { responseType: 'bytes', parse: either });
  void unknown;
}

/** The parameter of an inline function is `unknown`, also if the type of the body comes from a variable. */
export async function parsedInline<T>(
  http: ServiceHttpService,
  options: HttpCallOptions & ParseOption<T>,
): Promise<string[]> {
  interface Config extends HttpRequestConfig<{ id: string }> {
    method: 'GET';
  }
  const config: Config = { method: 'GET', url: '/a', responseType, parse: schema };
  const { id } = await http.request(config);
  await http.get<T>('/a', { ...options, timeout: 1_000 });
  return [
    id,
    await http.get('/a', { parse: (body) => String(body satisfies unknown) }),
    await http.get('/a', { responseType: 'text', parse: (body) => String(body) }),
    await http.get('/a', { responseType, parse: async (body) => String(body) }),
    await http.get<string>('/a', { responseType }),
    (await http.get('/a', { responseType: 'bytes', parse: schema })).id,
  ];
}
