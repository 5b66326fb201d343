import { expect, it } from '@jest/globals';
import { RenewalSchedule } from '../../../../lib/auth/cache/renewal-schedule.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

function setUp({ begins = true, delayMs = 1_000 } = {}) {
  const clock = new FakeClock();
  let renewals = 0;
  const renew = (): boolean => {
    renewals += 1;
    return begins;
  };
  const schedule = new RenewalSchedule({ clock, delayMs: () => delayMs, renew });
  return { clock, schedule, renewals: () => renewals };
}

it('where no request could begin, plans the next try itself', async () => {
  const { clock, schedule, renewals } = setUp({ begins: false });
  schedule.start();
  await clock.advance(3_000);
  expect(renewals()).toBe(4);
});

it("where one has begun, leaves the next to the request's end: one plan at a time", async () => {
  const { clock, schedule, renewals } = setUp();
  schedule.start();
  await clock.advance(10_000);
  expect(renewals()).toBe(1);
  schedule.plan();
  schedule.plan();
  await clock.advance(10_000);
  expect(renewals()).toBe(2);
});

it('never fires more often than each 250 ms', async () => {
  const { clock, schedule, renewals } = setUp({ begins: false, delayMs: -5 });
  schedule.start();
  await clock.advance(1_000);
  expect(renewals()).toBe(5);
});

it('stopped, plans nothing more', async () => {
  const { clock, schedule, renewals } = setUp();
  schedule.plan();
  schedule.stop();
  schedule.plan();
  expect(clock.timers).toBe(0);
  await clock.advance(10_000);
  expect(renewals()).toBe(0);
});
