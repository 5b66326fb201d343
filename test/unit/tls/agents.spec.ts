import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { constants } from 'node:crypto';
import { once } from 'node:events';
import * as http from 'node:http';
import { type AddressInfo, type Socket } from 'node:net';
import { type TLSSocket } from 'node:tls';
import { Secret } from '../../../lib/config/secret.js';
import { SILENT } from '../../../lib/exchange/io.js';
import { systemClock } from '../../../lib/time/clock.js';
import { ClientIdentity, type ClientIdentitySettings } from '../../../lib/tls/client-identity.js';
import { type Authority, createAuthority, type Issued } from '../../helpers/certificates.js';
import { startConnectProxy } from '../../helpers/connect-proxy.js';
import { call, mtlsServer, type MtlsServer, type MtlsServerOptions, until } from './mtls-server.js';
import { tlsSettings } from './tls-settings.js';

describe('the agents of an identity', () => {
  const open: (() => void)[] = [];
  afterEach(() => {
    for (const close of open.splice(0).reverse()) close();
  });

  async function start(maxSockets: number): Promise<ClientIdentity> {
    const opened = await ClientIdentity.open({
      tls: tlsSettings({}),
      maxSockets,
      offerToTokenEndpoint: false,
      clock: systemClock,
      log: SILENT,
    });
    return opened.identity as ClientIdentity;
  }

  /** Answers /quick at once and holds everything else until told. */
  async function server() {
    const held: http.ServerResponse[] = [];
    const sockets = new Set<Socket>();
    const listening = http.createServer((request, response) => {
      if (request.url === '/quick') response.end('quick');
      else held.push(response);
    });
    listening.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    });
    listening.listen(0, '127.0.0.1');
    await once(listening, 'listening');
    open.push(() => {
      listening.close();
      listening.closeAllConnections();
    });
    const url = new URL(`http://127.0.0.1:${(listening.address() as AddressInfo).port}`);
    return { held, sockets, url };
  }

  function call(url: URL, path: string, identity: ClientIdentity): Promise<string> {
    return new Promise((resolve, reject) => {
      const request = http.request(new URL(path, url), { agent: identity.agentFor(url) }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
        response.on('error', reject).on('end', () => resolve(body));
      });
      request.on('error', reject).end();
    });
  }

  describe('Closing the agents', () => {
    it('ends calls over plain http, and opens no connection for those that wait for one', async () => {
      const { held, sockets, url } = await server();
      const identity = await start(1);
      const calls = Promise.allSettled([call(url, '/slow', identity), call(url, '/slow', identity)]);
      await until(() => held.length === 1);
      await identity.close(60_000);
      const codes = (await calls).map((outcome) => (outcome as { reason?: { code?: string } }).reason?.code);
      expect(codes).toEqual(['ECONNRESET', 'ERR_AGENT_CLOSED']);
      await until(() => sockets.size === 0);
      expect(held).toHaveLength(1);
    });

    it('takes no time where nothing is in flight', async () => {
      const { sockets, url } = await server();
      const identity = await start(5);
      await Promise.all([call(url, '/quick', identity), call(url, '/quick', identity)]);
      expect(sockets.size).toBe(2);
      await identity.close(60_000);
      await until(() => sockets.size === 0);
    });
  });

  it('plain http: one connection more for tokens than for calls, each kept for the next', async () => {
    const { sockets, held, url } = await server();
    const identity = await start(1);
    await call(url, '/quick', identity);
    await call(url, '/quick', identity);
    expect(sockets.size).toBe(1);
    const { maxSockets } = identity.tokenAgentFor(url);
    expect([identity.agentFor(url).maxSockets, maxSockets]).toEqual([1, 2]);
    expect(identity.agentFor(url)).toMatchObject({ options: { timeout: 30_000 } });
    expect(held).toEqual([]);
  });

  it('an https address gets the agents of the identity, the token endpoint one connection more', async () => {
    const identity = await start(1);
    const https = new URL('https://localhost');
    expect(identity.agentFor(https)).toBe(identity.httpsAgent);
    expect(identity.tokenAgentFor(https)).toBe(identity.tokenAgent);
    expect([identity.agentFor(https).maxSockets, identity.tokenAgentFor(https).maxSockets]).toEqual([1, 2]);
  });
});

const [OLD, NEW] = (['TLSv1.2', 'TLSv1.3'] as const).map((version) => ({
  minVersion: version,
  maxVersion: version,
}));
const WAYS: Record<string, MtlsServerOptions> = {
  'TLS 1.2': OLD,
  'TLS 1.3': NEW,
  'a hello retry request': { ...NEW, ecdhCurve: 'P-384' },
  'algorithms of its own': { ...NEW, sigalgs: 'ecdsa_secp256r1_sha256:rsa_pss_rsae_sha512' },
};

