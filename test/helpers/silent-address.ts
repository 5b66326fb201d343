import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { freePort } from './loopback.js';

/** An address on loopback that accepts no connection: its backlog is full, so SYNs are dropped like by a firewall. */
export interface SilentAddress {
  port: number;
  /** Accepts connections from now on, and relays them to the port. The kernel repeats a lost SYN after a second. */
  wake(): void;
  stop(): Promise<void>;
}

const LISTENING = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { connect, createServer } = require('node:net');
  const { host, port, handOnTo, sleeping } = workerData;
  const server = createServer((socket) => {
    const upstream = connect(handOnTo, '127.0.0.1');
    for (const each of [socket, upstream]) each.on('error', () => undefined);
    socket.pipe(upstream).pipe(socket);
  });
  server.listen({ host, port, backlog: 1 }, () => {
    parentPort.postMessage('listening');
    // Blocks the event loop of this thread until wake(), so that no connection is accepted before.
    Atomics.wait(sleeping, 0, 0);
  });`;

export async function silentAddress(host: string, given?: number, handOnTo = 0): Promise<SilentAddress> {
  const port = given ?? (await freePort());
  const sleeping = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(LISTENING, { eval: true, workerData: { host, port, handOnTo, sleeping } });
  await once(worker, 'message');
  const wake = (): void => {
    Atomics.store(sleeping, 0, 1);
    Atomics.notify(sleeping, 0);
  };
  // Linux queues one connection more than the backlog.
  const filling: Socket[] = [];
  for (let taken = 0; taken < 2; taken += 1) {
    const socket = connect(port, host).on('error', () => undefined);
    filling.push(socket);
    await once(socket, 'connect');
  }
  const stop = async (): Promise<void> => {
    for (const socket of filling) socket.destroy();
    wake();
    await worker.terminate();
  };
  return { port, wake, stop };
}
