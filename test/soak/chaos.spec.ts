import { describe, it } from '@jest/globals';
import { callServiceInTrouble, sendOddInput } from '../helpers/chaos.js';

// Jest itself fails a test for an unhandled rejection.
describe('odd input and a service in trouble', () => {
  it(
    '10,000 odd ids, headers and bodies: no crash, nothing sent outside the service, nothing split',
    () => sendOddInput(10_000),
    600_000,
  );

  it(
    '1,000 calls of a service in trouble: their retries stay in the budget',
    () => callServiceInTrouble(1_000),
    600_000,
  );
});
