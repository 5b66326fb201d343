import {
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { type ModulesContainer } from '@nestjs/core';
import { type Service } from '../engine/create-service.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { countNamesakes, MODULE_NAME, type ModuleName } from './module-names.js';

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

function namesakesWarning(own: ModuleName, modules: ModulesContainer): string | undefined {
  const namesakes = countNamesakes(own, modules);
  if (namesakes === 1) return undefined;
  return (
    `${namesakes} ServiceModules ${own.name === undefined ? 'without a name' : `named '${own.name}'`} are in this ` +
    'application, each with its own tokens and connections. For one service, call forRoot() once, with isGlobal ' +
    'or in a module that exports ServiceModule; for several services, give each its own name.'
  );
}

/**
 * Refuses options that depend on a request. Nest would create the whole module for each request, with connections and
 * timers that nothing ends. This provider must not depend on the options: Nest would not call its hook then.
 * @param checked the injection token of a provider that depends on the options
 */
export function requestScopeCheck(own: ModuleName, modules: ModulesContainer, checked: string): OnModuleInit {
  return {
    onModuleInit: () => {
      // ModuleRef.introspect() would find the last module with this token, and each ServiceModule has it.
      const mine = [...modules.values()].find(
        ({ providers }) => providers.get(MODULE_NAME)?.instance === own,
      );
      if (mine?.providers.get(checked)?.isDependencyTreeStatic() !== false) return;
      const message =
        'its options depend on a request: the factory, or the class of useClass or useExisting, injects REQUEST or a ' +
        'provider with Scope.REQUEST, directly or through another one. The client is made once, at start. Take the ' +
        'options from providers of the default scope, and pass what differs between requests to each call.';
      throw new ServiceConfigurationError([{ option: 'forRootAsync', message }]);
    },
  };
}
