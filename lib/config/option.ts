import 'reflect-metadata';
import { createHmac } from 'node:crypto';
import { IsOptional, ValidateNested, ValidateBy } from 'class-validator';
import { EXCHANGE_HEADERS } from '../exchange/io.js';
import { addressFault, withoutSlashes, ENVIRONMENT, isProxyUrl, NONE } from './address.js';
import { isFile } from './secret.js';

/**
 * How the text of a variable is parsed.
 * - `secret`: the option also has a variable that ends in `_FILE`.
 * - `names`: true, false or a comma-separated list.
 * - `prefix`: a text that may be empty.
 *
 * Messages never quote the value of a `text`, an `address` or a `secret`.
 */
export type OptionKind =
  'text' | 'choice' | 'boolean' | 'integer' | 'names' | 'prefix' | 'address' | 'secret';

/** One option, as a decorator in its class declares it. */
export interface OptionEntry {
  /** The path in ServiceModuleOptions: `oauth.clientId`. */
  option: string;
  /** The variable without its prefix: `CLIENT_ID`. Absent if the option can be set only in code. */
  suffix?: string;
  kind: OptionKind;
}

/**
 * The base class of a group of options. A new instance has the defaults. An option without a default is undefined. `Public` is the
 * type of what an application gives of the group.
 */
export abstract class OptionsSection<Public> {
  /** For types only: no instance has it. */
  declare protected readonly given: Public;
}

/** What an application gives of a group of options: it may leave each option out. */
export type Given<T> = { [Key in keyof T]?: GivenValue<T[Key]> | undefined };
type GivenValue<Value> = Value extends OptionsSection<infer Public> ? Public : Value;

type OptionsClass = new () => object;
type Declared = Pick<OptionEntry, 'suffix' | 'kind'> & { key: string; section?: OptionsClass };

const DECLARED = 'nestjs-service:options';

/** Declares a property that groups the options of another class. */
export function Section(section: OptionsClass): PropertyDecorator {
  return Option({ kind: 'text', section }, ValidateNested({ message: 'must be an object' }));
}

/** Declares a property as an option, with the decorator that validates it. */
function Option(declared: Omit<Declared, 'key'>, rule: PropertyDecorator): PropertyDecorator {
  return (target, key) => {
    const others = declaredIn(target);
    Reflect.defineMetadata(DECLARED, [...others, { ...declared, key: String(key) }], target);
    for (const each of [IsOptional(), rule]) each(target, key);
  };
}

function declaredIn(prototype: object): Declared[] {
  return (Reflect.getMetadata(DECLARED, prototype) as Declared[] | undefined) ?? [];
}

/** All options that a class and its sections declare. */
export function optionsOf(type: OptionsClass, path = ''): OptionEntry[] {
  return declaredIn(type.prototype as object).flatMap(({ key, section, ...entry }) =>
    section ? optionsOf(section, `${path}${key}.`) : [{ ...entry, option: path + key }],
  );
}

export function sectionsOf(type: OptionsClass): Record<string, OptionsClass> {
  const all = declaredIn(type.prototype as object);
  return Object.fromEntries(all.flatMap(({ key, section }) => (section ? [[key, section]] : [])));
}

/** An instance of the class with these values, for class-validator. Sections become instances of their classes. */
export function toInstance(type: OptionsClass, values: object): object {
  const instance: object = Object.assign(new type(), values);
  for (const [key, section] of Object.entries(sectionsOf(type))) {
    const value = (instance as Record<string, unknown>)[key];
    if (typeof value === 'object' && value !== null)
      Object.assign(instance, { [key]: toInstance(section, value) });
  }
  return instance;
}

/** The entries that are set, which `undefined` and `null` are not. */
export function definedEntries(values: unknown): [string, unknown][] {
  return Object.entries(Object(values) as object).filter(([, value]) => (value ?? undefined) !== undefined);
}

type Rule = (suffix?: string) => PropertyDecorator;

/**
 * Makes a decorator for options of one kind.
 * - `suffix`, the decorator's argument, is the variable without its prefix. Without it, only code can set the option.
 * - `message` says what a valid value is.
 */
function rule(kind: OptionKind, isValid: (value: unknown) => boolean, message: string): Rule {
  return ruleOf(kind, (value) => (isValid(value) ? undefined : message));
}

/** @param faultOf says why a value is not valid, and returns undefined for a valid one */
function ruleOf(kind: OptionKind, faultOf: (value: unknown) => string | undefined): Rule {
  const validator = { validate: (value: unknown) => faultOf(value) === undefined };
  const message = ({ value }: { value: unknown }) => faultOf(value) ?? '';
  return (suffix) => Option({ suffix, kind }, ValidateBy({ name: 'rule', validator }, { message }));
}

const isTextLike = (value: unknown, form: RegExp): boolean => typeof value === 'string' && form.test(value);

export const OneOf = (suffix: string, ...values: unknown[]): PropertyDecorator =>
  rule('choice', (value) => values.includes(value), `must be one of: ${values.join(', ')}`)(suffix);

export const Flag = rule('boolean', (value) => typeof value === 'boolean', 'must be true or false');

export const FlagOrNames = (suffix: string, names: readonly string[]): PropertyDecorator =>
  rule(
    'names',
    (value) => typeof value === 'boolean' || namesIn(value).every((name) => names.includes(name)),
    `must be true, false or names of resources (${names.join(', ')})`,
  )(suffix);

export const WholeNumber = (suffix: string, min: number, max: number, unit: string): PropertyDecorator =>
  rule(
    'integer',
    (value) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max,
    `must be a whole number of ${unit} from ${min} to ${max}`,
  )(suffix);

