import { connect, type Socket } from 'node:net';
import { rawServer, type Loopback } from './loopback.js';

export interface HangingRelay extends Loopback {
  connections: number;
  /** The number of next connections that the relay accepts but never sends a byte to. */
  hang: number;
}

/**
 * Starts a TCP relay to a port. With `proxy`, the relay is a CONNECT proxy: if a connection does not hang, the relay responds
 * to CONNECT with 200 and forwards the connection to that port.
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
