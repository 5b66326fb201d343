import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import * as net from 'node:net';
import { nextTick } from 'node:process';
import { type Duplex } from 'node:stream';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function server(): Promise<number> {
  const listening = http.createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1');
  await once(listening, 'listening');
  open.push(() => {
    listening.close();
    listening.closeAllConnections();
  });
  return (listening.address() as net.AddressInfo).port;
}

/** CONTRIBUTING.md lists them: what each is for, and what breaks without it. */
describe("Unpublished parts of Node's that the agents use", () => {
  it("agent.addRequest(request, options): node:http hands an agent its requests, and Node's own takes them", async () => {
    const port = await server();
    const taken: unknown[] = [];
    class Handle extends http.Agent {
      readonly inner = new http.Agent({ keepAlive: true });
      addRequest(request: http.ClientRequest, options: http.ClientRequestArgs): void {
        taken.push([options.host, Number(options.port), options.timeout]);
        const own = http.Agent.prototype as unknown as Pick<Handle, 'addRequest'>;
        own.addRequest.call(this.inner, request, options);
      }
    }
    const agent = new Handle();
    open.push(() => agent.inner.destroy());
    const request = http.get({ host: '127.0.0.1', port, agent, timeout: 5_000 }, (answer) => answer.resume());
    await once(request, 'close');
    expect(taken).toEqual([['127.0.0.1', port, 5_000]]);
  });

  it('request.onSocket(null, error): ends a request that has no connection', async () => {
    const error = new Error('of the agent');
    class Refusing extends http.Agent {
      addRequest(request: http.ClientRequest): void {
        (request as unknown as { onSocket(socket: null, error: Error): void }).onSocket(null, error);
      }
    }
    const request = http.get({ host: '127.0.0.1', port: 1, agent: new Refusing() });
    const closed = once(request, 'close').catch(() => undefined);
    expect(await once(request, 'error')).toEqual([error]);
    await closed;
  });

  it('the event agentRemove: takes a connection out of its agent at once', async () => {
    const port = await server();
    const agent = new http.Agent({ keepAlive: true });
    open.push(() => agent.destroy());
    const answered = http.get({ host: '127.0.0.1', port, agent }, (answer) => answer.resume());
    await once(answered, 'close');
    await new Promise((resolve) => nextTick(resolve));
    const [socket] = Object.values(agent.freeSockets).flat();
    socket?.destroy();
    expect(Object.values(agent.freeSockets).flat()).toHaveLength(1);
    socket?.emit('agentRemove');
    expect(Object.values(agent.freeSockets).flat()).toEqual([]);
  });

  it("the order at the end of a call: 'close' of the request, then its connection is free, then the next tick", async () => {
    const port = await server();
    const order: string[] = [];
    class Watching extends http.Agent {
      override keepSocketAlive(socket: Duplex): boolean {
        order.push('free');
        return super.keepSocketAlive(socket) as unknown as boolean;
      }
    }
    const agent = new Watching({ keepAlive: true });
    open.push(() => agent.destroy());
    const request = http.get({ host: '127.0.0.1', port, agent }, (answer) => answer.resume());
    const ended = new Promise<void>((resolve) =>
      request.once('close', () => {
        order.push('close');
        nextTick(() => {
          order.push('next');
          resolve();
        });
      }),
    );
    await ended;
    expect(order).toEqual(['close', 'free', 'next']);
  });

  it('_agentKey: an https.Agent gives it to createConnection, and resumes TLS sessions by it', () => {
    const keys: unknown[] = [];
    class Watching extends https.Agent {
      override createConnection(options: https.RequestOptions & { _agentKey?: string }): Duplex {
        keys.push(options._agentKey === this.getName(options));
        throw new Error('enough');
      }
    }
    expect(() => https.get({ host: '127.0.0.1', port: 1, agent: new Watching() })).toThrow('enough');
    expect(keys).toEqual([true]);
    // identity-agent.spec.ts: 'resumes its session after idle closing'.
  });

  it('socket.connect() while its look-up runs: begins anew with other options, and connects once', async () => {
    const port = await server();
    let connected = 0;
    const socket: net.Socket = net.connect({
      host: 'a.name',
      port,
      lookup: () =>
        setImmediate(() =>
          socket.connect({
            host: 'a.name',
            port,
            lookup: (_host, _how, found) => found(null, [{ address: '127.0.0.1', family: 4 }]),
          }),
        ),
    });
    socket.on('connect', () => (connected += 1));
    await once(socket, 'connect');
    await new Promise((resolve) => setImmediate(resolve));
    expect([connected, socket.remoteAddress]).toEqual([1, '127.0.0.1']);
    socket.destroy();
  });
});
