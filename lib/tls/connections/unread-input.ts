import { readSync } from 'node:fs';
import { type Duplex } from 'node:stream';

/** For the byte that is read, which nobody uses. A new buffer for each read would cost as much as the system call. */
const discarded = Buffer.alloc(1);

/** A TLS connection through a proxy has its tunnel in `transport`. */
export type Connection = Duplex & { transport?: { readonly socket?: Duplex } };

/** False on Windows, where a socket has no file descriptor that can be read. */
export const canDetectUnreadInput = process.platform !== 'win32';

/**
 * Whether the socket of an idle connection has input that the event loop has not processed yet: a FIN, because the server has
 * closed the connection, or stray data. That happens while the event loop is blocked or runs other callbacks first. A
 * request on such a connection would be lost. The function reads one byte directly from the socket, so close the connection
 * if it returns true.
 */
export function detectUnreadInput(connection: Connection): boolean {
  const socket = connection.transport?.socket ?? connection;
  // Node does not document `_handle`. It is absent once the connection is closed.
  const { fd = -1 } = (socket as { _handle?: { fd?: number } | null })._handle ?? {};
  if (fd < 0) return false;
  const { stackTraceLimit } = Error;
  // The error below needs no stack trace, which costs more than the system call. False if the host has frozen the intrinsics.
  const isLimited = Reflect.set(Error, 'stackTraceLimit', 0);
  try {
    // A result of 0 bytes is a FIN.
    readSync(fd, discarded);
    return true;
  } catch (error) {
    // EAGAIN: nothing has arrived.
    return (error as NodeJS.ErrnoException).code === 'ECONNRESET';
  } finally {
    if (isLimited) Error.stackTraceLimit = stackTraceLimit;
  }
}
