import { describe, it } from '@jest/globals';
import { playHistories } from '../helpers/histories/histories.js';
import { tell } from '../helpers/tell.js';

describe('Random histories of two services, four clients and a fleet', () => {
  it('20,000 calls: each has its own credentials and ends in time, and nothing shows a secret or is left', async () => {
    tell(await playHistories(20_000, 3));
  }, 600_000);
});
