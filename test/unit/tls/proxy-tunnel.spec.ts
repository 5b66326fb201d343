import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import * as net from 'node:net';
import tls from 'node:tls';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { Secret } from '../../../lib/config/secret.js';
import { exchange } from '../../../lib/exchange/exchange.js';
import { tlsConnector, ProxyTunnel } from '../../../lib/tls/connections/connectors.js';
import { KeepAliveAgent } from '../../../lib/tls/connections/keep-alive-agent.js';
import { createAuthority, issue, type Authority, type Issued } from '../../helpers/certificates.js';
import { blockEventLoop } from '../../helpers/block-event-loop.js';
import {
  sendRequest,
  mtlsServer,
  type MtlsServer,
  type MtlsServerOptions,
} from '../../helpers/mtls-server.js';
import { startProcess } from '../../helpers/sample-process.js';
import { REGISTER } from '../../helpers/source-process.js';
import { until } from '../../helpers/until.js';
import { loadIdentity, tlsSettings } from './tls-settings.js';

let authority: Authority;
let client: Issued;
const open: (() => unknown)[] = [];

beforeAll(async () => {
  authority = await createAuthority();
  client = await authority.client('app');
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const close of open.splice(0).reverse()) await close();
});

const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n';

interface Proxy {
  port: number;
  url: string;
  /** Of each CONNECT. */
  heads: { method: string; path: string; headers: http.IncomingHttpHeaders }[];
  tunnels: number;
}

