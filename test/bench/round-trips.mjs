// How many round trips a call waits for: nginx as it is by default (idle connections live for 75 s, which it does not announce),
// behind a relay that makes it a distant server. Ratios alone; a cell is the median of three clients, the least and the most.
import got from 'got';
import { spawnSync } from 'node:child_process';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { built, publishTable, spread, startProcess } from './harness.mjs';
import { startNginx } from './nginx.mjs';
import { APP_TOKEN, mtlsOptions } from './service.mjs';

const ROUND_TRIP_MS = 60;
const FAR_MS = 200;
const CLIENTS = 3;
/** How long a server like gunicorn's gthread worker keeps an idle connection, without a hint. */
const HASTY_S = 2;
const IDLE_S = [1, 3, 10, 40, 58];
const CLIENT_ID = '7d1f6a4e-3c52-4e0b-9a55-0f8f6e1c2b3a';
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

const token = (life) =>
  `return 200 '{"access_token":"${'x'.repeat(600)}","token_type":"bearer","expires_in":${life}}';`;
const SERVERS = [
  `ssl_protocols TLSv1.3; ssl_client_certificate ca.pem; ssl_verify_client optional;
  location /oauth2/token { ${token(3600)} }
  location /short/oauth2/token { ${token(5)} }`,
  `keepalive_timeout ${HASTY_S}s;`,
];

/** This module. `life`: of its tokens, in seconds. */
async function ours(origin, api, { oauth = false, isShort = false, idleTimeout } = {}) {
  const { createServiceClient } = await built('index.js');
  const { Logger } = await import('@nestjs/common');
  Logger.overrideLogger(['error', 'warn', 'fatal']);
  const { tls, ...options } = mtlsOptions({ origin, pems: api.pems });
  let pems = tls;
  const client = await createServiceClient({
    ...options,
    http: { idleTimeout },
    ...(oauth && {
      authentication: 'oauth',
      urls: { baseUrl: origin, authUrl: isShort ? `${api.authOrigin}/short` : api.authOrigin },
      oauth: { clientId: CLIENT_ID, clientSecret: 'secret' },
    }),
    tls: () => pems,
  });
  return {
    get: () => client.http.get('/banks/v1'),
    post: () => client.http.post('/customers/v1', {}),
    session: (customer_id) => client.sdk.sessionParameters({ customer_id }),
    rotate: async () => {
      pems = api.otherTls;
      await client.auth.reloadCertificate();
    },
    close: () => client.close(),
  };
}

/** Clients of `send(method, path, headers, body)`, and a token in a variable. */
function handWritten(make) {
  return async (origin, api, { oauth = false, isShort = false } = {}) => {
    let { send, close } = make(origin, api.pems);
    let token;
    let endsAt = -Infinity;
    const { authOrigin } = api;
    const request = (path) => send('POST', path, FORM, 'grant_type=client_credentials', authOrigin);
    const headers = async () => {
      if (!oauth) return { 'service-app-token': APP_TOKEN };
      if (performance.now() >= endsAt) {
        token = await request(isShort ? '/short/oauth2/token' : '/oauth2/token');
        endsAt = performance.now() + token.expires_in * 1_000;
      }
      return { authorization: `Bearer ${token.access_token}` };
    };
    return {
      get: async () => send('GET', '/banks/v1', await headers()),
      post: async () =>
        send('POST', '/customers/v1', { ...(await headers()), 'content-type': 'application/json' }, '{}'),
      session: () => request('/oauth2/token'),
      rotate: async () => {
        await close();
        ({ send, close } = make(origin, api.otherPems));
      },
      close: () => close(),
    };
  };
}

const CONTENDERS = {
  'nestjs-service': ours,
  undici: handWritten((origin, pems) => {
    const dispatcher = new Agent({ connect: pems });
    return {
      send: async (method, path, headers, body, at = origin) =>
        (await request(at + path, { dispatcher, method, headers, body })).body.json(),
      close: () => dispatcher.close(),
    };
  }),
  got: handWritten((origin, pems) => {
    // Like Node's https.globalAgent, which got uses, but not shared with the other clients here.
    const agent = new https.Agent({ ...pems, keepAlive: true, timeout: 5_000 });
    const client = got.extend({ retry: { limit: 0 }, agent: { https: agent } });
    return {
      send: (method, path, headers, body, at = origin) => client(at + path, { method, headers, body }).json(),
      close: () => agent.destroy(),
    };
  }),
  'https.Agent': handWritten((origin, pems) => {
    const agent = new https.Agent({ ...pems, keepAlive: true });
    const send = (method, path, headers, body, at = origin) =>
      new Promise((resolve, reject) => {
        const request = https.request(at + path, { agent, method, headers }, (response) => {
          const chunks = [];
          response.on('data', (chunk) => chunks.push(chunk));
          response.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString())));
        });
        request.on('error', reject).end(body);
      });
    return { send, close: () => agent.destroy() };
  }),
};

