import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';
import tls from 'node:tls';
import { type ServiceHttpOptions } from 'nestjs-service';
import { Secret } from '../../../lib/config/secret.js';
import { exchange } from '../../../lib/exchange/exchange.js';
import { type ExchangeRequest } from '../../../lib/exchange/io.js';
import { plainConnector, tlsConnector } from '../../../lib/tls/connections/connectors.js';
import { KeepAliveAgent } from '../../../lib/tls/connections/keep-alive-agent.js';
import { createAuthority, type Authority } from '../../helpers/certificates.js';
import { startConnectProxy } from '../../helpers/connect-proxy.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { startModule } from '../../helpers/start-module.js';
import { until } from '../../helpers/until.js';

type Way = 'plain http' | 'TLS' | 'a proxy';
const WAYS: Way[] = ['plain http', 'TLS', 'a proxy'];
/** How the server ends a connection. */
type End = 'FIN' | 'reset';
const ENDS: End[] = ['FIN', 'reset'];
/** How the server treats a request: it answers, or ends the connection, or says nothing, or ends it in the middle of a response. */
type Treatment = 'answer' | End | 'silence' | 'cut';

let authority: Authority;
const open: (() => unknown)[] = [];

beforeAll(async () => {
  authority = await createAuthority();
});
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

function endSocket(socket: net.Socket, how: End): void {
  if (how === 'FIN') socket.end();
  else socket.resetAndDestroy();
}

async function listen(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(() => server.close());
  return (server.address() as net.AddressInfo).port;
}

interface Setup {
  way?: Way;
  idleTimeoutMs?: number;
  maxSockets?: number;
  /** The server's Keep-Alive header. */
  hint?: string;
}

/** A server, and an agent with a fake clock. */
async function setUp({ way = 'plain http', idleTimeoutMs, maxSockets = 10, hint }: Setup = {}) {
  const clock = new FakeClock();
  /** The sockets of the server, by the TCP connections below TLS. */
  const sockets = new Set<net.Socket>();
  let treatment: Treatment = 'answer';
  let connections = 0;
  const isPlain = way === 'plain http';
  const serve = (socket: net.Socket): void => {
    const raw = [...sockets].at(-1) as net.Socket;
    socket
      .on('error', () => undefined)
      .on('data', () => {
        if (treatment === 'FIN' || treatment === 'reset') return endSocket(isPlain ? socket : raw, treatment);
        if (treatment === 'silence') return;
        const header = hint === undefined ? '' : `Keep-Alive: ${hint}\r\n`;
        const length = treatment === 'cut' ? 10 : 2;
        socket.write(`HTTP/1.1 200 OK\r\n${header}Content-Length: ${length}\r\n\r\n{}`);
        if (treatment === 'cut') socket.end();
      });
  };
  const { serverChain: cert, server: pair } = authority;
  const server = isPlain ? net.createServer() : tls.createServer({ cert, key: pair.key });
  server.on('connection', (socket: net.Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
  });
  server.on(isPlain ? 'connection' : 'secureConnection', serve);
  const port = await listen(server);
  open.push(() => sockets.forEach((socket) => socket.destroy()));
  const proxy = way === 'a proxy' ? await startConnectProxy() : undefined;
  if (proxy) open.push(() => proxy.stop());
  const connector = (): Parameters<KeepAliveAgent['switchConnector']>[0] => {
    const context = tls.createSecureContext({ ca: authority.chain });
    const settings = { proxyFor: () => proxy && new Secret(proxy.url) };
    return isPlain ? plainConnector() : tlsConnector(() => context, settings);
  };
  const settings = { maxSockets, clock, idleTimeoutMs };
  const agent = new KeepAliveAgent(connector(), settings, isPlain ? 'http:' : 'https:');
  open.push(() => agent.close(0));
  const url = new URL(`${isPlain ? 'http' : 'https'}://127.0.0.1:${port}`);
  const idle = () => Object.values(agent.freeSockets).flat() as net.Socket[];
  const send = async (method: 'GET' | 'POST', more: Partial<ExchangeRequest> = {}): Promise<boolean> => {
    const before = connections;
    const limits = { timeoutMs: 30_000, maxResponseBytes: 1_000, headers: {} };
    const mayUseOlderConnection = method === 'GET';
    await exchange({ url, method, agent, mayUseOlderConnection, ...limits, ...more });
    const isReused = connections === before;
    await until(() => idle().length > 0);
    return isReused;
  };
  return {
    agent,
    url,
    clock,
    idle,
    sockets,
    connector,
    connections: () => connections,
    treat: (next: Treatment) => void (treatment = next),
    /** Sends a request; resolves with whether it reused a connection. */
    get: (more?: Partial<ExchangeRequest>) => send('GET', more),
    post: (more?: Partial<ExchangeRequest>) => send('POST', more),
    /** Makes the server lose a request that arrives after so long an idle time. */
    lose: async (idleMs: number, how: End = 'FIN', method: 'GET' | 'POST' = 'POST') => {
      await clock.advance(idleMs);
      treatment = how;
      await expect(send(method)).rejects.toMatchObject({ kind: 'reset', phase: 'sent', reusedSocket: true });
      treatment = 'answer';
      await until(() => sockets.size === 0);
    },
    /** Makes the server end all idle connections at this age. */
    endIdle: async (ageMs: number, how: End = 'FIN') => {
      await clock.advance(ageMs);
      for (const socket of sockets) endSocket(socket, how);
      await until(() => sockets.size === 0 && idle().length === 0);
      await settle();
    },
  };
}
type Made = Awaited<ReturnType<typeof setUp>>;

