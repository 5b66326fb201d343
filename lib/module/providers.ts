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
import { getGivenOptions } from './given-options.js';
import { HOST_CONFIG, readHostConfig, type HostConfig } from './host-config.js';
import { createModuleClient } from './create-module-client.js';

/**
 * The client of a ServiceModule, and the lifecycle hooks that start and close it. Their tokens are private: an application
 * injects the services by the tokens in definition.ts, so it cannot get the client of another module by accident.
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
      createModuleClient(await getGivenOptions(given), name, config),
  },
  {
    provide: Symbol('nestjs-service:hooks'),
    inject: [CLIENT],
    useFactory: lifecycleHooks,
  },
];

/**
 * Fails the start with `imports: [ServiceModule]`, which Nest's own message about a missing provider suggests. These
 * providers belong to the class. forRoot() and forRootAsync() add theirs later, and Nest uses the last provider of a
 * token.
 */
export const bareImportProviders: Provider[] = [MODULE_NAME, MODULE_OPTIONS_TOKEN].map((provide) => ({
  provide,
  useFactory: () => {
    const message =
      'contains the class ServiceModule itself, which has no options. Import ServiceModule.forRoot() once: either with ' +
      '{ isGlobal: true }, so that other modules import nothing, or in one module that exports ServiceModule and that the others import.';
    throw ServiceConfigurationError.of('imports', message);
  },
}));

/** The lifecycle hooks with which Nest starts and closes a client. */
function lifecycleHooks(
  client: StartableClient,
): OnApplicationBootstrap & BeforeApplicationShutdown & OnApplicationShutdown {
  return {
    // Not onModuleInit(): if another module's onModuleInit() fails, Nest calls no hook that would close the client.
    onApplicationBootstrap: () => client.start(),
    beforeApplicationShutdown: () => client.beginShutdown(),
    onApplicationShutdown: () => client.close(),
  };
}
