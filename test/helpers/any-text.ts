import fc from 'fast-check';

/** The code points that are one half of a surrogate pair begin and end here. */
const [FIRST_HALF, LAST_HALF, LAST] = [0xd800, 0xdfff, 0x10ffff];

const codePoint = fc.oneof(
  { weight: FIRST_HALF, arbitrary: fc.integer({ min: 0, max: FIRST_HALF - 1 }) },
  { weight: LAST - LAST_HALF, arbitrary: fc.integer({ min: LAST_HALF + 1, max: LAST }) },
);

/**
 * Strings of any code point, like `fc.string({ unit: 'binary' })`, which first puts all 1.1 million of them into a Map: that
 * takes a second in each spec file.
 */
export const anyText = fc.string({ unit: codePoint.map((point) => String.fromCodePoint(point)) });