/** Checks, to the millisecond, after which idle time a POST still reuses a connection. Sends three POSTs. */
async function expectLimit({ clock, post }: Made, limitMs: number): Promise<void> {
  await post();
  await clock.advance(limitMs);
  expect(await post()).toBe(true);
  await clock.advance(limitMs + 1);
  expect(await post()).toBe(false);
}

describe('What a connection has proven', () => {
  it.each(WAYS)(
    'lets a POST reuse it after half of the idle time after which it has answered a GET, over %s',
    async (way) => {
      const made = await setUp({ way });
      await made.get();
      await made.clock.advance(45_000);
      expect(await made.get()).toBe(true);
      await made.clock.advance(22_500);
      expect(await made.post()).toBe(true);
      await made.clock.advance(22_501);
      expect(await made.post()).toBe(false);
    },
  );

  it('also comes from the answer to a request of the host application, which keeps to it too', async () => {
    const { agent, url, clock, get, idle, connections } = await setUp();
    const own = async () => {
      const request = http.get(url, { agent }, (response) => response.resume());
      await once(request, 'close');
      await until(() => idle().length > 0);
    };
    await get();
    await clock.advance(20_000);
    await get();
    await clock.advance(10_000);
    await own();
    await clock.advance(9_000);
    await own();
    expect(connections()).toBe(1);
    await clock.advance(10_001);
    await own();
    expect(connections()).toBe(2);
  });

  it('says nothing about another connection to the same origin', async () => {
    const { clock, get, post, idle, connections } = await setUp();
    await Promise.all([get(), get()]);
    await until(() => idle().length === 2);
    await clock.advance(40_000);
    await get();
    // Of two idle connections, one has proven 40 s.
    await clock.advance(10_000);
    await Promise.all([post(), post()]);
    expect(connections()).toBe(3);
  });

  it('never comes from a POST that is the first to try: POSTs alone, one every 20 s, connect each time', async () => {
    const { clock, post } = await setUp();
    for (let count = 0; count < 5; count += 1) {
      expect(await post()).toBe(false);
      await clock.advance(20_000);
    }
  });

  it('counts for 10 minutes; then the longest idle time of the last 10 minutes counts', async () => {
    const { clock, get, post } = await setUp();
    await get();
    await clock.advance(50_000);
    await get();
    const pass = async (times: number) => {
      for (let count = 0; count < times; count += 1) {
        await clock.advance(4_000);
        expect(await post()).toBe(true);
      }
    };
    await pass(75);
    await clock.advance(30_000);
    await get();
    await pass(65);
    // 50 s were proven 590 s ago.
    await clock.advance(9_000);
    expect(await post()).toBe(true);
    await pass(2);
    await clock.advance(15_000);
    expect(await post()).toBe(true);
    await clock.advance(15_001);
    expect(await post()).toBe(false);
  });

  it.each<[string, Setup, number]>([
    ['above http.idleTimeout, even if that is 4,000', { idleTimeoutMs: 4_000 }, 4_000],
    ['above the time that the server announces', { hint: 'timeout=10' }, 9_000],
  ])('is not used %s', async (_, settings, limitMs) => {
    const made = await setUp(settings);
    await made.get();
    for (let count = 0; count < 3; count += 1) {
      await made.clock.advance(settings.hint === undefined ? 45_000 : 9_000);
      expect(await made.get()).toBe(true);
    }
    await made.clock.advance(limitMs);
    expect(await made.post()).toBe(true);
    await made.clock.advance(limitMs + 1);
    expect(await made.post()).toBe(false);
  });

  it.each([
    ['has jumped ahead', 40_000, true],
    ['was set back', -40_000, false],
  ])('is not longer after the wall clock %s', async (_, ms, isReused) => {
    const { clock, get, post } = await setUp();
    await get();
    clock.jump(ms);
    expect(await get()).toBe(isReused);
    await clock.advance(4_001);
    expect(await post()).toBe(false);
  });

  it('is gone with the connection when the client certificate changes', async () => {
    const { agent, connector, clock, get, post } = await setUp({ way: 'TLS' });
    await get();
    await clock.advance(45_000);
    await get();
    agent.switchConnector(connector());
    await get();
    await clock.advance(4_001);
    expect(await post()).toBe(false);
  });
});

