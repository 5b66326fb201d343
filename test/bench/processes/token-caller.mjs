// One contender of tokens.mjs in a process of its own: what the others do with theirs is no wait of this one.
import http from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { TOKEN_CONTENDERS } from '../token-contenders.mjs';
import { respond } from './respond.mjs';

respond(async ({ name, address, callsPerSecond, seconds, coldCallers, waitedMs }) => {
  const { create } = TOKEN_CONTENDERS[name];
  const agent = new http.Agent({ keepAlive: true });
  const { authorization } = await create(address);
  const outcome = { calls: 0, waited: 0, failed: 0, error: undefined };

  /** Sends the header to the API, which checks it. */
  function callApi(header) {
    return new Promise((resolve, reject) => {
      http
        .get(`${address}/api`, { agent, headers: { authorization: header } }, (response) =>
          response.resume().once('end', resolve),
        )
        .once('error', reject);
    });
  }

  async function oneCall() {
    outcome.calls += 1;
    const start = performance.now();
    try {
      const header = await authorization();
      if (performance.now() - start > waitedMs) outcome.waited += 1;
      await callApi(header);
    } catch (error) {
      outcome.failed += 1;
      outcome.error = String(error);
    }
  }

  /** From a token that is there already. */
  async function steady() {
    const pending = [];
    const total = callsPerSecond * seconds;
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const start = performance.now();
    for (let begun = 0; begun < total;) {
      const due = Math.min(total, Math.ceil(((performance.now() - start) / 1000) * callsPerSecond));
      // Each in a turn of its own.
      for (; begun < due; begun += 1)
        pending.push(new Promise((resolve) => setImmediate(() => resolve(oneCall()))));
      await sleep(1);
    }
    await Promise.all(pending);
    delay.disable();
    return { ...outcome, standstillMs: delay.max / 1e6 };
  }

  async function cold() {
    const newcomer = await create(`${address}-cold`);
    await Promise.all(Array.from({ length: coldCallers }, () => newcomer.authorization()));
    return {};
  }

  const questions = { 'first token': authorization, steady, cold };
  return { ready: {}, answer: (question) => questions[question]() };
});
