// One contender of calls.mjs in a process of its own, as a host uses one client and not nine.
import { CALL_CONTENDERS } from '../call-contenders.mjs';
import { cpuPerCall, must } from '../harness.mjs';
import { respond } from './respond.mjs';

respond(async ({ name, api, lib }) => {
  const { call } = await CALL_CONTENDERS[name](api, lib);
  const { banks } = await call();
  must(banks.length === 16, `${name} did not bring the banks`);
  const answer = async ({ count, concurrency }) => {
    const latencies = [];
    const timed = async () => {
      const start = performance.now();
      await call();
      latencies.push(performance.now() - start);
    };
    return { cpu: await cpuPerCall(timed, count, concurrency), latencies };
  };
  return { ready: {}, answer };
});