describe('A client learns how long connections last', () => {
  const VARIABLE = 'SERVICE_HTTP_IDLE_TIMEOUT';
  afterEach(() => {
    jest.restoreAllMocks();
    delete process.env[VARIABLE];
  });

  it.each<[string, ServiceHttpOptions, string | undefined, boolean]>([
    ['if http.idleTimeout is left out', {}, undefined, true],
    ['if http.idleTimeout is undefined', { idleTimeout: undefined }, undefined, true],
    ['but not if http.idleTimeout is 4,000', { idleTimeout: 4_000 }, undefined, false],
    ['but not if the variable is 4000', {}, '4000', false],
  ])('%s', async (_, options, variable, learns) => {
    let connections = 0;
    const server = http.createServer((request, response) => {
      request.resume();
      response.end('{}');
    });
    // Without a hint, and without an end of idle connections.
    server.keepAliveTimeout = 0;
    server.on('connection', () => (connections += 1));
    const sandboxUrl = `http://127.0.0.1:${await listen(server)}`;
    if (variable !== undefined) process.env[VARIABLE] = variable;
    const { module, http: service } = await startModule({
      environment: 'sandbox',
      appToken: 'app-1',
      urls: { sandboxUrl },
      http: options,
    });
    open.push(() => module.close());
    let passedMs = 0;
    for (const clock of [Date, performance]) {
      const now = clock.now.bind(clock);
      jest.spyOn(clock, 'now').mockImplementation(() => now() + passedMs);
    }
    await service.get('/a');
    passedMs += 20_000;
    await service.get('/a');
    expect(connections).toBe(1);
    passedMs += 9_000;
    await service.post('/a', {});
    expect(connections).toBe(learns ? 1 : 2);
  });
});

