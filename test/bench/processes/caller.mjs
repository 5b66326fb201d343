// One contender of calls.mjs in a process of its own, as a host uses one client and not nine.
import { CALL_CONTENDERS } from '../call-contenders.mjs';
import { cpuPerCall, must } from '../harness.mjs';
import { respond } from './respond.mjs';

const CONCURRENCY = 20;

respond(async ({ name, api }) => {
  const { call } = await CALL_CONTENDERS[name](api);
  const { banks } = await call();
  must(banks.length === 16, `${name} did not bring the banks`);
  return { ready: {}, answer: (count) => cpuPerCall(call, count, CONCURRENCY) };
});
