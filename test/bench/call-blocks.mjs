// Short alternating blocks of calls: each contender in its own process, the server in another, one block at a time.
import { alternate, inRounds, quietestRounds, startProcess } from './harness.mjs';
import { startApi } from './service.mjs';

export const OURS = 'BanksService.list()';
export const RECIPE = '@nestjs/axios recipe';
export const BARE = 'bare node:https';
export const THIN = 'axios over a thin node:https adapter';
export const NOTHING = 'axios over an adapter that does nothing';
/** Both together: what the libraries below the module cost. Writes that go out together can cost less. */
export const FLOOR = 'the floor';

const ROUNDS = 40;

/**
 * For each `concurrency` the CPU of a call and the latencies of each contender, in the fifth of the rounds that was
 * disturbed least; and the length of the JSON. A contender is a key of CALL_CONTENDERS, or `{ name, is, lib }` with the
 * key as `is` and the URL of another build as `lib`.
 */
export async function sampleCalls(contenders, { concurrency = [20], delayMs = 0 } = {}) {
  const { stop, body, origin, pems } = await startApi(delayMs);
  const api = { origin, pems, text: body };
  const processes = [];
  try {
    for (const contender of contenders) {
      const { name, is = name, lib } = typeof contender === 'string' ? { name: contender } : contender;
      processes.push({ name, ...(await startProcess('caller', { name: is, api, lib })) });
    }
    const results = [];
    for (const atOnce of concurrency) results.push(await sampleAt(atOnce, processes, delayMs));
    return { results, bytes: body.length };
  } finally {
    for (const each of processes) each.stop();
    stop();
  }
}

async function sampleAt(concurrency, processes, delayMs) {
  const blocks = new Map();
  const contenders = processes.map(({ name, ask }) => {
    blocks.set(name, []);
    const block = async (count) => {
      const { cpu, latencies } = await ask({ count, concurrency });
      blocks.get(name).push(latencies);
      return cpu;
    };
    return { name, block };
  });
  // Where the server waits, so does a block: five answers one after the other are enough.
  const calls = delayMs > 0 ? 5 * concurrency : Math.max(300, 3 * concurrency);
  const warmUp = delayMs > 0 ? calls : 10 * calls;
  const all = await alternate(contenders, { rounds: ROUNDS, calls, warmUp });
  const rounds = quietestRounds(all);
  // The first block is the one that warmed up.
  const latencies = new Map([...blocks].map(([name, [, ...measured]]) => [name, measured]));
  const samples = inRounds(all, rounds);
  const [nothing, bare] = [samples.get(NOTHING), samples.get(BARE)];
  if (nothing)
    samples.set(
      FLOOR,
      bare.map((us, i) => us + nothing[i]),
    );
  return { concurrency, samples, latencies: inRounds(latencies, rounds) };
}
