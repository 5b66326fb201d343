// Which POSTs end in doubt, because the server closes the idle connection while they are on their way: as it is now beside another
// commit, in the same run. Nearly all of the time is waiting.
//
//   doubts.mjs <URL of the other build>
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { built, printTable, startProcess } from './harness.mjs';
import { startNginx } from './nginx.mjs';
import { mtlsOptions } from './service.mjs';

const [before] = process.argv.slice(2);
const ROUND_TRIP_MS = 60;
const IDLE_S = [2, 5, 6, 10, 75];

async function makeClient(origin, pems, lib) {
  const { createServiceClient } = await built('index.js', lib);
  const client = await createServiceClient(mtlsOptions({ origin, pems }, { http: { timeout: 10_000 } }));
  return {
    get: () => client.http.get('/banks/v1'),
    /** Whether the POST ended in doubt. */
    post: () =>
      client.http.post('/customers/v1', {}).then(
        () => false,
        (error) => error.outcomeUnknown,
      ),
    close: () => client.close(),
  };
}

/** Waits until a POST sent now arrives just after the server's close: its FIN is on its way for half of a round trip. */
const aim = (seconds, index) => sleep(seconds * 1_000 - ROUND_TRIP_MS + 5 + (index % 10) * 5);

/** POSTs one after the other, each aimed at the close. @param beforeEach runs before each of them */
const aimed = (seconds, count, beforeEach) => async (client) => {
  let doubts = 0;
  await client.get();
  for (let index = 0; index < count; index += 1) {
    await beforeEach?.(client);
    await aim(seconds, index);
    if (await client.post()) doubts += 1;
  }
  return doubts;
};

/** The same on a host that makes a GET each 45 s. */
const aimedBesideGets = (seconds, count) =>
  aimed(seconds, count, async (client) => {
    await sleep(45_000);
    await client.get();
  });

/** POSTs after random idle times, and GETs between them if `getsEachS` is set. */
const atRandom = (count, getsEachS) => async (client) => {
  let doubts = 0;
  await client.get();
  let timer;
  if (getsEachS) timer = setInterval(() => client.get().catch(() => undefined), getsEachS * 1_000);
  for (let index = 0; index < count; index += 1) {
    await sleep(1_000 + Math.random() * 19_000);
    if (await client.post()) doubts += 1;
  }
  clearInterval(timer);
  return doubts;
};

/** By their titles: to which address, what one client does, how many POSTs it makes, and how many clients there are. */
function scenes({ idle, mixed, rolling, restarted, seldomRestarted }) {
  return [
    ...IDLE_S.map((seconds) => {
      const each = { 2: 72, 5: 18, 6: 18, 10: 9, 75: 1 }[seconds];
      return [`closes after ${seconds} s`, idle[seconds], aimed(seconds, each), each, 72 / each];
    }),
    ...[5, 6, 10, 75].map((seconds) => [
      `closes after ${seconds} s, GETs each 45 s`,
      idle[seconds],
      aimedBesideGets(seconds, 1),
      1,
      72,
    ]),
    ['backends of 75 s and 10 s, GETs each 45 s', mixed, aimedBesideGets(10, 2), 2, 36],
    ['75 s replaced by 10 s every 30 s', rolling, aimedBesideGets(10, 2), 2, 36],
    ['reload each second', restarted, atRandom(10), 10, 50],
    ['reload each 30 s, GETs each 10 s', seldomRestarted, atRandom(10, 10), 10, 50],
  ];
}

if (spawnSync('nginx', ['-v']).error) console.log('There is no nginx.');
else {
  const { CertificateAuthority } = await built('testing/certificate-authority.js');
  const authority = await CertificateAuthority.create('Bench');
  const { certificate, privateKey } = await authority.issue({ client: true }, { commonName: 'bench' });
  const pems = { cert: certificate, key: privateKey, ca: authority.chain };
  const nginx = await startNginx(
    authority,
    IDLE_S.map((seconds) => `keepalive_timeout ${seconds}s;`),
  );
  const others = [await startNginx(authority, ['']), await startNginx(authority, [''])];
  const [, , , tenPort, longPort] = nginx.ports;
  const relayed = [...nginx.ports, [longPort, tenPort], [longPort], others[0].ports, others[1].ports];
  const relays = await Promise.all(
    relayed.map((port) => startProcess('delay', { port, roundTripsMs: [ROUND_TRIP_MS] })),
  );
  const origins = relays.map(({ ports }) => `https://localhost:${ports[ROUND_TRIP_MS][0]}`);
  const idle = Object.fromEntries(IDLE_S.map((seconds, index) => [seconds, origins[index]]));
  const [mixed, rolling, restarted, seldomRestarted] = origins.slice(IDLE_S.length);
  let isLong = true;
  const timers = [
    setInterval(() => others[0].reload(), 1_000),
    setInterval(() => others[1].reload(), 30_000),
    setInterval(() => {
      isLong = !isLong;
      void relays[IDLE_S.length + 1].ask({ backends: [isLong ? longPort : tenPort] });
    }, 30_000),
  ];
  const builds = { now: undefined, before };
  try {
    const rows = scenes({ idle, mixed, rolling, restarted, seldomRestarted }).map(
      async ([scene, origin, run, each, clients]) => {
        const row = { scene, POSTs: each * clients, before: 0, now: 0 };
        await Promise.all(
          Object.entries(builds).map(async ([name, lib]) => {
            const doubts = Array.from({ length: clients }, async (_, index) => {
              const client = await makeClient(origin, pems, lib);
              await sleep(index * 70);
              const count = await run(client);
              await client.close();
              return count;
            });
            row[name] = (await Promise.all(doubts)).reduce((sum, count) => sum + count, 0);
          }),
        );
        return row;
      },
    );
    printTable('POSTs in doubt', await Promise.all(rows));
  } finally {
    timers.forEach(clearInterval);
    for (const each of [nginx, ...others, ...relays]) each.stop();
  }
}
