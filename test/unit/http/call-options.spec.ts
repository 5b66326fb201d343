import { describe, expect, it } from '@jest/globals';
import { checkWhole } from '../../../lib/http/call-options.js';

describe('retries', () => {
  it.each([0, 10, undefined])('%s', (retries) => expect(checkWhole('retries', retries, 0, 10)).toBe(retries));
  it.each([-1, 11, 1.5, '2', NaN])('not %s', (retries) => {
    expect(() => checkWhole('retries', retries, 0, 10)).toThrow(
      'retries must be a whole number from 0 to 10',
    );
  });
});
