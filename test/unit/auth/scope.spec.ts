import { describe, expect, it } from '@jest/globals';
import { checkScope, customerScope } from '../../../lib/auth/scope.js';
import { ServiceRequestError } from '../../../lib/errors/index.js';

const BAD_IDS: [string, unknown][] = [
  ['empty', ''],
  ['a space, which would widen the scope', 'c1 api'],
  ['a slash', 'a/b'],
  ['a backslash', 'a\\b'],
  ['a quote', 'a"b'],
  ['CR/LF', 'a\r\nb'],
  ['a line break at the end', 'a\n'],
  ['NUL', 'a\0'],
  ['.', '.'],
  ['..', '..'],
  ['%2e', '%2e'],
  ['unicode', 'ä'],
  ['fullwidth', '\uff0e'],
  ['129 characters', 'x'.repeat(129)],
  ['1 MB', 'x'.repeat(1024 * 1024)],
  ['a number', 7],
  ['null', null],
  ['an object', { toString: () => 'c1' }],
];

describe('customerScope', () => {
  it.each(['c1', '0b6f', 'a.b', 'x'.repeat(128), 'urn:customer:1', 'a@b.example', '..a'])(
    'takes %s',
    (id) => {
      expect(customerScope(id)).toBe(`customer.${id}`);
      expect(checkScope(`customer.${id}`)).toBe(`customer.${id}`);
    },
  );

  it.each(BAD_IDS)('refuses %s', (_name, id) => {
    expect(() => customerScope(id as string)).toThrow(ServiceRequestError);
  });

  it('quotes nothing of what it refuses', () => {
    expect(() => customerScope('se cret')).toThrow(/^(?!.*se cret)/s);
  });
});

describe('checkScope', () => {
  it('takes api', () => expect(checkScope('api')).toBe('api'));

  it.each([
    '',
    'API',
    'api ',
    'customer',
    'customer.',
    'customer..',
    'api customer.c1',
    'customers.c1',
    'openid',
  ])('refuses %j', (scope) => expect(() => checkScope(scope)).toThrow(ServiceRequestError));

  it.each([undefined, null, 7, ['api']])('refuses %j', (scope) => {
    expect(() => checkScope(scope as unknown as string)).toThrow(ServiceRequestError);
  });
});
