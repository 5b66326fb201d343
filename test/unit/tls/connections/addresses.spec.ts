import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import dns, { type LookupAddress } from 'node:dns';
import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';
import * as tls from 'node:tls';
import { shakeHands } from '../../../../lib/cli/doctor/handshake.js';
import { Secret } from '../../../../lib/config/secret.js';
import { exchange } from '../../../../lib/exchange/exchange.js';
import { type ExchangeFault } from '../../../../lib/exchange/exchange.types.js';
import { Connections, connectPlain } from '../../../../lib/tls/connections/connections.js';
import { IdentityAgent } from '../../../../lib/tls/connections/identity-agent.js';
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
  const made = new IdentityAgent(() => apiContext, { maxSockets: 5, connectTimeoutMs: 5_000, ...settings });
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
});

describe('Each address of a name gets a quarter of the time to connect', () => {
  const get = (url: string, used: http.Agent) =>
    exchange({ url: new URL(url), method: 'GET', headers: {}, agent: used, ...limits });

  const pool = { maxSockets: 1, connectTimeoutMs: 5_000 };

  it.each<[string, (port: number) => Promise<unknown>]>([
    ['the API and the token endpoint', async (port) => get(`https://localhost:${port}`, await agent())],
    ['a sidecar', (port) => get(`http://localhost:${port}`, new Connections(connectPlain(pool), pool))],
    [
      'a proxy',
      (port) => once(new ProxyTunnel(new Secret(`http://localhost:${port}`), 'a:443', 5_000), 'error'),
    ],
    [
      'a proxy that speaks TLS',
      (port) => once(new ProxyTunnel(new Secret(`https://localhost:${port}`), 'a:443', 5_000), 'error'),
    ],
    ['the doctor', (port) => shakeHands({ host: 'localhost', port }, tls.createSecureContext(), 5_000)],
  ])('%s', async (_, connect) => {
    const port = await listen('127.0.0.3');
    resolveTo('127.0.0.2', '127.0.0.3');
    const connecting = jest.spyOn(net.Socket.prototype, 'connect');
    await connect(port).catch(() => undefined);
    const given = connecting.mock.calls.map((given) => given.flat()[0] as unknown as net.TcpNetConnectOpts);
    expect(given.map(({ autoSelectFamilyAttemptTimeout: ms }) => ms).filter(Boolean)).toEqual([1_250]);
    const [socket] = connecting.mock.contexts as net.Socket[];
    expect(socket?.autoSelectFamilyAttemptedAddresses).toEqual([`127.0.0.2:${port}`, `127.0.0.3:${port}`]);
    for (const each of connecting.mock.contexts as net.Socket[]) each.destroy();
  });
});
