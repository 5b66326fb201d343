import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';

export interface Loopback {
  port: number;
  url: string;
  close(): Promise<void>;
}

/**
 * Finds free ports in a row and returns the first, for a server that is about to listen there. Ports from 32,768 on are
 * not used, because the system may give them to other sockets in the meantime.
 */
export async function freePort(count = 1): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const first = randomInt(10_000, 32_768 - count);
    const servers = Array.from({ length: count }, (_, index) =>
      createTcpServer().listen(first + index, '127.0.0.1'),
    );
    const listening = await Promise.allSettled(servers.map((server) => once(server, 'listening')));
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    if (listening.every(({ status }) => status === 'fulfilled')) return first;
  }
  throw new Error(`There are no ${count} free ports in a row`);
}

/** A plain HTTP server on loopback. */
export async function httpServer(listener: RequestListener): Promise<Loopback> {
  return listen(createServer(listener));
}

/** A TCP server, for tests that need bytes that no HTTP server would send. */
export async function rawServer(onSocket: (socket: Socket) => void): Promise<Loopback> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    onSocket(socket);
  });
  const loopback = await listen(server as unknown as Server);
  return {
    ...loopback,
    close: async () => {
      sockets.forEach((socket) => socket.destroy());
      await loopback.close();
    },
  };
}

async function listen(server: Server): Promise<Loopback> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections?.();
      }),
  };
}

/** A port on which nothing listens. */
export function deadPort(): Promise<number> {
  return freePort();
}