/** A real proxy that opens tunnels to ports of this machine, unless `onConnect` answers each CONNECT. */
async function proxyServer(
  onConnect?: (socket: net.Socket) => void,
  options?: https.ServerOptions,
): Promise<Proxy> {
  const server = options ? https.createServer(options) : http.createServer();
  const proxy: Proxy = { port: 0, url: '', heads: [], tunnels: 0 };
  const sockets = new Set<net.Socket>();
  server.on('connect', ({ method = '', url = '', headers }: http.IncomingMessage, socket: net.Socket) => {
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
    proxy.heads.push({ method, path: url, headers });
    if (onConnect) return onConnect(socket);
    proxy.tunnels++;
    const upstream = net.connect(Number(url.split(':')[1]), '127.0.0.1', () => {
      socket.write(ESTABLISHED);
      upstream.pipe(socket).pipe(upstream);
    });
    // If one side ends its connection, the proxy first passes on what this side has sent, and then the end.
    upstream.on('error', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.port = (server.address() as net.AddressInfo).port;
  proxy.url = `${options ? 'https' : 'http'}://127.0.0.1:${proxy.port}`;
  open.push(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
    server.closeAllConnections();
  });
  return proxy;
}

/** Answers each CONNECT with this head, and ends. */
const answering = (head: string) => proxyServer((socket) => socket.end(`HTTP/1.1 ${head}\r\n\r\n`));

async function target(options?: MtlsServerOptions): Promise<MtlsServer> {
  const live = await mtlsServer(authority, options);
  open.push(() => live.close());
  return live;
}

async function agentThrough(proxy: string, settings = {}): Promise<KeepAliveAgent> {
  const pems = { certificate: client.certificate, privateKey: client.key, chain: authority.chain };
  const { identity } = await loadIdentity(tlsSettings(pems));
  if (!identity) throw new Error('no identity');
  const proxyFor = () => new Secret(proxy);
  const connect = tlsConnector(() => identity.apiContext, { proxyFor, ...settings });
  const agent = new KeepAliveAgent(connect, { maxSockets: 5, ...settings });
  open.push(() => agent.close(0));
  return agent;
}

function tunnelThrough({ url }: Proxy, timeout?: number): ProxyTunnel {
  const tunnel = new ProxyTunnel(new Secret(url), 'target:443', timeout);
  open.push(() => tunnel.destroy());
  return tunnel;
}

const NOWHERE = 'https://127.0.0.1:1';
const rejected = (code: unknown) => ({ status: 'rejected', reason: expect.objectContaining({ code }) });

/** A time limit that no other socket has, so that the test finds the connection to the proxy by this value. */
const LIMIT = { connectTimeoutMs: 12_000 };
function connectionsWithLimit(): () => net.Socket {
  const limits = jest.spyOn(net.Socket.prototype, 'setTimeout');
  return () => {
    const place = limits.mock.calls.findIndex(([ms]) => ms === LIMIT.connectTimeoutMs);
    return limits.mock.contexts[place] as net.Socket;
  };
}

describe('Connections through a proxy', () => {
  it('use a tunnel by CONNECT; the proxy gets its own credentials and none of ours', async () => {
    const live = await target();
    const proxy = await proxyServer();
    const agent = await agentThrough(proxy.url.replace('//', '//us%40er:pass%20w0rd@'));
    for (let round = 0; round < 3; round++) {
      const headers = { 'service-app-token': 'app-token', authorization: 'Bearer token' };
      expect((await sendRequest(live.url, agent, { headers })).reused).toBe(round > 0);
    }
    expect(live.subjects).toEqual(['app', 'app', 'app']);
    const path = `127.0.0.1:${live.port}`;
    const basic = `Basic ${Buffer.from('us@er:pass w0rd').toString('base64')}`;
    const headers = { connection: expect.any(String), host: path, 'proxy-authorization': basic };
    expect(proxy.heads).toEqual([{ method: 'CONNECT', path, headers }]);
    await until(() => Object.keys(agent.freeSockets).length > 0);
    const shown = inspect(agent, { depth: 20, showHidden: true });
    expect(shown).not.toMatch(/pass(%20| )w0rd|PRIVATE KEY|BEGIN CERT/);
  });

  it('open at most maxSockets tunnels at a time', async () => {
    const live = await target();
    const proxy = await proxyServer();
    const agent = await agentThrough(proxy.url);
    await Promise.all(Array.from({ length: 40 }, () => sendRequest(live.url, agent)));
    expect(proxy.tunnels).toBe(5);
  });

  it('resume TLS sessions, and verify the target server', async () => {
    const live = await target({ keepAliveTimeout: 0 });
    const agent = await agentThrough((await proxyServer()).url, { idleTimeoutMs: 30, longIdleTimeoutMs: 30 });
    await sendRequest(live.url, agent);
    await until(() => live.sockets.size === 0);
    await sendRequest(live.url, agent);
    expect(live.resumed).toBe(1);
    const refused = sendRequest(live.url, agent, {
      servername: 'elsewhere.example',
      rejectUnauthorized: false,
    });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });

  it.each([
    ['https://target.example', 'target.example:443'],
    ['https://[::1]:8443', '[::1]:8443'],
  ])('to %s send CONNECT %s to the proxy', async (url, authority) => {
    const refusing = await answering('300 Multiple');
    await expect(sendRequest(url, await agentThrough(refusing.url))).rejects.toMatchObject({
      code: 'ERR_PROXY_TUNNEL_300',
      message: 'The proxy responded to CONNECT with status 300.',
    });
    const [{ path, headers }] = refusing.heads;
    expect([path, headers.host, headers['proxy-authorization']]).toEqual([authority, authority, undefined]);
  });

  it('go to port 443 by default', async () => {
    const proxy = await answering('502 No');
    const socket = (await agentThrough(proxy.url)).createConnection({ host: 'target' });
    await expect(once(socket, 'close')).rejects.toMatchObject({ code: 'ERR_PROXY_TUNNEL_502' });
    expect(proxy.heads).toMatchObject([{ path: 'target:443' }]);
  });

  it.each([
    ['user', 'user:'],
    [':secret', ':secret'],
    ['50%:off', '50%:off'],
  ])('send the proxy credentials %s as Basic credentials "%s"', async (userinfo, expected) => {
    const refusing = await answering('407 No');
    const agent = await agentThrough(refusing.url.replace('//', `//${userinfo}@`));
    await expect(sendRequest(NOWHERE, agent)).rejects.toMatchObject({ code: 'ERR_PROXY_TUNNEL_407' });
    const basic = `Basic ${Buffer.from(expected).toString('base64')}`;
    expect(refusing.heads[0].headers['proxy-authorization']).toBe(basic);
  });

  it('treat bytes right behind the response to CONNECT as data from the target', async () => {
    const banner = await proxyServer((socket) => socket.write('HTTP/1.1 299 OK\r\n\r\n220 no TLS here\r\n'));
    await expect(sendRequest(NOWHERE, await agentThrough(banner.url))).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_SSL_|^EPROTO$/),
    });
  });
});

