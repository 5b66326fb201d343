import { type FactoryProvider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { MODULE_NAME, CLIENT, type ModuleName } from '../../module/definition.js';
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
  // Nobody asks for a module's options then, so a host's factory is not called.
  builder.overrideProvider(CLIENT).useFactory({
    inject: [MODULE_NAME, ModulesContainer],
    factory: ({ name }: ModuleName, modules: ModulesContainer) => {
      stub.checkNames(namesOf(modules));
      return stubbedClient(stub.of(name), name);
    },
  });
  return stub;
}

/** The names of the application's ServiceModules. */
function namesOf(modules: ModulesContainer): string[] {
  return [...modules.values()].flatMap(
    // None in a bare `imports: [ServiceModule]`, which fails the start.
    ({ providers }) => (providers.get(MODULE_NAME)?.instance as ModuleName | null | undefined)?.name ?? [],
  );
}
