// Builds of the module beside each other in one process. They share its compiled axios and node:https, its heap and its
// neighbours on the machine, so that smaller differences show than between two processes.
import { CALL_CONTENDERS } from '../call-contenders.mjs';
import { alternate, cpuPerCall } from '../harness.mjs';
import { respond } from './respond.mjs';

const ROUNDS = 40;

respond(async ({ is, api, builds }) => {
  const calls = await Promise.all(builds.map(({ lib }) => CALL_CONTENDERS[is](api, lib)));
  const answer = async ({ concurrency }) => {
    const contenders = builds.map(({ name }, i) => ({
      name,
      block: (count) => cpuPerCall(calls[i].call, count, concurrency),
    }));
    const samples = await alternate(contenders, {
      rounds: ROUNDS,
      calls: Math.max(400, 5 * concurrency),
      warmUp: 3_000,
    });
    return [...samples];
  };
  return { ready: {}, answer };
});
