import { type Provider } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { ModulesContainer } from '@nestjs/core';
import { moduleLabel } from '../config/module-name.js';
import { createService, type Service, systemIo } from '../engine/create-service.js';
import { SafeLogger } from '../telemetry/log.js';
import { privateToken } from '../service-token.js';
import { MODULE_OPTIONS_TOKEN, SERVICE } from './definition.js';
import { type GivenOptions } from './given-options.js';
import { HOST_CONFIG, readHostConfig, type HostConfig } from './host-config.js';
import { loadConfiguration } from './load-configuration.js';
import { MODULE_NAME, refuseSharedVariables, type ModuleName } from './module-names.js';
import { RequestScopeCheck } from './request-scope.js';
import { ServiceHooks } from './service-hooks.js';

/**
 * What a module makes: its client, and the hooks that start and end it. The injection tokens are private, so that a host
 * never gets the client of another module by its class. Hosts inject the aliases of definition.ts.
 */
export const serviceProviders: Provider[] = [
  {
    provide: HOST_CONFIG,
    inject: [ModulesContainer, { token: ConfigService, optional: true }],
    useFactory: (modules: ModulesContainer, config?: ConfigService) => readHostConfig(modules, config),
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
    provide: privateToken(ServiceHooks.name),
    inject: [SERVICE, MODULE_NAME, ModulesContainer],
    useFactory: (service: Service, own: ModuleName, modules: ModulesContainer) =>
      new ServiceHooks(service, own, modules),
  },
  {
    provide: privateToken(RequestScopeCheck.name),
    inject: [MODULE_NAME, ModulesContainer],
    useFactory: (own: ModuleName, modules: ModulesContainer) => new RequestScopeCheck(own, modules, SERVICE),
  },
];
