import { describe, expect, it } from '@jest/globals';
import { EVERYTHING, MODES, scanForLeaks } from '../helpers/leak-scan.js';

describe('no error and no log line contains a secret', () => {
  it.each(Object.keys(MODES) as (keyof typeof MODES)[])(
    'of any fault at %s',
    async (mode) => {
      expect(await scanForLeaks(mode, EVERYTHING)).toBeGreaterThanOrEqual(100);
    },
    600_000,
  );
});
