// Many replicas that share their tokens over one Redis: see README.md.
import { spawnSync } from 'node:child_process';
import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { Fleet } from './fleet.js';
import { measure, type Figures } from './measure.js';
import { phasesOf } from './phases.js';
import { brokenBounds, tableOf } from './report.js';

const TOKEN_LIFETIME_S = 24;
const CUSTOMERS = 20;
const MOST_MINUTES = 6;

const { values } = parseArgs({
  options: {
    replicas: { type: 'string', default: '1000' },
    processes: { type: 'string', default: '5' },
    lifetimes: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
  },
});

function numberOf(name: 'replicas' | 'processes' | 'lifetimes'): number {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number > 0 && number <= 10_000) return number;
  throw new Error(`--${name} must be a whole number from 1 to 10000`);
}

interface Outcome {
  /** Kilobytes of a replica, after a garbage collection. */
  memory?: { heap: number; resident: number };
  phases: Figures[];
  /** What is promised and did not hold. */
  broken: string[];
}

async function run(fleet: Fleet, outcome: Outcome): Promise<void> {
  const { replicas, customers } = fleet.options;
  // As the module does it: not the last tenth, and renewed at 75 % of the rest, up to 2 % earlier.
  const usableMs = TOKEN_LIFETIME_S * 1_000 * 0.9;
  const renewalMs = usableMs * (0.75 - 0.02);
  await fleet.setUp();
  const empty = await fleet.memory();
  for (const phase of phasesOf(usableMs, numberOf('lifetimes'))) {
    console.error(`${phase.name} ... (load ${loadavg()[0].toFixed(1)})`);
    const figures = await measure(fleet, phase, usableMs);
    outcome.phases.push(figures);
    outcome.broken.push(...brokenBounds(phase, figures, { scopes: 1 + customers, renewalMs }));
    if (outcome.memory) continue;
    const full = await fleet.memory();
    const kB = (of: 'heapMb' | 'rssMb'): number => Math.round(((full[of] - empty[of]) * 1024) / replicas);
    outcome.memory = { heap: kB('heapMb'), resident: kB('rssMb') };
  }
  await fleet.stopAll();
}

const redis = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
if (redis.error) {
  throw new Error('redis-server is missing; install with: apt-get install redis-server');
}
const fleet = new Fleet({
  replicas: numberOf('replicas'),
  processes: numberOf('processes'),
  customers: CUSTOMERS,
  tokenLifetime: TOKEN_LIFETIME_S,
});
const stopped = new Promise<never>((_resolve, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => reject(new Error(signal)));
  setTimeout(() => reject(new Error(`Not done after ${MOST_MINUTES} minutes`)), MOST_MINUTES * 60_000);
});
const outcome: Outcome = { phases: [], broken: [] };
try {
  await Promise.race([run(fleet, outcome), stopped]);
} catch (error) {
  outcome.broken.push(String(error));
} finally {
  await fleet.end();
}
const { memory, phases, broken } = outcome;
const [redisVersion = ''] = /v=[\d.]+/.exec(redis.stdout) ?? [];
const machine = `Node ${process.version}, Redis ${redisVersion.slice(2)}, ${cpus().length} cores (${cpus()[0]?.model})`;
if (values.json) console.log(JSON.stringify({ machine, ...fleet.options, ...outcome }, null, 2));
else {
  console.log(`${fleet.options.replicas} replicas in ${fleet.options.processes} processes, ${machine}\n`);
  console.log(tableOf(phases));
  if (memory) console.log(`\nMemory of a replica: ${memory.heap} kB of heap, ${memory.resident} kB resident`);
  for (const line of broken) console.log(`BROKEN: ${line}`);
  if (broken.length === 0) console.log('All promises held.');
}
process.exit(broken.length === 0 ? 0 : 1);
