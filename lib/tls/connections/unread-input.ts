import { readSync } from 'node:fs';
import { type Duplex } from 'node:stream';

/** `transport` is what a TLS connection through a proxy writes to. */
export type Connection = Duplex & { transport?: { readonly socket?: Duplex } };

/** Windows shows no file descriptor of a socket. */
export const canSeeUnreadInput = process.platform !== 'win32';

/**
 * Whether the peer has closed an idle connection, or has sent something on it, that the event loop has not read yet: the loop
 * was blocked, or runs other callbacks first. A request on such a connection would be lost. One byte is read past the event
 * loop, so a connection with unread input must not be used any more.
 */
export function hasUnreadInput(connection: Connection): boolean {
  const socket = connection.transport?.socket ?? connection;
  // An unpublished part of Node. Absent once the connection is closed.
  const { fd = -1 } = (socket as { _handle?: { fd?: number } | null })._handle ?? {};
  if (fd < 0) return false;
  try {
    // 0 bytes are a FIN.
    readSync(fd, Buffer.alloc(1));
    return true;
  } catch (error) {
    // EAGAIN: nothing has arrived.
    return (error as NodeJS.ErrnoException).code === 'ECONNRESET';
  }
}