/** By their titles: what comes before, and the call that is measured. */
const idle = (method, seconds) => ({
  run: async (client, measure) => {
    await client[method]();
    await sleep(seconds * 1_000);
    await measure(() => client[method]());
  },
});
/** A POST on a host that makes a GET now and then. */
const besideGets = (everyS, idleS) => ({
  run: async (client, measure) => {
    for (let count = 0; count < 3; count += 1) {
      await client.get();
      await sleep((count < 2 ? everyS : idleS) * 1_000);
    }
    await measure(() => client.post());
  },
});
const IDLE_SCENES = ['get', 'post'].flatMap((method) =>
  IDLE_S.map((seconds) => [`${method.toUpperCase()} after ${seconds} s`, idle(method, seconds)]),
);
const LEARNED_SCENES = [
  ['GETs each 45 s, POST after 10 s', besideGets(45, 10)],
  ['GETs each 45 s, POST after 20 s', besideGets(45, 20)],
  ['GETs each 20 s, POST after 9 s', besideGets(20, 9)],
  ['GETs each 20 s, POST after 20 s', besideGets(20, 20)],
  [
    'POSTs alone, each 20 s',
    {
      run: async (client, measure) => {
        for (let count = 0; count < 3; count += 1) {
          await client.post();
          await sleep(20_000);
        }
        await measure(() => client.post());
      },
    },
  ],
];
const OTHER_SCENES = [
  ['first call, OAuth', { oauth: true, run: (client, measure) => measure(() => client.get()) }],
  [
    'token expired, after 6 s',
    {
      oauth: true,
      isShort: true,
      run: async (client, measure) => {
        await client.get();
        await sleep(6_000);
        await measure(() => client.get());
      },
    },
  ],
  [
    'session of a new customer, after 30 s',
    {
      oauth: true,
      run: async (client, measure) => {
        await client.session('c-1');
        await sleep(30_000);
        await measure(() => client.session('c-2'));
      },
    },
  ],
  [
    'after a rotation',
    {
      run: async (client, measure) => {
        await client.get();
        await client.rotate();
        await measure(() => client.get());
      },
    },
  ],
];

/** The clients are made first, as that takes CPU. Then they run beside each other, begun one after the other: they only wait. */
async function table(title, scenes, api, roundTripMs) {
  const [origin, authOrigin] = api.ports[roundTripMs].map((port) => `https://localhost:${port}`);
  const samples = [];
  for (const [contender, make] of Object.entries(CONTENDERS))
    for (const [scene, { run, ...options }] of scenes)
      for (let count = 0; count < CLIENTS; count += 1)
        samples.push({ contender, scene, run, client: await make(origin, { ...api, authOrigin }, options) });
  const measured = samples.map(async ({ run, client }, index) => {
    await sleep(250 * index);
    let tookMs = NaN;
    await run(client, async (call) => {
      const begun = performance.now();
      await call();
      tookMs = performance.now() - begun;
    });
    await client.close();
    return tookMs / roundTripMs;
  });
  const took = await Promise.all(measured);
  const cell = (contender, scene) =>
    spread(
      took.filter((_, i) => samples[i].contender === contender && samples[i].scene === scene),
      1,
    );
  const rows = Object.keys(CONTENDERS).map((contender) => ({
    contender,
    ...Object.fromEntries(scenes.map(([scene]) => [scene, cell(contender, scene)])),
  }));
  publishTable(`${title}: round trips of ${roundTripMs} ms`, rows);
}

/** POSTs that leave when the server is about to close their connection: its FIN is on its way for half a round trip. */
async function aimedPosts(api) {
  const origin = `https://localhost:${api.hastyPorts[ROUND_TRIP_MS][0]}`;
  const rows = [undefined, 1_000].map(async (idleTimeout) => {
    const aimed = Array.from({ length: 72 }, async (_, index) => {
      const client = await ours(origin, { ...api, authOrigin: origin }, { idleTimeout });
      await sleep(50 * index);
      await client.get();
      await sleep(HASTY_S * 1_000 - ROUND_TRIP_MS + (index % 12) * 5);
      const isInDoubt = await client.post().then(
        () => false,
        (error) => error.outcomeUnknown,
      );
      await client.close();
      return isInDoubt;
    });
    const inDoubt = (await Promise.all(aimed)).filter(Boolean).length;
    return { 'http.idleTimeout': idleTimeout ?? 'default', 'in doubt': `${inDoubt} of ${aimed.length}` };
  });
  publishTable(
    `POSTs aimed at a server that closes after ${HASTY_S} s without a hint`,
    await Promise.all(rows),
  );
}

if (spawnSync('nginx', ['-v']).error) console.log('There is no nginx.');
else {
  const { CertificateAuthority } = await built('testing/certificate-authority.js');
  const authority = await CertificateAuthority.create('Bench');
  const issued = await Promise.all(
    ['one', 'other'].map((commonName) => authority.issue({ client: true }, { commonName })),
  );
  const [pems, otherPems] = issued.map(({ certificate, privateKey }) => ({
    cert: certificate,
    key: privateKey,
    ca: authority.chain,
  }));
  const otherTls = { certificate: otherPems.cert, privateKey: otherPems.key, chain: otherPems.ca };
  const nginx = await startNginx(authority, SERVERS);
  const roundTripsMs = [ROUND_TRIP_MS, FAR_MS];
  const [delay, hasty] = await Promise.all(
    nginx.ports.map((port) => startProcess('delay', { port, roundTripsMs })),
  );
  const api = { ports: delay.ports, hastyPorts: hasty.ports, pems, otherPems, otherTls };
  try {
    await table('After a quiet time', IDLE_SCENES, api, ROUND_TRIP_MS);
    await table('After a quiet time, for a POST without a key', LEARNED_SCENES, api, ROUND_TRIP_MS);
    for (const ms of roundTripsMs) await table('New connections', OTHER_SCENES, api, ms);
    await aimedPosts(api);
  } finally {
    delay.stop();
    hasty.stop();
    nginx.stop();
  }
}
