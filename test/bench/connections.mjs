// CPU of the client process for a new mTLS connection, and what the pool's name costs on every call.
import https from 'node:https';
import { createSecureContext } from 'node:tls';
import {
  alternate,
  cpuPerCall,
  must,
  microsecondsOf,
  printFigure,
  printTable,
  publishTable,
  ratio,
  ratioRows,
  round,
} from './harness.mjs';
import { APP_TOKEN, mtlsOptions, startApi, startModule } from './service.mjs';

const STOCK = 'https.Agent({ cert, key, ca })';
const OURS = 'auth.httpsAgent';

const api = await startApi();
const { pems } = api;
const { auth, close } = await startModule(mtlsOptions(api));
const agents = {
  [OURS]: auth.httpsAgent,
  [STOCK]: new https.Agent({ ...pems, keepAlive: true }),
  [`${STOCK}, no sessions`]: new https.Agent({ ...pems, keepAlive: true, maxCachedSessions: 0 }),
  'https.Agent({ secureContext })': new https.Agent({
    secureContext: createSecureContext(pems),
    keepAlive: true,
  }),
};

/** A call whose answer ends the connection. */
function callOnce(agent) {
  const headers = { 'service-app-token': APP_TOKEN };
  return new Promise((resolve, reject) => {
    https
      .get(`${api.origin}/close`, { agent, headers }, (response) => {
        if (response.statusCode !== 200) reject(new Error(`Answered ${response.statusCode}`));
        response.resume().once('close', resolve);
      })
      .once('error', reject);
  });
}

const contenders = Object.entries(agents).map(([name, agent]) => ({
  name,
  call: () => callOnce(agent),
  block: (count) => cpuPerCall(() => callOnce(agent), count, 4),
}));

const sessions = [];
for (const { name, call } of contenders) {
  await api.ask({});
  for (let i = 0; i < 20; i += 1) await call();
  const { connections, resumed } = await api.ask({});
  must(connections === 20, `${name} made ${connections} connections for 20 calls`);
  sessions.push([name, `${resumed}/${connections}`]);
}
const samples = await alternate(contenders, { rounds: 11, calls: 60 });

const rows = ratioRows(samples, 'CPU us', STOCK).map((row, i) => ({ ...row, resumed: sessions[i][1] }));
publishTable('A new mTLS connection and one GET over it, 4 at a time: CPU of the client', rows, [
  'contender',
  `/ ${STOCK}`,
  'resumed',
]);
printFigure(`CPU of a new connection, ${OURS} / ${STOCK}`, round(ratio(samples, OURS, STOCK), 2), 0.55);

const target = { host: 'localhost', port: api.port, servername: 'localhost' };
const nameRows = [OURS, STOCK].map((name) => {
  // What Node hands it on every call: the request's options with the agent's.
  const options = { ...target, ...agents[name].options };
  return {
    agent: name,
    'us a call': round(
      microsecondsOf(() => agents[name].getName(options)),
      2,
    ),
  };
});
printTable('agent.getName()', nameRows);

await close();
for (const agent of Object.values(agents)) agent.destroy();
api.stop();
