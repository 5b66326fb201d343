// What one contender's calls allocate, in a process of its own: bytes by V8's sampling profiler, and hidden classes
// (maps) by its log, for which the process has to be started with LOG_FLAGS.
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { setFlagsFromString } from 'node:v8';
import { CALL_CONTENDERS } from '../call-contenders.mjs';
import { callAll } from '../harness.mjs';
import { respond } from './respond.mjs';

const WARM_UP = 5_000;

/** Bytes by the function that allocated them, of all that was collected since too. */
async function sampleBytes(run) {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: 512,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  await run();
  const { profile } = await session.post('HeapProfiler.stopSampling');
  session.disconnect();
  const bytes = new Map();
  const visit = ({ callFrame: { functionName, url, lineNumber }, selfSize, children }) => {
    const place = `${functionName || '(anonymous)'} ${url}:${lineNumber + 1}`;
    bytes.set(place, (bytes.get(place) ?? 0) + selfSize);
    children.forEach(visit);
  };
  visit(profile.head);
  return bytes;
}

/** Counts by the line that made a map, and the key that it was made for. */
function countMaps(logfile) {
  const codes = [];
  const maps = new Map();
  for (const line of readFileSync(logfile, 'latin1').split('\n')) {
    const [kind, ...fields] = line.split(',');
    if (kind === 'code-creation') {
      const [, , , start, size, name] = fields;
      codes.push({ start: Number(start), end: Number(start) + Number(size), name });
    } else if (kind === 'map') {
      const [type, , , , pc, atLine, column, reason, key = ''] = fields;
      const { name = '' } = codes.findLast(({ start, end }) => start <= pc && pc < end) ?? {};
      const place = `${name.replace(/:\d+:\d+$/, '')}:${atLine}:${column} ${type} ${reason} ${key}`;
      maps.set(place, (maps.get(place) ?? 0) + 1);
    }
  }
  return maps;
}

respond(async ({ name, api, logfile }) => {
  const { call } = await CALL_CONTENDERS[name](api);
  await callAll(call, WARM_UP, 1);
  const answer = async (calls) => {
    const bytes = await sampleBytes(() => callAll(call, calls, 1));
    setFlagsFromString('--log-maps');
    await callAll(call, calls, 1);
    setFlagsFromString('--no-log-maps');
    const perCall = (counts) => [...counts].map(([place, count]) => ({ place, count: count / calls }));
    return { bytes: perCall(bytes), maps: perCall(countMaps(logfile)) };
  };
  return { ready: {}, answer };
});
