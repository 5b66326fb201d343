import { describe, expect, it } from '@jest/globals';
import { parseJson } from '../../../lib/exchange/decode.js';

describe('parseJson', () => {
  it('passes over a byte order mark', () => {
    expect(parseJson('\uFEFF{"a":1}')).toEqual({ a: 1 });
  });

  it('gives undefined for what is no JSON', () => {
    expect(parseJson('<html>')).toBeUndefined();
  });
});
