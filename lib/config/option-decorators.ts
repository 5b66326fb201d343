import { ValidateBy, type ValidationOptions } from 'class-validator';
import { addressFault } from './address.js';
import { isReservedHeader } from './reserved-headers.js';

/** An address of the service: https (http on loopback), no credentials, no query, no fragment. */
export const IsServiceAddress = (): PropertyDecorator =>
  check('isServiceAddress', (value) => addressFault(value) === undefined, {
    message: ({ value }) => addressFault(value) ?? '',
  });

/** The address of a token endpoint: the same, without the path that is appended to it. */
export const IsAuthAddress = (): PropertyDecorator =>
  check('isAuthAddress', (value) => typeof value !== 'string' || !/\/oauth2\/token\/*$/.test(value), {
    message: 'must not end in /oauth2/token, which is appended to it',
  });

/** RFC 9110, 5.1: a field name is a token. */
export const IsHeaderName = (): PropertyDecorator =>
  check(
    'isHeaderName',
    (value) =>
      typeof value === 'string' && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(value) && !isReservedHeader(value),
    { message: "must be a header's name (RFC 9110, 5.1) that HTTP does not use itself" },
  );

/** Text, or `{ file: path }`; and a function where `orFunction` says so. */
export const IsSource = ({ orFunction = false } = {}): PropertyDecorator =>
  check(
    'isSource',
    (value) => isText(value) || isFile(value) || (orFunction && typeof value === 'function'),
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

export const IsTokenStore = (): PropertyDecorator =>
  check('isTokenStore', hasStoreMethods, {
    message: 'must have the methods get, set and delete (see TokenStore)',
  });

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

function isFile(value: unknown): boolean {
  return typeof value === 'object' && value !== null && isText((value as { file?: unknown }).file);
}

function hasStoreMethods(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const store = value as Record<string, unknown>;
  return ['get', 'set', 'delete'].every((method) => typeof store[method] === 'function');
}
