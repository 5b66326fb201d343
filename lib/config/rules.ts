import { IsBoolean, IsIn, Matches, ValidateBy, type ValidationOptions } from 'class-validator';
import { addressFault, withoutSlashes } from './address.js';
import { isReservedHeader } from './reserved-headers.js';
import { isFile } from './secret.js';

// RFC 9562's form, any version: the specification only says UUID.
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

export const OneOf = (...values: string[]): PropertyDecorator =>
  IsIn(values, { message: `must be one of: ${values.join(', ')}` });

export const Flag = (): PropertyDecorator => IsBoolean({ message: 'must be true or false' });

/** True, false, or some of the names. */
export const FlagOrNames = (names: readonly string[]): PropertyDecorator =>
  check(
    'flagOrNames',
    (value) => typeof value === 'boolean' || namesIn(value).every((name) => names.includes(name)),
    { message: `must be true, false or names of resources (${names.join(', ')})` },
  );

export const WholeNumber = (min: number, max: number, unit: string): PropertyDecorator =>
  check(
    'wholeNumber',
    (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
    { message: `must be a whole number of ${unit} from ${min} to ${max}` },
  );

export const IsUuid = (): PropertyDecorator =>
  Matches(UUID, { message: 'must be the application id of the developer portal (Integration tab), a UUID' });

/** See {@link addressFault}. */
export const IsServiceAddress = (): PropertyDecorator =>
  check('isServiceAddress', (value) => addressFault(value) === undefined, {
    message: ({ value }) => addressFault(value) ?? '',
  });

/** The address of a token endpoint, to which /oauth2/token is appended. */
export const IsAuthAddress = (): PropertyDecorator =>
  check(
    'isAuthAddress',
    (value) => typeof value !== 'string' || !withoutSlashes(value).endsWith('/oauth2/token'),
    {
      message: 'must not end in /oauth2/token, which is appended to it',
    },
  );

/** RFC 9110, 5.1: a field name is a token. */
export const IsHeaderName = (): PropertyDecorator =>
  check(
    'isHeaderName',
    (value) =>
      typeof value === 'string' && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(value) && !isReservedHeader(value),
    { message: "must be a header's name (RFC 9110, 5.1) that HTTP does not use itself" },
  );

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const COMMENT_TEXT = String.raw`[\t\x20-\x27\x2a-\x5b\x5d-\x7e]|\\[\t\x20-\x7e]`;
/** With another one inside it, at most. */
const COMMENT = String.raw`\((?:${COMMENT_TEXT}|\((?:${COMMENT_TEXT})*\))*\)`;
const PRODUCT = `${TOKEN}(?:/${TOKEN})?`;
const PRODUCTS = new RegExp(String.raw`^${PRODUCT}(?:[\t ]+(?:${PRODUCT}|${COMMENT}))*$`);

/** RFC 9110, 10.1.5: a User-Agent begins with a product. */
export const IsProductTokens = (): PropertyDecorator =>
  check(
    'isProductTokens',
    (value) => typeof value === 'string' && value.length <= 256 && PRODUCTS.test(value),
    {
      message:
        'must be product tokens on one line as in RFC 9110, 10.1.5, for example acme-banking/2.1 (team@acme.example), ' +
        'in 256 characters at most',
    },
  );

/** Text, or `{ file: path }`; and a function where `orFunction` says so. */
export const IsSource = ({ orFunction = false } = {}): PropertyDecorator =>
  check(
    'isSource',
    (value) => isText(isFile(value) ? value.file : value) || (orFunction && typeof value === 'function'),
    {
      message: `must be text or { file: path }${orFunction ? ' or a function' : ''}, and not empty`,
    },
  );

export const IsProxyUrl = (): PropertyDecorator =>
  check(
    'isProxyUrl',
    (value) => typeof value === 'string' && URL.canParse(value) && /^https?:/i.test(value),
    {
      message: 'must be the URL of a proxy, for example http://proxy.example:3128',
    },
  );

export const IsFunction = (): PropertyDecorator =>
  check('isFunction', (value) => typeof value === 'function', { message: 'must be a function' });

export const IsTokenStore = (): PropertyDecorator =>
  check('isTokenStore', hasStoreMethods, {
    message: 'must have the methods get, set and delete (see TokenStore)',
  });

/** The names in a list or in a text with commas. */
export function namesIn(value: unknown): string[] {
  return [value].flat().flatMap((part) =>
    String(part)
      .split(',')
      .map((name) => name.trim()),
  );
}

function check(
  name: string,
  validate: (value: unknown) => boolean,
  options: ValidationOptions,
): PropertyDecorator {
  return ValidateBy({ name, validator: { validate } }, options);
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

function hasStoreMethods(value: unknown): boolean {
  const store = Object(value) as Record<string, unknown>;
  return ['get', 'set', 'delete'].every((method) => typeof store[method] === 'function');
}
