import { once } from 'node:events';
import { createServer } from 'node:net';

const DEFAULT_PORT = '3000';

/** Throws where it is no port, because `listen` takes any other text as the path of a socket. */
export function readPort(variable = ''): number {
  const text = variable.trim() || DEFAULT_PORT;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new RangeError(`PORT must be a number from 0 to 65535, and is '${text}'.`);
}

/** Throws where nothing can listen there: known before all is loaded. */
export async function checkPort(port: number, host: string): Promise<void> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}
