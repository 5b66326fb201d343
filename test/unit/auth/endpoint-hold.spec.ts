import { describe, expect, it } from '@jest/globals';
import { EndpointHold } from '../../../lib/auth/endpoint-hold.js';
import { ServiceTokenError } from '../../../lib/errors/index.js';
import { FakeClock } from './fakes.js';

const refused = (status: number, retryAfter?: number): ServiceTokenError =>
  new ServiceTokenError({
    code: status === 429 ? 'token_rate_limited' : 'token_unavailable',
    status,
    retryAfter,
    message: String(status),
  });

describe('EndpointHold', () => {
  it.each([
    [refused(429), 3_000],
    [refused(429, 0), 3_000],
    [refused(429, 60), 60_000],
    [refused(429, 1e15), 3_600_000],
    [refused(503, 5), 5_000],
    [refused(503), 0],
  ])('holds back after %s for %d ms', (error, heldMs) => {
    const hold = new EndpointHold(new FakeClock());
    hold.failed(error);
    expect(hold.remainingMs).toBe(heldMs);
  });

  it('doubles to 30 s while 429 goes on, whatever its Retry-After says, until a token comes', async () => {
    const clock = new FakeClock();
    const hold = new EndpointHold(clock);
    const held: number[] = [];
    for (let times = 0; times < 6; times++) {
      hold.failed(refused(429, 0));
      held.push(hold.remainingMs);
      await clock.advance(hold.remainingMs);
    }
    expect(held).toEqual([3_000, 6_000, 12_000, 24_000, 30_000, 30_000]);
    hold.succeeded();
    hold.failed(refused(429));
    expect(hold.remainingMs).toBe(3_000);
  });
});
