import { type FactoryProvider } from '@nestjs/common';
import { type ServiceStubOptions } from './doubles.js';
import { ServiceStub } from './service-stub.js';
import { stubProviders } from './stubbed-service.js';

/** The part of `TestingModuleBuilder` of @nestjs/testing that is used. */
export interface ProviderOverrides {
  overrideProvider(token: unknown): {
    useFactory(options: {
      factory: FactoryProvider['useFactory'];
      inject?: FactoryProvider['inject'];
    }): unknown;
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
 * @throws TypeError for a service or method that there is not
 */
export function stubService(builder: ProviderOverrides, doubles?: ServiceStubOptions): ServiceStub {
  const stub = new ServiceStub(doubles);
  for (const { provide, useFactory, inject } of stubProviders(stub)) {
    builder.overrideProvider(provide).useFactory({ factory: useFactory, inject });
  }
  return stub;
}