describe('A proxy tunnel', () => {
  it('stops reading from the proxy while its own reader does not read', async () => {
    const length = 1_000_000;
    const sent: Promise<unknown>[] = [];
    const proxy = await proxyServer((socket) => {
      socket.write(ESTABLISHED);
      sent.push(new Promise((resolve) => socket.end(Buffer.alloc(length), () => resolve(undefined))));
    });
    const tunnel = tunnelThrough(proxy);
    tunnel.read(0);
    await until(() => tunnel.readableLength >= tunnel.readableHighWaterMark);
    await Promise.all(sent);
    // Without backpressure, the rest would arrive during these turns.
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(tunnel.readableLength).toBeLessThan(300_000);
    expect(Buffer.concat((await tunnel.toArray()) as Buffer[])).toHaveLength(length);
  });

  it('closes the connection to the proxy when its user ends the tunnel', async () => {
    const ended: Promise<unknown>[] = [];
    const proxy = await proxyServer((socket) => {
      socket.write(ESTABLISHED);
      ended.push(once(socket.resume(), 'end'));
    });
    const tunnel = tunnelThrough(proxy);
    await new Promise<void>((resolve) => tunnel.end('last words', resolve));
    await Promise.all(ended);
    expect(ended).toHaveLength(1);
  });

  it('transports large bodies both ways', async () => {
    const live = await target({ onRequest: (request, response) => void request.pipe(response) });
    const agent = await agentThrough((await proxyServer()).url);
    const body = Buffer.alloc(3_000_000, 'x');
    const request = https.request(live.url, { agent, method: 'POST' });
    request.end(body);
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    expect(Buffer.concat((await response.toArray()) as Buffer[])).toHaveLength(body.length);
  });

  it.each([
    ['with a content-length', 'content-length: 4000000\r\n'],
    ['that ends when the connection closes', ''],
  ])('delivers a whole response %s to a slow reader, although the proxy has closed', async (_, length) => {
    const body = Buffer.alloc(4_000_000, 'x');
    const head = `HTTP/1.1 200 OK\r\n${length}connection: close\r\n\r\n`;
    const live = await target({
      onRequest: (request) => void request.socket.end(Buffer.concat([Buffer.from(head), body])),
    });
    const agent = await agentThrough((await proxyServer()).url);
    const [response] = (await once(https.get(live.url, { agent }), 'response')) as [http.IncomingMessage];
    // The response of the server has arrived, and the proxy has closed the tunnel, long before the client reads the response.
    await once(response, 'readable');
    await new Promise((turn) => setTimeout(turn, 100));
    let bytes = 0;
    for await (const chunk of response) {
      bytes += (chunk as Buffer).length;
      await new Promise((turn) => setTimeout(turn, 1));
    }
    expect(bytes).toBe(body.length);
  });
});

