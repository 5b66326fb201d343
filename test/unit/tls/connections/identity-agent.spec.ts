import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { type ServerResponse } from 'node:http';
import * as https from 'node:https';
import { Socket } from 'node:net';
import tls from 'node:tls';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import axios from 'axios';
import { IdentityAgent } from '../../../../lib/tls/connections/identity-agent.js';
import { createAuthority, type Authority, type Issued } from '../../../helpers/certificates.js';
import { FakeClock } from '../../../helpers/fake-clock.js';
import { standStill } from '../../../helpers/stand-still.js';
import { call, mtlsServer, until, type MtlsServer, type MtlsServerOptions } from '../mtls-server.js';
import { loadIdentity, tlsSettings } from '../tls-settings.js';

let authority: Authority;
let first: Issued;
let second: Issued;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  authority = await createAuthority();
  [first, second] = await Promise.all([authority.client('first'), authority.client('second')]);
});
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

async function server(options?: MtlsServerOptions): Promise<MtlsServer> {
  const started = await mtlsServer(authority, options);
  open.push(started);
  return started;
}

async function contextOf(
  client: Issued | undefined,
  chain: string | undefined = authority.chain,
): Promise<() => tls.SecureContext> {
  const pems = client ? { certificate: client.certificate, privateKey: client.key } : {};
  const { identity, faults } = await loadIdentity(tlsSettings({ ...pems, chain }));
  expect(faults).toEqual([]);
  return () => (identity as { apiContext: tls.SecureContext }).apiContext;
}

async function agent(client: Issued | undefined = first, settings = {}): Promise<IdentityAgent> {
  const made = new IdentityAgent(await contextOf(client), { maxSockets: 50, ...settings });
  open.push({ close: () => made.close(0) });
  return made;
}

