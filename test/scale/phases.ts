import { setTimeout as sleep } from 'node:timers/promises';
import { type Fleet } from './fleet.js';

/** What a fleet goes through. */
export interface Phase {
  name: string;
  run(fleet: Fleet): Promise<void>;
  /** Requests for each token beside its renewals that are allowed; undefined: any number. */
  extraRequests?: number;
  /** There may be times without a token. */
  callsMayFail?: boolean;
}

const WAVES = 10;
const REDIS_AWAY_MS = 1_000;
const SLOW_MS = 2_000;
const SHORT_OUTAGE_MS = 3_000;

/**
 * @param usableMs the time that a token can be used
 * @param lifetimes how many of these nothing happens
 */
export function phasesOf(usableMs: number, lifetimes: number): Phase[] {
  return [
    { name: 'start', run: (fleet) => fleet.startAll(), extraRequests: 0 },
    { name: 'nothing happens', run: () => sleep(lifetimes * usableMs), extraRequests: 0 },
    { name: `rolling restart in ${WAVES} waves`, run: restartInWaves, extraRequests: 0 },
    {
      // What is due while Redis is away is requested by each replica.
      name: 'Redis restarts empty',
      async run({ redis }) {
        await redis.crash();
        await sleep(REDIS_AWAY_MS);
        await redis.restart();
        await sleep(usableMs);
      },
    },
    {
      name: `the endpoint takes ${SLOW_MS / 1_000} s`,
      extraRequests: 0,
      async run({ service }) {
        await service.order('fail', { delayMs: SLOW_MS });
        await sleep(usableMs);
        await service.order('works');
      },
    },
    {
      name: `the endpoint is dead for ${SHORT_OUTAGE_MS / 1_000} s`,
      extraRequests: 2,
      async run({ service }) {
        await service.order('fail', 'reset');
        await sleep(SHORT_OUTAGE_MS);
        await service.order('works');
        await sleep(usableMs);
      },
    },
    {
      // One with the old secret, where it had just been read.
      name: 'the client secret is rotated',
      extraRequests: 1,
      async run(fleet) {
        await fleet.rotateSecret();
        await sleep(usableMs);
      },
    },
    {
      name: 'the endpoint is dead until all tokens have ended',
      callsMayFail: true,
      async run({ service }) {
        await service.order('fail', 'reset');
        await sleep(usableMs);
        await service.order('works');
      },
    },
    { name: 'it works again', callsMayFail: true, run: () => sleep(usableMs) },
  ];
}

async function restartInWaves(fleet: Fleet): Promise<void> {
  const upTo = (wave: number): number => Math.floor((fleet.options.replicas * wave) / WAVES);
  for (let wave = 1; wave <= WAVES; wave += 1) await fleet.restart(upTo(wave) - upTo(wave - 1));
}