// The form of RFC 9562 with any version, because the service does not say which version its ids have.
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

export const IsUuid = rule(
  'text',
  (value) => isTextLike(value, UUID),
  'must be the application id of the developer portal (Integration tab), a UUID',
);

export const IsServiceAddress = ruleOf('address', addressFault);

/** The address of a token endpoint, to which /oauth2/token is appended. */
export const IsAuthAddress = ruleOf('address', (value) =>
  typeof value === 'string' && withoutSlashes(value).endsWith('/oauth2/token')
    ? 'must not end in /oauth2/token, which is appended to it'
    : addressFault(value),
);

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/** RFC 9110, 5.1: a field name is a token. */
export const HEADER_NAME = new RegExp(`^${TOKEN}$`);
const PRODUCTS = new RegExp(`^(?=.{1,256}$)${TOKEN}(/${TOKEN})?( [ -~]*)?$`);

export const IsHeaderName = rule(
  'text',
  (value) => isTextLike(value, HEADER_NAME) && !isReservedHeader(value as string),
  "must be a header's name (RFC 9110, 5.1) that HTTP does not use itself",
);

/** A policy of OpenSSL may forbid a hash function that Node lists, so this makes an HMAC. */
export const IsHmacAlgorithm = rule(
  'choice',
  (value) => {
    try {
      createHmac(value as string, '').digest();
      return true;
    } catch {
      return false;
    }
  },
  'must be a hash function that node:crypto has for an HMAC, such as sha256',
);

export const IsHeaderPrefix = rule(
  'prefix',
  (value) => typeof value === 'string' && isHeaderValue(value) && value === value.trimStart(),
  'must be a text with which the value of a header can begin. It may be empty',
);

/** Headers of every call. Which other names are refused depends on other options. */
export const IsHeaders = ruleOf('text', (value) => {
  const entries = Object.entries(Object(value) as object);
  if (typeof value !== 'object' || entries.some(([, text]) => typeof text !== 'string'))
    return 'must be an object that has a text for each name of a header';
  const unsendable = entries.find(
    ([name, text]) => !HEADER_NAME.test(name) || !isHeaderValue(text as string),
  );
  if (unsendable) return `has a name or a value that no header can have (${unsendable[0].slice(0, 40)})`;
  const reserved = entries.find(([name]) => RESERVED.has(name.toLowerCase()) || OF_ONE_CALL.test(name));
  return (
    reserved &&
    `must not contain ${reserved[0]}, which the module sets, HTTP uses itself, or belongs to a single call`
  );
});

/** Headers that HTTP uses itself, that may authenticate, or that say what this module can decode. No option may set or name one. */
const RESERVED = new Set([...EXCHANGE_HEADERS, 'authorization', 'cookie', 'accept-encoding']);

/** Headers with which a response has no body or a part of it, so that they belong to a single call. */
const OF_ONE_CALL = /^(range|if-none-match|if-modified-since)$/i;

/** Whether a header can have this value (RFC 9110, 5.5). */
export function isHeaderValue(text: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(text);
}

/** RFC 9110, 10.1.5: a User-Agent begins with a product. */
export const IsProductTokens = rule(
  'text',
  (value) => isTextLike(value, PRODUCTS),
  'must be product tokens on one line as in RFC 9110, 10.1.5, for example acme-banking/2.1, in 256 characters at most',
);

const isSource = (value: unknown): boolean => isTextLike(isFile(value) ? value.file : value, /\S/);

export const IsSource = rule('secret', isSource, 'must be text or { file: path }, and not empty');

export const IsSourceOrFunction = rule(
  'secret',
  (value) => isSource(value) || typeof value === 'function',
  'must be text or { file: path } or a function, and not empty',
);

export const PROXY_MESSAGE = 'must be the URL of a proxy, for example http://proxy.example:3128';

export const IsProxy = rule(
  'text',
  (value) => value === ENVIRONMENT || value === NONE || isProxyUrl(value),
  `${PROXY_MESSAGE}; or ${ENVIRONMENT} or ${NONE}`,
);

export const IsFunction = rule('text', (value) => typeof value === 'function', 'must be a function');

export const IsTokenStore = rule(
  'text',
  (value) =>
    ['get', 'set', 'delete'].every(
      (key) => typeof (Object(value) as Record<string, unknown>)[key] === 'function',
    ),
  'must have the methods get, set and delete (see TokenStore)',
);

/** Whether HTTP or this module uses the header for something else, so that no option may name it. */
export function isReservedHeader(name: string): boolean {
  const key = name.toLowerCase();
  return RESERVED.has(key) || /^(user-agent|accept.*|content-.*)$/.test(key);
}

/** The names in a list, or in a comma-separated text. */
export function namesIn(value: unknown): string[] {
  const parts = [value].flat().flatMap((part) => String(part).split(','));
  return parts.map((name) => name.trim());
}

/** The value at an option's path; undefined if it is `undefined` or `null`. */
export function valueOf(options: unknown, option: string): unknown {
  const read = (value: unknown, key: string): unknown => (Object(value) as Record<string, unknown>)[key];
  return option.split('.').reduce(read, options) ?? undefined;
}

/** Sets the value at an option's path. A section is copied first, so that no other object changes. */
export function setValue(options: object, option: string, value: unknown): void {
  const [section, key] = option.split('.');
  Object.assign(options, {
    [section]: key === undefined ? value : { ...(valueOf(options, section) as object), [key]: value },
  });
}
