import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import dns, { type LookupAddress } from 'node:dns';
import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';
import type * as tls from 'node:tls';
import { openTransport } from '../../../../lib/cli/doctor/reachable.js';
import { Secret } from '../../../../lib/config/secret.js';
import { exchange } from '../../../../lib/exchange/exchange.js';
import { type ExchangeFault } from '../../../../lib/exchange/exchange.types.js';
import { attemptTimeout, connectInTurn } from '../../../../lib/tls/connections/addresses.js';
import { IdentityAgent } from '../../../../lib/tls/connections/identity-agent.js';
import { PlainAgent } from '../../../../lib/tls/connections/plain-agent.js';
import { ProxyTunnel } from '../../../../lib/tls/connections/proxy-tunnel.js';
import { createAuthority, type Authority } from '../../../helpers/certificates.js';
import { freePort } from '../../../helpers/loopback.js';
import { silentAddress } from '../../../helpers/silent-address.js';
import { call, mtlsServer } from '../mtls-server.js';
import { loadIdentity, tlsSettings } from '../tls-settings.js';

let authority: Authority;
beforeAll(async () => {
  authority = await createAuthority();
});

const open: (() => unknown)[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  for (const close of open.splice(0).reverse()) await close();
});

/** What dns.lookup finds for every name from now on. */
function resolveTo(...addresses: string[]): jest.SpiedFunction<typeof dns.lookup> {
  const found = addresses.map((address): LookupAddress => ({ address, family: net.isIP(address) }));
  const looked = jest.spyOn(dns, 'lookup');
  type Callback = (error: null, found: LookupAddress[] | string, family?: number) => void;
  looked.mockImplementation(((_host: string, { all }: dns.LookupOptions, callback: Callback) =>
    setImmediate(() =>
      all ? callback(null, found) : callback(null, addresses[0], 4),
    )) as unknown as typeof dns.lookup);
  return looked;
}

async function agent(settings = {}): Promise<IdentityAgent> {
  const { identity } = await loadIdentity(tlsSettings({ chain: authority.chain }));
  const { apiContext } = identity as { apiContext: tls.SecureContext };
  const made = new IdentityAgent(apiContext, { maxSockets: 5, connectTimeoutMs: 5_000, ...settings });
  open.push(() => made.close(0));
  return made;
}

async function listen(host = '127.0.0.1'): Promise<number> {
  const port = await freePort();
  const server = http.createServer((_, response) => response.end('{}')).listen(port, host);
  await once(server, 'listening');
  open.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return port;
}

const limits = { timeoutMs: 10_000, maxResponseBytes: 1_000 };
const asked = (port: number) => ({ host: 'localhost', port });
const faultOf = (asked: Promise<unknown>): Promise<ExchangeFault> =>
  asked.then(
    () => Promise.reject(new Error('It was answered')),
    (fault: ExchangeFault) => fault,
  );

