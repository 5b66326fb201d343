import { afterEach, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TokenCache } from '../../../../lib/auth/cache/token-cache.js';
import { sleep } from '../../../../lib/time/timers.js';
import { FakeClock } from '../../../helpers/fake-clock.js';
import { inSoak } from '../../../helpers/in-soak.js';
import { makeCache } from '../fakes.js';
import { clientSecret, makeStore, MemoryStore } from './set-up.js';

const HOUR_MS = 3_600_000;
const LIFETIME_S = 3_600;
let open: TokenCache[] = [];
afterEach(() => {
  for (const cache of open) cache.close();
  open = [];
});

/** The requests for one token in this time of replicas that start together, by a clock of their own. */
async function requestsOf(replicas: number, ms: number, { isShared = true } = {}): Promise<number> {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  const secret = clientSecret(clock);
  let requests = 0;
  let seed = 1;
  const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
  const source = {
    request: async (scope: string) => {
      requests += 1;
      const accessToken = `token-${requests}`;
      await sleep(clock, 80);
      return { accessToken, scope, expiresIn: LIFETIME_S };
    },
  };
  open = Array.from({ length: replicas }, () =>
    makeCache({
      source: isShared ? makeStore({ source, store, clock, clientSecret: secret, random }) : source,
      refresh: 'scheduled',
      clock,
      random,
    }),
  );
  for (const cache of open) cache.start();
  await clock.advance(ms);
  for (const cache of open) expect(cache.use('api')).toBeDefined();
  return requests;
}

it.each([1, 8])('%d replicas make 33 token requests a day over a store', async (replicas) => {
  expect(await requestsOf(replicas, 24 * HOUR_MS)).toBe(33);
});

it('8 replicas without one: 33 each', async () => {
  expect(await requestsOf(8, 24 * HOUR_MS, { isShared: false })).toBe(264);
});

inSoak(() => {
  it('1,000 replicas make as many over a store as one', async () => {
    // Three points of renewal, as a day of a thousand takes its time.
    expect(await requestsOf(1_000, 2.3 * HOUR_MS)).toBe(4);
  }, 120_000);
});

it('docs/fleet.md has these numbers', async () => {
  const text = await readFile(join(import.meta.dirname, '../../../../docs/fleet.md'), 'utf8');
  const numbers = [...text.matchAll(/requests? (\d+)\b/g)].map(([, number]) => Number(number));
  // 75 % of the life but its last 30 s, less half of the 10 s by which replicas differ; and the first one.
  const one = 1 + Math.floor((24 * HOUR_MS) / 1000 / (0.75 * (LIFETIME_S - 30) - 5));
  expect(numbers).toEqual([one, one]);
});
