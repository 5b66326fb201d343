import { expect, it } from '@jest/globals';
import { settle } from '../../../helpers/fake-clock.js';
import { refusal, setUp } from './set-up.js';

const scheduled = () => setUp({ refresh: 'scheduled' });

it('where no request could begin, plans the next try itself', async () => {
  const { cache, source, clock } = scheduled();
  const customer = expect(cache.get('customer.c1', { once: true })).rejects.toThrow();
  await settle();
  source.last.fail(refusal('token_rate_limited', 429, 10));
  await customer;
  cache.start();
  await clock.advance(9_999);
  expect(source.requests).toHaveLength(1);
  await clock.advance(1);
  expect(source.requests).toHaveLength(2);
  cache.close();
});

it("where one has begun, leaves the next to the request's end: one plan at a time", async () => {
  const { cache, source, clock } = scheduled();
  cache.start();
  await clock.advance(9_000);
  expect(source.requests).toHaveLength(1);
  source.last.grant(60);
  await settle();
  expect(clock.timers).toBe(1);
  cache.close();
});

it('never fires more often than each 250 ms', async () => {
  const { cache, source, clock } = scheduled();
  cache.start();
  await settle();
  // Usable for 200 ms, and due after 150.
  source.last.grant(0.4);
  await clock.advance(249);
  expect(source.requests).toHaveLength(1);
  await clock.advance(1);
  expect(source.requests).toHaveLength(2);
  cache.close();
});

it('closed, plans nothing more', async () => {
  const { cache, source, clock } = scheduled();
  cache.start();
  await settle();
  source.last.grant(60);
  await settle();
  cache.close();
  cache.start();
  expect(clock.timers).toBe(0);
  await clock.advance(100_000);
  expect(source.requests).toHaveLength(1);
});