describe('A name with several addresses', () => {
  it('is connected with where a handshake with the first takes a second, and the next one is dead', async () => {
    const live = await mtlsServer(authority, { demandCertificate: false });
    open.push(() => live.close());
    const slow = await silentAddress('127.0.0.2', undefined, live.port);
    const dead = await silentAddress('127.0.0.3', slow.port);
    open.push(slow.stop, dead.stop);
    const looked = resolveTo('127.0.0.2', '127.0.0.3');
    const used = await agent();
    const answered = call(`https://localhost:${slow.port}`, used);
    await looked.mock.results[0]?.value;
    // The first SYN is lost by then.
    setImmediate(() => setImmediate(() => setImmediate(slow.wake)));
    expect((await answered).status).toBe(200);
  });

  it('that are all silent: the fault has those that were tried', async () => {
    const first = await silentAddress('127.0.0.2');
    const second = await silentAddress('127.0.0.3', first.port);
    open.push(first.stop, second.stop);
    resolveTo('127.0.0.2', '127.0.0.3');
    const asked = { url: new URL(`https://localhost:${first.port}`), method: 'POST', headers: {}, ...limits };
    const used = await agent({ connectTimeoutMs: 700 });
    const fault = await faultOf(exchange({ ...asked, agent: used, connectTimeoutMs: 700 }));
    expect(fault).toMatchObject({
      kind: 'timeout',
      phase: 'connecting',
      reason: 'ERR_CONNECT_TIMEOUT',
      addresses: [`127.0.0.2:${first.port}`, `127.0.0.3:${first.port}`],
    });
  });

  it.each([{ connectTimeoutMs: 2_000 }, { connectTimeoutMs: 20_000, timeoutMs: 2_000 }])(
    "is connected with in the time of a call that has less than the agent's, though the first is silent: %j",
    async (left) => {
      const live = await mtlsServer(authority, { demandCertificate: false, port: await freePort() });
      open.push(() => live.close());
      const silent = await silentAddress('127.0.0.2', live.port);
      open.push(silent.stop);
      resolveTo('127.0.0.2', '127.0.0.1');
      const asked = {
        url: new URL(`https://localhost:${live.port}`),
        method: 'POST',
        headers: {},
        ...limits,
      };
      const used = await agent({ connectTimeoutMs: 20_000 });
      expect(await exchange({ ...asked, agent: used, ...left })).toMatchObject({ status: 200 });
    },
  );

  it.each([
    [
      ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5', '::1', '127.0.0.6'],
      ['127.0.0.2:1', '::1:1', '127.0.0.3:1', '127.0.0.4:1'],
    ],
    [
      ['::1', '127.0.0.2', '127.0.0.3', '127.0.0.4'],
      ['::1:1', '127.0.0.2:1', '127.0.0.3:1', '127.0.0.4:1'],
    ],
  ])('is tried at four of them, IPv4 and IPv6 by turns: %j', async (found, tried) => {
    resolveTo(...found);
    const used = await agent();
    const asked = { url: new URL('https://localhost:1'), method: 'GET', headers: {}, agent: used, ...limits };
    const { addresses, kind } = await faultOf(exchange(asked));
    expect([kind, addresses]).toEqual(['refused', tried]);
  });

  it('is not connected with once its connection was given up while the name was looked up', async () => {
    const looked = resolveTo('127.0.0.2', '127.0.0.3');
    const connecting = jest.spyOn(net.Socket.prototype, 'connect');
    const socket = connectInTurn((given: net.TcpNetConnectOpts) => net.connect(given), asked(1), 5_000);
    socket.destroy();
    await looked.mock.results[0]?.value;
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect([looked.mock.calls.length, connecting.mock.calls.length]).toEqual([1, 1]);
  });

  it.each([
    [5_000, 2, 2_000],
    [5_000, 3, 1_333],
    [5_000, 4, 1_000],
    [500, 2, 250],
    [10_000, 4, 2_000],
  ])('of %d ms to connect, each of %d gets %d', (connectTimeoutMs, addresses, expected) => {
    expect(attemptTimeout(connectTimeoutMs, addresses)).toBe(expected);
  });
});

describe('The time for each address is the same for', () => {
  const get = (url: string, used: http.Agent) =>
    exchange({ url: new URL(url), method: 'GET', headers: {}, agent: used, ...limits });
  const written = (transport: NodeJS.WritableStream) =>
    new Promise<void>((resolve) => transport.write('', () => resolve()));

  it.each<[string, (port: number) => Promise<unknown>]>([
    ['the API and the token endpoint', async (port) => get(`https://localhost:${port}`, await agent())],
    [
      'a sidecar',
      (port) => get(`http://localhost:${port}`, new PlainAgent({ maxSockets: 1, connectTimeoutMs: 5_000 })),
    ],
    [
      'a sidecar, of a call that has less time than its agent',
      async (port) =>
        exchange({
          url: new URL(`http://localhost:${port}`),
          method: 'GET',
          headers: {},
          ...limits,
          agent: new PlainAgent({ maxSockets: 1, connectTimeoutMs: 20_000 }),
          connectTimeoutMs: 5_000,
        }),
    ],
    [
      'a proxy',
      (port) => once(new ProxyTunnel(new Secret(`http://localhost:${port}`), 'a:443', 5_000), 'error'),
    ],
    [
      'a proxy that speaks TLS',
      (port) => once(new ProxyTunnel(new Secret(`https://localhost:${port}`), 'a:443', 5_000), 'error'),
    ],
    ['the doctor', (port) => written(openTransport({ host: 'localhost', port }, 5_000))],
  ])('%s', async (_, connect) => {
    const port = await listen('127.0.0.3');
    resolveTo('127.0.0.2', '127.0.0.3');
    const connecting = jest.spyOn(net.Socket.prototype, 'connect');
    await connect(port).catch(() => undefined);
    const given = connecting.mock.calls.map(([options]) => options as unknown as net.TcpNetConnectOpts);
    expect(given.map(({ autoSelectFamilyAttemptTimeout: ms }) => ms).filter(Boolean)).toEqual([2_000]);
    const [socket] = connecting.mock.contexts as net.Socket[];
    expect(socket?.autoSelectFamilyAttemptedAddresses).toEqual([`127.0.0.2:${port}`, `127.0.0.3:${port}`]);
    for (const each of connecting.mock.contexts as net.Socket[]) each.destroy();
  });
});

