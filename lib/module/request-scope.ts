import { type OnModuleInit } from '@nestjs/common';
import { type ModulesContainer } from '@nestjs/core';
import { ServiceConfigurationError } from '../errors/index.js';
import { MODULE_NAME, type ModuleName } from './module-names.js';

/**
 * Refuses options that depend on a request. Nest would create the whole module for each request, with connections and
 * timers that nothing ends. This provider must not depend on the options: Nest would not call its hook then.
 */
export class RequestScopeCheck implements OnModuleInit {
  readonly #own: ModuleName;
  readonly #modules: ModulesContainer;
  readonly #checked: string;

  /** @param checked the injection token of a provider that depends on the options */
  constructor(own: ModuleName, modules: ModulesContainer, checked: string) {
    this.#own = own;
    this.#modules = modules;
    this.#checked = checked;
  }

  onModuleInit(): void {
    // ModuleRef.introspect() would find the last module with this token, and each ServiceModule has it.
    const mine = [...this.#modules.values()].find(
      ({ providers }) => providers.get(MODULE_NAME)?.instance === this.#own,
    );
    if (mine?.providers.get(this.#checked)?.isDependencyTreeStatic() !== false) return;
    const message =
      'its options depend on a request: the factory, or the class of useClass or useExisting, injects REQUEST or a ' +
      'provider with Scope.REQUEST, directly or through another one. The client is made once, at start. Take the ' +
      'options from providers of the default scope, and pass what differs between requests to each call.';
    throw new ServiceConfigurationError([{ option: 'forRootAsync', message }]);
  }
}
