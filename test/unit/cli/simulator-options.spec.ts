import { expect, it } from '@jest/globals';
import { readSimulatorOptions } from '../../../lib/cli/simulator-options.js';

it('uses the six ports from 8443 on, where no other is named', async () => {
  const { ports } = (await readSimulatorOptions([], '/a')) as { ports: Record<string, number> };
  expect(Object.values(ports)).toEqual([8443, 8444, 8445, 8446, 8447, 8448]);
});
