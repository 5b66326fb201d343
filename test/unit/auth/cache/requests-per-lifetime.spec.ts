import { expect, it } from '@jest/globals';
import { sleep } from '../../../../lib/time/timers.js';
import { FakeClock } from '../../../helpers/fake-clock.js';
import { makeCache } from '../fakes.js';

it.each([
  [60, 1.5],
  [600, 1.42],
  [3_600, 1.36],
])('a token of %d s costs at most %d requests per lifetime, and no call waits', async (lifetime, most) => {
  const clock = new FakeClock();
  let requests = 0;
  const cache = makeCache({
    source: {
      request: async (scope) => {
        requests += 1;
        return { accessToken: `token-${requests}`, scope, expiresIn: lifetime };
      },
    },
    clock,
    random: () => 0.5,
  });
  await cache.get('api');
  const lifetimes = 20;
  for (let call = 0; call < lifetimes * 100; call++) {
    await clock.advance(lifetime * 10);
    expect(cache.use('api')).toBeDefined();
  }
  // Less the first one, which no lifetime has to pay for.
  expect((requests - 1) / lifetimes).toBeLessThanOrEqual(most);
  cache.close();
});

it('a token counts from when its source says that the request left', async () => {
  const clock = new FakeClock();
  const cache = makeCache({
    source: {
      request: async (scope) => {
        await sleep(clock, 5_000);
        const requestedAt = clock.monotonic();
        return { accessToken: 'token', scope, expiresIn: 600, requestedAt };
      },
    },
    refresh: 'on-expiry',
    clock,
  });
  const waiting = cache.get('api');
  await clock.advance(5_000);
  expect((await waiting).expiresAt.getTime()).toBe(clock.now() + 600_000);
  cache.close();
});
