import { describe, expect, it } from '@jest/globals';
import { RequestIds } from '../../../lib/http/request-ids.js';
import { FakeClock } from '../../helpers/fake-clock.js';

function idsOf(make: () => unknown) {
  const clock = new FakeClock();
  const warnings: string[] = [];
  const ids = new RequestIds(make, 'x-correlation-id', { warn: (line) => warnings.push(line) }, clock);
  const next = (given: Record<string, string> = {}) => {
    const headers = { ...given };
    ids.addTo(headers);
    return headers;
  };
  return { clock, warnings, next };
}

describe('http.requestId', () => {
  it('is the header of each call, made once for each', () => {
    let made = 0;
    const { next, warnings } = idsOf(() => `r-${(made += 1)}`);
    expect([next(), next()]).toEqual([{ 'x-correlation-id': 'r-1' }, { 'x-correlation-id': 'r-2' }]);
    expect(next({ 'x-correlation-id': 'of the caller' })).toEqual({ 'x-correlation-id': 'of the caller' });
    expect([made, warnings]).toEqual([2, []]);
  });

  it.each<[string, unknown]>([
    ['line breaks', 'a\r\nx-evil: 1'],
    ['a space', 'a b'],
    ['other letters', 'ü'],
    ['nothing', ''],
    ['too much', 'x'.repeat(129)],
    ['null', null],
    ['a number', 7],
    ['an object', { toString: () => 'private' }],
  ])('is left out where it is %s, with a warning that does not quote it', (_, value) => {
    const { next, warnings } = idsOf(() => value);
    expect(next()).toEqual({});
    expect(warnings).toEqual([
      'http.requestId did not return 1 to 128 visible ASCII characters: calls are sent without a request id.',
    ]);
  });

  it('is left out where it throws or promises, and a rejection does not end the process', async () => {
    const throwing = idsOf(() => {
      throw new Error('private');
    });
    const promising = idsOf(() => Promise.reject(new Error('private')));
    expect([throwing.next(), promising.next()]).toEqual([{}, {}]);
    // Node reports an unhandled rejection after this turn; jest fails then.
    await new Promise((resolve) => setImmediate(resolve));
    expect([...throwing.warnings, ...promising.warnings]).toEqual([
      'http.requestId threw an error: calls are sent without a request id.',
      'http.requestId returned a promise: calls are sent without a request id.',
    ]);
  });

  it('is none, without a warning, where it is undefined: outside of a request', () => {
    const { next, warnings } = idsOf(() => undefined);
    expect([next(), warnings]).toEqual([{}, []]);
  });

  it('takes 128 characters', () => {
    expect(idsOf(() => 'x'.repeat(128)).next()).toEqual({ 'x-correlation-id': 'x'.repeat(128) });
  });

  it('warns once a minute at most', async () => {
    const { next, warnings, clock } = idsOf(() => '');
    next();
    await clock.advance(59_999);
    next();
    expect(warnings).toHaveLength(1);
    await clock.advance(1);
    next();
    expect(warnings).toHaveLength(2);
  });
});
