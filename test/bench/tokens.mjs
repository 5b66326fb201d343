// Tokens of 3 s from an endpoint that takes 100 ms: 200 calls/s for 12 s, then 1,000 callers at once without a token.
import { must, publishTable, spread, startProcess } from './harness.mjs';
import { TOKEN_CONTENDERS } from './token-contenders.mjs';

const ROUNDS = 3;
const LIFETIME_S = 3;
const DELAY_MS = 100;
/** An answer from a cache needs no turn of the event loop. A request takes 100 ms or more. */
const WAITED_MS = 20;
/** Milliseconds that a process may be stopped before its figures mean nothing: tokens live for 3 s. */
const STANDSTILL_MS = 150;

const load = { callsPerSecond: 200, seconds: 12, coldCallers: 1_000, waitedMs: WAITED_MS };

const server = await startProcess('tokens', { lifetimeS: LIFETIME_S, delayMs: DELAY_MS });

/** All contenders at the same time, each in a process of its own. Resolves to one outcome for each. */
async function runRound(round) {
  const contenders = [];
  for (const name of Object.keys(TOKEN_CONTENDERS)) {
    const path = `${name}-${round}`;
    const address = `http://127.0.0.1:${server.port}/${path}`;
    contenders.push({ name, path, ...(await startProcess('token-caller', { name, address, ...load })) });
  }
  for (const { ask } of contenders) await ask('first token');
  const outcomes = await Promise.all(contenders.map(({ ask }) => ask('steady')));
  for (const [i, { name, path, ask, stop }] of contenders.entries()) {
    const { failed, error } = outcomes[i];
    must(failed === 0, `${failed} calls of ${name} failed: ${error}`);
    const { unknown, ...counts } = await server.ask(path);
    must(unknown === 0, `${unknown} calls of ${name} came without a token of the endpoint`);
    await ask('cold');
    const { tokenRequests: cold } = await server.ask(`${path}-cold`);
    stop();
    Object.assign(outcomes[i], counts, { cold });
  }
  return outcomes;
}

const rounds = [];
for (let round = 0; round < ROUNDS; round += 1) rounds.push(await runRound(round));

const rows = Object.values(TOKEN_CONTENDERS).map(({ label }, i) => {
  const spreadOf = (value) =>
    spread(
      rounds.map((outcomes) => value(outcomes[i])),
      1,
    );
  return {
    contender: label,
    'token requests in the life of a token': spreadOf(
      ({ tokenRequests }) => (tokenRequests * LIFETIME_S) / load.seconds,
    ),
    [`calls of ${load.callsPerSecond * load.seconds} that waited (> ${WAITED_MS} ms)`]: spreadOf(
      ({ waited }) => waited,
    ),
    'expired tokens sent': spreadOf(({ expired }) => expired),
    [`token requests of ${load.coldCallers} callers at once`]: spreadOf(({ cold }) => cold),
  };
});
publishTable(
  `Tokens of ${LIFETIME_S} s from an endpoint that takes ${DELAY_MS} ms, ${load.callsPerSecond} calls/s`,
  rows,
);
const standstillMs = Math.max(...rounds.flat().map((outcome) => outcome.standstillMs));
if (standstillMs > STANDSTILL_MS) {
  console.log(
    `Disturbed: a process stood still for up to ${standstillMs.toFixed(0)} ms. Run it again on a quieter machine.`,
  );
}
server.stop();
