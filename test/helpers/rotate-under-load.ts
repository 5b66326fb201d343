import { expect } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceSimulator } from 'nestjs-service/testing';
import { byRename, bySymlinkSwap, inPlace, type Replacement } from './certificate-files.js';
import { startModule } from './start-module.js';
import { steadyLoad } from './steady-load.js';

const WAYS: Readonly<Record<string, Replacement>> = {
  rename: byRename,
  'in-place': inPlace,
  symlink: bySymlinkSwap,
};

export interface RotationLoad {
  perSecond: number;
  concurrency: number;
  /** Of each of the three ways. */
  replacements: number;
  /** The load goes on for at least this long. Default: until the last replacement is in use. */
  seconds?: number;
}

/**
 * Replaces certificate and key while calls run, in three ways at once, each with files and a module of its own. No call
 * may fail or need a second attempt, and each certificate must come into use, in its order. Returns a report.
 */
export async function rotateUnderLoad(load: RotationLoad): Promise<string> {
  // Answers take some time, so that there are calls in flight at each change.
  const simulator = await ServiceSimulator.start({ delayMs: 20 });
  const folder = await mkdtemp(join(tmpdir(), 'rotation-'));
  try {
    const reports = await Promise.all(Object.keys(WAYS).map((way) => rotate(simulator, folder, way, load)));
    expect(new Set(simulator.requests.map(({ status }) => status))).toEqual(new Set([200]));
    expect(simulator.refusals).toEqual([]);
    return reports.join('; ');
  } finally {
    await simulator.stop();
    await rm(folder, { recursive: true });
  }
}

async function rotate(
  simulator: ServiceSimulator,
  parent: string,
  way: string,
  { replacements, seconds = 0, ...pace }: RotationLoad,
): Promise<string> {
  const folder = await mkdtemp(join(parent, `${way}-`));
  const issue = (count: number) => simulator.issueCertificate({ commonName: `${way}-${count}` });
  await WAYS[way](folder, await issue(0));
  const { module, banks, auth } = await startModule({
    ...simulator.moduleOptions(),
    tls: {
      certificate: { file: join(folder, 'tls.crt') },
      privateKey: { file: join(folder, 'tls.key') },
      chain: simulator.chain,
    },
  });
  await banks.list();
  const begun = performance.now();
  const load = steadyLoad(() => banks.list(), pace);
  try {
    for (let count = 1; count <= replacements; count += 1) {
      const next = await issue(count);
      await WAYS[way](folder, next);
      await simulator.waitForRequest(({ certificateSubject }) => certificateSubject === next.subject, 60_000);
      expect(auth.certificate?.subject).toBe(next.subject);
    }
    await sleep(Math.max(0, begun + seconds * 1000 - performance.now()));
  } finally {
    await load.stop();
    await module.close();
  }
  expect(load.failures).toEqual([]);
  expect(auth.identityStatus.lastReloadFault).toBeUndefined();
  const seen = simulator.requests
    .map(({ certificateSubject }) => certificateSubject)
    .filter((subject) => subject?.startsWith(`CN=${way}-`));
  const all = Array.from({ length: replacements + 1 }, (_, index) => `CN=${way}-${index}`);
  expect([...new Set(seen)]).toEqual(all);
  expect(seen.at(-1)).toBe(all.at(-1));
  expect(seen).toHaveLength(load.done + 1);
  return `${way}: ${load.done} calls in ${((performance.now() - begun) / 1000).toFixed(1)} s`;
}