describe('A server that never asks for the client certificate', () => {
  let authority: Authority;
  let client: Issued;
  let warnings: string[];
  const open: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    authority = await createAuthority();
    client = await authority.client('app');
  });
  afterEach(async () => {
    for (const close of open.splice(0).reverse()) await close();
  });

  async function start(settings: Partial<ClientIdentitySettings> = {}, pems: object = {}) {
    warnings = [];
    const { certificate, key: privateKey } = client;
    const { identity } = await ClientIdentity.open({
      tls: tlsSettings({ certificate, privateKey, chain: authority.chain, ...pems }),
      maxSockets: 5,
      offerToTokenEndpoint: false,
      isMutual: true,
      clock: systemClock,
      log: { ...SILENT, warn: (line) => void warnings.push(line) },
      ...settings,
    });
    if (!identity) throw new Error('no identity');
    open.push(() => identity.close());
    return identity;
  }

  async function server(options?: MtlsServerOptions): Promise<MtlsServer> {
    const live = await mtlsServer(authority, options);
    open.push(() => live.close());
    return live;
  }

  /** A call on a connection of its own. */
  const callAlone = async ({ url, sockets }: MtlsServer, { httpsAgent }: ClientIdentity) => {
    await call(url, httpsAgent, { headers: { connection: 'close' } });
    await until(() => sockets.size === 0);
  };

  it.each(Object.entries(WAYS))('is warned of once: %s', async (_, options) => {
    const live = await server({ ...options, demandCertificate: false });
    const identity = await start();
    for (let round = 0; round < 3; round++) await callAlone(live, identity);
    expect(live.resumed).toBeGreaterThan(0);
    expect(warnings).toEqual([
      `${live.url} did not ask for the client certificate, so it does not know this application by it: the TLS connection is not mutual. Check that this is the address for mutual TLS, and whether a proxy between ends TLS.`,
    ]);
    const other = await server({ ...options, demandCertificate: false });
    await callAlone(other, identity);
    expect(warnings).toHaveLength(2);
  });

  it.each(Object.entries(WAYS))('is no server that asks, resumed sessions or not: %s', async (_, options) => {
    const live = await server(options);
    const optional = await server({ ...options, requestCert: true, rejectUnauthorized: false });
    const identity = await start();
    for (const each of [live, optional]) {
      for (let round = 0; round < 3; round++) await callAlone(each, identity);
      expect(each.resumed).toBeGreaterThan(0);
      expect(each.subjects).toEqual(['app', 'app', 'app']);
    }
    expect(warnings).toEqual([]);
  });

  it('nor one that asks only before the answer (TLS 1.2)', async () => {
    const live = await server({
      ...OLD,
      demandCertificate: false,
      // A renegotiation that resumes the session asks for nothing.
      secureOptions: constants.SSL_OP_NO_TICKET,
      onRequest: ({ socket }, response) => {
        const connection = socket as TLSSocket;
        connection.renegotiate({ requestCert: true, rejectUnauthorized: false }, () =>
          response.end(String(connection.getPeerCertificate().subject?.CN)),
        );
      },
    });
    const identity = await start();
    expect((await call(live.url, identity.httpsAgent)).body).toBe('app');
    expect(warnings).toEqual([]);
  });

  it.each([true, false])('is told apart through a proxy; it asks: %s', async (demandCertificate) => {
    const live = await server({ demandCertificate });
    const proxy = await startConnectProxy();
    open.push(() => proxy.stop());
    const identity = await start({ proxyFor: () => new Secret(proxy.url) });
    for (let round = 0; round < 2; round++) await callAlone(live, identity);
    expect(proxy.targets).toHaveLength(2);
    expect(warnings.map((line) => line.split(' ')[0])).toEqual(demandCertificate ? [] : [live.url]);
  });

  it('is warned of only where mutual TLS was asked for, and where there is a certificate', async () => {
    const live = await server({ demandCertificate: false });
    await callAlone(live, await start({ isMutual: false }));
    expect(warnings).toEqual([]);
    await callAlone(live, await start({}, { certificate: undefined, privateKey: undefined }));
    expect(warnings).toEqual([]);
    const { tokenAgent } = await start({ isMutual: false, offerToTokenEndpoint: true });
    await call(live.url, tokenAgent);
    expect(warnings).toHaveLength(1);
    await call(live.url, (await start()).tokenAgent);
    expect(warnings).toEqual([]);
  });
});
