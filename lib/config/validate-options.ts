import { validateSync, type ValidationError } from 'class-validator';
import { type ConfigurationFault } from '../errors/index.js';
import { instanceOf, type OptionKind } from './option.js';
import { entryOf, OPTIONS, ServiceModuleOptions, valueOf } from './options.js';
import { isInQuotes, KEPT_QUOTES } from './read-file.js';
import { isFile } from './secret.js';
import { parseValue } from './variables.js';

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
  const errors = validateSync(instanceOf(ServiceModuleOptions, options), settings);
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