describe('After a request that the server lost, by closing an idle connection', () => {
  describe.each(WAYS)('over %s', (way) => {
    it.each(ENDS)(
      '(%s), POSTs reuse connections up to half of its idle time, for 5 minutes; GETs are not limited',
      async (how) => {
        const made = await setUp({ way });
        await made.post();
        await made.lose(2_000, how);
        await expectLimit(made, 1_000);
        await made.clock.advance(50_000);
        expect(await made.get()).toBe(true);
        await made.clock.advance(300_000);
        await expectLimit(made, 4_000);
      },
    );
  });

  it('the limit is at most 4 s, or http.idleTimeout if that is less, and a lost GET counts too', async () => {
    const made = await setUp();
    await made.get();
    await made.clock.advance(45_000);
    await made.get();
    await made.lose(50_000, 'FIN', 'GET');
    await expectLimit(made, 4_000);
    const limited = await setUp({ idleTimeoutMs: 700 });
    await limited.get();
    await limited.lose(50_000, 'FIN', 'GET');
    await expectLimit(limited, 700);
  });

  it('also cuts the time that the server announces', async () => {
    const made = await setUp({ hint: 'timeout=20' });
    await made.post();
    await made.lose(3_000);
    await expectLimit(made, 1_500);
  });

  it.each<[string, number, Treatment]>([
    ['after an idle time under 0.5 s', 499, 'FIN'],
    ['after the response had begun', 2_000, 'cut'],
  ])('there is no limit if it was lost %s', async (_, idleMs, how) => {
    const made = await setUp();
    await made.post();
    await made.clock.advance(idleMs);
    made.treat(how);
    await expect(made.post()).rejects.toMatchObject({ kind: 'reset' });
    made.treat('answer');
    await expectLimit(made, 4_000);
  });

  it.each<[string, (made: Made, controller: AbortController) => unknown]>([
    ['aborted the request', (_, controller) => controller.abort()],
    ['destroyed the agent', ({ agent }) => agent.destroy()],
  ])('there is no limit if this side has %s', async (_, end) => {
    const made = await setUp();
    await made.post();
    await made.clock.advance(2_000);
    made.treat('silence');
    const controller = new AbortController();
    const aborted = made.post({ signal: controller.signal });
    await until(() => made.idle().length === 0);
    await end(made, controller);
    await expect(aborted).rejects.toThrow();
    made.treat('answer');
    await expectLimit(made, 4_000);
  });

  it('the limit lasts for twice as long each time that it happens again afterwards, until a connection that was idle for over 4 s has answered', async () => {
    const made = await setUp();
    const { clock, post, get, lose } = made;
    for (const minutes of [5, 10, 20]) {
      await post();
      await lose(2_000);
      await clock.advance(minutes * 60_000 - 2_000);
      await post();
      await clock.advance(1_999);
      expect(await post()).toBe(false);
      await clock.advance(1_999);
      expect(await post()).toBe(true);
    }
    await clock.advance(10_000);
    await get();
    await lose(2_000);
    await clock.advance(298_000);
    await post();
    await clock.advance(2_001);
    expect(await post()).toBe(true);
  });

  it('the limit stays when the client certificate changes', async () => {
    const made = await setUp({ way: 'TLS' });
    await made.post();
    await made.lose(2_000);
    made.agent.switchConnector(made.connector());
    await expectLimit(made, 1_000);
  });

  it('a preconnected socket waits for no longer than the limit', async () => {
    const { agent, url, clock, post, lose, sockets, connections } = await setUp({ way: 'TLS' });
    await post();
    await lose(2_000);
    const before = connections();
    agent.preconnect(url);
    await until(() => connections() > before);
    await clock.advance(1_000);
    await until(() => sockets.size === 0);
  });
});

