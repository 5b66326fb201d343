import { describe, expect, it } from '@jest/globals';
import { parseRetryAfter } from '../../../lib/exchange/retry-after.js';

const NOW = Date.UTC(2030, 0, 1, 12, 0, 0);

describe('parseRetryAfter', () => {
  it.each([
    ['0', 0],
    ['120', 120],
    [' 7 ', 7],
    ['1.2', 2],
    ['Tue, 01 Jan 2030 12:00:30 GMT', 30],
    ['Tuesday, 01-Jan-30 12:00:30 GMT', 30],
    ['Mon, 31 Dec 2029 12:00:00 GMT', 0],
    [['5', '9'], 5],
    ['2147483648', 2 ** 31],
    ['2147483649', 2 ** 31],
    ['12345678901234567', 2 ** 31],
    ['9'.repeat(310), 2 ** 31],
    ['Fri, 31 Dec 9999 23:59:59 GMT', 2 ** 31],
  ])('%j is %d s', (value, seconds) => {
    expect(parseRetryAfter(value, NOW)).toBe(seconds);
  });

  it.each([undefined, '', '-5', 'soon', '1e3', 'Tue, never', '2030-01-01', []])(
    '%j says nothing',
    (value) => {
      expect(parseRetryAfter(value, NOW)).toBeUndefined();
    },
  );
});
