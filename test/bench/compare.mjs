// BanksService.list() as it is now beside that of another commit, and beside what the libraries below it cost.
//
//   compare.mjs <URL of the other build> <ms that each answer takes>
import { BARE, FLOOR, NOTHING, OURS, RECIPE, sampleCalls, THIN } from './call-blocks.mjs';
import {
  inRounds,
  median,
  printTable,
  quietestRounds,
  ratioRows,
  ratios,
  round,
  spread,
  startProcess,
} from './harness.mjs';
import { startApi } from './service.mjs';

const [before, delay] = process.argv.slice(2);
const OAUTH = `${OURS}, OAuth`;
const CONCURRENCY = [1, 20, 200];

const { results, bytes } = await sampleCalls(
  [
    { name: 'now', is: OURS },
    // The same once more: how far apart two processes of the same code are.
    { name: 'now, again', is: OURS },
    { name: 'before', is: OURS, lib: before },
    { name: 'now, OAuth', is: OAUTH },
    { name: 'before, OAuth', is: OAUTH, lib: before },
    NOTHING,
    BARE,
    THIN,
    RECIPE,
  ],
  { concurrency: CONCURRENCY, delayMs: Number(delay) },
);

const BEFORE = { now: 'before', 'now, again': 'before', 'now, OAuth': 'before, OAuth' };

for (const { concurrency, samples, latencies } of results) {
  const rows = [...samples].map(([name, values]) => {
    const to = (other) => (other ? spread(ratios(samples, name, other), 2) : '');
    const times = (latencies.get(name) ?? []).flat().sort((a, b) => a - b);
    return {
      contender: name,
      'CPU us': spread(values),
      '/ before': to(BEFORE[name]),
      '/ floor': to(FLOOR),
      '/ thin': to(THIN),
      '/ recipe': to(RECIPE),
      ...(times.length > 0 && {
        'median ms': round(median(times), 2),
        'p99 ms': round(times[Math.floor(times.length * 0.99)], 2),
      }),
    };
  });
  const title = `${concurrency} at a time, ${bytes} bytes of JSON over kept-alive mTLS, after ${delay} ms`;
  printTable(title, rows);
  console.log(`\nTwo processes of the same code: ${spread(ratios(samples, 'now, again', 'now'), 2)}`);
}

// Where the server waits, the time of a block is the server's.
if (Number(delay) === 0) await compareInOneProcess();

async function compareInOneProcess() {
  const { stop, body, origin, pems } = await startApi(0);
  const builds = [
    { name: 'now' },
    { name: 'before', lib: before },
    { name: 'now, again' },
    { name: 'before, again', lib: before },
  ];
  const pair = await startProcess('pair', { is: OURS, api: { origin, pems, text: body }, builds });
  try {
    for (const concurrency of CONCURRENCY) {
      const all = new Map(await pair.ask({ concurrency }));
      const samples = inRounds(all, quietestRounds(all));
      printTable(`${concurrency} at a time, in one process`, ratioRows(samples, 'CPU us', 'before'));
    }
  } finally {
    pair.stop();
    stop();
  }
}
