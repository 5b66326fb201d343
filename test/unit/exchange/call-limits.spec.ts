import { expect, it } from '@jest/globals';
import { ServiceRequestError } from '../../../lib/errors/index.js';
import { checkTimeout, followSignal, partOf } from '../../../lib/exchange/call-limits.js';

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

it.each([true, false])('follows a signal that is none of Node: aborted before, %s', (isAborted) => {
  const controller = new AbortController();
  const reason = new Error('mine');
  // As a polyfill has them: of another class, with methods of its own.
  const given = {
    get aborted() {
      return controller.signal.aborted;
    },
    get reason(): unknown {
      return controller.signal.reason;
    },
    throwIfAborted: () => controller.signal.throwIfAborted(),
    addEventListener: (name: 'abort', listener: () => void) =>
      controller.signal.addEventListener(name, listener),
    removeEventListener: () => undefined,
  };
  if (isAborted) controller.abort(reason);
  const { signal } = followSignal(given as unknown as AbortSignal);
  expect(signal?.aborted).toBe(isAborted);
  controller.abort(reason);
  expect(signal?.reason).toBe(reason);
});

it('an attempt that may be followed by another gets half of the time left, but at least 1 s', () => {
  expect([30_000, 3_000, 1_500, 600].map(partOf)).toEqual([15_000, 1_500, 1_000, 600]);
});
