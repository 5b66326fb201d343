import { Inject, type Type } from '@nestjs/common';

/**
 * The injection token of a service: the class itself, or a token of its own for the module named `name`.
 * @example getServiceToken(CustomersService, 'ksa')
 */
export function getServiceToken<T>(type: Type<T>, name?: string): Type<T> | string {
  return name === undefined ? type : `nestjs-service:${name}:${type.name}`;
}

/**
 * Injects a service of the module named `name`, or of the unnamed one.
 * @example constructor(@InjectService(CustomersService, 'ksa') private readonly customers: CustomersService) {}
 */
export function InjectService<T>(type: Type<T>, name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getServiceToken(type, name));
}
