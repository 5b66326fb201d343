import { connect, type Socket } from 'node:net';
import { rawServer, type Loopback } from './loopback.js';

export interface HangingRelay extends Loopback {
  connections: number;
  /** How many of the next connections are accepted and get no byte. */
  hang: number;
}

/**
 * A TCP relay to a port. With `proxy` it is one for CONNECT: a connection that does not hang is answered 200, and leads
 * to that port.
 */
export async function hangingRelay(target: number, { proxy = false } = {}): Promise<HangingRelay> {
  const relay: HangingRelay = {
    connections: 0,
    hang: 0,
    ...(await rawServer((socket) => {
      relay.connections += 1;
      if (relay.hang > 0) return void (relay.hang -= 1);
      if (!proxy) return join(socket, target);
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        join(socket, target);
      });
    })),
  };
  return relay;
}

function join(socket: Socket, target: number): void {
  const upstream = connect(target, '127.0.0.1').on('error', () => socket.destroy());
  socket.on('close', () => upstream.destroy());
  upstream.pipe(socket).pipe(upstream);
}
