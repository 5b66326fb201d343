import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import * as http from 'node:http';
import * as https from 'node:https';
import * as net from 'node:net';
import tls from 'node:tls';
import { once } from 'node:events';
import { inspect } from 'node:util';
import { Secret } from '../../../../lib/config/secret.js';
import { exchange } from '../../../../lib/exchange/exchange.js';
import { IdentityAgent } from '../../../../lib/tls/connections/identity-agent.js';
import { ProxyTunnel } from '../../../../lib/tls/connections/proxy-tunnel.js';
import { createAuthority, issue, type Authority, type Issued } from '../../../helpers/certificates.js';
import { standStill } from '../../../helpers/stand-still.js';
import { call, mtlsServer, until, type MtlsServer, type MtlsServerOptions } from '../mtls-server.js';
import { loadIdentity, tlsSettings } from '../tls-settings.js';

let authority: Authority;
let client: Issued;
const open: (() => Promise<void>)[] = [];

beforeAll(async () => {
  authority = await createAuthority();
  client = await authority.client('app');
});
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

interface Proxy {
  port: number;
  heads: string[];
  tunnels: number;
}

/** A real proxy; records the head of each CONNECT and every byte before the tunnel stands. */
async function proxyServer(
  onConnect?: (socket: net.Socket) => void,
  options?: https.ServerOptions,
): Promise<Proxy> {
  const proxy: Proxy = { port: 0, heads: [], tunnels: 0 };
  const server = options ? https.createServer(options) : http.createServer();
  const sockets = new Set<net.Socket>();
  server.on('connect', (request: http.IncomingMessage, socket: net.Socket) => {
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
    proxy.heads.push(JSON.stringify([request.method, request.url, request.headers]));
    if (onConnect) return onConnect(socket);
    proxy.tunnels++;
    const upstream = net.connect(Number(request.url?.split(':')[1]), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    // The end of one side goes through with what is before it.
    upstream.on('error', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.port = (server.address() as net.AddressInfo).port;
  open.push(async () => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
    server.closeAllConnections();
  });
  return proxy;
}

async function target(options?: MtlsServerOptions): Promise<MtlsServer> {
  const live = await mtlsServer(authority, options);
  open.push(() => live.close());
  return live;
}

async function agentThrough(proxy: string, settings = {}): Promise<IdentityAgent> {
  const pems = { certificate: client.certificate, privateKey: client.key, chain: authority.chain };
  const { identity } = await loadIdentity(tlsSettings(pems));
  if (!identity) throw new Error('no identity');
  const agent = new IdentityAgent(() => identity.apiContext, {
    maxSockets: 5,
    proxyFor: () => new Secret(proxy),
    ...settings,
  });
  open.push(() => agent.close(0));
  return agent;
}

describe('Through a proxy', () => {
  it('tunnels with CONNECT; the proxy gets its own credentials and none of ours', async () => {
    const live = await target();
    const proxy = await proxyServer();
    const agent = await agentThrough(`http://us%40er:pass%20w0rd@127.0.0.1:${proxy.port}`);
    for (let round = 0; round < 3; round++) {
      const headers = { 'service-app-token': 'app-token', authorization: 'Bearer token' };
      expect((await call(live.url, agent, { headers })).reused).toBe(round > 0);
    }
    expect(live.subjects).toEqual(['app', 'app', 'app']);
    const basic = `Basic ${Buffer.from('us@er:pass w0rd').toString('base64')}`;
    const [method, path, headers] = JSON.parse(proxy.heads[0]) as [string, string, http.IncomingHttpHeaders];
    expect([method, path]).toEqual(['CONNECT', `127.0.0.1:${live.port}`]);
    expect(Object.keys(headers).sort()).toEqual(['connection', 'host', 'proxy-authorization']);
    expect(headers['proxy-authorization']).toBe(basic);
    expect(proxy.heads).toHaveLength(1);
    await until(() => Object.keys(agent.freeSockets).length > 0);
    const shown = inspect(agent, { depth: 20, showHidden: true });
    expect(shown).not.toMatch(/pass(%20| )w0rd|PRIVATE KEY|BEGIN CERT/);
  });

  it('takes no more than its reader does', async () => {
    const length = 1_000_000;
    const sent: Promise<unknown>[] = [];
    const proxy = await proxyServer((socket) => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      sent.push(new Promise((resolve) => socket.end(Buffer.alloc(length), () => resolve(undefined))));
    });
    const tunnel = new ProxyTunnel(new Secret(`http://127.0.0.1:${proxy.port}`), 'target:443');
    tunnel.read(0);
    await until(() => tunnel.readableLength >= tunnel.readableHighWaterMark);
    await Promise.all(sent);
    // Time for what would come if it was not held back.
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(tunnel.readableLength).toBeLessThan(300_000);
    expect(Buffer.concat((await tunnel.toArray()) as Buffer[])).toHaveLength(length);
    tunnel.destroy();
  });

  it('ends the connection to the proxy where its user ends, and goes to port 443 by default', async () => {
    const ended: Promise<unknown>[] = [];
    const proxy = await proxyServer((socket) => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      ended.push(once(socket.resume(), 'end'));
    });
    const tunnel = new ProxyTunnel(new Secret(`http://127.0.0.1:${proxy.port}`), 'target:443');
    await new Promise<void>((resolve) => tunnel.end('last words', resolve));
    await Promise.all(ended);
    tunnel.destroy();
    const agent = await agentThrough(`http://127.0.0.1:${proxy.port}`);
    const socket = agent.createConnection({ host: 'target' }).on('error', () => undefined);
    await until(() => proxy.heads.length === 2);
    socket.destroy();
    expect(proxy.heads.map((head) => (JSON.parse(head) as string[])[1])).toEqual([
      'target:443',
      'target:443',
    ]);
  });

  it('keeps to maxSockets', async () => {
    const live = await target();
    const proxy = await proxyServer();
    const agent = await agentThrough(`http://127.0.0.1:${proxy.port}`);
    await Promise.all(Array.from({ length: 40 }, () => call(live.url, agent)));
    expect(proxy.tunnels).toBe(5);
  });

  it('resumes sessions, verifies the target', async () => {
    const live = await target({ keepAliveTimeout: 0 });
    const proxy = await proxyServer();
    const agent = await agentThrough(`http://127.0.0.1:${proxy.port}`, { idleTimeoutMs: 30 });
    await call(live.url, agent);
    await until(() => live.sockets.size === 0);
    await call(live.url, agent);
    expect(live.resumed).toBe(1);
    const refused = call(live.url, agent, { servername: 'elsewhere.example', rejectUnauthorized: false });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });

  it('carries large bodies both ways', async () => {
    const live = await mtlsServer(authority, {
      onRequest: (request, response) => void request.pipe(response),
    });
    open.push(() => live.close());
    const proxy = await proxyServer();
    const agent = await agentThrough(`http://127.0.0.1:${proxy.port}`);
    const body = 'x'.repeat(3_000_000);
    const echoed = await new Promise<number>((resolve, reject) => {
      const request = https.request(live.url, { agent, method: 'POST' }, (response) => {
        let length = 0;
        response.on('data', (chunk: Buffer) => (length += chunk.length)).on('end', () => resolve(length));
      });
      request.on('error', reject).end(body);
    });
    expect(echoed).toBe(body.length);
  });

  it('verifies a proxy that speaks TLS itself', async () => {
    const live = await target();
    const proxy = await proxyServer(undefined, { cert: authority.serverChain, key: authority.server.key });
    const agent = await agentThrough(`https://127.0.0.1:${proxy.port}`);
    await expect(call(live.url, agent)).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_PROXY_(SELF_SIGNED|UNABLE_TO)/),
    });
    expect(proxy.heads).toEqual([]);
  });

  it.each([
    ['TLSv1.2', 'TLSv1', 'TLSv1.1'],
    ['what the process says', 'TLSv1.3', 'TLSv1.2'],
  ] as const)('speaks at least %s with such a proxy', async (_, DEFAULT_MIN, maxVersion) => {
    const { DEFAULT_MIN_VERSION, DEFAULT_CIPHERS } = tls;
    open.push(async () => void Object.assign(tls, { DEFAULT_MIN_VERSION, DEFAULT_CIPHERS }));
    const old = { minVersion: 'TLSv1', maxVersion, ciphers: 'ALL:@SECLEVEL=0' } as const;
    const pair = { cert: authority.serverChain, key: authority.server.key };
    const { port } = await proxyServer(undefined, { ...pair, ...old });
    Object.assign(tls, { DEFAULT_MIN_VERSION: DEFAULT_MIN, DEFAULT_CIPHERS: old.ciphers });
    const failing = call('https://127.0.0.1:1', await agentThrough(`https://127.0.0.1:${port}`));
    await expect(failing).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_PROXY_(EPROTO$|SSL_)/),
    });
  });

  it("verifies such a proxy against the proxy's own name, not the target's", async () => {
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
    open.push(async () => connecting.mockRestore());
    const through = async (proxy: Issued): Promise<unknown> => {
      const { port } = await proxyServer(undefined, serving(proxy));
      return call(`https://target.example:${live.port}`, await agentThrough(`https://localhost:${port}`));
    };
    await expect(through(ofProxy)).resolves.toMatchObject({ status: 200 });
    await expect(through(ofTarget)).rejects.toMatchObject({ code: 'ERR_PROXY_TLS_CERT_ALTNAME_INVALID' });
    // Said, because a process may have NODE_TLS_REJECT_UNAUTHORIZED=0.
    const asked = connecting.mock.calls.map(([options]) => options as tls.ConnectionOptions);
    const toProxies = asked.filter(({ secureContext }) => !secureContext);
    expect(toProxies.map(({ rejectUnauthorized }) => rejectUnauthorized)).toEqual([true, true]);
  });

  it.each([
    ['with its length, and closes', 'content-length: 4000000\r\n'],
    ['that ends with the connection', ''],
  ])('the tail of an answer %s, reaches a slow reader', async (_name, length) => {
    const body = Buffer.alloc(4_000_000, 'x');
    const head = `HTTP/1.1 200 OK\r\n${length}connection: close\r\n\r\n`;
    const live = await target({
      onRequest: (request) => void request.socket.end(Buffer.concat([Buffer.from(head), body])),
    });
    const proxy = await proxyServer();
    const agent = await agentThrough(`http://127.0.0.1:${proxy.port}`);
    const read = await new Promise<number>((resolve, reject) => {
      const request = https.request(live.url, { agent }, (response) => {
        let bytes = 0;
        // What the server sent has arrived, and the proxy has closed, long before it is read.
        const next = async (): Promise<void> => {
          for await (const chunk of response) {
            bytes += (chunk as Buffer).length;
            await new Promise((turn) => setTimeout(turn, 1));
          }
        };
        once(response, 'readable')
          .then(() => new Promise((turn) => setTimeout(turn, 100)))
          .then(next)
          .then(() => resolve(bytes), reject);
      });
      request.on('error', reject).end();
    });
    expect(read).toBe(body.length);
  });

  it('a refusal, a reset and no proxy at all reach the request as errors, and no call hangs', async () => {
    const live = await target();
    const refusing = await proxyServer((socket) =>
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'),
    );
    const agent = await agentThrough(`http://user:wrong@127.0.0.1:${refusing.port}`, { maxSockets: 2 });
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => call(live.url, agent)));
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'ERR_PROXY_TUNNEL_407' } });
      expect(inspect(outcome, { depth: 9, showHidden: true })).not.toMatch(/wrong/);
      expect(String((outcome as PromiseRejectedResult).reason)).toMatch(
        /status 407: check the user and password/,
      );
    }
    const resetting = await proxyServer((socket) => void socket.destroy());
    await expect(
      call(live.url, await agentThrough(`http://127.0.0.1:${resetting.port}`)),
    ).rejects.toMatchObject({ code: 'ERR_PROXY_ECONNRESET' });
    const failing = await proxyServer((socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
    await expect(
      call(live.url, await agentThrough(`http://127.0.0.1:${failing.port}`)),
    ).rejects.toMatchObject({ code: 'ERR_PROXY_TUNNEL_502' });
    await expect(call(live.url, await agentThrough('http://127.0.0.1:1'))).rejects.toMatchObject({
      code: 'ERR_PROXY_ECONNREFUSED',
    });
    await expect(call(live.url, await agentThrough('http://proxy.invalid:1'))).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_PROXY_(ENOTFOUND|EAI_AGAIN)$/),
    });
    expect(live.subjects).toEqual([]);
  });

  it('a call given up while the tunnel is built ends, and so does the tunnel', async () => {
    const live = await target();
    let held: net.Socket | undefined;
    const holding = await proxyServer((socket) => void (held = socket.resume()));
    const agent = await agentThrough(`http://127.0.0.1:${holding.port}`);
    const errors: Error[] = [];
    const request = https.request(live.url, { agent }).on('error', (error) => errors.push(error));
    const ended = new Promise((resolve) => request.on('close', resolve));
    request.end();
    await until(() => held !== undefined);
    const gone = once(held as unknown as net.Socket, 'end');
    request.destroy();
    await ended;
    expect(errors).toHaveLength(1);
    await gone;
  });

  it.each([
    ['ends', (socket: net.Socket) => socket.end()],
    ['is reset', (socket: net.Socket) => socket.resetAndDestroy()],
  ])('an answer whose connection %s in the middle is an error at once', async (_name, cut) => {
    const live = await target({
      onRequest: (_request, response) => void response.write('half of it'),
    });
    const sockets: net.Socket[] = [];
    const proxy = await proxyServer((socket) => {
      sockets.push(socket);
      const upstream = net.connect(live.port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        upstream.on('data', (chunk: Buffer) => socket.write(chunk)).on('error', () => undefined);
        socket.on('data', (chunk: Buffer) => upstream.write(chunk));
      });
      socket.on('close', () => upstream.destroy());
    });
    const agent = await agentThrough(`http://127.0.0.1:${proxy.port}`);
    const failed = new Promise((resolve, reject) => {
      https
        .get(live.url, { agent }, (response) => {
          response.on('error', resolve).on('end', () => reject(new Error('It was taken for a whole answer')));
          response.once('data', () => void cut(sockets[0]));
        })
        .on('error', resolve);
    });
    expect(await failed).toMatchObject({ code: 'ECONNRESET' });
  });

  it('a proxy that does not answer is given up after the time to connect', async () => {
    const limits = jest.spyOn(net.Socket.prototype, 'setTimeout');
    open.push(async () => limits.mockRestore());
    let asked = false;
    const silent = await proxyServer(() => void (asked = true));
    const agent = await agentThrough(`http://127.0.0.1:${silent.port}`, { connectTimeoutMs: 12_000 });
    const failing = call('https://127.0.0.1:1', agent);
    await until(() => asked);
    // The time itself is Node's to count.
    const place = limits.mock.calls.findIndex(([ms]) => ms === 12_000);
    (limits.mock.contexts[place] as net.Socket).emit('timeout');
    await expect(failing).rejects.toMatchObject({ code: 'ERR_PROXY_TIMEOUT' });
  });

  it('one whose answer came while this process stood still is not', async () => {
    const proxy = await proxyServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      standStill(350);
    });
    const tunnel = new ProxyTunnel(new Secret(`http://127.0.0.1:${proxy.port}`), 'target:443', 300);
    open.push(async () => void tunnel.destroy());
    const written = once(tunnel, 'drain');
    tunnel.write(Buffer.alloc(tunnel.writableHighWaterMark));
    await written;
  });

  it('closes its connection to a proxy that refuses', async () => {
    const ended: Promise<unknown>[] = [];
    const refusing = await proxyServer((socket) => {
      ended.push(once(socket.resume(), 'end'));
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
    });
    const failing = call('https://127.0.0.1:1', await agentThrough(`http://127.0.0.1:${refusing.port}`));
    await expect(failing).rejects.toMatchObject({ code: 'ERR_PROXY_TUNNEL_100' });
    await Promise.all(ended);
    expect(ended).toHaveLength(1);
  });

  it('a connection to the proxy that is only closed ends the call too', async () => {
    const live = await target({ onRequest: (_request, response) => void response.write('half of it') });
    const proxy = await proxyServer();
    const limits = jest.spyOn(net.Socket.prototype, 'setTimeout');
    open.push(async () => limits.mockRestore());
    const agent = await agentThrough(`http://127.0.0.1:${proxy.port}`, { connectTimeoutMs: 12_000 });
    const [answer] = (await once(https.get(live.url, { agent }), 'response')) as [http.IncomingMessage];
    const failed = once(answer, 'error');
    answer.resume();
    (limits.mock.contexts[limits.mock.calls.findIndex(([ms]) => ms === 12_000)] as net.Socket).destroy();
    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' });
  });

  it('the time limit of CONNECT does not count for calls through the tunnel', async () => {
    const live = await target();
    const proxy = await proxyServer();
    const limits = jest.spyOn(net.Socket.prototype, 'setTimeout');
    open.push(async () => limits.mockRestore());
    const agent = await agentThrough(`http://127.0.0.1:${proxy.port}`, { connectTimeoutMs: 12_000 });
    await call(live.url, agent);
    const place = limits.mock.calls.findIndex(([ms]) => ms === 12_000);
    expect((limits.mock.contexts[place] as net.Socket).timeout).toBe(0);
  });

  it.each([
    ['https://target.example', 'target.example:443'],
    ['https://[::1]:8443', '[::1]:8443'],
  ])('asks for %s as %s', async (url, authority) => {
    const refusing = await proxyServer((socket) => socket.end('HTTP/1.1 300 Multiple\r\n\r\n'));
    const failing = call(url, await agentThrough(`http://127.0.0.1:${refusing.port}`));
    await expect(failing).rejects.toMatchObject({
      code: 'ERR_PROXY_TUNNEL_300',
      message: 'The proxy answered CONNECT with status 300.',
    });
    const [, path, headers] = JSON.parse(refusing.heads[0]) as [string, string, http.IncomingHttpHeaders];
    expect([path, headers.host, headers['proxy-authorization']]).toEqual([authority, authority, undefined]);
  });

  it.each([
    ['user', 'user:'],
    [':secret', ':secret'],
    ['50%:off', '50%:off'],
  ])('credentials may be %s', async (userinfo, expected) => {
    const refusing = await proxyServer((socket) => socket.end('HTTP/1.1 407 No\r\n\r\n'));
    const agent = await agentThrough(`http://${userinfo}@127.0.0.1:${refusing.port}`);
    await expect(call('https://127.0.0.1:1', agent)).rejects.toMatchObject({ code: 'ERR_PROXY_TUNNEL_407' });
    const [, , headers] = JSON.parse(refusing.heads[0]) as [string, string, http.IncomingHttpHeaders];
    expect(headers['proxy-authorization']).toBe(`Basic ${Buffer.from(expected).toString('base64')}`);
  });

  it.each([
    ['Proxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM', 'ERR_PROXY_AUTH_SCHEME'],
    ['Proxy-Authenticate: Digest realm="no basic here", nonce="a"', 'ERR_PROXY_AUTH_SCHEME'],
    ['Proxy-Authenticate: Negotiate\r\nProxy-Authenticate: Basic realm="proxy"', 'ERR_PROXY_TUNNEL_407'],
    ['Proxy-Authenticate: basic', 'ERR_PROXY_TUNNEL_407'],
    ['Date: today', 'ERR_PROXY_TUNNEL_407'],
  ])('a 407 with %s is %s', async (header, code) => {
    const refusing = await proxyServer((socket) => socket.end(`HTTP/1.1 407 No\r\n${header}\r\n\r\n`));
    const agent = await agentThrough(`http://user:secret@127.0.0.1:${refusing.port}`);
    const failing = await call('https://127.0.0.1:1', agent).catch((error: Error) => error);
    expect(failing).toMatchObject({ code });
    expect(/password/.test((failing as Error).message)).toBe(code === 'ERR_PROXY_TUNNEL_407');
  });

  it('what comes right behind the answer to CONNECT belongs to the tunnel', async () => {
    const banner = await proxyServer(
      (socket) => void socket.write('HTTP/1.1 299 OK\r\n\r\n220 no TLS here\r\n'),
    );
    const failing = call('https://127.0.0.1:1', await agentThrough(`http://127.0.0.1:${banner.port}`));
    await expect(failing).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_SSL_|^EPROTO$/) });
  });
});

