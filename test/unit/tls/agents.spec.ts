import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import * as http from 'node:http';
import { type AddressInfo, type Socket } from 'node:net';
import { SILENT } from '../../../lib/exchange/io.js';
import { systemClock } from '../../../lib/time/clock.js';
import { ClientIdentity } from '../../../lib/tls/client-identity.js';
import { until } from './mtls-server.js';
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
