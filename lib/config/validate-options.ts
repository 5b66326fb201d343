import { validateSync, type ValidationError } from 'class-validator';
import { type ConfigurationFault } from '../errors/index.js';
import { withDefaults } from './option.js';
import { ServiceModuleOptions } from './options.js';

/** What is wrong with the options one by one, unknown names among them. */
export function validateOptions(options: ServiceModuleOptions): ConfigurationFault[] {
  const dangerous = dangerousKeys(options);
  if (dangerous.length > 0) return dangerous;
  const errors = validateSync(withDefaults(ServiceModuleOptions, options), {
    whitelist: true,
    forbidNonWhitelisted: true,
    stopAtFirstError: true,
    // A message must never quote a secret, and an error must not carry one.
    validationError: { target: false, value: false },
  });
  return errors.flatMap((error) => toFaults(error));
}

function toFaults(error: ValidationError, parent?: string): ConfigurationFault[] {
  const option = parent === undefined ? error.property : `${parent}.${error.property}`;
  const messages = Object.entries(error.constraints ?? {}).map(([rule, message]) => ({
    option,
    message:
      rule === 'whitelistValidation' ? 'is not an option of ServiceModule; look for a misspelling' : message,
  }));
  return [...messages, ...(error.children ?? []).flatMap((child) => toFaults(child, option))];
}

/** Names that would change what the rules are checked on. */
function dangerousKeys(options: object): ConfigurationFault[] {
  const sections: unknown[] = Object.values(options);
  return [options, ...sections].flatMap((section) =>
    typeof section === 'object' && section !== null
      ? ['__proto__', 'constructor', 'prototype']
          .filter((key) => Object.hasOwn(section, key))
          .map((key) => ({ option: key, message: 'is not an option of ServiceModule' }))
      : [],
  );
}
