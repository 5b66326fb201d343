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

  it.each([
    ['before its second dot', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIx'],
    ['right after its first dot', 'eyJhbGciOiJSUzI1NiJ9.eyJ'],
    ['before its first dot', 'eyJhbGciOiJSUzI1NiIsImtpZCI6'],
    ['after its fourth dot (JWE)', 'eyJhbGciOiJkaXIifQ.a2V5.aXY.Y2lwaGVy.dGFn'],
    ['after its fourth dot (JWE without a key)', 'eyJhbGciOiJkaXIifQ..aXY.Y2lwaGVy.dGFn'],
  ])('hides a foreign token that was cut %s', (_, token) => {
    expect(cleanText(`bad token ${token} here`, [], 200)).toBe('bad token [secret] here');
  });

  it.each([
    'eyJ',
    'eyJa.b',
    'version 1.2.3',
    'keyJournalEntryOfTheCustomer.name',
    'the-eyJournalEntryOfCustomer',
  ])('leaves %j as it is', (text) =>
    expect(cleanText(text, ['a-secret-of-more-than-20-characters'], 200)).toBe(text),
  );

  const OWN = 'Own+/secret "of" more than 20 characters, ü';

  it.each([
    ['whole', OWN],
    ['cut', OWN.slice(0, 20)],
    ['cut later', OWN.slice(0, 30)],
    ['form-encoded and cut', new URLSearchParams({ s: OWN }).toString().slice(2, 30)],
    ['percent-encoded and cut', encodeURIComponent(OWN).slice(0, 25)],
    ['as JSON text and cut', JSON.stringify(OWN).slice(1, 25)],
    ['in base64', Buffer.from(OWN).toString('base64')],
    ['in base64url', Buffer.from(OWN).toString('base64url')],
    ['in base64 and cut', Buffer.from(OWN).toString('base64').slice(0, 20)],
    ['in base64, percent-encoded', encodeURIComponent(Buffer.from(`${OWN}1`).toString('base64'))],
  ])('hides an own secret %s', (_, text) => {
    const secrets = [OWN, `${OWN}1`];
    expect(cleanText(`no ${text}, here`, secrets, 200)).toBe('no [secret], here');
    expect(cleanText(`no ${text}, here`, secrets.reverse(), 200)).toBe('no [secret], here');
  });

  it('hides all that is there of one of two secrets that begin as the other', () => {
    const secrets = ['first', 'second'].map(
      (end) => `The same beginning of more than one ${end} ${'x'.repeat(40)}`,
    );
    for (const secret of secrets) {
      for (const length of [secret.length, 60, 38]) {
        expect(cleanText(`no ${secret.slice(0, length)}, here`, secrets, 200)).toBe('no [secret], here');
      }
    }
  });

  it('hides all of a secret in base64 together with what is before it', () => {
    for (const before of ['id:', 'id1:', 'id12:']) {
      const text = Buffer.from(before + OWN).toString('base64');
      const cleaned = cleanText(`no ${text} here`, [OWN], 200);
      const left = cleaned.slice('no '.length, cleaned.indexOf('[secret]'));
      expect(cleaned.slice(cleaned.indexOf('[secret]'))).toBe('[secret] here');
      expect(Buffer.from(left, 'base64').toString()).toBe(before.slice(0, (left.length * 6) / 8));
    }
  });

  it('leaves a beginning of less than 20 characters, and words like the base64 of a short secret', () => {
    expect(cleanText(OWN.slice(0, 19), [OWN], 200)).toBe(OWN.slice(0, 19));
    expect(cleanText('YWJj', ['abc'], 200)).toBe('YWJj');
    expect(cleanText('x', ['x and more'], 200)).toBe('x');
    expect(cleanText('a text of 24 characters.', [`${'y'.repeat(23)}😀`], 200)).toBe(
      'a text of 24 characters.',
    );
  });

  it.each(['eyJ', 'eyJ.', 'eyJ..', '.', 'eyJ-eyJ.', 'a'])(
    'is done with 1 MiB of %j in all of it at once, also as the secret',
    (part) => {
      const text = part.repeat(2 ** 20 / part.length);
      expect(cleanText(text, [text.slice(0, 5_000), `${text.slice(0, 5_000)}!`], 2 ** 20)).toMatch(
        /^|\[secret]/,
      );
    },
    5_000,
  );

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
