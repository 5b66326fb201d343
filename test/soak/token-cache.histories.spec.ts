import { describe, it } from '@jest/globals';
import { replayHistories } from '../unit/auth/cache/histories.js';

describe('TokenCache through 20,000 random histories', () => {
  it(
    'never asks twice at a time or too early, hands out an expired token, caches a rejection, or leaves a trace',
    () => replayHistories(20_000),
    600_000,
  );
});