describe('What a host has chosen counts', () => {
  /** The times that Node was asked to connect. */
  async function connects(
    options: Partial<net.TcpNetConnectOpts>,
    connectTimeoutMs?: number,
  ): Promise<number> {
    const port = await listen();
    resolveTo('127.0.0.1', '127.0.0.2');
    const connecting = jest.spyOn(net.Socket.prototype, 'connect');
    const connect = (given: net.TcpNetConnectOpts) => net.connect(given);
    const socket = connectInTurn(connect, { ...asked(port), ...options }, connectTimeoutMs);
    await once(socket, 'connect');
    socket.destroy();
    return connecting.mock.calls.length;
  }

  it.each([
    { autoSelectFamily: true },
    { autoSelectFamily: false },
    { autoSelectFamilyAttemptTimeout: 300 },
    { family: 4 },
  ])('for its request: %j', async (options) => expect(await connects(options, 5_000)).toBe(1));

  it('no time to connect: there is none to share', async () => expect(await connects({})).toBe(1));

  it.each<[string, () => void]>([
    ['no automatic choice', () => net.setDefaultAutoSelectFamily(false)],
    ['another time', () => net.setDefaultAutoSelectFamilyAttemptTimeout(900)],
  ])('for its process: %s', async (_, choose) => {
    const before = [
      net.getDefaultAutoSelectFamily(),
      net.getDefaultAutoSelectFamilyAttemptTimeout(),
    ] as const;
    open.push(() => {
      net.setDefaultAutoSelectFamily(before[0]);
      net.setDefaultAutoSelectFamilyAttemptTimeout(before[1]);
    });
    choose();
    expect(await connects({}, 5_000)).toBe(1);
  });

  it('its own look-up is asked, once', async () => {
    const port = await listen();
    const found = [
      { address: '127.0.0.2', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ];
    const lookup = jest.fn<net.LookupFunction>((_host, _how, callback) => callback(null, found));
    const connect = (given: net.TcpNetConnectOpts) => net.connect(given);
    const socket = connectInTurn(connect, { host: 'of.the.host', port, lookup }, 5_000);
    await once(socket, 'connect');
    expect([socket.remoteAddress, lookup.mock.calls.length]).toEqual(['127.0.0.1', 1]);
    socket.destroy();
  });

  it.each([[[]], [undefined]])(
    'a look-up of its own that finds %j: there is no such name, for that request alone',
    async (none) => {
      const lookup = ((_host, _how, callback: (...found: unknown[]) => void) =>
        callback(null, none)) as net.LookupFunction;
      const connect = (given: net.TcpNetConnectOpts) => net.connect(given);
      const [error] = (await once(
        connectInTurn(connect, { host: 'no.host', port: 1, lookup }, 5_000),
        'error',
      )) as [Error];
      expect(error).toMatchObject({
        code: 'ENOTFOUND',
        hostname: 'no.host',
        message: 'getaddrinfo ENOTFOUND no.host',
      });
    },
  );

  it("a look-up that fails, or finds one address, is Node's to answer", async () => {
    const connect = (given: net.TcpNetConnectOpts) => net.connect(given);
    const failing: net.LookupFunction = (_host, _how, callback) =>
      callback(Object.assign(new Error(), { code: 'EAI_AGAIN' }), []);
    const failed = connectInTurn(connect, { host: 'no.host', port: 1, lookup: failing }, 5_000);
    expect(await once(failed, 'error')).toMatchObject([{ code: 'EAI_AGAIN' }]);
    const port = await listen();
    resolveTo('127.0.0.1');
    const connecting = jest.spyOn(net.Socket.prototype, 'connect');
    const socket = connectInTurn(connect, asked(port), 5_000);
    await once(socket, 'connect');
    socket.destroy();
    expect(connecting.mock.calls).toHaveLength(1);
  });
});
