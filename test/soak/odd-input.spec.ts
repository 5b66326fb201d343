import { describe, it } from '@jest/globals';
import { sendOddInput } from '../helpers/chaos.js';

// Jest itself fails a test for an unhandled rejection.
describe('odd input', () => {
  it(
    '10,000 odd ids, headers and bodies: no crash, nothing sent outside the service, nothing split',
    () => sendOddInput(10_000),
    600_000,
  );
});