describe('A proxy with an https: URL', () => {
  const pair = () => ({ cert: authority.serverChain, key: authority.server.key });

  it('is refused if only tls.chain would verify its certificate', async () => {
    const proxy = await proxyServer(undefined, pair());
    await expect(sendRequest(NOWHERE, await agentThrough(proxy.url))).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_PROXY_(SELF_SIGNED|UNABLE_TO)/),
    });
    expect(proxy.heads).toEqual([]);
  });

  it.each([
    ['TLS 1.2', 'TLSv1', 'TLSv1.1'],
    ['the minimum version of the process', 'TLSv1.3', 'TLSv1.2'],
  ] as const)('is refused if it speaks only versions below %s', async (_, DEFAULT_MIN, maxVersion) => {
    const { DEFAULT_MIN_VERSION, DEFAULT_CIPHERS } = tls;
    open.push(() => Object.assign(tls, { DEFAULT_MIN_VERSION, DEFAULT_CIPHERS }));
    const old = { minVersion: 'TLSv1', maxVersion, ciphers: 'ALL:@SECLEVEL=0' } as const;
    const proxy = await proxyServer(undefined, { ...pair(), ...old });
    Object.assign(tls, { DEFAULT_MIN_VERSION: DEFAULT_MIN, DEFAULT_CIPHERS: old.ciphers });
    await expect(sendRequest(NOWHERE, await agentThrough(proxy.url))).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_PROXY_(EPROTO$|SSL_)/),
    });
  });

  it("is verified against its own name, not the target's", async () => {
    const named = (name: string) => issue(name, { issuer: authority.intermediate, names: [name] });
    const [ofProxy, ofTarget] = await Promise.all([named('localhost'), named('target.example')]);
    const serving = ({ certificate, key }: Issued) => ({
      cert: certificate + authority.intermediate.certificate,
      key,
    });
    const live = await target(serving(ofTarget));
    // The authority takes the place of Node's public roots.
    const real = tls.connect.bind(tls) as (options: tls.ConnectionOptions) => tls.TLSSocket;
    const connecting = jest
      .spyOn(tls, 'connect')
      .mockImplementation(((options: tls.ConnectionOptions) =>
        real(options.secureContext ? options : { ...options, ca: authority.chain })) as typeof tls.connect);
    const through = async (proxy: Issued): Promise<unknown> => {
      const { port } = await proxyServer(undefined, serving(proxy));
      return sendRequest(
        `https://target.example:${live.port}`,
        await agentThrough(`https://localhost:${port}`),
      );
    };
    await expect(through(ofProxy)).resolves.toMatchObject({ status: 200 });
    await expect(through(ofTarget)).rejects.toMatchObject({ code: 'ERR_PROXY_TLS_CERT_ALTNAME_INVALID' });
    // rejectUnauthorized is set explicitly, because a process may run with NODE_TLS_REJECT_UNAUTHORIZED=0.
    const options = connecting.mock.calls.map(([options]) => options as tls.ConnectionOptions);
    const toProxies = options.filter(({ secureContext }) => !secureContext);
    expect(toProxies.map(({ rejectUnauthorized }) => rejectUnauthorized)).toEqual([true, true]);
  });
});

