import { once } from 'node:events';
import { createServer } from 'node:net';

const DEFAULT_PORT = '3000';

/** Throws for an invalid port. listen() would use such a text as the path of a Unix socket. */
export function readPort(variable = ''): number {
  const text = variable.trim() || DEFAULT_PORT;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new RangeError(`PORT must be a whole number from 0 to 65535, not '${text}'.`);
}

/** Throws if the port is not available, before the whole application is loaded. */
export async function checkPort(port: number, host: string): Promise<void> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}
