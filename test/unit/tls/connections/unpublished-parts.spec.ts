import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';

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

  it("the event 'free' of an agent, with the connection: what hears it gives the connection to the next that waits", async () => {
    const port = await server();
    let free: (() => void) | undefined;
    class Holding extends http.Agent {
      override emit(event: string, ...details: unknown[]): boolean {
        if (event !== 'free') return super.emit(event, ...details);
        expect(details[0]).toBeInstanceOf(net.Socket);
        free = () => void super.emit(event, ...details);
        return true;
      }
    }
    const agent = new Holding({ keepAlive: true, maxSockets: 1 });
    open.push(() => agent.destroy());
    const get = () =>
      once(
        http.get({ host: '127.0.0.1', port, agent }, (answer) => answer.resume()),
        'close',
      );
    const answered = [get(), get()];
    await answered[0];
    await new Promise((resolve) => setImmediate(resolve));
    expect(Object.values(agent.requests).flat()).toHaveLength(1);
    free?.();
    expect(Object.values(agent.requests).flat()).toEqual([]);
    await answered[1];
  });
});