describe('Proxy without a tunnel', () => {
  it('a proxy that refuses CONNECT gives each call an error without the proxy password, even with more calls than connections', async () => {
    const refusing = await answering('407 Proxy Authentication Required');
    const agent = await agentThrough(refusing.url.replace('//', '//user:wrong@'), { maxSockets: 2 });
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => sendRequest(NOWHERE, agent)));
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject(rejected('ERR_PROXY_TUNNEL_407'));
      expect(inspect(outcome, { depth: 9, showHidden: true })).not.toMatch(/wrong/);
      expect(String((outcome as PromiseRejectedResult).reason)).toMatch(
        /status 407: check the user and password/,
      );
    }
  });

  it.each<[string, string | (() => Promise<string>), unknown]>([
    [
      'resets the connection',
      async () => (await proxyServer((socket) => void socket.destroy())).url,
      'ERR_PROXY_ECONNRESET',
    ],
    [
      'responds to CONNECT with 502',
      async () => (await answering('502 Bad Gateway')).url,
      'ERR_PROXY_TUNNEL_502',
    ],
    ['does not listen', 'http://127.0.0.1:1', 'ERR_PROXY_ECONNREFUSED'],
    [
      'has a host name that does not resolve',
      'http://proxy.invalid:1',
      expect.stringMatching(/^ERR_PROXY_(ENOTFOUND|EAI_AGAIN)$/),
    ],
  ])('a call fails with an ERR_PROXY_ code if the proxy %s', async (_, proxy, code) => {
    const agent = await agentThrough(typeof proxy === 'string' ? proxy : await proxy());
    await expect(sendRequest(NOWHERE, agent)).rejects.toMatchObject({ code });
  });

  it.each([
    ['Proxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM', 'ERR_PROXY_AUTH_SCHEME'],
    ['Proxy-Authenticate: Digest realm="no basic here", nonce="a"', 'ERR_PROXY_AUTH_SCHEME'],
    ['Proxy-Authenticate: Negotiate\r\nProxy-Authenticate: Basic realm="proxy"', 'ERR_PROXY_TUNNEL_407'],
    ['Proxy-Authenticate: basic', 'ERR_PROXY_TUNNEL_407'],
    ['Date: today', 'ERR_PROXY_TUNNEL_407'],
    ['WWW-Authenticate: Basic realm="Tinyproxy"', 'ERR_PROXY_TUNNEL_401'],
    ['WWW-Authenticate: Negotiate', 'ERR_PROXY_AUTH_SCHEME'],
  ])('a proxy that refuses the login with %s lets the call fail with %s', async (header, code) => {
    const refusing = await answering(`${header.startsWith('WWW') ? 401 : 407} No\r\n${header}`);
    const agent = await agentThrough(refusing.url.replace('//', '//user:secret@'));
    const failing = await sendRequest(NOWHERE, agent).catch((error: Error) => error);
    expect(failing).toMatchObject({ code });
    expect(/password/.test((failing as Error).message)).toBe(code !== 'ERR_PROXY_AUTH_SCHEME');
  });

  it('the connection to a proxy that responds to CONNECT with status 100 is closed', async () => {
    const ended: Promise<unknown>[] = [];
    const refusing = await proxyServer((socket) => {
      ended.push(once(socket.resume(), 'end'));
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
    });
    await expect(sendRequest(NOWHERE, await agentThrough(refusing.url))).rejects.toMatchObject({
      code: 'ERR_PROXY_TUNNEL_100',
    });
    await Promise.all(ended);
    expect(ended).toHaveLength(1);
  });

  it('a proxy that does not respond to CONNECT lets the call fail with ERR_PROXY_TIMEOUT when the time limit fires', async () => {
    const limited = connectionsWithLimit();
    let hasConnection = false;
    const silent = await proxyServer(() => void (hasConnection = true));
    const failing = sendRequest(NOWHERE, await agentThrough(silent.url, LIMIT));
    await until(() => hasConnection);
    // Node counts the time, so the test emits the event itself.
    limited().emit('timeout');
    await expect(failing).rejects.toMatchObject({ code: 'ERR_PROXY_TIMEOUT' });
  });

  it('a response to CONNECT that arrived while the event loop was blocked is accepted after the time limit', async () => {
    const proxy = await proxyServer((socket) => {
      socket.write(ESTABLISHED);
      blockEventLoop(350);
    });
    const tunnel = tunnelThrough(proxy, 300);
    const written = once(tunnel, 'drain');
    tunnel.write(Buffer.alloc(tunnel.writableHighWaterMark));
    await written;
  });

  it('aborting a call during CONNECT closes the connection to the proxy', async () => {
    let held: net.Socket | undefined;
    const holding = await proxyServer((socket) => void (held = socket.resume()));
    const errors: Error[] = [];
    const request = https.get(NOWHERE, { agent: await agentThrough(holding.url) });
    request.on('error', (error) => errors.push(error));
    await until(() => held !== undefined);
    const gone = once(held as unknown as net.Socket, 'end');
    const closed = new Promise((resolve) => request.once('close', resolve));
    request.destroy();
    await closed;
    expect(errors).toHaveLength(1);
    await gone;
  });
});

