import { type FactoryProvider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { MODULE_NAME, CLIENT, type ModuleName } from '../../module/definition.js';
import { type ServiceStubOptions } from './doubles.js';
import { ServiceStub } from './service-stub.js';
import { makeStubbedClient } from './stubbed-client.js';

/** The part of `TestingModuleBuilder` of @nestjs/testing that {@link stubService} uses. */
export interface ProviderOverrides {
  overrideProvider(token: unknown): {
    useFactory(
      options: Pick<FactoryProvider, 'inject'> & { factory: FactoryProvider['useFactory'] },
    ): unknown;
  };
}

/**
 * Replaces the services of every ServiceModule, named ones too, by doubles. The application's own modules then start in a
 * test without configuration, network or timers: a factory of `forRootAsync` is not called, and no `SERVICE_*` variable is
 * read. The doubles check their input like the real services.
 *
 * @example
 * const builder = Test.createTestingModule({ imports: [AppModule] });
 * const service = stubService(builder, { banks: { list: () => [{ name: 'Alpha Bank' }] } });
 * const app = (await builder.compile()).createNestApplication();
 * @throws TypeError for an unknown service or method, a double that is not a function, or a module that is already compiled
 */
export function stubService(builder: ProviderOverrides, doubles?: ServiceStubOptions): ServiceStub {
  if (typeof (builder as Partial<ProviderOverrides>).overrideProvider !== 'function') {
    throw new TypeError(
      'stubService() needs the builder that Test.createTestingModule() returns. Call stubService() before compile().',
    );
  }
  const stub = new ServiceStub(doubles);
  // The overridden provider does not inject the module's options, so Nest does not call the host's factory for them.
  builder.overrideProvider(CLIENT).useFactory({
    inject: [MODULE_NAME, ModulesContainer],
    factory: ({ name }: ModuleName, modules: ModulesContainer) => {
      stub.checkNames(listModuleNames(modules));
      return makeStubbedClient(stub.forModule(name), name);
    },
  });
  return stub;
}

function listModuleNames(modules: ModulesContainer): string[] {
  return [...modules.values()].flatMap(
    // A bare `imports: [ServiceModule]` has no name. Nest refuses it later with a message of its own.
    ({ providers }) => (providers.get(MODULE_NAME)?.instance as ModuleName | null | undefined)?.name ?? [],
  );
}
