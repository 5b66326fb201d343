import { validateSync, type ValidationError } from 'class-validator';
import { cleanText, type ConfigurationFault } from '../errors/index.js';
import { nearest } from './misspelling.js';
import { withDefaults, type OptionKind } from './option.js';
import { OPTIONS, ServiceModuleOptions, valueOf } from './options.js';
import { isPlaceholder } from './placeholder.js';

const QUOTED: readonly OptionKind[] = ['choice', 'boolean', 'integer', 'names', 'address'];
/** An address with anything else in it may hold a password or a token. */
const PLAIN_ADDRESS = /^[\w.:/[\]…-]+$/;

export interface Validation {
  faults: ConfigurationFault[];
  /** Options (or sections) that were meant and are not usable: nothing else is said of them. */
  broken: ReadonlySet<string>;
}

/** What is wrong with the options one by one, unknown names among them. */
export function validateOptions(options: ServiceModuleOptions): Validation {
  const dangerous = dangerousKeys(options);
  if (dangerous.length > 0) return { faults: dangerous, broken: new Set() };
  const broken = new Set<string>();
  const faults: ConfigurationFault[] = [];
  for (const { option, kind } of OPTIONS) {
    const value = valueOf(options, option);
    // A passphrase may well be 'changeme': the key itself proves it.
    if (typeof value !== 'string' || option === 'tls.passphrase' || !isPlaceholder(value)) continue;
    broken.add(option);
    faults.push({ option, message: `still holds a placeholder${quote(options, option, kind)}; ${FILL_IN}` });
  }
  const errors = validateSync(withDefaults(ServiceModuleOptions, options), {
    whitelist: true,
    forbidNonWhitelisted: true,
    stopAtFirstError: true,
    // A message must never quote a secret, and an error must not carry one.
    validationError: { target: false, value: false },
  });
  for (const { option, rule, message } of errors.flatMap((error) => constraintsOf(error))) {
    if (broken.has(option)) continue;
    const kind = OPTIONS.find((entry) => entry.option === option)?.kind;
    const meant = rule === 'whitelistValidation' ? nearestOption(option) : option;
    if (meant) broken.add(meant);
    faults.push({
      option,
      message:
        rule === 'whitelistValidation' ? unknown(meant) : message + quote(options, option, kind, '; it is'),
    });
  }
  return { faults, broken };
}

export const FILL_IN = 'put the real value in its place.';

/** The value as a message may show it: short, on one line, and only where it is no secret. */
function quote(options: ServiceModuleOptions, option: string, kind?: OptionKind, before = ''): string {
  const found = valueOf(options, option);
  const value = Array.isArray(found) ? found.join(', ') : found;
  if (!kind || !QUOTED.includes(kind)) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return `${before} ${value}`;
  if (typeof value !== 'string' || (kind === 'address' && !PLAIN_ADDRESS.test(value))) return '';
  const secrets = OPTIONS.filter((entry) => !QUOTED.includes(entry.kind))
    .map((entry) => valueOf(options, entry.option))
    .filter((secret) => typeof secret === 'string' && secret.trim() !== '')
    .map((secret) => (secret as string).trim());
  return `${before} '${cleanText(value, secrets, 60)}'`;
}

function nearestOption(option: string): string | undefined {
  const known = OPTIONS.flatMap((entry) => [entry.option, entry.option.split('.')[0]]);
  return nearest(option, known);
}

function unknown(meant?: string): string {
  return `is not an option of ServiceModule; ${meant ? `a misspelling of ${meant}?` : 'look for a misspelling'}`;
}

function constraintsOf(
  error: ValidationError,
  parent = '',
): { option: string; rule: string; message: string }[] {
  const option = parent + error.property;
  const own = Object.entries(error.constraints ?? {}).map(([rule, message]) => ({ option, rule, message }));
  return [...own, ...(error.children ?? []).flatMap((child) => constraintsOf(child, `${option}.`))];
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
