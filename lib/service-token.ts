import { Inject, type Type } from '@nestjs/common';

/**
 * The injection token of a service: the class itself, or a token of its own for the module named `name`.
 * @example getServiceToken(CustomersService, 'ksa')
 */
export function getServiceToken<T>(type: Type<T>, name?: string): Type<T> | string {
  return name === undefined ? type : `nestjs-service:${name}:${type.name}`;
}

/**
 * The injection token of the options of the module named `name`, or of the unnamed one, for tests: what overrides it
 * takes the place of what `forRoot()` was given, or of a factory, which is then not called. Variables count for what it
 * leaves out.
 * @example
 * Test.createTestingModule({ imports: [AppModule] })
 *   .overrideProvider(getServiceOptionsToken())
 *   .useValue(simulator.moduleOptions())
 */
export function getServiceOptionsToken(name?: string): string {
  return name === undefined ? 'nestjs-service:options' : `nestjs-service:${name}:options`;
}

/**
 * Injects a service of the module named `name`, or of the unnamed one.
 * @example constructor(@InjectService(CustomersService, 'ksa') private readonly customers: CustomersService) {}
 */
export function InjectService<T>(type: Type<T>, name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getServiceToken(type, name));
}
