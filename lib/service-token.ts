import { Inject, type Type } from '@nestjs/common';

/**
 * Returns the injection token of a service: the class itself, or another token for the module named `name`.
 * @example getServiceToken(CustomersService, 'ksa')
 */
export function getServiceToken<T>(type: Type<T>, name?: string): Type<T> | string {
  return name === undefined ? type : `nestjs-service:${name}:${type.name}`;
}

/**
 * Returns the injection token of the options of the module named `name`, or of the module without a name. A test
 * overrides this provider to replace the options of `forRoot()`, or the factory of `forRootAsync()`, which is then not
 * called. Options that the test leaves out are still read from variables.
 * @example
 * Test.createTestingModule({ imports: [AppModule] })
 *   .overrideProvider(getServiceOptionsToken())
 *   .useValue(simulator.moduleOptions())
 */
export function getServiceOptionsToken(name?: string): string {
  return name === undefined ? 'nestjs-service:options' : `nestjs-service:${name}:options`;
}

/**
 * Injects a service of the module named `name`, or of the module without a name.
 * @example constructor(@InjectService(CustomersService, 'ksa') private readonly customers: CustomersService) {}
 */
export function InjectService<T>(type: Type<T>, name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getServiceToken(type, name));
}
