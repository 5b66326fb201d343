import { describe, expect, it } from '@jest/globals';
import { checkToken } from '../../../lib/auth/check-token.js';
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

const part = (value: unknown, encoding: 'base64url' | 'base64' = 'base64url'): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString(encoding);
const HEADER = part({ alg: 'ES256' });
const jwt = (claims: unknown): string => `${HEADER}.${part(claims)}.sig`;

const isTaken = (token: string, scope: string): boolean => checkToken(token, scope).fault === undefined;

describe('checkToken', () => {
  it.each([
    ['its own customer', { customer_id: 'c-1' }, true],
    ['another customer', { customer_id: 'c-2' }, false],
    ['its own scope', { scope: 'customer.c-1' }, true],
    ['a wider scope', { scope: 'customer.c-1 api' }, false],
    ['the api scope, as a list', { scope: ['api'] }, false],
    ['its own scope, as a list', { scope: ['customer.c-1'] }, true],
    ['its own scope, as a list in a list', { scope: [['customer.c-1']] }, false],
    ['its own scope, as a list of an object', { scope: [{ a: 1 }] }, false],
    ['neither', { sub: 'x' }, true],
  ])('for a customer, a token that names %s', (_, claims, taken) => {
    expect(isTaken(jwt(claims), 'customer.c-1')).toBe(taken);
  });

  it('compares a customer id that is a number by its digits', () => {
    expect(isTaken(jwt({ customer_id: 42 }), 'customer.42')).toBe(true);
    expect(isTaken(jwt({ customer_id: 42 }), 'customer.43')).toBe(false);
  });

  it('does not take the rounded value of a number that is too large for the id of another customer', () => {
    const token = `${HEADER}.${part('{"customer_id":9007199254740993}')}.sig`;
    expect(isTaken(token, 'customer.9007199254740992')).toBe(false);
  });

  it.each([
    ['with padding', `${HEADER}.${part({ customer_id: 'c-22' }, 'base64')}.sig`],
    ['in plain base64', `${HEADER}.${part({ customer_id: 'c-2', name: '~~~???' }, 'base64')}.sig`],
    ['of four parts', `${jwt({ customer_id: 'c-2' })}.more`],
    ['of two parts', `${HEADER}.${part({ customer_id: 'c-2' })}`],
  ])('looks at the claims of a token %s', (_, token) => {
    expect(isTaken(token, 'customer.c-1')).toBe(false);
  });

  it('refuses a token whose scope is nested as deep as a token can be', () => {
    const token = `${HEADER}.${part(`{"scope":${'['.repeat(6_000)}${']'.repeat(6_000)}}`)}.sig`;
    expect(checkToken(token, 'api').fault).toContain('names another scope');
  });

  it('takes a token that is not a JWT', () => {
    for (const token of ['opaque', 'a.b.c', `${HEADER}.not-json.sig`])
      expect(isTaken(token, 'api')).toBe(true);
  });
});

it.each([
  [1_700_000_000, 1_700_000_000_000],
  ['1700000000', 1_700_000_000_000],
  ['soon', Infinity],
  [undefined, Infinity],
])('a token with exp %p ends at %p', (exp, expected) => {
  expect(checkToken(jwt({ exp }), 'api')).toMatchObject({ endsAt: expected });
});
