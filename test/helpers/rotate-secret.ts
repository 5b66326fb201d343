import { expect } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startModule } from './start-module.js';
import { startSimulator } from './simulators.js';

/**
 * Changes the client secret while calls run, each time after `between` rounds of calls. No call may fail, and each secret
 * must come into use: every round asks for a token of a new customer.
 */
export async function rotateSecret(
  source: 'a function' | 'a file',
  { rotations, between, everyMs }: { rotations: number; between: number; everyMs: number },
): Promise<void> {
  // Short enough for several renewals in a long run, each of which needs the secret that is valid then.
  const simulator = await startSimulator({ tokenLifetime: 10 });
  const folder = await mkdtemp(join(tmpdir(), 'secret-'));
  const file = join(folder, 'client-secret');
  await writeFile(file, simulator.clientSecret);
  const options = simulator.moduleOptions({ authentication: 'oauth' });
  const clientSecret = source === 'a file' ? { file } : () => simulator.clientSecret;
  const { module, banks, auth } = await startModule({
    ...options,
    oauth: { ...options.oauth, clientSecret },
  });
  const outcomes: Promise<unknown>[] = [];
  for (let rotation = 0; rotation <= rotations; rotation += 1) {
    if (rotation > 0) await writeFile(file, simulator.rotateClientSecret());
    for (let round = 0; round < between; round += 1) {
      outcomes.push(
        ...Array.from({ length: 10 }, () => banks.list()),
        auth.getCustomerToken(`c-${rotation}-${round}`),
      );
      await sleep(everyMs);
    }
    // A request that runs when its secret is replaced is refused once, and is made again with the new secret.
    await Promise.allSettled(outcomes);
  }
  const failed = (await Promise.allSettled(outcomes)).filter(({ status }) => status === 'rejected');
  expect(failed).toEqual([]);
  const granted = simulator.tokenRequests.filter(({ status }) => status === 200);
  expect(new Set(granted.map(({ form }) => form?.client_secret)).size).toBe(rotations + 1);
  await module.close();
  await simulator.stop();
  await rm(folder, { recursive: true });
}
