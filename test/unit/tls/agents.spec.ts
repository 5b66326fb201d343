import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import * as http from 'node:http';
import { type AddressInfo, type Socket } from 'node:net';
import { Agents, ClientIdentity } from '../../../lib/tls/index.js';
import { ManualClock } from './manual-clock.js';
import { until } from './mtls-server.js';
import { tlsSettings } from './tls-settings.js';

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0).reverse()) close();
});

async function start(maxSockets = 5) {
  const clock = new ManualClock();
  const { identity } = await ClientIdentity.open({
    tls: tlsSettings({}),
    maxSockets,
    offerToTokenEndpoint: false,
    clock,
    log: () => undefined,
  });
  const agents = new Agents(identity as ClientIdentity, maxSockets, clock);
  return { agents, clock };
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

function call(url: URL, path: string, agents: Agents): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.request(new URL(path, url), { agent: agents.api(url) }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      response.on('error', reject).on('end', () => resolve(body));
    });
    request.on('error', reject).end();
  });
}

describe('Closing the agents', () => {
  it('over plain http: idle connections at once, calls in flight when they are over', async () => {
    const { held, sockets, url } = await server();
    const { agents, clock } = await start(1);
    const slow = [call(url, '/slow', agents), call(url, '/slow', agents)];
    await until(() => held.length === 1);
    let closed = false;
    const closing = agents.close(5_000).then(() => (closed = true));
    held[0].end('first');
    await until(() => held.length === 2);
    expect(closed).toBe(false);
    held[1].end('second');
    expect(await Promise.all(slow)).toEqual(['first', 'second']);
    await closing;
    expect(clock.timers).toBe(0);
    await until(() => sockets.size === 0);
  });

  it('over plain http: cuts what is not done after the grace', async () => {
    const { held, sockets, url } = await server();
    const { agents, clock } = await start();
    expect(await call(url, '/quick', agents)).toBe('quick');
    const slow = Promise.allSettled([call(url, '/slow', agents), call(url, '/slow', agents)]);
    await until(() => held.length === 2);
    const closing = agents.close(5_000);
    await clock.advance(4_999);
    expect(sockets.size).toBe(2);
    await clock.advance(1);
    await closing;
    expect((await slow).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  it('over plain http: opens no connection for what waited for one', async () => {
    const { held, sockets, url } = await server();
    const { agents } = await start(1);
    const calls = Promise.allSettled([call(url, '/slow', agents), call(url, '/slow', agents)]);
    await until(() => held.length === 1);
    await agents.close(0);
    expect((await calls).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await until(() => sockets.size === 0);
    expect(held).toHaveLength(1);
  });

  it('takes no time where nothing is in flight', async () => {
    const { sockets, url } = await server();
    const { agents, clock } = await start();
    await Promise.all([call(url, '/quick', agents), call(url, '/quick', agents)]);
    await agents.close(60_000);
    expect(clock.timers).toBe(0);
    await until(() => sockets.size === 0);
  });
});
