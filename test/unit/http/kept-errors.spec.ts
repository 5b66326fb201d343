import { describe, expect, it } from '@jest/globals';
import { join } from 'node:path';
import { startSource } from '../../helpers/source-process.js';

const PROGRAM = join(import.meta.dirname, '../../helpers/kept-errors.ts');

describe('An error that the host application keeps', () => {
  it('keeps no call, no body, no buffer and no credential in memory, and at most 100 kB', async () => {
    const child = startSource(PROGRAM);
    try {
      await child.exited;
      const { counts, kilobytes, forbidden } = JSON.parse(child.output()) as Record<string, number[]>;
      expect(counts).toEqual(Array(8).fill(10));
      expect(forbidden).toEqual([]);
      expect(kilobytes).toHaveLength(8);
      expect(Math.max(...kilobytes)).toBeLessThanOrEqual(100);
    } finally {
      await child.kill();
    }
  }, 60_000);
});
