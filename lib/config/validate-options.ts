import { validateSync, type ValidationError } from 'class-validator';
import { type ConfigurationFault } from '../errors/index.js';
import { OptionRules, SECTION_RULES } from './option-rules.js';
import { type ServiceModuleOptions } from './options.js';

/** What is wrong with the options one by one, unknown names among them. */
export function validateOptions(options: ServiceModuleOptions): ConfigurationFault[] {
  const dangerous = dangerousKeys(options);
  if (dangerous.length > 0) return dangerous;
  const rules = Object.assign(new OptionRules(), options);
  const faults: ConfigurationFault[] = [];
  for (const [section, Rules] of Object.entries(SECTION_RULES) as [
    keyof typeof SECTION_RULES,
    new () => object,
  ][]) {
    const value: unknown = options[section];
    delete rules[section];
    if (value === undefined || (section === 'tls' && typeof value === 'function')) continue;
    if (typeof value === 'object' && value !== null)
      Object.assign(rules, { [section]: Object.assign(new Rules(), value) });
    else faults.push({ option: section, message: 'must be an object' });
  }
  const errors = validateSync(rules, {
    whitelist: true,
    forbidNonWhitelisted: true,
    stopAtFirstError: true,
    // A message must never quote a secret, and an error must not carry one.
    validationError: { target: false, value: false },
  });
  return [...faults, ...errors.flatMap((error) => toFaults(error))];
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
