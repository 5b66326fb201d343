import { describe, expect, it } from '@jest/globals';
import { cleanText } from '../../../lib/errors/index.js';

describe('cleanText', () => {
  it.each([
    ['as it is', 'no a+b here', 'a+b'],
    ['form-encoded', 'no a%2Bb here', 'a+b'],
    ['percent-encoded in lower case', 'no a%2bb here', 'a+b'],
    ['as a JSON text', 'no a\\"b here', 'a"b'],
    ['with control characters of its own', 'no a\tb here', 'a\tb'],
    ['with control characters put in', 'no se\u200bcret here', 'secret'],
  ])('hides a secret %s', (_name, text, secret) => {
    expect(cleanText(text, [secret], 200)).toBe('no [secret] here');
  });

  it('hides all tokens and keys, also foreign ones', () => {
    const key = '-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----';
    expect(cleanText(`a eyJhbGciOi.eyJzdWIi.c2ln b ${key} c`, [], 200)).toBe('a [secret] b [secret] c');
  });

  it.each(['eyJ', 'eyJa.', '-----BEGIN ', '-----BEGIN A-----', 'a-', '\u200b'])(
    'is done with 10 MB of %j at once',
    (part) => {
      expect(cleanText(part.repeat(10_000_000 / part.length), ['secret'], 200).length).toBeLessThanOrEqual(
        201,
      );
    },
    2_000,
  );

  it('hides before it cuts, so that no part of a secret is left', () => {
    expect(cleanText(`${'x'.repeat(195)}topsecret`, ['topsecret'], 200)).toBe(`${'x'.repeat(195)}[secr…`);
  });

  it('leaves a text alone where the secret is empty', () =>
    expect(cleanText('fine', [''], 200)).toBe('fine'));
});