/** Runs `count` calls with so many at a time. */
async function run(count: number, concurrency: number, one: () => Promise<unknown>): Promise<void> {
  let left = count;
  const worker = async () => {
    while (left-- > 0) await one();
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

describe('Connections', () => {
  it('500 calls at concurrency 20 make at most 20 handshakes', async () => {
    const { url, ...seen } = await server();
    const live = open[0] as MtlsServer;
    const used = await agent();
    await run(500, 20, () => call(url, used));
    expect(live.subjects).toHaveLength(500);
    expect(new Set(live.subjects)).toEqual(new Set(['first']));
    expect(live.handshakes).toBeLessThanOrEqual(20);
    expect(seen.handshakes).toBe(0);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('resumes its session after idle closing, %s', async (version) => {
    const live = await server({ minVersion: version, maxVersion: version, keepAliveTimeout: 0 });
    const used = await agent(first, { idleTimeoutMs: 30 });
    await call(live.url, used);
    await until(() => live.sockets.size === 0);
    expect((await call(live.url, used)).reused).toBe(false);
    expect([live.handshakes, live.resumed]).toEqual([2, 1]);
    expect(live.subjects).toEqual(['first', 'first']);
  });

  it('uses no connection again whose idle time ended while the process stood still', async () => {
    const live = await server({ keepAliveTimeout: 0 });
    const used = await agent(first, { idleTimeoutMs: 200 });
    await call(live.url, used);
    await until(() => Object.keys(used.freeSockets).length > 0);
    // Neither the timer of the connection nor the close of the server was seen when the next call begins.
    await new Promise((resolve) => setImmediate(resolve));
    standStill(250);
    expect((await call(live.url, used)).reused).toBe(false);
    expect(live.handshakes).toBe(2);
  });

  it("heeds the server's keep-alive hint, though its own idle time is longer", async () => {
    const live = await server({
      onRequest: (_request, response) => response.setHeader('Keep-Alive', 'timeout=1').end('{}'),
    });
    const used = await agent();
    await call(live.url, used);
    // A second is taken off the hint: nothing is left, so the connection is not kept.
    expect((await call(live.url, used)).reused).toBe(false);
  });

  it('does not cut, nor time out, a call that takes longer than the idle time', async () => {
    const waiting: ServerResponse[] = [];
    const live = await server({ onRequest: (_request, response) => void waiting.push(response) });
    const used = await agent(first, { idleTimeoutMs: 40 });
    for (let round = 0; round < 2; round++) {
      let timeouts = 0;
      const answered = new Promise<number | undefined>((resolve, reject) => {
        const request = https.request(live.url, { agent: used }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode));
        });
        request.on('timeout', () => timeouts++);
        request.on('error', reject).end();
      });
      await until(() => waiting.length === 1);
      await new Promise((resolve) => setTimeout(resolve, 120));
      waiting.pop()?.end('{}');
      expect(await answered).toBe(200);
      expect(timeouts).toBe(0);
    }
    expect(live.handshakes).toBe(1);
  });

  it("honours a request's own time-out, also on a connection used again and equal to the idle time", async () => {
    let answer = true;
    const live = await server({ onRequest: (_request, response) => void (answer && response.end('{}')) });
    const used = await agent(first, { idleTimeoutMs: 50 });
    await call(live.url, used);
    answer = false;
    await new Promise<void>((resolve, reject) => {
      const request = https.request(live.url, { agent: used, timeout: 50 }, () =>
        reject(new Error('answered')),
      );
      request.on('timeout', () => request.destroy()).on('error', () => resolve());
      request.end();
    });
  });

  it("a keep-alive hint does not shorten a request's own time-out on that connection", async () => {
    let delayMs = 0;
    const live = await server({
      onRequest: (_request, response) =>
        void setTimeout(() => response.setHeader('Keep-Alive', 'timeout=2').end('{}'), delayMs),
    });
    const used = await agent(first, { idleTimeoutMs: 1_600 });
    await call(live.url, used);
    delayMs = 1_200;
    let timeouts = 0;
    const answered = new Promise<boolean>((resolve, reject) => {
      const request = https.request(live.url, { agent: used, timeout: 1_600 }, (response) => {
        response.resume().on('end', () => resolve(request.reusedSocket));
      });
      request.on('timeout', () => timeouts++).on('error', reject);
      request.end();
    });
    expect([await answered, timeouts]).toEqual([true, 0]);
  });

  it('keeps to maxSockets', async () => {
    let most = 0;
    const live = await server({
      onRequest: (_request, response) => {
        most = Math.max(most, (open[0] as MtlsServer).sockets.size);
        setImmediate(() => response.end('{}'));
      },
    });
    const used = await agent(first, { maxSockets: 3 });
    await run(60, 20, () => call(live.url, used));
    expect(most).toBe(3);
    expect(live.handshakes).toBe(3);
  });

  it('opens no connection for calls that nobody waits for any more', async () => {
    let arrived = 0;
    const live = await server({ onRequest: () => void (arrived += 1) });
    const used = await agent(first, { maxSockets: 3 });
    const aborting = Array.from({ length: 60 }, () => new AbortController());
    const calls = aborting.map(({ signal }) =>
      call(live.url, used, { signal }).catch(({ code }: NodeJS.ErrnoException) => code),
    );
    await until(() => arrived === 3);
    for (const each of aborting) each.abort();
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ABORT_ERR']));
    await until(() => live.sockets.size === 0);
    expect([live.handshakes, Object.keys(used.requests)]).toEqual([3, []]);
    // One that is waited for gets a connection, behind others too.
    const ended = new AbortController();
    const dead = Array.from({ length: 6 }, () =>
      call(live.url, used, { signal: ended.signal }).catch(() => 'dead'),
    );
    const alive = call(live.url, used).catch(({ code }: NodeJS.ErrnoException) => code);
    await until(() => arrived === 6);
    ended.abort();
    await until(() => arrived === 7);
    await used.close(0);
    expect([await alive, ...(await Promise.all(dead))]).toEqual([
      'ECONNRESET',
      ...Array<string>(6).fill('dead'),
    ]);
  });

  it('shows the connections of the identity in use, as any agent does', async () => {
    const waiting: ServerResponse[] = [];
    const live = await server({ onRequest: (_request, response) => void waiting.push(response) });
    const used = await agent(first, { maxSockets: 1 });
    const calls = [call(live.url, used), call(live.url, used)];
    await until(() => waiting.length === 1);
    const name = used.getName({ host: '127.0.0.1', port: live.port });
    expect([used.sockets[name]?.length, used.requests[name]?.length]).toEqual([1, 1]);
    for (let turn = 0; turn < 2; turn++) {
      await until(() => waiting.length === 1);
      waiting.pop()?.end('{}');
    }
    await Promise.all(calls);
    await until(() => used.freeSockets[name]?.length === 1);
    expect(Object.keys(used)).not.toEqual(expect.arrayContaining(['sockets']));
    expect(live.handshakes).toBe(1);
  });

  it('serves axios with its own adapter', async () => {
    const live = await server();
    const used = await agent();
    const { status } = await axios.get(live.url, { httpsAgent: used, proxy: false });
    expect([status, live.subjects]).toEqual([200, ['first']]);
  });

  it('names a pool by where it goes, and joins no PEM', async () => {
    const used = await agent();
    const pems = { ca: authority.chain, cert: first.certificate, key: first.key };
    expect(used.getName({ host: 'api', port: 443, ...pems })).toBe('api:443:::');
    const from = { localAddress: '127.0.0.2', family: 4 };
    expect(used.getName({ host: 'api', port: 443, ...from })).toBe('api:443:127.0.0.2:4:');
    expect(used.getName({ host: 'api', port: 443, servername: 'a', ...pems })).not.toMatch('BEGIN');
  });

  it("hands on a request's options of its connection, and nothing of TLS but the server's name", async () => {
    const used = await agent();
    const connect = jest.spyOn(tls, 'connect').mockReturnValue(new Socket() as tls.TLSSocket);
    const allowed = {
      host: 'api.example',
      port: 443,
      servername: 'api.example',
      family: 4,
      hints: 1,
      lookup: () => undefined,
      localAddress: '127.0.0.1',
      localPort: 4_321,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: 20,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 1_000,
    };
    const refused = { key: 'x', ca: 'x', rejectUnauthorized: false, ALPNProtocols: ['x'] };
    used.createConnection({ ...allowed, ...refused });
    const { secureContext, ...given } = (connect.mock.calls[0] as unknown[])[0] as Record<string, unknown>;
    connect.mockRestore();
    expect(secureContext).toBeDefined();
    expect(given).toEqual({ ...allowed, rejectUnauthorized: true });
  });

  it('works with an intermediate as its only anchor', async () => {
    const live = await server();
    const used = new IdentityAgent(await contextOf(first, authority.intermediate.certificate), {
      maxSockets: 1,
    });
    open.push({ close: () => used.close(0) });
    expect((await call(live.url, used)).status).toBe(200);
  });
});

describe('The server is always verified', () => {
  const attempts: [string, https.RequestOptions & Record<string, unknown>][] = [
    ['nothing special', {}],
    ['rejectUnauthorized', { rejectUnauthorized: false }],
    ['checkServerIdentity', { checkServerIdentity: () => undefined, rejectUnauthorized: false }],
    ['a context of its own', { secureContext: tls.createSecureContext(), rejectUnauthorized: false }],
    ['pskCallback', { pskCallback: () => null, rejectUnauthorized: false }],
  ];

  it.each(attempts)('not switched off by %s: foreign authority', async (_name, options) => {
    const foreign = await createAuthority('Foreign');
    const live = await mtlsServer(foreign, { demandCertificate: false });
    open.push(live);
    const used = await agent();
    const trusting = { ...options, ca: foreign.chain };
    await expect(call(live.url, used, trusting)).rejects.toMatchObject({
      code: expect.stringMatching(/^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_)/),
    });
    expect(live.subjects).toEqual([]);
  });

  it.each(attempts)('not switched off by %s: wrong host name', async (_name, options) => {
    const live = await server();
    const used = await agent();
    const refused = call(live.url, used, { ...options, servername: 'elsewhere.example' });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    expect(live.subjects).toEqual([]);
  });

  it('not by NODE_TLS_REJECT_UNAUTHORIZED, nor by changing the options of the agent', async () => {
    const foreign = await mtlsServer(await createAuthority('Foreign'), { demandCertificate: false });
    open.push(foreign);
    const used = await agent();
    Object.assign(used.options, { rejectUnauthorized: false, ca: [] });
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      await expect(call(foreign.url, used)).rejects.toThrow(/self.signed|unable to/);
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
  });

  it('not by a session the request brings along', async () => {
    const live = await server();
    const session = await new Promise<Buffer>((resolve) => {
      const options = {
        port: live.port,
        host: '127.0.0.1',
        ca: authority.chain,
        cert: first.certificate,
        key: first.key,
      };
      const socket = tls.connect(options, () => socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'));
      socket.on('data', () => undefined).once('session', (made) => resolve(made));
      open.push({ close: async () => void socket.destroy() });
    });
    const used = await agent();
    const refused = call(live.url, used, { session, servername: 'elsewhere.example' });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });

  it('speaks TLS 1.2 at least, whatever is asked for', async () => {
    const live = await server({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' });
    const used = await agent();
    const options = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
    await expect(call(live.url, used, options)).rejects.toThrow(/alert protocol version/);
  });
});

it('speaks at least what the process says, also where that is TLS 1.3', async () => {
  const { DEFAULT_MIN_VERSION } = tls;
  const live = await server({ maxVersion: 'TLSv1.2' });
  tls.DEFAULT_MIN_VERSION = 'TLSv1.3';
  try {
    await expect(call(live.url, await agent())).rejects.toThrow(/alert protocol version/);
  } finally {
    tls.DEFAULT_MIN_VERSION = DEFAULT_MIN_VERSION;
  }
  expect((await call(live.url, await agent())).status).toBe(200);
});

describe('A new identity', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'serves new calls at once while those in flight finish on the old; then the old connections close, %s',
    async (version) => {
      const waiting: ServerResponse[] = [];
      const live = await server({
        minVersion: version,
        maxVersion: version,
        keepAliveTimeout: 60_000,
        onRequest: (_request, response) => void waiting.push(response),
      });
      const used = await agent();
      const before = [call(live.url, used), call(live.url, used)];
      await until(() => waiting.length === 2);
      waiting.shift()?.end('{}');
      await before[0];
      await until(() => Object.keys(used.freeSockets).length > 0);

      used.use(await contextOf(second));
      await until(() => live.sockets.size === 1);
      const after = call(live.url, used);
      await until(() => live.subjects.length === 3);
      expect(live.subjects).toEqual(['first', 'first', 'second']);
      for (const response of waiting.splice(0)) response.end('{}');
      expect((await before[1]).status).toBe(200);
      expect((await after).status).toBe(200);
      await until(() => live.sockets.size === 1);
      expect(live.resumed).toBe(0);

      const again = call(live.url, used);
      await until(() => waiting.length === 1);
      waiting.pop()?.end('{}');
      expect((await again).reused).toBe(true);
      expect(live.subjects.at(-1)).toBe('second');
    },
  );

  it('is not used by calls that already waited for a connection: they take those of the old one, and end them', async () => {
    const waiting: ServerResponse[] = [];
    const live = await server({ onRequest: (_request, response) => void waiting.push(response) });
    const used = await agent(first, { maxSockets: 1 });
    const calls = [call(live.url, used), call(live.url, used)];
    await until(() => waiting.length === 1);
    used.use(await contextOf(second));
    calls.push(call(live.url, used));
    for (let answered = 0; answered < 3; answered++) {
      await until(() => waiting.length > 0);
      waiting.shift()?.end('{}');
    }
    await Promise.all(calls);
    expect(live.subjects.sort()).toEqual(['first', 'first', 'second']);
    await until(() => live.sockets.size === 1);
  });

  it('has maxSockets of its own: calls in flight on the old one take no place, and free none', async () => {
    const waiting = new Map<string, ServerResponse>();
    const live = await server({ onRequest: ({ url }, response) => void waiting.set(String(url), response) });
    const used = await agent(first, { maxSockets: 1 });
    const old = call(`${live.url}/old`, used);
    await until(() => waiting.has('/old'));
    used.use(await contextOf(second));
    const [next, last] = ['next', 'last'].map((path) => call(`${live.url}/${path}`, used));
    await until(() => waiting.has('/next'));
    waiting.get('/old')?.end('{}');
    await old;
    expect(Object.values(used.requests)).toHaveLength(1);
    expect(live.subjects).toEqual(['first', 'second']);
    waiting.get('/next')?.end('{}');
    await next;
    await until(() => waiting.has('/last'));
    waiting.get('/last')?.end('{}');
    expect((await last)?.status).toBe(200);
    expect(live.handshakes).toBe(2);
  });

  it('is not used by a call that came before it, whose token may be bound to the old certificate', async () => {
    const live = await server();
    const used = await agent();
    const next = await contextOf(second);
    await call(live.url, used);
    // The connection is not free again yet.
    const before = call(live.url, used);
    used.use(next);
    expect((await before).status).toBe(200);
    await call(live.url, used);
    expect(live.subjects).toEqual(['first', 'first', 'second']);
    await until(() => live.sockets.size === 1);
  });

  it('is let go once its last call has ended and another one is in use', async () => {
    const used = await agent();
    const rotate = async (): Promise<WeakRef<tls.SecureContext>> => {
      const context = await contextOf(second);
      used.use(context);
      return new WeakRef(context());
    };
    const gone = await rotate();
    await rotate();
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await until(() => {
      collect();
      return gone.deref() === undefined;
    });
  });

  it('loses no call under load, four times over', async () => {
    const live = await server();
    const used = await agent();
    const contexts = [await contextOf(second), await contextOf(first)];
    let done = 0;
    const swaps = (async () => {
      for (let swap = 1; swap <= 4; swap++) {
        await until(() => done >= swap * 40);
        used.use(contexts[swap % 2]);
      }
    })();
    await Promise.all([
      swaps,
      run(200, 20, async () => {
        const { status } = await call(live.url, used);
        if (status === 200) done++;
      }),
    ]);
    expect(done).toBe(200);
    expect(new Set(live.subjects)).toEqual(new Set(['first', 'second']));
  }, 20_000);
});

describe('Closing', () => {
  it('closes idle connections at once, waits for calls in flight, takes no more', async () => {
    const waiting: ServerResponse[] = [];
    const live = await server({ onRequest: (_request, response) => void waiting.push(response) });
    const clock = new FakeClock();
    const used = await agent(first, { clock });
    const [quick, inFlight] = [call(live.url, used), call(live.url, used)];
    await until(() => waiting.length === 2);
    waiting[0].end('{}');
    await Promise.race([quick, inFlight]);
    await until(() => Object.keys(used.freeSockets).length > 0);
    const closed = used.close(60_000);
    await expect(call(live.url, used)).rejects.toMatchObject({ code: 'ERR_AGENT_CLOSED' });
    await until(() => live.sockets.size === 1);
    expect(clock.timers).toBe(1);
    waiting[1].end('{}');
    expect((await Promise.all([quick, inFlight])).map(({ status }) => status)).toEqual([200, 200]);
    await closed;
    expect(clock.timers).toBe(0);
    await until(() => live.sockets.size === 0);
  });

  it('a second close without a grace ends the first', async () => {
    const live = await server({ onRequest: () => undefined });
    const used = await agent();
    const outcome = call(live.url, used).catch((error: NodeJS.ErrnoException) => error.code);
    await until(() => live.subjects.length === 1);
    const [[socket]] = Object.values(used.sockets) as [[Socket]];
    const first = used.close(60_000);
    const second = used.close(0);
    expect(socket.destroyed).toBe(true);
    await Promise.all([first, second]);
    expect(await outcome).toBe('ECONNRESET');
  });

  it('a call that waits gets its connection within the grace', async () => {
    const waiting: ServerResponse[] = [];
    const live = await server({ onRequest: (_request, response) => void waiting.push(response) });
    const used = await agent(first, { maxSockets: 1 });
    const calls = Promise.all([call(live.url, used), call(live.url, used)]);
    await until(() => waiting.length === 1);
    const closed = used.close(60_000);
    waiting.pop()?.setHeader('connection', 'close').end('{}');
    await until(() => waiting.length === 1);
    waiting.pop()?.end('{}');
    expect((await calls).map(({ status }) => status)).toEqual([200, 200]);
    await closed;
    await until(() => live.sockets.size === 0);
  });

  it('closed, it takes no new identity and makes no connection', async () => {
    const live = await server();
    const used = await agent();
    await used.close(0);
    used.use(await contextOf(second));
    const made = used.createConnection({ host: '127.0.0.1', port: live.port });
    expect((await once(made, 'error'))[0]).toMatchObject({ code: 'ERR_AGENT_CLOSED' });
    await expect(call(live.url, used)).rejects.toMatchObject({ code: 'ERR_AGENT_CLOSED' });
    expect(live.sockets.size).toBe(0);
  });

  it('destroy() closes all connections, those of an old identity too; calls go on over new ones', async () => {
    const waiting: ServerResponse[] = [];
    const live = await server({ onRequest: (_request, response) => void waiting.push(response) });
    const used = await agent();
    const calls = [call(live.url, used)];
    await until(() => waiting.length === 1);
    for (const [rotation, next] of [second, first].entries()) {
      used.use(await contextOf(next));
      calls.push(call(live.url, used));
      await until(() => waiting.length === rotation + 2);
    }
    used.destroy();
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await until(() => live.sockets.size === 0);
    const again = call(live.url, used);
    await until(() => waiting.length === 4);
    waiting[3].end('{}');
    expect((await again).status).toBe(200);
  });

  it('cuts what is not done after the grace, waiting calls included', async () => {
    const live = await server({ onRequest: () => undefined });
    const used = await agent(first, { maxSockets: 1 });
    const calls = [call(live.url, used), call(live.url, used)];
    const outcomes = Promise.allSettled(calls);
    await until(() => live.subjects.length === 1);
    await used.close(20);
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await until(() => live.sockets.size === 0);
    expect(live.subjects).toHaveLength(1);
  });
});

it('shows no key to inspect or JSON, at any depth, with connections open; JSON also while a call waits', async () => {
  const held: ServerResponse[] = [];
  const live = await server({
    onRequest: ({ url }, response) => void (url === '/held' ? held.push(response) : response.end()),
  });
  const used = await agent(first, { maxSockets: 1 });
  await call(live.url, used);
  await until(() => Object.keys(used.freeSockets).length > 0);
  const idle = inspect(used, { depth: 20, showHidden: true, getters: true }) + JSON.stringify(used);
  const calls = Promise.allSettled([1, 2].map(() => call(`${live.url}/held`, used)));
  await until(() => held.length === 1 && Object.keys(used.requests).length === 1);
  const shown = idle + JSON.stringify(used);
  expect(shown).not.toMatch(/PRIVATE KEY|BEGIN CERT|"(sockets|freeSockets|requests)":/);
  expect(shown).not.toMatch(first.key.split('\n')[1]);
  await used.close(0);
  await calls;
});