describe('After a connection that died in silence', () => {
  const dieIdle = (socket: net.Socket) =>
    socket.destroy(Object.assign(new Error('read ETIMEDOUT'), { code: 'ETIMEDOUT' }));

  it.each<[string, Way, (made: Made) => Promise<void>]>([
    [
      'a request without a response',
      'plain http',
      async ({ clock, treat, get, idle }) => {
        treat('silence');
        const lost = get({ timeoutMs: 200 });
        await until(() => idle().length === 2);
        await clock.advance(1_001);
        await expect(lost).rejects.toMatchObject({ kind: 'timeout', phase: 'sent' });
        treat('answer');
      },
    ],
    ['unanswered probes of an idle connection', 'plain http', async ({ idle }) => void dieIdle(idle()[0])],
    [
      'unanswered probes of an idle tunnel',
      'a proxy',
      async ({ idle }) => {
        const [{ transport }] = idle() as (net.Socket & { transport: { socket: net.Socket } })[];
        dieIdle(transport.socket);
      },
    ],
  ])('(%s), the idle ones close, and all requests keep to 4 s for 5 minutes', async (_, way, die) => {
    const made = await setUp({ way });
    const { clock, get, sockets, idle } = made;
    await Promise.all([get(), get(), get()]);
    await until(() => idle().length === 3);
    await clock.advance(30_000);
    await die(made);
    await until(() => sockets.size === 0);
    await get();
    await clock.advance(4_000);
    expect(await get()).toBe(true);
    await clock.advance(4_001);
    expect(await get()).toBe(false);
    await clock.advance(300_000);
    await get();
    await clock.advance(50_000);
    expect(await get()).toBe(true);
  });

  it('the limit is http.idleTimeout if that is less than 4 s', async () => {
    const { clock, get, idle } = await setUp({ idleTimeoutMs: 700 });
    await get();
    await clock.advance(30_000);
    dieIdle(idle()[0]);
    await until(() => idle().length === 0);
    await get();
    await clock.advance(701);
    expect(await get()).toBe(false);
  });
});

describe('Two idle connections that end at the same age', () => {
  describe.each(WAYS)('over %s', (way) => {
    it.each(ENDS)('(%s) limit POSTs to half of it, for 10 minutes after the last one', async (how) => {
      const made = await setUp({ way });
      await made.post();
      await made.endIdle(3_000, how);
      await expectLimit(made, 4_000);
      await made.clock.advance(500_000);
      await made.post();
      await made.endIdle(2_900, how);
      await expectLimit(made, 1_450);
      await made.clock.advance(50_000);
      expect(await made.get()).toBe(true);
      await made.clock.advance(540_000);
      await expectLimit(made, 1_450);
      await made.clock.advance(60_000);
      await expectLimit(made, 4_000);
    });
  });

  it.each<[string, number[], number]>([
    ['one end alone', [3_000], 0],
    ['ages that differ by a tenth', [3_000, 2_700], 0],
    ['ages under 0.5 s', [499, 499, 499], 0],
    ['10 minutes between them', [3_000, 3_000], 600_000],
  ])('show nothing with %s', async (_, ages, pauseMs) => {
    const made = await setUp();
    for (const age of ages) {
      await made.clock.advance(pauseMs);
      await made.post();
      await made.endIdle(age);
    }
    await expectLimit(made, 4_000);
  });

  it('cut what a connection has proven', async () => {
    const made = await setUp();
    for (let count = 0; count < 2; count += 1) {
      await made.post();
      await made.endIdle(10_000);
    }
    await made.get();
    await made.clock.advance(50_000);
    await made.get();
    await made.clock.advance(5_000);
    expect(await made.post()).toBe(true);
    await made.clock.advance(5_001);
    expect(await made.post()).toBe(false);
  });

  it.each<[string, (made: Made) => unknown]>([
    ['the idle timer', ({ idle }) => idle()[0].emit('timeout')],
    ['a change of the client certificate', ({ agent, connector }) => agent.switchConnector(connector())],
    ['destroy() of the host application', ({ agent }) => agent.destroy()],
    [
      'a POST that finds them too old',
      async ({ agent, clock, post }) => {
        await clock.advance(1_500);
        await post();
        agent.destroy();
      },
    ],
    [
      'the look for unread input',
      async ({ agent, sockets, post }) => {
        for (const socket of sockets) socket.destroy();
        await post();
        agent.destroy();
      },
    ],
  ])('show nothing if this side has closed them: %s', async (_, close) => {
    const made = await setUp({ way: 'TLS' });
    for (let count = 0; count < 3; count += 1) {
      await made.post();
      await made.clock.advance(3_000);
      await close(made);
      await until(() => made.sockets.size === 0 && made.idle().length === 0);
      await settle();
    }
    await expectLimit(made, 4_000);
  });
});
