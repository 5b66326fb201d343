import { type ModulesContainer } from '@nestjs/core';
import { sharedVariable } from '../config/variables.js';
import { ServiceConfigurationError } from '../errors/index.js';

/** The name of a ServiceModule, as one of its own providers. */
export interface ModuleName {
  name?: string;
}

export const MODULE_NAME = Symbol('nestjs-service:name');

/** The names of all ServiceModules of the application, one for each module. */
export function namesOf(modules: ModulesContainer): ModuleName[] {
  // None in a bare `imports: [ServiceModule]`, which fails the start.
  return [...modules.values()].flatMap(
    ({ providers }) => (providers.get(MODULE_NAME)?.instance as ModuleName | null | undefined) ?? [],
  );
}

/**
 * @throws ServiceConfigurationError if two modules would read one variable: `a-b` and `a_b`, `ksa` and
 * `ksa-sandbox`
 */
export function refuseSharedVariables(own: ModuleName, modules: ModulesContainer): void {
  if (own.name === undefined) return;
  const names = [...new Set(namesOf(modules).map(({ name }) => name))];
  for (const name of names) {
    // forRoot() checks each name against the module without a name.
    const shared = name === undefined || name === own.name ? undefined : sharedVariable(own.name, name);
    if (!shared) continue;
    const both = names.filter((each) => each === name || each === own.name).map((each) => `'${each}'`);
    throw ServiceConfigurationError.of(
      'name',
      `${both.join(' and ')} would both read ${shared}; choose names that differ in more than -, _ and case, and of which none begins with the other.`,
    );
  }
}

/** A warning for the first of several modules with the same name, or without one. */
export function namesakesWarning(own: ModuleName, modules: ModulesContainer): string | undefined {
  const namesakes = namesOf(modules).filter(({ name }) => name === own.name);
  if (namesakes.length === 1 || namesakes[0] !== own) return undefined;
  return (
    `${namesakes.length} ServiceModules ${own.name === undefined ? 'without a name' : `named '${own.name}'`} are in this ` +
    'application, each with its own tokens and connections. For one service, call forRoot() once, with isGlobal ' +
    'or in a module that exports ServiceModule; for several services, give each its own name.'
  );
}
