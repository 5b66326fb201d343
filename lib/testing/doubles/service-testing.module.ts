import { type DynamicModule, Module } from '@nestjs/common';
import { ServiceModule } from '../../service.module.js';
import { type ServiceStubOptions } from './doubles.js';
import { ServiceStub } from './service-stub.js';
import { stubProviders } from './stub-service.js';

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
