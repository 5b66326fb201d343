import { registerAs } from '@nestjs/config';
import { type ServiceModuleOptions } from './options.js';
import { readVariables } from './variables.js';

/**
 * The `service` namespace of @nestjs/config: the SERVICE_* variables as {@link ServiceModuleOptions}. A host need not
 * load it: ServiceModule reads the same variables by itself.
 */
export const serviceConfig = registerAs(
  'service',
  (): ServiceModuleOptions => readVariables((variable) => process.env[variable]).options,
);
