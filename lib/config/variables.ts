import { registerAs } from '@nestjs/config';
import { type ConfigurationFault } from '../errors/index.js';
import { spellingFault, variablePrefix } from './module-name.js';
import { type OptionKind } from './option.js';
import { entryOf, OPTIONS, setValue, type ServiceModuleOptions } from './options.js';
import { namesIn } from './rules.js';
import { isFile } from './secret.js';

/** The variable of an option: SERVICE_CLIENT_ID for `oauth.clientId`. It ends in `_FILE` if the value names a file. */
export function variableOf(option: string, name?: string, value?: unknown): string | undefined {
  const { suffix, kind } = entryOf(option) ?? {};
  if (suffix === undefined) return undefined;
  return `${variablePrefix(name)}${suffix}${kind === 'secret' && isFile(value) ? '_FILE' : ''}`;
}

/** Every variable that the module with this name reads, including those that end in `_FILE`. */
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
 * Reads options from variables. An empty variable, or one that contains only line breaks, counts as not set. A text that
 * cannot be parsed as its option's kind is kept, and validateOptions() reports it.
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
 * serviceConfig() marks its options with this property, which also holds the faults of their variables. The property
 * survives a spread such as `{ ...serviceConfig(), http }`. createServiceClient() names variables in its errors only
 * for marked options.
 */
const VARIABLE_FAULTS = Symbol('nestjs-service:variable-faults');

/**
 * The `service` namespace of @nestjs/config: the SERVICE_* variables as {@link ServiceModuleOptions}. ServiceModule reads
 * the same variables by itself, so you need not load it. Without Nest: `createServiceClient(serviceConfig())`.
 */
export const serviceConfig = registerAs('service', (): ServiceModuleOptions => {
  const { options, faults } = readVariables((variable) => process.env[variable]);
  return Object.assign(options, { [VARIABLE_FAULTS]: faults });
});

/** Undefined if the options do not come from {@link serviceConfig}. */
export function variableFaultsOf(options: ServiceModuleOptions): readonly ConfigurationFault[] | undefined {
  return (options as { [VARIABLE_FAULTS]?: readonly ConfigurationFault[] })[VARIABLE_FAULTS];
}

/** Parses the text of a variable. A text that cannot be parsed as the option's kind is returned as it is. */
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
