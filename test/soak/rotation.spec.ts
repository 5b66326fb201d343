import { describe, it } from '@jest/globals';
import { rotateUnderLoad } from '../helpers/rotate-under-load.js';
import { tell } from '../helpers/tell.js';

describe('Certificate and key are replaced while calls run', () => {
  it('ten times in each of three ways at the same time, 30 s at 200 calls/s each: no call fails', async () => {
    const report = await rotateUnderLoad({ perSecond: 200, concurrency: 20, replacements: 10, seconds: 30 });
    tell(`rotation: ${report}; 0 failed`);
  }, 600_000);
});
