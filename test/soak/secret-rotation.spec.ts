import { describe, it } from '@jest/globals';
import { rotateSecret } from '../helpers/rotate-secret.js';

describe('rotation of the client secret', () => {
  it.each(['a function', 'a file'] as const)(
    'as %s: no call fails at 50 calls/s while it changes six times in 20 s',
    (source) => rotateSecret(source, { rotations: 6, between: 15, everyMs: 200 }),
    600_000,
  );
});