describe('A tunnel that the proxy ends', () => {
  /** A call through it, over a connection that is idle now. Each CONNECT gives the proxy's end of a tunnel. */
  async function idleTunnel() {
    const live = await target({ keepAliveTimeout: 60_000 });
    const ends: net.Socket[] = [];
    let isForwarding = true;
    const proxy = await proxyServer((socket) => {
      ends.push(socket);
      const upstream = net.connect(live.port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        upstream.on('data', (chunk: Buffer) => socket.write(chunk)).on('error', () => undefined);
        socket.on('data', (chunk: Buffer) => isForwarding && upstream.write(chunk));
      });
      socket.on('close', () => upstream.destroy());
    });
    const agent = await agentThrough(`http://127.0.0.1:${proxy.port}`);
    const post = () =>
      exchange({
        url: new URL(live.url),
        method: 'POST',
        headers: {},
        agent,
        timeoutMs: 3_000,
        maxResponseBytes: 1_000,
      });
    expect((await post()).status).toBe(200);
    await until(() => Object.keys(agent.freeSockets).length === 1);
    const end = (how: 'end' | 'resetAndDestroy') => ends[0]?.[how]();
    return {
      agent,
      live,
      proxy,
      post,
      end,
      socket: ends[0],
      forward: (on: boolean) => (isForwarding = on),
    };
  }

  it.each(['end', 'resetAndDestroy'] as const)(
    'while it is idle: the next call takes another (%s)',
    async (how) => {
      const { agent, post, end, proxy, live } = await idleTunnel();
      end(how);
      await until(() => Object.keys(agent.freeSockets).length === 0);
      expect(await post()).toMatchObject({ status: 200 });
      expect([proxy.heads.length, live.subjects.length]).toEqual([2, 2]);
    },
  );

  it.each(['end', 'resetAndDestroy'] as const)(
    'after a call began: at once, and it is not said that nothing was done (%s)',
    async (how) => {
      const { post, end, socket, forward, live } = await idleTunnel();
      forward(false);
      socket.once('data', () => end(how));
      await expect(post()).rejects.toMatchObject({ kind: 'reset', phase: 'sent', reusedSocket: true });
      expect(live.subjects).toHaveLength(1);
    },
  );
});
