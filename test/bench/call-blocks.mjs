// Alternating blocks of calls: each contender in its own process, the server in another, one block at a time.
import { alternate, startProcess } from './harness.mjs';
import { startApi } from './service.mjs';

/** Resolves to the samples of CPU per call, and to the length of the JSON. */
export async function sampleCalls(names, sizes = { rounds: 9, calls: 1_000, warmUp: 3_000 }) {
  const { stop, body, origin, pems } = await startApi();
  const api = { origin, pems, text: body };
  const processes = [];
  try {
    for (const name of names) processes.push({ name, ...(await startProcess('caller', { name, api })) });
    const contenders = processes.map(({ name, ask }) => ({ name, block: ask }));
    return { samples: await alternate(contenders, sizes), bytes: body.length };
  } finally {
    for (const each of processes) each.stop();
    stop();
  }
}
