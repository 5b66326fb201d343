import { type ModulesContainer } from '@nestjs/core';
import { variablePrefix } from '../config/variables.js';
import { ServiceConfigurationError } from '../errors/index.js';

/** The name of one ServiceModule, as a provider of it. */
export interface ModuleName {
  name?: string;
}

/** The name among the module's own providers. */
export const MODULE_NAME = Symbol('nestjs-service:name');

/** @throws ServiceConfigurationError where two names of one application read the same variables: `a-b` and `a_b` */
export function refuseSharedVariables(own: ModuleName, modules: ModulesContainer): void {
  if (own.name === undefined) return;
  const prefix = variablePrefix(own.name);
  const names = new Set(namesOf(modules).map(({ name }) => name));
  const alike = [...names].filter((name) => name !== undefined && variablePrefix(name) === prefix);
  if (alike.length < 2) return;
  const list = alike.map((name) => `'${name}'`).join(' and ');
  const message = `${list} would both read the variables ${prefix}*; choose names that differ in more than -, _ and case.`;
  throw new ServiceConfigurationError([{ option: 'name', message }]);
}

/** How many modules of the application have this name, or none as this one; told to the first of them only, else 1. */
export function countNamesakes(own: ModuleName, modules: ModulesContainer): number {
  const namesakes = namesOf(modules).filter(({ name }) => name === own.name);
  return namesakes[0] === own ? namesakes.length : 1;
}

function namesOf(modules: ModulesContainer): ModuleName[] {
  return [...modules.values()].flatMap(({ providers }) => {
    const wrapper = providers.get(MODULE_NAME);
    return wrapper ? [wrapper.instance as ModuleName] : [];
  });
}
