import { type ModulesContainer } from '@nestjs/core';
import { sharedVariable } from '../config/variables.js';
import { ServiceConfigurationError } from '../errors/index.js';

/** The name of a ServiceModule, as one of its own providers. */
export interface ModuleName {
  name?: string;
}

/** The injection token of {@link ModuleName}. */
export const MODULE_NAME = Symbol('nestjs-service:name');

/**
 * @throws ServiceConfigurationError where two modules would read one variable: `a-b` and `a_b`, `ksa` and
 * `ksa-sandbox`
 */
export function refuseSharedVariables(own: ModuleName, modules: ModulesContainer): void {
  if (own.name === undefined) return;
  const names = [...new Set(namesOf(modules).map(({ name }) => name))];
  for (const name of names) {
    // nameFault() checks each name against the module without a name.
    const shared = name === undefined || name === own.name ? undefined : sharedVariable(own.name, name);
    if (!shared) continue;
    const both = names.filter((each) => each === name || each === own.name).map((each) => `'${each}'`);
    const message = `${both.join(' and ')} would both read ${shared}; choose names that differ in more than -, _ and case, and of which none begins with the other.`;
    throw new ServiceConfigurationError([{ option: 'name', message }]);
  }
}

/**
 * How many modules of the application have this name (or no name). Only the first gets this number; the others get 1.
 */
export function countNamesakes(own: ModuleName, modules: ModulesContainer): number {
  const namesakes = namesOf(modules).filter(({ name }) => name === own.name);
  return namesakes[0] === own ? namesakes.length : 1;
}

/** The names of all ServiceModules of the application, each as often as it is there. */
export function namesOf(modules: ModulesContainer): ModuleName[] {
  return [...modules.values()].flatMap(({ providers }) => {
    // None in a bare `imports: [ServiceModule]`, which fails the start.
    const own = providers.get(MODULE_NAME)?.instance as ModuleName | null | undefined;
    return own ? [own] : [];
  });
}
