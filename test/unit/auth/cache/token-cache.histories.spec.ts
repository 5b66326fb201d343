import { describe, it } from '@jest/globals';
import { replayHistories } from './histories.js';

describe('TokenCache through 500 random histories', () => {
  it('never asks twice at a time or too early, hands out an expired token, caches a rejection, or leaves a trace', () =>
    replayHistories(500));

  it('nor in the history of a wall clock that is set back while a 429 holds a caller', () =>
    replayHistories(1, [
      [
        'ahead',
        [
          { kind: 'token', lifetime: 7, delay: 0 },
          { kind: 'limited', delay: 0 },
          { kind: 'reset', delay: 1 },
        ],
        [
          { kind: 'get', scope: 'api', callers: 1, timeoutMs: 1 },
          { kind: 'advance', ms: 0 },
          { kind: 'get', scope: 'customer.c2', callers: 1, timeoutMs: 1 },
          { kind: 'jump', ms: 5_914 },
          { kind: 'advance', ms: 86 },
          { kind: 'get', scope: 'api', callers: 1, timeoutMs: 3_915 },
          { kind: 'jump', ms: -5_535 },
          { kind: 'advance', ms: 3_914 },
        ],
      ],
    ]));
});
