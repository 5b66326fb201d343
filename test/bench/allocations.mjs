// What a warm call allocates, by place: hidden classes (maps), which should be none, and bytes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OURS, THIN } from './call-blocks.mjs';
import { printTable, round, startProcess } from './harness.mjs';
import { startApi } from './service.mjs';

const CALLS = 1_000;
const PLACES = 30;
/** The functions of code that is interpreted are named too. */
const LOG_FLAGS = ['--log-code', '--interpreted-frames-native-stack', '--no-logfile-per-isolate'];
const PARTS = { 'this module': '/.build/', axios: '/axios/', Node: ' node:' };

const partOf = (place) => Object.keys(PARTS).find((part) => place.includes(PARTS[part])) ?? 'other';
const withoutFolders = (place) => place.replace(/file:\S*\/(?=\.build\/|node_modules\/)/, '');

function bytesByPart(bytes) {
  const sums = { all: 0, 'this module': 0, axios: 0, Node: 0, other: 0 };
  for (const { place, count } of bytes) {
    sums.all += count;
    sums[partOf(place)] += count;
  }
  return Object.entries(sums).map(([place, count]) => ({ place, count }));
}

const { stop, body, origin, pems } = await startApi();
const api = { origin, pems, text: body };
const folder = mkdtempSync(join(tmpdir(), 'nestjs-service-bench-'));
const logfile = join(folder, 'v8.log');
for (const name of [OURS, `${OURS}, OAuth`, 'ServiceHttpService.post()', THIN]) {
  const { ask, stop: end } = await startProcess('allocator', { name, api, logfile }, [
    ...LOG_FLAGS,
    `--logfile=${logfile}`,
  ]);
  const { bytes, maps } = await ask(CALLS);
  end();
  const top = bytes.sort((a, b) => b.count - a.count).slice(0, PLACES);
  const rows = (unit, counts, digits) =>
    counts.map(({ place, count }) => ({ place: withoutFolders(place), [unit]: round(count, digits) }));
  printTable(`${name}: bytes a call`, rows('bytes', [...bytesByPart(bytes), ...top]));
  const often = maps.filter(({ count }) => count > 0.1);
  if (often.length === 0) console.log(`\n${name} makes no map`);
  else printTable(`${name}: maps a call`, rows('maps', often, 1));
}
rmSync(folder, { recursive: true });
stop();
