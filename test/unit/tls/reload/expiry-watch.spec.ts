import { expect, it } from '@jest/globals';
import { ExpiryWatch } from '../../../../lib/tls/reload/expiry-watch.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

it('a wall clock that jumps, or a machine that slept: told within the hour', async () => {
  const clock = new FakeClock();
  const lines: string[] = [];
  const watch = new ExpiryWatch(clock, (level, message) => lines.push(`${level} ${message}`));
  watch.watch({
    subject: 'CN=app',
    issuer: 'CN=issuer',
    fingerprint256: 'AB',
    validFrom: new Date(clock.now() - DAY),
    validTo: new Date(clock.now() + 300 * DAY),
  });
  await clock.advance(HOUR);
  expect(lines).toEqual([]);
  clock.jump(294 * DAY);
  await clock.advance(HOUR);
  expect(lines).toEqual([expect.stringMatching(/^warn .*CN=app.* expires within 7 days/)]);
  watch.stop();
  expect(clock.timers).toBe(0);
});
