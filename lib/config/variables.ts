import { registerAs } from '@nestjs/config';
import { type ConfigurationFault } from '../errors/index.js';
import { variablePrefix } from './names.js';
import { type OptionKind, namesIn, setValue, toInstance, valueOf } from './option.js';
import { entryOf, OPTIONS, Options, type ServiceModuleOptions } from './options.js';
import { isFile, isInQuotes, KEPT_QUOTES } from './secret.js';
import { validateSync, type ValidationError } from 'class-validator';

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
  if (!/^[A-Za-z][\w-]*$/.test(name))
    return 'must begin with a letter and contain only letters, digits, - and _.';
  return (
    shared &&
    `cannot be '${name}': ${shared} is also a variable of the module without a name. Choose another name.`
  );
}

/**
 * Reads options from variables. An empty variable, or one that contains only line breaks, counts as not set, unless its option is
 * a `prefix`. A text that cannot be parsed as its option's kind is kept, and validateOptions() reports it.
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
function parseValue(raw: unknown, kind: OptionKind): unknown {
  if (raw === undefined || raw === null) return undefined;
  if (typeof raw !== 'string') return raw;
  if (kind === 'secret') return /^[\r\n]*$/.test(raw) ? undefined : raw;
  const text = raw.trim();
  if (text === '') return kind === 'prefix' ? text : undefined;
  if (kind === 'integer' && /^-?\d+$/.test(text)) return Number(text);
  if (kind === 'boolean' || kind === 'names') {
    if (/^(true|1|yes|on)$/i.test(text)) return true;
    if (/^(false|0|no|off)$/i.test(text)) return false;
  }
  return kind === 'names' ? namesIn(text) : text;
}

/** The kinds of options whose value a message may quote. */
const QUOTED: readonly OptionKind[] = ['choice', 'boolean', 'integer', 'names'];
/** A few words or a short text. Any other value may be a secret that was put into the wrong variable. */
const PLAIN_VALUE = /^([a-z .,_'"-]{1,16}|[\w.,+-]{1,8})$/i;

/**
 * Checks each option by itself and refuses unknown names. `broken` contains the options and sections that are set but not
 * valid, so that later checks report no further faults for them.
 */
export function validateOptions(options: ServiceModuleOptions) {
  const settings = { whitelist: true, forbidNonWhitelisted: true, stopAtFirstError: true };
  const errors = validateSync(toInstance(Options, options), settings);
  const encrypted = OPTIONS.filter(({ option }) => isEncrypted(valueOf(options, option)));
  const found = errors
    .flatMap((error) => constraintsOf(error))
    .filter((each) => !encrypted.some(({ option }) => each.option === option))
    .concat(encrypted.map(({ option }) => ({ option, rule: 'encrypted', message: ENCRYPTED })));
  const isUnknown = ({ rule }: Broken): boolean => rule === 'whitelistValidation';
  const faults = found.map((each): ConfigurationFault => {
    const { option, message } = each;
    return {
      option,
      message: isUnknown(each) ? describeUnknown(option) : message + quoteValue(options, option),
    };
  });
  return { faults, broken: new Set(found.flatMap((each) => (isUnknown(each) ? [] : each.option))) };
}

type Broken = ConfigurationFault & { rule: string };

function constraintsOf(error: ValidationError, parent = ''): Broken[] {
  const option = parent + error.property;
  const own = Object.entries(error.constraints ?? {}).map(([rule, message]) => ({ option, rule, message }));
  return [...own, ...(error.children ?? []).flatMap((child) => constraintsOf(child, `${option}.`))];
}

function describeUnknown(option: string): string {
  const isExtra = ['name', 'isGlobal', 'extraProviders'].includes(option);
  const hint = isExtra
    ? `it belongs beside the options: forRoot({ ${option}: ... }), or forRootAsync({ ${option}: ..., useFactory }).`
    : 'check its spelling.';
  return `is not an option of ServiceModule; ${hint}`;
}

const ENCRYPTED =
  'is still encrypted by dotenvx: start the application with dotenvx run, which needs DOTENV_PRIVATE_KEY, or write the value itself.';

/** dotenvx leaves a value encrypted if it has no key, or if something else reads the file. */
function isEncrypted(value: unknown): boolean {
  return String(isFile(value) ? value.file : value).startsWith('encrypted:');
}

/** Quotes the value of an option for a message. Empty if the value may be a secret. */
function quoteValue(options: ServiceModuleOptions, option: string): string {
  const found = valueOf(options, option);
  const { kind } = entryOf(option) ?? {};
  const value = Array.isArray(found) ? found.join(', ') : found;
  if (kind !== 'secret' && isInQuotes(value)) return `; ${KEPT_QUOTES}`;
  if (kind === undefined || !QUOTED.includes(kind)) return '';
  if (/^(number|boolean)$/.test(typeof found)) return `; it is ${String(found)}`;
  if (typeof value !== 'string' || !PLAIN_VALUE.test(value)) return '';
  // A variable's text is converted, so this text was set in code, as in `timeout: config.get<number>('TIMEOUT')`.
  const isUnconverted = /^(number|boolean)$/.test(typeof parseValue(found, kind));
  const remedy = kind === 'integer' ? ': use Number()' : '';
  return isUnconverted ? `; '${value}' is a string${remedy}` : `; it is '${value}'`;
}
