import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { entryOf } from '../../../lib/config/options.js';
import { fits } from '../../../lib/errors/explain.js';
import { FACTS, PHRASES, ROWS } from '../../../lib/errors/explanations.js';

const golden = JSON.parse(readFileSync(join(import.meta.dirname, 'golden-errors.json'), 'utf8')) as Record<
  string,
  { words?: string; message: string }
>;
const GOLDEN_WORDS = Object.values(golden).flatMap(({ words }) => words ?? []);
/** Words of situations that need the doctor, or a token that comes too late. */
const OTHER_WORDS = [
  'api fault tls connecting ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR certificate-perhaps-refused doctor',
  'token no-response',
  'token no-token-in-time',
];

const rowOf = (words: string) => Object.keys(ROWS).find((pattern) => fits(pattern, words.split(' ')));
const texts = [
  ...Object.values(ROWS).flatMap(([message, hint = '']) => [message, hint]),
  ...Object.values(PHRASES).flatMap((phrases) =>
    phrases.map((phrase) => (typeof phrase === 'string' ? phrase : phrase[1])),
  ),
];
const namesIn = (text: string, pattern: RegExp): string[] =>
  Array.from(text.matchAll(pattern), ([, name]) => name);

describe('The table of explanations', () => {
  it.each(Object.keys(ROWS))('reaches the row "%s" by words that occur, and by no earlier row', (pattern) => {
    expect([...GOLDEN_WORDS, ...OTHER_WORDS].map(rowOf)).toContain(pattern);
  });

  it('names only facts, phrases and options that exist, and has none that no text names', () => {
    const facts = texts.flatMap((text) => namesIn(text, /<(\w+)>/g));
    expect(new Set(facts)).toEqual(new Set(FACTS));
    const others = new Set(texts.flatMap((text) => namesIn(text, /\{([\w.]+)\}/g)));
    expect(Object.keys(PHRASES).filter((name) => !others.has(name))).toEqual([]);
    const isKnown = (name: string): boolean =>
      name in PHRASES || ['address', 'api'].includes(name) || entryOf(name) !== undefined;
    expect([...others].filter((name) => !isKnown(name))).toEqual([]);
  });
});
