import { type Provider } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { ModulesContainer } from '@nestjs/core';
import { moduleLabel } from '../config/module-name.js';
import { createService, type Service, systemIo } from '../engine/create-service.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { SafeLogger } from '../telemetry/log.js';
import { privateToken } from '../service-token.js';
import { MODULE_OPTIONS_TOKEN, SERVICE } from './definition.js';
import { type GivenOptions } from './given-options.js';
import { HOST_CONFIG, readHostConfig, type HostConfig } from './host-config.js';
import { loadConfiguration } from './load-configuration.js';
import { MODULE_NAME, refuseSharedVariables, type ModuleName } from './module-names.js';
import { requestScopeCheck, serviceHooks } from './hooks.js';

/**
 * What a module makes: its client, and the hooks that start and end it. The injection tokens are private, so that a host
 * never gets the client of another module by its class. Hosts inject the aliases of definition.ts.
 */
export const serviceProviders: Provider[] = [
  {
    provide: HOST_CONFIG,
    inject: [ModulesContainer, { token: ConfigService, optional: true }],
    useFactory: readHostConfig,
  },
  {
    provide: SERVICE,
    inject: [MODULE_OPTIONS_TOKEN as symbol, MODULE_NAME, HOST_CONFIG, ModulesContainer],
    useFactory: async (
      given: GivenOptions,
      own: ModuleName,
      config: HostConfig,
      modules: ModulesContainer,
    ): Promise<Service> => {
      refuseSharedVariables(own, modules);
      const log = new SafeLogger(moduleLabel(own.name));
      const { options, identity } = await loadConfiguration(given, own, config, log);
      return createService(options, identity, systemIo(log));
    },
  },
  {
    provide: privateToken('hooks'),
    inject: [SERVICE, MODULE_NAME, ModulesContainer],
    useFactory: serviceHooks,
  },
  {
    provide: privateToken('request-scope-check'),
    inject: [MODULE_NAME, ModulesContainer],
    useFactory: (own: ModuleName, modules: ModulesContainer) => requestScopeCheck(own, modules, SERVICE),
  },
];

/**
 * For `imports: [ServiceModule]`, which Nest's message about a missing provider suggests. They belong to the class
 * itself. Those of forRoot() and forRootAsync() come after them, and Nest takes the last provider of a token.
 */
export const bareImportProviders: Provider[] = [MODULE_NAME, MODULE_OPTIONS_TOKEN].map((provide) => ({
  provide,
  useFactory: () => {
    const message =
      'has the class ServiceModule itself, which has no options. Import ServiceModule.forRoot() once, with ' +
      '{ isGlobal: true }, or in one module of yours that exports ServiceModule. Other modules then import nothing, or ' +
      'that module of yours.';
    throw new ServiceConfigurationError([{ option: 'imports', message }]);
  },
}));
