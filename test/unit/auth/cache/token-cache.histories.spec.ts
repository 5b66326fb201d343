import { describe, it } from '@jest/globals';
import { replayHistories } from './histories.js';

describe('TokenCache through 500 random histories', () => {
  it('never asks twice at a time or too early, hands out an expired token, caches a rejection, or leaves a trace', () =>
    replayHistories(500));
});
