import { randomInt } from 'node:crypto';
import { everyForm } from '../secret-scan.js';
import { TimerCount } from '../timer-count.js';
import { type ClientName, CLIENTS, type ServiceName, SERVICES } from './clients.js';
import { SECRET } from './faults.js';
import { wrongOutcome } from './outcome.js';
import { type PlannedCall, planHistory } from './plan.js';
import { playCall, playHistory, toPlayed } from './play.js';
import { type PlayedCall } from './played-call.js';
import { wrongRequest } from './wire.js';
import { World } from './world.js';

const CALLS_PER_HISTORY = 500;

/** The number of calls for each way in which a call can end. */
type Tally = Map<string, number>;

/**
 * Plays random histories, some at the same time, until there were so many calls. Rejects where something is wrong in one of
 * them, with its seed: the variable HISTORIES_SEED begins with that one. Returns a report.
 */
export async function playHistories(calls: number, atATime = 1): Promise<string> {
  const seed = Number(process.env.HISTORIES_SEED ?? randomInt(2 ** 31));
  if (!Number.isSafeInteger(seed)) throw new Error('HISTORIES_SEED must be a whole number');
  const callsOfEach = Math.min(calls, CALLS_PER_HISTORY);
  const tally: Tally = new Map();
  const problems: string[] = [];
  const timers = new TimerCount();
  let next = seed;
  const playSome = async (): Promise<void> => {
    while (problems.length === 0 && next < seed + calls / callsOfEach) {
      problems.push(...(await playAndJudge(next++, callsOfEach, tally)));
    }
  };
  await Promise.all(Array.from({ length: atATime }, playSome));
  if (timers.running > 0) problems.push(`${timers.running} timers were left`);
  timers.restore();
  if (problems.length > 0) {
    const shown = problems.slice(0, 20).join('\n');
    throw new Error(`${problems.length} problems; the variable plays a history again:\n${shown}`);
  }
  const ends = [...tally].sort(([, one], [, other]) => other - one);
  return `HISTORIES_SEED=${seed}: ${ends.map(([name, times]) => `${times} ${name}`).join(', ')}`;
}

/** Plays one history. Returns the faults that were found. */
async function playAndJudge(seed: number, calls: number, tally: Tally): Promise<string[]> {
  const world = await World.start();
  const played = await playHistory(world, planHistory(seed, calls));
  const calm = await callNewReplica(world);
  await world.end();
  for (const { outcome } of played) count(tally, outcome);
  const problems = [...world.problems, ...wrongEnds(calm), ...judge(world, [...played, ...calm])];
  return problems.map((problem) => `HISTORIES_SEED=${seed} ${problem}`);
}

const CALM: Omit<PlannedCall, 'client'> = {
  ...{ replica: 0, kind: 'list', customer: 'c-1', gap: 0, abort: null, faults: [] },
  timeout: 30_000,
};

/** After a history, a new replica with the same store must work. */
async function callNewReplica(world: World): Promise<PlayedCall[]> {
  for (const simulator of Object.values(world.services)) simulator.clearFaults();
  world.store.mode = 'store works';
  // Otherwise the last error of the token endpoint would be shared for up to 4 s more.
  world.store.endLocks();
  const replica = await world.startReplica();
  const calls = (Object.keys(CLIENTS) as ClientName[]).map((client) =>
    toPlayed({ ...CALM, client }, `calm-${client}`, replica),
  );
  await Promise.all(calls.map((call) => playCall(world, call, replica)));
  return calls;
}

function wrongEnds(calm: PlayedCall[]): string[] {
  return calm
    .filter(({ outcome }) => !Object.hasOwn(Object(outcome), 'value'))
    .map(({ id, outcome }) => `${id} did not succeed: ${everyForm(outcome)}`);
}

/** The faults on the wire, in the outcomes of calls, in logs, in events and in the store. */
function judge(world: World, calls: readonly PlayedCall[]): string[] {
  const byId = new Map(calls.map((call) => [call.id, call]));
  const problems: string[] = [];
  for (const service of Object.keys(SERVICES) as ServiceName[]) {
    for (const record of world.services[service].requests) {
      byId.get(record.headers['x-correlation-id'] ?? '')?.arrived.push(record);
      const what = `${service}: ${record.method} ${record.path} at ${record.face}`;
      problems.push(...wrongRequest(world, service, record, byId).map((wrong) => `${what} ${wrong}`));
    }
  }
  for (const event of world.events) byId.get(event.requestId ?? '')?.events.push(event);
  for (const call of calls) {
    const what = `${call.id}, ${call.kind} by ${call.client}`;
    problems.push(...wrongOutcome(world, call).map((wrong) => `${what} ${wrong}`));
  }
  const shown = [...world.logger.lines, ...world.events, world.store.contents].map((line) => everyForm(line));
  problems.push(...shown.filter((text) => SECRET.test(text)).map((text) => `shows a secret: ${text}`));
  return problems;
}

function count(tally: Tally, outcome: PlayedCall['outcome']): void {
  const { error } = Object(outcome) as { error?: { code?: string } };
  const name = error === undefined ? 'answered' : (error.code ?? 'aborted');
  tally.set(name, (tally.get(name) ?? 0) + 1);
}
