import { registerAs } from '@nestjs/config';
import { type ConfigurationFault } from '../errors/index.js';
import { spellingFault, variablePrefix } from './module-name.js';
import { type OptionKind } from './option.js';
import { entryOf, OPTIONS, setValue, type ServiceModuleOptions } from './options.js';
import { namesIn } from './rules.js';
import { isFile } from './secret.js';

/** The variable of an option: `oauth.clientId` -> `SERVICE_CLIENT_ID`. With `_FILE` if the value is a file. */
export function variableOf(option: string, name?: string, value?: unknown): string | undefined {
  const { suffix, kind } = entryOf(option) ?? {};
  if (suffix === undefined) return undefined;
  return `${variablePrefix(name)}${suffix}${kind === 'secret' && isFile(value) ? '_FILE' : ''}`;
}

/** Every variable that the module of this name reads; those of secrets with `_FILE` too. */
export function variablesOf(name?: string): string[] {
  return OPTIONS.flatMap(({ suffix, kind }) => {
    if (suffix === undefined) return [];
    const variable = variablePrefix(name) + suffix;
    return kind === 'secret' ? [variable, `${variable}_FILE`] : [variable];
  });
}

/** Why a module cannot have this name; undefined if it can. */
export function nameFault(name: string): string | undefined {
  const read = new Set(variablesOf());
  const shared = variablesOf(name).find((variable) => read.has(variable));
  return (
    spellingFault(name) ??
    (shared &&
      `cannot be '${name}': ${shared} is also a variable of the module without a name. Choose another name.`)
  );
}

/**
 * Reads options from variables. An empty variable, or one with nothing but line breaks, counts as not set. A value that is
 * not of its option's kind stays text; validateOptions() reports it.
 */
export function readVariables(
  read: (variable: string) => unknown,
  name?: string,
): { options: ServiceModuleOptions; faults: ConfigurationFault[] } {
  const options: ServiceModuleOptions = {};
  const faults: ConfigurationFault[] = [];
  for (const { option, suffix, kind } of OPTIONS) {
    if (suffix === undefined) continue;
    const variable = variablePrefix(name) + suffix;
    const value = parseValue(read(variable), kind);
    const file = kind === 'secret' ? parseValue(read(`${variable}_FILE`), 'text') : undefined;
    if (value !== undefined && file !== undefined) {
      const message = `${variable} and ${variable}_FILE are both set; keep one of them.`;
      faults.push({ option, variable, message });
    }
    if ((value ?? file) !== undefined) setValue(options, option, file === undefined ? value : { file });
  }
  return { options, faults };
}

/**
 * Options of serviceConfig() have the faults of their variables here. A host's spread, `{ ...serviceConfig(), http }`, keeps
 * the property, so that errors of createServiceClient() name the variables in this case, and in no other.
 */
const VARIABLE_FAULTS = Symbol('nestjs-service:variable-faults');

/**
 * The `service` namespace of @nestjs/config: the SERVICE_* variables as {@link ServiceModuleOptions}. Loading it is
 * optional, because ServiceModule reads the same variables itself. Without Nest: `createServiceClient(serviceConfig())`.
 */
export const serviceConfig = registerAs('service', (): ServiceModuleOptions => {
  const { options, faults } = readVariables((variable) => process.env[variable]);
  return Object.assign(options, { [VARIABLE_FAULTS]: faults });
});

/** Undefined if the options do not come from {@link serviceConfig}. */
export function variableFaultsOf(options: ServiceModuleOptions): readonly ConfigurationFault[] | undefined {
  return (options as { [VARIABLE_FAULTS]?: readonly ConfigurationFault[] })[VARIABLE_FAULTS];
}

/** Text that is not of the option's kind stays text. */
export function parseValue(raw: unknown, kind: OptionKind): unknown {
  if (raw === undefined || raw === null) return undefined;
  if (typeof raw !== 'string') return raw;
  if (kind === 'secret') return /^[\r\n]*$/.test(raw) ? undefined : raw;
  const text = raw.trim();
  if (text === '') return undefined;
  if (kind === 'integer' && /^-?\d+$/.test(text)) return Number(text);
  if (kind === 'boolean' || kind === 'names') {
    if (/^(true|1|yes|on)$/i.test(text)) return true;
    if (/^(false|0|no|off)$/i.test(text)) return false;
  }
  return kind === 'names' ? namesIn(text) : text;
}
