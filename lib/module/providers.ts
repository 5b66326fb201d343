import {
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { ModulesContainer } from '@nestjs/core';
import { type StartableClient } from '../engine/create-client.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { MODULE_NAME, MODULE_OPTIONS_TOKEN, CLIENT, type ModuleName } from './definition.js';
import { givenOptions } from './given-options.js';
import { HOST_CONFIG, readHostConfig, type HostConfig } from './host-config.js';
import { createModuleClient } from './create-module-client.js';

/**
 * The client of a module, and the hooks that start and end it. The tokens are private, so that a host never gets another
 * module's client by its class: it injects the aliases of definition.ts.
 */
export const serviceProviders: Provider[] = [
  {
    provide: HOST_CONFIG,
    inject: [ModulesContainer, { token: ConfigService, optional: true }],
    useFactory: readHostConfig,
  },
  {
    provide: CLIENT,
    inject: [MODULE_OPTIONS_TOKEN as symbol, MODULE_NAME, HOST_CONFIG],
    useFactory: async (given: unknown, { name }: ModuleName, config: HostConfig) =>
      createModuleClient(await givenOptions(given), name, config),
  },
  {
    provide: Symbol('nestjs-service:hooks'),
    inject: [CLIENT],
    useFactory: serviceHooks,
  },
];

/**
 * For `imports: [ServiceModule]`, which Nest's message about a missing provider suggests. They belong to the class itself.
 * The providers of forRoot() and forRootAsync() come later, and Nest takes the last provider of a token.
 */
export const bareImportProviders: Provider[] = [MODULE_NAME, MODULE_OPTIONS_TOKEN].map((provide) => ({
  provide,
  useFactory: () => {
    const message =
      'has the class ServiceModule itself, which has no options. Import ServiceModule.forRoot() once, with ' +
      '{ isGlobal: true }, or in one module that exports ServiceModule. Other modules then import nothing, or that module.';
    throw ServiceConfigurationError.of('imports', message);
  },
}));

/** The hooks by which Nest starts and ends the client of a module. */
function serviceHooks(
  service: StartableClient,
): OnApplicationBootstrap & BeforeApplicationShutdown & OnApplicationShutdown {
  return {
    // Not in onModuleInit: if the host's start fails there, Nest calls no hook to stop what runs.
    onApplicationBootstrap: () => service.start(),
    beforeApplicationShutdown: () => service.beginShutdown(),
    onApplicationShutdown: () => service.close(),
  };
}