describe('Broken tunnel', () => {
  /** Makes a call through the proxy, whose connection is idle afterwards. Each CONNECT gives the proxy's end of a tunnel. */
  async function idleTunnel(options: MtlsServerOptions = {}) {
    const live = await target({ keepAliveTimeout: 60_000, ...options });
    const ends: net.Socket[] = [];
    let isForwarding = true;
    const proxy = await proxyServer((socket) => {
      ends.push(socket);
      const upstream = net.connect(live.port, '127.0.0.1', () => {
        socket.write(ESTABLISHED);
        upstream.on('data', (chunk: Buffer) => socket.write(chunk)).on('error', () => undefined);
        socket.on('data', (chunk: Buffer) => isForwarding && upstream.write(chunk));
      });
      socket.on('close', () => upstream.destroy());
    });
    const agent = await agentThrough(proxy.url, LIMIT);
    const limits = { timeoutMs: 3_000, maxResponseBytes: 1_000 };
    const post = () => exchange({ url: new URL(live.url), method: 'POST', headers: {}, agent, ...limits });
    expect((await post()).status).toBe(200);
    await until(() => Object.keys(agent.freeSockets).length === 1);
    const block = (): void => void (isForwarding = false);
    return { agent, live, proxy, post, socket: ends[0], block };
  }
  const ENDINGS = ['end', 'resetAndDestroy'] as const;

  it.each(ENDINGS)(
    'a tunnel that the proxy closes while it is idle is replaced for the next call (socket.%s)',
    async (end) => {
      const { agent, post, socket, proxy, live } = await idleTunnel();
      socket[end]();
      await until(() => Object.keys(agent.freeSockets).length === 0);
      expect(await post()).toMatchObject({ status: 200 });
      expect([proxy.heads.length, live.subjects.length]).toEqual([2, 2]);
    },
  );

  it('a tunnel that ends together with a response is replaced for the next call', async () => {
    const live = await target({
      onRequest: ({ socket }, response) => void response.end('{}', () => socket.end()),
    });
    // Holds back what follows the handshake until the server has ended.
    const proxy = await proxyServer((socket) => {
      const held: Buffer[] = [];
      const upstream = net.connect(live.port, '127.0.0.1', () => {
        socket.write(ESTABLISHED);
        upstream.on(
          'data',
          (chunk: Buffer) => void (live.subjects.length > sent ? held.push(chunk) : socket.write(chunk)),
        );
        upstream.on('end', () => socket.end(Buffer.concat(held)));
        socket.on('data', (chunk: Buffer) => upstream.write(chunk));
      });
      const sent = live.subjects.length;
    });
    const agent = await agentThrough(proxy.url);
    const limits = { timeoutMs: 3_000, maxResponseBytes: 1_000 };
    const url = new URL(live.url);
    for (let count = 1; count <= 3; count += 1) {
      expect(await exchange({ url, method: 'POST', headers: {}, agent, ...limits })).toMatchObject({
        status: 200,
      });
      expect(proxy.heads).toHaveLength(count);
    }
  });

  it.each(ENDINGS)(
    'a tunnel that breaks after a POST was sent lets the POST fail as a reset in phase "sent" (socket.%s)',
    async (end) => {
      const { post, socket, block, live } = await idleTunnel();
      block();
      socket.once('data', () => socket[end]());
      await expect(post()).rejects.toMatchObject({ kind: 'reset', phase: 'sent', reusedSocket: true });
      expect(live.subjects).toHaveLength(1);
    },
  );

  it.each<[string, (ofProxy: net.Socket, own: net.Socket) => unknown]>([
    ['the proxy ends its connection', (ofProxy) => ofProxy.end()],
    ['the proxy resets its connection', (ofProxy) => ofProxy.resetAndDestroy()],
    ['our side closes its connection', (_, own) => own.destroy()],
  ])('a response fails with ECONNRESET if %s in the middle of it', async (_, cut) => {
    const limited = connectionsWithLimit();
    let isHalf = false;
    const { agent, live, socket } = await idleTunnel({
      onRequest: (_request, response) => void (isHalf ? response.write('half of it') : response.end()),
    });
    // The time limit for CONNECT no longer applies to calls through the tunnel.
    expect(limited().timeout).toBe(0);
    isHalf = true;
    const failed = new Promise((resolve, reject) => {
      const request = https.get(live.url, { agent }, (response) => {
        response.on('error', resolve).on('end', () => reject(new Error('It was taken for a whole answer')));
        response.once('data', () => cut(socket, limited()));
      });
      request.on('error', resolve);
    });
    expect(await failed).toMatchObject({ code: 'ECONNRESET' });
  });
});

