import { describe, it } from '@jest/globals';
import { callThroughFaults, sendOddInput } from '../helpers/chaos.js';

// Jest itself fails a test for an unhandled rejection.
describe('under load and odd input', () => {
  it(
    '10,000 calls while one in five meets a fault: each ends, retries follow failures, nothing is left',
    () => callThroughFaults(10_000),
    600_000,
  );

  it(
    '10,000 odd ids, headers and bodies: no crash, nothing sent outside the service, nothing split',
    () => sendOddInput(10_000),
    600_000,
  );
});
