import {
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { ModulesContainer } from '@nestjs/core';
import { type Service } from '../engine/create-service.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { MODULE_OPTIONS_TOKEN, SERVICE } from './definition.js';
import { givenOptions } from './given-options.js';
import { HOST_CONFIG, readHostConfig, type HostConfig } from './host-config.js';
import { openService } from './load-configuration.js';
import { MODULE_NAME, namesakesWarning, refuseSharedVariables, type ModuleName } from './namesakes.js';
import { ServiceClients } from './service-clients.js';

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
    provide: SERVICE,
    inject: [MODULE_OPTIONS_TOKEN as symbol, MODULE_NAME, HOST_CONFIG, ModulesContainer],
    useFactory: async (given: unknown, own: ModuleName, config: HostConfig, modules: ModulesContainer) => {
      refuseSharedVariables(own, modules);
      return openService(await givenOptions(given), own.name, config);
    },
  },
  {
    provide: Symbol('nestjs-service:hooks'),
    inject: [SERVICE, MODULE_NAME, ModulesContainer],
    useFactory: serviceHooks,
  },
  ServiceClients,
  {
    provide: Symbol('nestjs-service:request-scope-check'),
    inject: [MODULE_NAME, ModulesContainer],
    useFactory: requestScopeCheck,
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
export function serviceHooks(
  service: Service,
  own: ModuleName,
  modules: ModulesContainer,
): OnApplicationBootstrap & BeforeApplicationShutdown & OnApplicationShutdown {
  return {
    // Not in onModuleInit: if the host's start fails there, Nest calls no hook to stop what runs.
    onApplicationBootstrap: () => {
      const warning = namesakesWarning(own, modules);
      if (warning) service.log.warn(warning);
      return service.start();
    },
    beforeApplicationShutdown: () => service.beginShutdown(),
    onApplicationShutdown: () => service.close(),
  };
}

/**
 * Refuses options that depend on a request. Nest would create the whole module for each request, with connections and
 * timers that nothing ends. This provider must not depend on the options: Nest would not call its hook then.
 */
export function requestScopeCheck(own: ModuleName, modules: ModulesContainer): OnModuleInit {
  return {
    onModuleInit: () => {
      // ModuleRef.introspect() would find the last module with this token, and each ServiceModule has it.
      const mine = [...modules.values()].find(
        ({ providers }) => providers.get(MODULE_NAME)?.instance === own,
      );
      if (mine?.providers.get(SERVICE)?.isDependencyTreeStatic() !== false) return;
      const message =
        'its options depend on a request: the factory, or the class of useClass or useExisting, injects REQUEST or a ' +
        'provider with Scope.REQUEST, directly or through another one. The client is made once, at start. Take the ' +
        'options from providers of the default scope, and pass what differs between requests to each call.';
      throw ServiceConfigurationError.of('forRootAsync', message);
    },
  };
}
