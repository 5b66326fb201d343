import { Agent } from 'node:http';
import { type Duplex } from 'node:stream';
import { type Clock } from '../../config/clock.js';
import { closedError, failRequest, nodeAgent, takeQueue, type AgentRequestOptions } from './node-agent.js';

/** Connections kept alive over plain http, with an end that waits for the calls in flight. */
export class PlainAgent extends Agent {
  #onEmpty?: () => void;

  constructor(maxSockets: number) {
    super({ keepAlive: true, scheduling: 'lifo', maxSockets });
  }

  removeSocket(socket: Duplex, options: AgentRequestOptions): void {
    nodeAgent.removeSocket.call(this, socket, options);
    if (this.#isEmpty()) this.#onEmpty?.();
  }

  /**
   * Idle connections are closed at once; calls in flight get `graceMs`, then are cut. Resolves as soon as no
   * connection is left.
   */
  async close(graceMs: number, clock: Clock): Promise<void> {
    // What Node looks at when a call is over: its connection is closed then, not kept.
    (this as unknown as { keepAlive: boolean }).keepAlive = false;
    for (const sockets of Object.values(this.freeSockets))
      for (const socket of [...(sockets ?? [])]) socket.destroy();
    if (graceMs > 0 && !this.#isEmpty()) {
      await new Promise<void>((resolve) => {
        const cancel = clock.schedule(resolve, graceMs);
        this.#onEmpty = () => {
          cancel();
          resolve();
        };
      });
    }
    for (const request of takeQueue(this)) failRequest(request, closedError());
    this.destroy();
  }

  #isEmpty(): boolean {
    for (const pool of [this.sockets, this.freeSockets, this.requests]) {
      for (const name in pool) if (pool[name]?.length) return false;
    }
    return true;
  }
}
