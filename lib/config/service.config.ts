import { registerAs } from '@nestjs/config';
import { type ServiceModuleOptions } from './options.js';
import { readVariables } from './variables.js';

/**
 * The `service` namespace of @nestjs/config: the SERVICE_* variables as {@link ServiceModuleOptions}. Loading it is
 * optional, because ServiceModule reads the same variables itself.
 */
export const serviceConfig = registerAs(
  'service',
  (): ServiceModuleOptions => readVariables((variable) => process.env[variable]).options,
);
