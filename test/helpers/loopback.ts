import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';

export interface Loopback {
  port: number;
  url: string;
  close(): Promise<void>;
}

/** A port on which nobody listens, for a process that is about to. */
export async function freePort(): Promise<number> {
  const { port, close } = await rawServer(() => undefined);
  await close();
  return port;
}

/** A plain HTTP server on loopback. */
export async function httpServer(listener: RequestListener): Promise<Loopback> {
  return listen(createServer(listener));
}

/** A server that sends raw bytes, for answers that no HTTP server would send. */
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
export async function deadPort(): Promise<number> {
  const { port, close } = await rawServer(() => undefined);
  await close();
  return port;
}
