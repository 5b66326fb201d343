import { describe, expect, it } from '@jest/globals';
import { describePlaces } from '../../../lib/http/answer-places.js';

const at = (...path: unknown[]): string => describePlaces([{ path }]);

describe('the places of issues', () => {
  it.each<[string, unknown[], string]>([
    ['an index and a field', [3, 'bank_identifier'], ': [3].bank_identifier'],
    ['fields', ['data', 'items', 0, 'iso4217'], ': data.items[0].iso4217'],
    ['a path item (valibot)', [{ key: 'data' }, { key: 3, value: 'private' }], ': data[3]'],
    ['names that need quotes', ['content-type', '@type', '$ref'], ': ["content-type"]["@type"]["$ref"]'],
    ['an e-mail address as key', ['by_email', 'jane.doe@example.com', 'name'], ': by_email[…].name'],
    ['a name as key', ['Jane Doe', 'age'], ': […].age'],
    ['an account number', ['AE070331234567890123456'], ': […]'],
    ['a UUID', ['by_id', '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52'], ': by_id[…]'],
    ['a telephone number', ['+971501234567'], ': […]'],
    ['a day', ['2030-01-31'], ': […]'],
    ['a number that is no index', [{ key: 4_539_578_763_621_486 }, -1, 1.5, NaN], ': […][…][…][…]'],
    ['an empty key', ['a', ''], ': a[…]'],
    ['a line break and a terminal escape', ['a\r\nfake: log line', '\u001b[31m'], ': […][…]'],
    ['other letters', ['naïve', 'имя'], ': […][…]'],
    ['a symbol, null, nothing', [Symbol('private'), null, undefined, {}], ': […][…][…][…]'],
    ['a long key', ['k'.repeat(65)], ': […]'],
    ['the longest key', ['k'.repeat(64)], `: ${'k'.repeat(64)}`],
  ])('%s', (_, path, text) => {
    expect(at(...path)).toBe(text);
  });

  it('the body as a whole is no place of its own', () => {
    expect([at(), describePlaces([]), describePlaces([{}, { path: 'x' }, null, 7])]).toEqual(['', '', '']);
    expect(describePlaces([{ path: [] }, { path: ['a'] }])).toBe(': a');
  });

  it('are bounded in number, depth and time, and each is there once', () => {
    const issues = Array.from({ length: 12 }, (_, index) => ({ path: [index, 'name'] }));
    expect(describePlaces([...issues, ...issues])).toBe(
      ': [0].name, [1].name, [2].name, [3].name, [4].name and 7 more',
    );
    expect(at(...Array<string>(20).fill('a'))).toBe(`: ${Array(16).fill('a').join('.')}…`);
    expect(at(`1a2b3${'x'.repeat(10_000_000)}`)).toBe(': […]');
  });

  it('only the first 500 issues are looked at', () => {
    const issues: unknown[] = Array.from({ length: 500 }, (_, index) => ({ path: ['a', index % 2] }));
    expect(describePlaces(issues)).toBe(': a[0], a[1]');
    Object.defineProperty(issues, 500, {
      get: () => {
        throw new Error('looked at');
      },
    });
    expect(describePlaces(issues)).toBe(': a[0], a[1] and more');
    expect(describePlaces(Array(501).fill({ path: [] }))).toBe('');
  });

  it('no method of a foreign array is called', () => {
    class Foreign extends Array<unknown> {
      override map = (): never[] => ['private'] as never[];
      override slice = (): this => this;
      override [Symbol.iterator] = (): never => ['private'].values() as never;
    }
    const issues = Foreign.from([{ path: Foreign.from(['a', 3]) }]);
    expect(describePlaces(issues)).toBe(': a[3]');
    expect(describePlaces([{ path: Foreign.from(Array(17).fill('b')) }])).toMatch(/^: b(\.b){15}…$/);
  });
});
