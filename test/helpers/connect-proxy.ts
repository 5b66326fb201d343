import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';

export interface ConnectProxy {
  url: string;
  /** Host and port of each CONNECT. */
  targets: string[];
  /** The headers of each CONNECT. */
  headers: http.IncomingHttpHeaders[];
  /** The `Proxy-Authorization` header of each CONNECT, or an empty text. */
  credentials: string[];
  /** Ends all tunnels, without waiting. */
  drop(): void;
  stop(): Promise<void>;
}

/** Starts a real proxy on loopback that opens a tunnel to the target of each CONNECT. */
export async function startConnectProxy(): Promise<ConnectProxy> {
  const server = http.createServer();
  const sockets = new Set<net.Socket>();
  const track = (socket: net.Socket): net.Socket => {
    sockets.add(socket);
    return socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  };
  const targets: string[] = [];
  const received: http.IncomingHttpHeaders[] = [];
  const credentials: string[] = [];
  server.on('connect', ({ url = '', headers }: http.IncomingMessage, socket: net.Socket) => {
    targets.push(url);
    received.push(headers);
    credentials.push(headers['proxy-authorization'] ?? '');
    track(socket);
    const { hostname, port } = new URL(`http://${url}`);
    const upstream = track(net.connect(Number(port), hostname.replace(/^\[|\]$/g, '')));
    upstream.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    socket.once('close', () => upstream.destroy());
    upstream.once('close', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const drop = (): void => sockets.forEach((socket) => socket.destroy());
  return {
    drop,
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`,
    targets,
    headers: received,
    credentials,
    stop: async () => {
      drop();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
