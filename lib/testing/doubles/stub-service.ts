import { type DynamicModule, type FactoryProvider, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { MODULE_NAME, SERVICE, type ModuleName } from '../../module/definition.js';
import { ServiceModule } from '../../service.module.js';
import { type ServiceStubOptions } from './doubles.js';
import { ServiceStub } from './service-stub.js';
import { stubbedClient } from './stubbed-client.js';

/** The part of `TestingModuleBuilder` of @nestjs/testing that is used. */
export interface ProviderOverrides {
  overrideProvider(token: unknown): {
    useFactory(
      options: Pick<FactoryProvider, 'inject'> & { factory: FactoryProvider['useFactory'] },
    ): unknown;
  };
}

/**
 * Makes a host's own modules start in a test without a configuration, network or timers: the services of each
 * ServiceModule, named ones too, are doubles from then on. They check their input as the real ones do. A factory of
 * `forRootAsync` is not called, and no `SERVICE_*` variable is read.
 *
 * @example
 * const builder = Test.createTestingModule({ imports: [AppModule] });
 * const service = stubService(builder, { banks: { list: () => [{ name: 'Alpha Bank' }] } });
 * const app = (await builder.compile()).createNestApplication();
 * @throws TypeError for a service or method that there is not, a double that is no function, and a module that is
 * compiled already
 */
export function stubService(builder: ProviderOverrides, doubles?: ServiceStubOptions): ServiceStub {
  if (typeof (builder as Partial<ProviderOverrides>).overrideProvider !== 'function') {
    throw new TypeError(
      'stubService() takes the builder that Test.createTestingModule() returns, before compile() is called on it.',
    );
  }
  const stub = new ServiceStub(doubles);
  for (const { provide, useFactory, inject } of stubProviders(stub)) {
    builder.overrideProvider(provide).useFactory({ factory: useFactory, inject });
  }
  return stub;
}

/** The services of ServiceModule as doubles, for tests of providers that inject them. See {@link stubService}. */
@Module({})
export class ServiceTestingModule {
  /**
   * The five services, injectable everywhere in the test; for each name in `named` those of a named module too.
   * `module.get(ServiceStub)` has their calls.
   *
   * @example
   * const module = await Test.createTestingModule({
   *   imports: [ServiceTestingModule.forRoot({ banks: { list: () => [] } })],
   *   providers: [PaymentsService],
   * }).compile();
   * @throws TypeError for a service or method that there is not
   */
  static forRoot(doubles: ServiceStubOptions = {}): DynamicModule {
    const stub = new ServiceStub(doubles);
    const modules = [undefined, ...Object.keys(doubles.named ?? {})].map((name) => {
      const real = ServiceModule.forRoot({ name, isGlobal: true });
      // The last provider of a token is the one that Nest takes.
      return { ...real, providers: [...(real.providers ?? []), ...stubProviders(stub)] };
    });
    return {
      module: ServiceTestingModule,
      global: true,
      imports: modules,
      providers: [{ provide: ServiceStub, useFactory: () => stub }],
      exports: [ServiceStub],
    };
  }
}

/** What takes the place of a module's client. Nobody asks for its options then, so a host's factory is not called. */
function stubProviders(stub: ServiceStub): FactoryProvider[] {
  return [
    {
      provide: SERVICE,
      inject: [MODULE_NAME, ModulesContainer],
      useFactory: ({ name }: ModuleName, modules: ModulesContainer) => {
        stub.checkNames(namesOf(modules));
        return stubbedClient(stub.of(name), name);
      },
    },
  ];
}

/** The names of the application's ServiceModules. */
function namesOf(modules: ModulesContainer): string[] {
  return [...modules.values()].flatMap(
    // None in a bare `imports: [ServiceModule]`, which fails the start.
    ({ providers }) => (providers.get(MODULE_NAME)?.instance as ModuleName | null | undefined)?.name ?? [],
  );
}
