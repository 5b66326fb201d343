import { describe, expect, it } from '@jest/globals';
import { rateLimitOf } from '../../../lib/exchange/rate-limit.js';

const NOW = 1_780_000_000_000;

describe('rateLimitOf', () => {
  it.each<[string, Record<string, string>, object | undefined]>([
    [
      'structured fields, by the name of the policy',
      {
        'ratelimit-policy': '"burst";q=100;w=60,"day, all";q=1000;w=86400',
        ratelimit: '"day, all";r=50;t=30',
      },
      { limit: 1000, remaining: 50, resetSeconds: 30 },
    ],
    [
      'of two policies the one with the fewest calls left',
      { 'ratelimit-policy': '"day";q=1000, "burst";q=100', ratelimit: '"day";r=500;t=9000, "burst";r=3;t=7' },
      { limit: 100, remaining: 3, resetSeconds: 7 },
    ],
    ['tokens as names, and a partition key', { ratelimit: 'default;pk=:cnI9OQ==:;r=5' }, { remaining: 5 }],
    [
      'a name that looks like parameters',
      { ratelimit: '"a;r=1;t=2";r=8;t=9' },
      { remaining: 8, resetSeconds: 9 },
    ],
    [
      'the fields of draft 7',
      { ratelimit: 'limit=100, remaining=5, reset=4', 'ratelimit-policy': '100;w=60' },
      { limit: 100, remaining: 5, resetSeconds: 4 },
    ],
    [
      'a header for each, with the policy behind the limit',
      { 'ratelimit-limit': '100, 100;w=60', 'ratelimit-remaining': '0', 'ratelimit-reset': '50' },
      { limit: 100, remaining: 0, resetSeconds: 50 },
    ],
    [
      'X-RateLimit, its reset in seconds',
      { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '59', 'x-ratelimit-reset': '0.2' },
      { limit: 60, remaining: 59, resetSeconds: 1 },
    ],
    ['a reset as a date in seconds', { 'x-ratelimit-reset': '1780000042' }, { resetSeconds: 42 }],
    ['a reset as a date in milliseconds', { 'x-ratelimit-reset': '1780000042000' }, { resetSeconds: 42 }],
    ['a date that has passed', { 'x-ratelimit-reset': '1779999000' }, { resetSeconds: 0 }],
    ['the standard before the X', { 'ratelimit-limit': '5', 'x-ratelimit-limit': '6' }, { limit: 5 }],
    ['none', { 'retry-after': '5' }, undefined],
    [
      'nothing that makes sense',
      { ratelimit: '"a', 'x-ratelimit-limit': 'many', 'ratelimit-reset': '-5' },
      undefined,
    ],
    ['nothing of a header that never ends', { ratelimit: `"${'"\\'.repeat(50_000)}` }, undefined],
  ])('reads %s', (_, headers, expected) => {
    expect(rateLimitOf(headers, NOW)).toEqual(expected);
  });
});
