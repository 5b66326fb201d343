import { expect, it } from '@jest/globals';
import { ServiceRequestError } from '../../../lib/errors/index.js';
import { checkTimeout } from '../../../lib/exchange/call-limits.js';

it.each([
  [undefined, undefined],
  [null, undefined],
  [0, undefined],
  [1, 1],
  [86_400_000, 86_400_000],
])('takes %s for a time limit of %s', (given, limit) => {
  expect(checkTimeout(given)).toBe(limit);
});

it.each([-1, 86_400_001, Infinity, NaN, '5', true, {}])('refuses %s as a time limit', (given) => {
  expect(() => checkTimeout(given)).toThrow(ServiceRequestError);
});
