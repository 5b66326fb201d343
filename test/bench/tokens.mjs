// Tokens of 3 s from an endpoint that takes 100 ms: 200 calls/s for 12 s, then 1,000 callers at once without a token.
import { must, printTable, startProcess } from './harness.mjs';
import { TOKEN_CONTENDERS } from './token-contenders.mjs';

const LIFETIME_S = 3;
const DELAY_MS = 100;
/** An answer from a cache needs no turn of the event loop. A request takes 100 ms or more. */
const WAITED_MS = 20;
/** Milliseconds that a process may be stopped before its figures mean nothing: tokens live for 3 s. */
const STANDSTILL_MS = 150;

const load = { callsPerSecond: 200, seconds: 12, coldCallers: 1_000, waitedMs: WAITED_MS };

const server = await startProcess('tokens', { lifetimeS: LIFETIME_S, delayMs: DELAY_MS });
const contenders = [];
for (const name of Object.keys(TOKEN_CONTENDERS)) {
  const address = `http://127.0.0.1:${server.port}/${name}`;
  contenders.push({ name, ...(await startProcess('token-caller', { name, address, ...load })) });
}
for (const { ask } of contenders) await ask('first token');
const outcomes = await Promise.all(contenders.map(({ ask }) => ask('steady')));

const rows = [];
for (const [i, { name, ask, stop }] of contenders.entries()) {
  const { calls, waited, failed, error } = outcomes[i];
  must(failed === 0, `${failed} calls of ${name} failed: ${error}`);
  const { tokenRequests, expired, unknown } = await server.ask(name);
  must(unknown === 0, `${unknown} calls of ${name} came without a token of the endpoint`);
  await ask('cold');
  const { tokenRequests: coldRequests } = await server.ask(`${name}-cold`);
  stop();
  rows.push({
    contender: TOKEN_CONTENDERS[name].label,
    calls,
    [`token requests in ${load.seconds} s`]: tokenRequests,
    [`calls that waited (> ${WAITED_MS} ms)`]: waited,
    'expired tokens sent': expired,
    [`token requests of ${load.coldCallers} cold callers`]: coldRequests,
  });
}
printTable(
  `Token life ${LIFETIME_S} s, endpoint delay ${DELAY_MS} ms, ${load.callsPerSecond} calls/s each, all at the same time`,
  rows,
);
const standstillMs = Math.max(...outcomes.map((outcome) => outcome.standstillMs));
if (standstillMs > STANDSTILL_MS) {
  console.log(
    `Disturbed: a process stood still for up to ${standstillMs.toFixed(0)} ms. Run it again on a quieter machine.`,
  );
}
server.stop();
