import { validateSync, type ValidationError } from 'class-validator';
import { cleanText, type ConfigurationFault } from '../errors/index.js';
import { instanceOf, type OptionKind } from './option.js';
import { entryOf, OPTIONS, ServiceModuleOptions, valueOf } from './options.js';

/** Names of properties that would change the object that is checked. */
export const DANGEROUS_KEYS: readonly string[] = ['__proto__', 'constructor', 'prototype'];

const QUOTED: readonly (OptionKind | undefined)[] = ['choice', 'boolean', 'integer', 'names', 'address'];
/** A value that is not an address may be a token; an address with other characters may have a password or token in it. */
const PLAIN_ADDRESS = /^[a-z]+:\/\/[\w.:/[\]…-]+$/i;
/** A longer value, or one with other characters, may be a secret in the wrong variable. */
const PLAIN_VALUE = /^[\w\s.,+'"-]{0,24}$/;

export const FILL_IN = 'put the real value in its place.';

interface BrokenOption {
  option: string;
  message: string;
  /** The same option, or the one that a misspelt name probably means. */
  meant?: string;
}

/**
 * Checks each option by itself, and refuses unknown names. `broken` are the options and sections that are set but not
 * valid: no other fault of them is reported.
 */
export function validateOptions(options: ServiceModuleOptions) {
  const dangerous = dangerousKeys(options);
  if (dangerous.length > 0) return { faults: dangerous, broken: new Set<string>() };
  const found = withPlaceholder(options);
  found.push(...againstRules(options).filter(({ option }) => !found.some((each) => each.option === option)));
  return {
    faults: found.map(({ option, message }) => ({ option, message })),
    broken: new Set(found.flatMap(({ meant }) => meant ?? [])),
  };
}

function withPlaceholder(options: ServiceModuleOptions): BrokenOption[] {
  return OPTIONS.flatMap(({ option }) => {
    const value = valueOf(options, option);
    // A real passphrase can be 'changeme'. Opening the key shows whether it is right.
    if (typeof value !== 'string' || option === 'tls.passphrase' || !isPlaceholder(value)) return [];
    const message = `still contains a placeholder${quote(options, option)}; ${FILL_IN}`;
    return [{ option, meant: option, message }];
  });
}

function againstRules(options: ServiceModuleOptions): BrokenOption[] {
  const settings = { whitelist: true, forbidNonWhitelisted: true, stopAtFirstError: true };
  const errors = validateSync(instanceOf(ServiceModuleOptions, options), settings);
  return errors
    .flatMap((error) => constraintsOf(error))
    .map(({ option, rule, message }) =>
      rule === 'whitelistValidation'
        ? unknownOption(option)
        : { option, meant: option, message: message + quote(options, option, '; it is') },
    );
}

function unknownOption(option: string): BrokenOption {
  const isExtra = ['name', 'isGlobal', 'extraProviders'].includes(option);
  const hint = isExtra
    ? `it belongs beside the options: forRoot({ ${option}: ... }), or forRootAsync({ ${option}: ..., useFactory }).`
    : 'check its spelling.';
  return { option, message: `is not an option of ServiceModule; ${hint}` };
}

/** The value for a message: short and on one line. Empty if it may be a secret. */
function quote(options: ServiceModuleOptions, option: string, before = ''): string {
  const kind = entryOf(option)?.kind;
  if (!QUOTED.includes(kind)) return '';
  const found = valueOf(options, option);
  const value = Array.isArray(found) ? found.join(', ') : found;
  if (kind !== 'address' && /^(number|boolean)$/.test(typeof value)) return `${before} ${String(value)}`;
  if (typeof value !== 'string' || !(kind === 'address' ? PLAIN_ADDRESS : PLAIN_VALUE).test(value)) return '';
  const secrets = OPTIONS.filter((entry) => !QUOTED.includes(entry.kind))
    .map((entry) => valueOf(options, entry.option))
    .filter((secret) => typeof secret === 'string')
    .map((secret) => secret.trim());
  return `${before} '${cleanText(value, secrets, 60)}'`;
}

function constraintsOf(
  error: ValidationError,
  parent = '',
): { option: string; rule: string; message: string }[] {
  const option = parent + error.property;
  const own = Object.entries(error.constraints ?? {}).map(([rule, message]) => ({ option, rule, message }));
  return [...own, ...(error.children ?? []).flatMap((child) => constraintsOf(child, `${option}.`))];
}

function dangerousKeys(options: object): ConfigurationFault[] {
  return [options, ...(Object.values(options) as unknown[])]
    .filter((section) => typeof section === 'object' && section !== null)
    .flatMap((section) => DANGEROUS_KEYS.filter((key) => Object.hasOwn(section, key)))
    .map((option) => ({ option, message: 'is not an option of ServiceModule' }));
}

// Words without digits. Real tokens, secrets and ids do not look like this.
const WORDS = String.raw`[a-z]+([ ._-]+[a-z]+)*`;
const PLACEHOLDER = new RegExp(
  [
    String.raw`\.{3}|…`,
    `<${WORDS}>`,
    String.raw`\$?\{{1,2} ?${WORDS} ?\}{1,2}`,
    `your[ _-]${WORDS}`,
    '(change|replace|fill)[ _-]?(me|this|in)',
    'placeholder|todo|tbd|fixme',
    // A UUID of zeros, with or without its version and variant.
    '0{8}-0{4}-[0-9a-f]0{3}-[0-9a-f]0{3}-0{12}',
  ].join('|'),
  'i',
);
const WHOLE = new RegExp(`^(${PLACEHOLDER.source})$`, 'i');
/** An address with brackets, or with dots or `your-host` in place of its host. */
const IN_ADDRESS = new RegExp(String.raw`^https?://(.*[<>{}…].*|(\.{3}|your([_-][a-z]+)+)([:/].*)?)$`, 'i');

/** True for a text from an example, in place of the real value: `https://...`, `<your-app-token>`, `changeme`. */
export function isPlaceholder(value: string): boolean {
  const text = value.trim();
  return text.length <= 256 && (WHOLE.test(text) || IN_ADDRESS.test(text));
}
