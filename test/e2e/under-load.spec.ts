import { describe, it } from '@jest/globals';
import { callServiceInTrouble, sendOddInput } from '../helpers/chaos.js';
import { playHistories } from '../helpers/histories/histories.js';
import { rotateUnderLoad } from '../helpers/rotate-under-load.js';

/** Short versions of what test/soak does at length. Jest itself fails a test for an unhandled rejection. */
describe('under load and odd input', () => {
  it('certificates are replaced in three ways at the same time: no call fails or needs a second attempt', async () => {
    await rotateUnderLoad({ perSecond: 50, concurrency: 10, replacements: 1 });
  });

  it('300 calls in a random history: each has its own credentials and ends in time, nothing is left', async () => {
    await playHistories(300);
  });

  it('150 calls of a service in trouble: their retries stay in the budget', () => callServiceInTrouble(150));

  it('500 odd ids, headers and bodies: no crash, nothing sent outside the service, nothing split', () =>
    sendOddInput(500));
});
