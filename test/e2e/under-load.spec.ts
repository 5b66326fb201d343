import { describe, it } from '@jest/globals';
import { callServiceInTrouble, sendOddInput } from '../helpers/chaos.js';
import { playHistories } from '../helpers/histories/histories.js';

/** Short versions of what test/soak does at length. Jest itself fails a test for an unhandled rejection. */
describe('random histories and odd input', () => {
  it('60 calls in a random history: each has its own credentials and ends in time, nothing is left', async () => {
    await playHistories(60);
  });

  it('60 calls of a service in trouble: their retries stay in the budget', () => callServiceInTrouble(60));

  it('100 odd ids, headers and bodies: no crash, nothing sent outside the service, nothing split', () =>
    sendOddInput(100));
});