describe('A process of its own', () => {
  /** Runs a program with an agent to its end. Returns what it printed, and how long Node went on after its last statement, in ms. */
  async function runProcess(url: string, program: string, proxy?: string) {
    const source = `
      import https from 'node:https';
      import tls from 'node:tls';
      const lib = ${JSON.stringify(pathToFileURL(join(import.meta.dirname, '../../../lib')).href)};
      const { tlsConnector } = await import(lib + '/tls/connections/connectors.ts');
      const { KeepAliveAgent } = await import(lib + '/tls/connections/keep-alive-agent.ts');
      const { Secret } = await import(lib + '/config/secret.ts');
      const context = tls.createSecureContext({ ca: process.env.CHAIN });
      const proxyFor = () => process.env.PROXY && new Secret(process.env.PROXY);
      const agent = new KeepAliveAgent(tlsConnector(() => context, { proxyFor }), { maxSockets: 5 });
      const url = new URL(process.env.URL_OF_SERVER);
      const get = (path) =>
        new Promise((resolve, reject) => {
          https.get(new URL(path, url), { agent }, (response) => {
            console.log(path, response.req.reusedSocket);
            response.resume().on('end', resolve);
          }).on('error', reject);
        });
      process.on('exit', () => console.log('exit', Math.round(performance.now() - ended)));
      let ended;
      ${program}
      ended = performance.now();`;
    const command = [
      process.execPath,
      '--no-warnings',
      '--import',
      REGISTER,
      '--input-type=module',
      '--eval',
    ];
    const env = { CHAIN: authority.chain, URL_OF_SERVER: url, ...(proxy && { PROXY: proxy }) };
    const child = startProcess([...command, source], { cwd: import.meta.dirname, env });
    expect(await child.exited).toMatchObject({ code: 0 });
    const [, printed, ms] = /^([^]*)exit (\d+)\n$/.exec(child.output()) ?? [];
    return { printed, ms: Number(ms) };
  }
  /** Answers /slow after half a second. */
  const slowServer = async (): Promise<MtlsServer> => {
    const onRequest: MtlsServerOptions['onRequest'] = ({ url }, response) =>
      void setTimeout(() => response.end('{}'), url === '/slow' ? 500 : 0);
    const live = await mtlsServer(authority, { demandCertificate: false, onRequest });
    open.push(() => live.close());
    return live;
  };

  it.each(['a tunnel', 'a connection without a proxy'])('ends at once with %s that is idle', async (way) => {
    const live = await slowServer();
    const proxy = way === 'a tunnel' ? (await proxyServer()).url : undefined;
    const { printed, ms } = await runProcess(live.url, "await get('/a');", proxy);
    expect(printed).toBe('/a false\n');
    expect(ms).toBeLessThan(2_000);
  });

  it.each(['a tunnel', 'a connection without a proxy'])(
    'goes on until a request in %s has its response, on a new connection and on a reused one',
    async (way) => {
      const live = await slowServer();
      const proxy = way === 'a tunnel' ? (await proxyServer()).url : undefined;
      const program = `
        get('/slow').then(() => setImmediate(() => setImmediate(() => void get('/slow'))));`;
      const { printed, ms } = await runProcess(live.url, program, proxy);
      expect(printed).toBe('/slow false\n/slow true\n');
      expect(ms).toBeGreaterThan(900);
      expect(ms).toBeLessThan(4_000);
    },
  );

  it('ends at once with a preconnected tunnel, while the proxy has not answered CONNECT and afterwards', async () => {
    const live = await slowServer();
    const [hanging, working] = [await proxyServer(() => undefined), await proxyServer()];
    const program = `
      agent.preconnect(url);
      await new Promise((resolve) => setTimeout(resolve, 300));`;
    for (const proxy of [hanging, working]) {
      const { ms } = await runProcess(live.url, program, proxy.url);
      expect(ms).toBeLessThan(2_000);
      expect(proxy.heads).toHaveLength(1);
    }
    // A request takes the preconnected tunnel, which then keeps the process running.
    const { printed } = await runProcess(live.url, "agent.preconnect(url); void get('/slow');", working.url);
    expect([printed, working.heads.length]).toEqual(['/slow false\n', 2]);
  });
});
